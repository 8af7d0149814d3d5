"""A model behind an OpenAI-compatible server (llama-server, vLLM, llama-cpp-python's), named `http://host:port/v1#name`.

It is asked by OpenAI's own client (`agent/models/remote/openai_client.py`). Such servers write, but share no way to
tell how likely a given text is: judging is by shared words, as with no model.
"""

import hashlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast
from urllib.parse import urlsplit

from agent.models.no_model import NoModel
from agent.models.protocol import (
    Conversation,
    Listener,
    Reply,
    Task,
    TextListener,
    drop_oldest_exchanges,
    no_room_error,
)
from agent.models.remote.openai_client import (
    ADDRESS_FORM,
    Completion,
    ModelInfo,
    RefusedError,
    Server,
    Usage,
    open_server,
)
from agent.models.remote.resending import ConcurrencyLimit
from agent.models.structured_output import TEMPERATURE, clean_text_reply, parse_reply, reply_schema, strip_thinking
from indexes.text.control_characters import strip_control_characters
from schemas.errors import MissingError, ModelError, ModelReplyError, UsageError, list_with_limit
from schemas.records import Call, Message
from schemas.secrets import hide_keys

DEFAULT_CONTEXT = 8192  # tokens read at once, where a server does not say how many
TOKEN_CHARACTERS = 4
MESSAGE_TOKENS = 5  # that set a message apart from the next
MAX_LISTED = 10  # models of a server in an error
log = logging.getLogger("convagent")


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
    adapters: frozenset[str] = frozenset()

    def fits(self, conversation: Conversation, task: Task) -> bool:
        """By an estimate, since a server's tokenizer is not at hand."""
        return _estimate_tokens(_to_messages(conversation, task)) + task.max_tokens <= self._size

    def close(self) -> None:
        self._server.close()

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        """By shared words, as with no model."""
        return NoModel(self.listen).score(conversation, task, candidates)

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        """As the protocol has it. A server cannot be given a reply's opening, so it is put before what comes back."""
        started = time.perf_counter()
        messages, omitted = self._prompt(conversation, task)
        sampling = {"temperature": 0.0} if task.seed is None else {"temperature": TEMPERATURE, "seed": task.seed}
        body = {"model": self._model, "messages": messages, "max_tokens": task.max_tokens, **sampling}
        schema = None if reply is str else reply_schema(reply)
        forms: Sequence[Mapping[str, Any]] = ({},) if schema is None else self._json_forms(schema, task.name)
        prompt = "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        text, usage, sent_before = "", Usage(), self._server.limits.requests
        try:
            completion = self._complete(body, forms, on_text)
            choice, usage = completion.choices[0], completion.usage or Usage()
            text = choice.message.content or ""
        finally:
            call = Call(
                task.name, "ask", prompt, text, seconds=round(time.perf_counter() - started, 4), omitted=omitted
            )
            self.listen(_count_tokens(call, usage, self._server.limits.requests - sent_before))
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

    def _json_forms(self, schema: dict[str, Any], name: str) -> tuple[Mapping[str, Any], ...]:
        """Ways to hold a reply to a schema: OpenAI's, until a server has refused it, then llama.cpp's older one."""
        strict = {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}
        older = {"response_format": {"type": "json_object", "schema": schema}}
        return ({"response_format": strict}, older) if self._takes_json_schema else (older,)

    def _complete(
        self, body: Mapping[str, Any], forms: Sequence[Mapping[str, Any]], on_text: TextListener | None
    ) -> Completion:
        """A completion in the first of these forms that the server takes."""
        *preferred, last = forms
        for form in preferred:
            try:
                return self._server.complete({**body, **form}, on_text)
            except RefusedError as error:
                log.debug("%s; asked for a json_object instead", error.what)
        completion = self._server.complete({**body, **last}, on_text)
        self._takes_json_schema = self._takes_json_schema and not preferred
        return completion


def open_server_model(name: str, listen: Listener, concurrency: ConcurrencyLimit | None = None) -> ServerModel:
    """The model of an address, or the first that the server has. The server is only asked which models it has.

    Raises `UsageError` for an address that is none or holds a password, a setting that is none, or a key that is not
    accepted, `MissingError` where the server is not there or does not have the model.
    """
    base, model = _parse_address(name)
    server = open_server(base, concurrency)
    try:
        info = _find_model(server, model)
    except Exception:
        server.close()
        raise
    name = hide_keys(strip_control_characters(f"{base}#{info.id}"))
    digest = hashlib.sha256(name.encode()).hexdigest()  # weights elsewhere cannot be hashed
    return ServerModel(name, digest, listen, server, info.id, _context_size(info))


def _find_model(server: Server, model: str) -> ModelInfo:
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


def _context_size(info: ModelInfo) -> int:
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


def _count_tokens(call: Call, usage: Usage, requests: int) -> Call:
    """The call with what it took of the server, as that tells it."""
    details = usage.prompt_tokens_details
    prefix = (details.cached_tokens or 0) if details else 0
    read, written = usage.prompt_tokens - prefix, usage.completion_tokens
    return replace(call, tokens_read=read, tokens_written=written, prefix_tokens=prefix, requests=requests)
