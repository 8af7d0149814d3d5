"""A model behind an OpenAI-compatible server (llama-server, vLLM, llama-cpp-python's), named `http://host:port/v1#name`.

Beside `agent/models/hub.py` the one place that opens a connection, and only for a model that is named so. A key, where the
server wants one, comes from `CONVAGENT_API_KEY`; `CONVAGENT_TIMEOUT` is how many seconds a reply may take. Such servers
write, but share no way to tell how likely a given text is: judging is by shared words, as with no model.
"""

import hashlib
import json
import logging
import math
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import TYPE_CHECKING, Annotated, Any, cast

import msgspec
from msgspec import Meta, Struct

from agent.models.context_window import drop_oldest_exchanges, no_room_error
from agent.models.no_model import NoModel
from agent.models.protocol import Conversation, Listener, Reply, Task
from agent.models.structured_output import TEMPERATURE, clean_text_reply, parse_reply, reply_schema, strip_thinking
from indexes.text.control_characters import strip_control_characters
from schemas.errors import MissingError, ModelError, ModelReplyError, UsageError, list_with_limit
from schemas.records import Call, Message

if TYPE_CHECKING:
    import httpx

CONNECT_SECONDS, REPLY_SECONDS = 10.0, 600.0
PAUSES = (1.0, 2.0)  # seconds before the second and the third attempt
CONTEXT = 8192  # tokens that are taken to be read at once where a server does not say
TOKEN_CHARACTERS = 4
MARKS = 5  # tokens that set a message apart from the next
QUOTED = 200  # characters of a server's own words in an error
LISTED = 10  # models of a server in an error
FORM = "A server's model is named http://host:port/v1#name."
log = logging.getLogger("convagent")


class TransientError(ModelError):
    """What may be over at the next attempt."""


class RefusedError(ModelError):
    """The server does not take the request as it is."""


class _Trained(Struct):
    n_ctx_train: int | None = None  # tokens; of llama-server, which may have been started with fewer


class _About(Struct):
    """A model as GET /models describes it."""

    id: Annotated[str, Meta(min_length=1)]
    max_model_len: int | None = None  # tokens; of vLLM
    meta: _Trained | None = None


class _Models(Struct):
    data: Annotated[list[_About], Meta(min_length=1)]


class _Message(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _Cached(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Cached | None = None


class _Completion(Struct):
    """The reply of POST /chat/completions."""

    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Usage | None = None


class _Fault(Struct):
    message: str


class _Failure(Struct):
    """An error as these servers tell it."""

    error: _Fault


@dataclass(frozen=True, slots=True)
class Server:
    """An address that is asked, and asked again where that may help."""

    base: str
    client: "httpx.Client"
    pauses: Sequence[float]  # seconds before each further attempt

    def ask(self, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        """What GET gives, or POST where there is a body.

        Raises `UsageError` where a key is wanted, `MissingError` where there is no such path or model, `RefusedError`
        where the request is not taken, `TransientError` where every attempt failed, `ModelError` for what else it says.
        """
        for pause in self.pauses:
            try:
                return self._attempt(path, body)
            except TransientError as error:
                log.info("%s: %s; asked again in %g s", error.where, error.what, pause)
                time.sleep(pause)
        return self._attempt(path, body)

    def _attempt(self, path: str, body: Mapping[str, Any] | None) -> bytes:
        import httpx

        method = "GET" if body is None else "POST"
        sent = json.dumps(body, ensure_ascii=False).encode("utf-8", "replace") if body is not None else None
        headers = {"Content-Type": "application/json"} if body is not None else None
        try:
            response = self.client.request(method, f"{self.base}/{path}", content=sent, headers=headers)
        except httpx.ReadTimeout as error:
            what = f"no reply within {self.client.timeout.read:g} s"
            raise TransientError(what, where=self.base, remedy="Set CONVAGENT_TIMEOUT to more seconds.") from error
        except (httpx.RequestError, UnicodeError) as error:  # the latter: a host whose name cannot be one
            why = strip_control_characters(str(error)) or type(error).__name__
            remedy = "Is the server running, and the address right?"
            raise TransientError(f"the server cannot be reached ({why})", where=self.base, remedy=remedy) from error
        if not response.is_success:
            raise self._failure(response.status_code, _error_words(response.content))
        return response.content

    def _failure(self, status: int, words: str) -> ModelError | MissingError | UsageError:
        """What a status means to a person."""
        said = f"HTTP {status}: {words}" if words else f"HTTP {status}"
        if status in (401, 403):  # its words may quote the key
            remedy = "Set CONVAGENT_API_KEY to a key that it accepts."
            return UsageError(f"the server does not let us in (HTTP {status})", where=self.base, remedy=remedy)
        if status == 404:
            remedy = f"Is the address right, up to /v1, and the model still served? {FORM}"
            return MissingError(f"the server has no such model or path ({said})", where=self.base, remedy=remedy)
        # llama-cpp-python's server tells what it does not know in a request by 500
        if status in (400, 422) or (status == 500 and "response_format" in words):
            remedy = "Where the prompt is too long: start the server with a larger context, or shorten the turn."
            return RefusedError(f"the server refuses the request ({said})", where=self.base, remedy=remedy)
        if status == 429 or status >= 500:
            remedy = "Its log may say why. What was answered is kept: `answer --resume` goes on."
            return TransientError(f"the server failed ({said})", where=self.base, remedy=remedy)
        return ModelError(f"the server gives something else ({said})", where=self.base, remedy=FORM)


@dataclass(slots=True)
class ServerModel:
    """A server's model. Opened by `open_server_model`."""

    name: str
    digest: str
    listen: Listener
    _server: Server
    _model: str  # as the server calls it
    _size: int  # tokens that it reads at once
    _takes_json_schema: bool = True
    writes_answers: bool = True
    has_likelihoods: bool = False

    def fits(self, conversation: Conversation, task: Task) -> bool:
        """By an estimate, since a server's tokenizer is not at hand."""
        return _prompt_length(_to_messages(conversation, task)) + task.max_tokens <= self._size

    def close(self) -> None:
        self._server.client.close()

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        """By shared words, as with no model."""
        return NoModel(self.listen).score(conversation, task, candidates)

    def ask(self, conversation: Conversation, task: Task, reply: type[Reply]) -> Reply:
        """As the seam has it. A server cannot be given the opening of a reply: it stands before what it writes."""
        started = time.perf_counter()
        messages, omitted = self._prompt(conversation, task)
        sampled = {"temperature": 0.0} if task.seed is None else {"temperature": TEMPERATURE, "seed": task.seed}
        body = {"model": self._model, "messages": messages, "max_tokens": task.max_tokens, **sampled}
        completion = self._asked(body) if reply is str else self._asked_for(reply_schema(reply), task.name, body)
        choice, usage = completion.choices[0], completion.usage or _Usage()
        text = choice.message.content or ""
        prompt = "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        seconds = round(time.perf_counter() - started, 4)
        read, written = _read_reply(usage), usage.completion_tokens
        self.listen(Call(task.name, "ask", prompt, text, (), (), read, written, seconds, omitted))
        if reply is str:
            return cast("Reply", clean_text_reply(text, task))
        if choice.finish_reason == "length":
            what = f"the model's reply to step {task.name!r} was cut off after {task.max_tokens} tokens"
            raise ModelReplyError(what, where=self._server.base)
        return parse_reply(strip_thinking(text), reply, task)

    def _prompt(self, conversation: Conversation, task: Task) -> tuple[list[dict[str, str]], tuple[str, ...]]:
        """The messages, and what they have no room for."""
        for shorter, omitted in drop_oldest_exchanges(conversation, task):
            messages = _to_messages(shorter, task)
            if _prompt_length(messages) + task.max_tokens <= self._size:
                return messages, omitted
        raise no_room_error(task, _prompt_length(messages), task.max_tokens, self._size)

    def _asked_for(self, schema: dict[str, Any], name: str, body: Mapping[str, Any]) -> _Completion:
        """A completion held to a schema, in the form of OpenAI, or else that of llama.cpp from then on."""
        if self._takes_json_schema:
            strict = {"name": name, "schema": schema, "strict": True}
            try:
                return self._asked({**body, "response_format": {"type": "json_schema", "json_schema": strict}})
            except RefusedError as error:
                log.debug("%s; asked for a json_object instead", error.what)
        completion = self._asked({**body, "response_format": {"type": "json_object", "schema": schema}})
        self._takes_json_schema = False
        return completion

    def _asked(self, body: Mapping[str, Any]) -> _Completion:
        return _decode_reply(self._server.ask("chat/completions", body), _Completion, self._server.base)


def open_server_model(name: str, listen: Listener, pauses: Sequence[float] = PAUSES) -> ServerModel:
    """The model of an address, or the first that the server has. Nothing is asked of it but what it has.

    Raises `UsageError` for an address that is none or holds a password, a setting that is none, or a key that is not
    accepted, `MissingError` where the server is not there or does not have the model.
    """
    base, model = _parse_address(name)
    server = Server(base, _make_client(base), pauses)
    try:
        about = _find_model(server, model)
    except Exception:
        server.client.close()
        raise
    name = strip_control_characters(f"{base}#{about.id}")
    digest = hashlib.sha256(name.encode()).hexdigest()  # weights elsewhere cannot be hashed
    return ServerModel(name, digest, listen, server, about.id, _context_size(about))


def _find_model(server: Server, model: str) -> _About:
    """What the server says of the model, or of its first."""
    try:
        models = _decode_reply(server.ask("models"), _Models, server.base).data
    except ModelError as error:
        raise MissingError(error.what, where=error.where, remedy=error.remedy or FORM) from error
    found = next((about for about in models if model in ("", about.id)), None)
    if found is None:
        has = strip_control_characters(", ".join(list_with_limit([about.id for about in models], LISTED)))
        raise MissingError(f"the server has no model {model!r}", where=server.base, remedy=f"It has: {has}")
    return found


def _context_size(about: _About) -> int:
    """Tokens that it reads at once, as far as it says so: a llama-server may read fewer than its model can."""
    trained = about.meta.n_ctx_train if about.meta else None
    return about.max_model_len or min(trained or CONTEXT, CONTEXT)


def _parse_address(name: str) -> tuple[str, str]:
    """The base address and the model's name. No error repeats the address, which may hold a password."""
    import httpx

    address, _, model = name.partition("#")
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        raise UsageError("the model's address is none", remedy=FORM) from None
    if url.userinfo or url.query:
        remedy = "It would stand in the trace and the run: set CONVAGENT_API_KEY instead."
        raise UsageError("the model's address holds a password or a query", remedy=remedy)
    if not url.host:
        raise UsageError("the model's address names no host", remedy=FORM)
    return str(url).rstrip("/?"), model


def _make_client(base: str) -> "httpx.Client":
    """Loopback is never asked through a proxy of the environment."""
    import httpx

    key = os.environ.get("CONVAGENT_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError("CONVAGENT_API_KEY holds characters that no key has")
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    timeout = httpx.Timeout(_read_timeout(), connect=CONNECT_SECONDS)
    try:
        return httpx.Client(headers=headers, timeout=timeout, trust_env=not _is_loopback(httpx.URL(base).host))
    except (ValueError, ImportError, httpx.InvalidURL):
        remedy = "See HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
        raise UsageError("the proxy that the environment names cannot be used", remedy=remedy) from None


def _read_timeout() -> float:
    """Seconds that a reply may take."""
    said = os.environ.get("CONVAGENT_TIMEOUT", "")
    try:
        seconds = float(said or REPLY_SECONDS)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"CONVAGENT_TIMEOUT is no number of seconds: {said!r}")
    return seconds


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _to_messages(conversation: Conversation, task: Task) -> list[dict[str, str]]:
    """The conversation with the instruction after its last message."""
    said = conversation.messages or (Message("user", ""),)
    contents = [message.text.strip() for message in said]
    contents[-1] = "\n\n".join(part for part in (contents[-1], task.instruction.strip()) if part)
    turns = [{"role": message.role, "content": content} for message, content in zip(said, contents, strict=True)]
    return [{"role": "system", "content": conversation.system.strip()}, *turns]


def _prompt_length(messages: Sequence[Mapping[str, str]]) -> int:
    """Tokens, estimated."""
    return sum(MARKS + math.ceil(len(message["content"]) / TOKEN_CHARACTERS) for message in messages)


def _read_reply(usage: _Usage) -> int:
    """Tokens of the prompt that were not in the server's cache."""
    cached = usage.prompt_tokens_details
    return usage.prompt_tokens - ((cached.cached_tokens or 0) if cached else 0)


def _decode_reply(data: bytes, kind: type[Reply], where: str) -> Reply:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelReplyError(f"the server's reply cannot be read ({error})", where=where) from error


def _error_words(data: bytes) -> str:
    """What a server says of its failure, in a line."""
    try:
        told = _decode_reply(data, _Failure, "").error.message
    except ModelReplyError:
        told = data.decode("utf-8", "replace")
    return strip_control_characters(" ".join(told.split()))[:QUOTED]
