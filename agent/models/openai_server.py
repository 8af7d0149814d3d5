"""A model behind an OpenAI-compatible server (llama-server, vLLM, llama-cpp-python's), named `http://host:port/v1#name`.

It is asked by OpenAI's own client. Beside `agent/models/hub.py` this is the one place that opens a connection, and only
for a model that is named so. A key, where the server wants one, comes from `CONVAGENT_API_KEY`; `CONVAGENT_TIMEOUT` is
how many seconds a reply may take. Such servers write, but share no way to tell how likely a given text is: judging is
by shared words, as with no model.
"""

import hashlib
import logging
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from agent.models.context_window import drop_oldest_exchanges, no_room_error
from agent.models.no_model import NoModel
from agent.models.protocol import Conversation, Listener, Reply, Task
from agent.models.structured_output import TEMPERATURE, clean_text_reply, parse_reply, reply_schema, strip_thinking
from indexes.text.control_characters import strip_control_characters
from schemas.addresses import is_loopback
from schemas.errors import MissingError, ModelError, ModelReplyError, UsageError, list_with_limit
from schemas.records import Call, Message

if TYPE_CHECKING:
    from openai import APIConnectionError, APIStatusError, OpenAI

CONNECT_SECONDS, REPLY_SECONDS = 10.0, 600.0
MAX_RETRIES = 2  # further attempts, for what may pass: no connection, no reply in time, HTTP 408, 409, 429 and 5xx
SENT_HEADERS = {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"}
RAW_RESPONSE_HEADER = "x-stainless-raw-response"  # by which the client knows that bytes are wanted
DEFAULT_CONTEXT = 8192  # tokens read at once, where a server does not say how many
TOKEN_CHARACTERS = 4
MESSAGE_TOKENS = 5  # that set a message apart from the next
MAX_QUOTED = 200  # characters of a server's own words in an error
MAX_LISTED = 10  # models of a server in an error
ADDRESS_FORM = "A server's model is named http://host:port/v1#name."
log = logging.getLogger("convagent")


class RefusedError(ModelError):
    """The server does not take the request as it is."""


class _Training(Struct):
    n_ctx_train: int | None = None  # tokens; of llama-server, which may have been started with fewer


class _ModelInfo(Struct):
    """A model as GET /models describes it."""

    id: Annotated[str, Meta(min_length=1)]
    max_model_len: int | None = None  # tokens; of vLLM
    meta: _Training | None = None


class _ModelList(Struct):
    data: Annotated[list[_ModelInfo], Meta(min_length=1)]


class _Message(Struct):
    content: str | None = None


class _Choice(Struct):
    message: _Message
    finish_reason: str | None = None


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class _Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(Struct):
    """The reply of POST /chat/completions. Servers differ in all that is not named here."""

    choices: Annotated[list[_Choice], Meta(min_length=1)]
    usage: _Usage | None = None


@dataclass(frozen=True, slots=True)
class Server:
    """A server and OpenAI's client for it, with its errors in our words.

    Both requests raise `UsageError` where a key is wanted, `MissingError` where there is no such path or model,
    `RefusedError` where the request is not taken, `ModelReplyError` for a reply of another form, and `ModelError` where
    every attempt failed.
    """

    base: str
    client: "OpenAI"

    def list_models(self) -> list[_ModelInfo]:
        with self._explain_errors():
            reply = self.client.models.with_raw_response.list()
        return _decode_reply(reply.content, _ModelList, self.base).data

    def complete(self, body: Mapping[str, Any]) -> _Completion:
        with self._explain_errors():
            reply = self.client.chat.completions.with_raw_response.create(**body)
        return _decode_reply(reply.content, _Completion, self.base)

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        from openai import APIConnectionError, APIStatusError

        try:
            yield
        except APIStatusError as error:
            raise self._status_error(error) from error
        except (APIConnectionError, UnicodeError) as error:  # the latter: a host whose name cannot be one
            raise self._connection_error(error) from error

    def _connection_error(self, error: "APIConnectionError | UnicodeError") -> ModelError:
        from openai import APITimeoutError

        cause = error.__cause__ or error
        if isinstance(error, APITimeoutError) and type(cause).__name__ == "ReadTimeout":
            remedy = "Set CONVAGENT_TIMEOUT to more seconds."
            return ModelError(f"no reply within {_read_timeout():g} s", where=self.base, remedy=remedy)
        why = strip_control_characters(str(cause)) or type(cause).__name__
        remedy = "Is the server running, and the address right?"
        return ModelError(f"the server cannot be reached ({why})", where=self.base, remedy=remedy)

    def _status_error(self, error: "APIStatusError") -> ModelError | MissingError | UsageError:
        """What a status means to a person."""
        status, words = error.status_code, _error_words(error)
        quoted = f"HTTP {status}: {words}" if words else f"HTTP {status}"
        if status in (401, 403):  # its words may quote the key
            remedy = "Set CONVAGENT_API_KEY to a key that it accepts."
            return UsageError(f"the server does not let us in (HTTP {status})", where=self.base, remedy=remedy)
        if status == 404:
            remedy = f"Is the address right, up to /v1, and the model still served? {ADDRESS_FORM}"
            return MissingError(f"the server has no such model or path ({quoted})", where=self.base, remedy=remedy)
        # llama-cpp-python's server answers 500 to a request that it does not understand
        if status in (400, 422) or (status == 500 and "response_format" in words):
            remedy = "Where the prompt is too long: start the server with a larger context, or shorten the turn."
            return RefusedError(f"the server refuses the request ({quoted})", where=self.base, remedy=remedy)
        if status in (408, 409, 429) or status >= 500:
            remedy = "Its log may say why. What was answered is kept: `answer --resume` goes on."
            return ModelError(f"the server failed ({quoted})", where=self.base, remedy=remedy)
        return ModelError(f"the server gives something else ({quoted})", where=self.base, remedy=ADDRESS_FORM)


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
    settings: str = ""
    runs_here: bool = False
    generates_text: bool = True
    writes_answers: bool = True
    has_likelihoods: bool = False

    def fits(self, conversation: Conversation, task: Task) -> bool:
        """By an estimate, since a server's tokenizer is not at hand."""
        return _estimate_tokens(_to_messages(conversation, task)) + task.max_tokens <= self._size

    def close(self) -> None:
        self._server.client.close()

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        """By shared words, as with no model."""
        return NoModel(self.listen).score(conversation, task, candidates)

    def ask(self, conversation: Conversation, task: Task, reply: type[Reply]) -> Reply:
        """As the protocol has it. A server cannot be given a reply's opening, so it is put before what comes back."""
        started = time.perf_counter()
        messages, omitted = self._prompt(conversation, task)
        sampling = {"temperature": 0.0} if task.seed is None else {"temperature": TEMPERATURE, "seed": task.seed}
        body = {"model": self._model, "messages": messages, "max_tokens": task.max_tokens, **sampling}
        schema = None if reply is str else reply_schema(reply)
        completion = self._server.complete(body) if schema is None else self._complete_json(schema, task.name, body)
        choice, usage = completion.choices[0], completion.usage or _Usage()
        text = choice.message.content or ""
        prompt = "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        seconds = round(time.perf_counter() - started, 4)
        read, written = _uncached_tokens(usage), usage.completion_tokens
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
            if _estimate_tokens(messages) + task.max_tokens <= self._size:
                return messages, omitted
        raise no_room_error(task, _estimate_tokens(messages), task.max_tokens, self._size)

    def _complete_json(self, schema: dict[str, Any], name: str, body: Mapping[str, Any]) -> _Completion:
        """A completion held to a schema, in OpenAI's form; once a server has refused that, in llama.cpp's older one."""
        if self._takes_json_schema:
            strict = {"name": name, "schema": schema, "strict": True}
            try:
                return self._server.complete(
                    {**body, "response_format": {"type": "json_schema", "json_schema": strict}}
                )
            except RefusedError as error:
                log.debug("%s; asked for a json_object instead", error.what)
        completion = self._server.complete({**body, "response_format": {"type": "json_object", "schema": schema}})
        self._takes_json_schema = False
        return completion


def open_server_model(name: str, listen: Listener) -> ServerModel:
    """The model of an address, or the first that the server has. The server is only asked which models it has.

    Raises `UsageError` for an address that is none or holds a password, a setting that is none, or a key that is not
    accepted, `MissingError` where the server is not there or does not have the model.
    """
    base, model = _parse_address(name)
    server = Server(base, _open_client(base))
    try:
        info = _find_model(server, model)
    except Exception:
        server.client.close()
        raise
    name = strip_control_characters(f"{base}#{info.id}")
    digest = hashlib.sha256(name.encode()).hexdigest()  # weights elsewhere cannot be hashed
    return ServerModel(name, digest, listen, server, info.id, _context_size(info))


def _find_model(server: Server, model: str) -> _ModelInfo:
    """What the server says of the model, or of its first."""
    try:
        models = server.list_models()
    except ModelError as error:
        raise MissingError(error.what, where=error.where, remedy=error.remedy or ADDRESS_FORM) from error
    found = next((info for info in models if model in ("", info.id)), None)
    if found is None:
        has = strip_control_characters(", ".join(list_with_limit([info.id for info in models], MAX_LISTED)))
        raise MissingError(f"the server has no model {model!r}", where=server.base, remedy=f"It has: {has}")
    return found


def _context_size(info: _ModelInfo) -> int:
    """Tokens that it reads at once, as far as it says so: a llama-server may read fewer than its model can."""
    trained = info.meta.n_ctx_train if info.meta else None
    return info.max_model_len or min(trained or DEFAULT_CONTEXT, DEFAULT_CONTEXT)


def _parse_address(name: str) -> tuple[str, str]:
    """The base address and the model's name. No error repeats the address, which may hold a password."""
    address, _, model = name.partition("#")
    try:
        url = urlsplit(address)
        host, _port = url.hostname, url.port
    except ValueError:
        raise UsageError("the model's address is none", remedy=ADDRESS_FORM) from None
    if "@" in url.netloc or url.query:
        remedy = "It would stand in the trace and the run: set CONVAGENT_API_KEY instead."
        raise UsageError("the model's address holds a password or a query", remedy=remedy)
    if not host:
        raise UsageError("the model's address names no host", remedy=ADDRESS_FORM)
    return address.rstrip("/?"), model


def _open_client(base: str) -> "OpenAI":
    """OpenAI's client for one server. It sends what we give it and nothing of its own settings, to no other address.

    Of itself it would send the person's OPENAI_API_KEY, OPENAI_ORG_ID and OPENAI_CUSTOM_HEADERS, follow redirections,
    and describe this machine in its headers. Loopback is never asked through a proxy of the environment.
    """
    from openai import DefaultHttpxClient, OpenAI, Timeout

    key, timeout = _read_key(), Timeout(_read_timeout(), connect=CONNECT_SECONDS)

    def reduce_headers(request: Any) -> None:
        for name in set(request.headers) - SENT_HEADERS - {RAW_RESPONSE_HEADER}:
            del request.headers[name]
        if key:
            request.headers["Authorization"] = f"Bearer {key}"

    try:
        connections = DefaultHttpxClient(
            follow_redirects=False,
            trust_env=not is_loopback(urlsplit(base).hostname or ""),
            event_hooks={"request": [reduce_headers]},
        )
    except OSError:
        raise
    except Exception:  # its own errors for such an address share no base, and may quote a password
        remedy = "See HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
        raise UsageError("the proxy that the environment names cannot be used", remedy=remedy) from None
    try:
        # The key is put in by `reduce_headers`; without one here, the client would take OPENAI_API_KEY.
        return OpenAI(
            api_key="unused", base_url=base, timeout=timeout, max_retries=MAX_RETRIES, http_client=connections
        )
    except Exception:
        connections.close()
        raise UsageError("the model's address is none", remedy=ADDRESS_FORM) from None


def _read_key() -> str:
    """The key for the server; empty where there is none."""
    key = os.environ.get("CONVAGENT_API_KEY", "").strip()
    if not (key.isascii() and key.isprintable()):
        raise UsageError("CONVAGENT_API_KEY holds characters that no key has")
    return key


def _read_timeout() -> float:
    """Seconds that a reply may take."""
    setting = os.environ.get("CONVAGENT_TIMEOUT", "")
    try:
        seconds = float(setting or REPLY_SECONDS)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"CONVAGENT_TIMEOUT is no number of seconds: {setting!r}")
    return seconds


def _to_messages(conversation: Conversation, task: Task) -> list[dict[str, str]]:
    """The conversation with the instruction after its last message. Half a character, which UTF-8 lacks, is a `?`."""
    shown = conversation.messages or (Message("user", ""),)
    contents = [message.text.strip() for message in shown]
    contents[-1] = "\n\n".join(part for part in (contents[-1], task.instruction.strip()) if part)
    roles = ["system", *(message.role for message in shown)]
    texts = [conversation.system.strip(), *contents]
    return [
        {"role": role, "content": text.encode("utf-8", "replace").decode()}
        for role, text in zip(roles, texts, strict=True)
    ]


def _estimate_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(MESSAGE_TOKENS + math.ceil(len(message["content"]) / TOKEN_CHARACTERS) for message in messages)


def _uncached_tokens(usage: _Usage) -> int:
    """Tokens of the prompt that were not in the server's cache."""
    cached = usage.prompt_tokens_details
    return usage.prompt_tokens - ((cached.cached_tokens or 0) if cached else 0)


def _decode_reply(data: bytes, kind: type[Reply], where: str) -> Reply:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelReplyError(f"the server's reply cannot be read ({error})", where=where) from error


def _error_words(error: "APIStatusError") -> str:
    """What a server says of its failure, in a line."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    text = words if isinstance(words, str) else error.response.text
    return strip_control_characters(" ".join(text.split()))[:MAX_QUOTED]
