"""A model behind an OpenAI-compatible server (llama-server, vLLM, llama-cpp-python's), named `http://host:port/v1#name`.

Such servers write, but share no way to tell how likely a given text is: judging is by shared words, as with no model.
"""

import asyncio
import hashlib
import logging
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast
from urllib.parse import urlsplit

from agent.models.no_model import NoModel
from agent.models.openai_client import ADDRESS_FORM, Connection, ModelInfo, RefusedError, Usage
from agent.models.protocol import (
    TEMPERATURE,
    Conversation,
    LanguageModel,
    Listener,
    Reply,
    Task,
    TextListener,
    clean_text_reply,
    fit_prompt,
    parse_reply,
    reply_schema,
    strip_thinking,
)
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
class ServerModel(LanguageModel):
    name: str
    digest: str
    listen: Listener
    _server: Connection
    _model: str  # as the server calls it
    _size: int  # tokens that it reads at once
    _takes_json_schema: bool = True
    writes_answers: bool = True

    def close(self) -> None:
        self._server.close()

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        return NoModel(self.listen).score(conversation, task, candidates)

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        """As the protocol has it. A server cannot be given a reply's opening, so it is put before what comes back."""
        started, sent_before = time.perf_counter(), self._server.requests
        room = self._size - task.max_tokens
        messages, omitted = fit_prompt(
            conversation, task, room, lambda shorter: _to_messages(shorter, task), _estimate_tokens
        )
        sampling = {"temperature": 0.0} if task.seed is None else {"temperature": TEMPERATURE, "seed": task.seed}
        body = {"model": self._model, "messages": messages, "max_tokens": task.max_tokens, **sampling}
        prompt = "\n".join(f"{message['role']}: {message['content']}" for message in messages)
        text, finish_reason, usage = "", None, Usage()
        try:
            text, finish_reason, usage = self._complete(body, task, reply, on_text)
        finally:
            cached = (usage.prompt_tokens_details and usage.prompt_tokens_details.cached_tokens) or 0
            call = Call(
                task.name,
                "ask",
                prompt,
                text,
                tokens_read=usage.prompt_tokens - cached,
                tokens_written=usage.completion_tokens,
                seconds=round(time.perf_counter() - started, 4),
                requests=self._server.requests - sent_before,
                prefix_tokens=cached,
                omitted=omitted,
            )
            self.listen(call)
        if reply is str:
            return cast("Reply", clean_text_reply(text, task))
        if finish_reason == "length":
            what = f"the model's reply to step {task.name!r} was cut off after {task.max_tokens} tokens"
            raise ModelReplyError(what, where=self._server.base)
        return parse_reply(strip_thinking(text), reply, task)

    def _complete(
        self, body: Mapping[str, Any], task: Task, reply: type, on_text: TextListener | None
    ) -> tuple[str, str | None, Usage]:
        """A reply held to its schema in OpenAI's way, or once a server has refused that, in llama.cpp's older one."""
        if reply is str:
            return self._server.complete(body, on_text)
        schema = reply_schema(reply)
        if self._takes_json_schema:
            strict = {"name": task.name, "schema": schema, "strict": True}
            form: dict[str, Any] = {"type": "json_schema", "json_schema": strict}
            try:
                return self._server.complete({**body, "response_format": form}, on_text)
            except RefusedError as error:
                log.debug("%s; asked for a json_object instead", error.what)
        completed = self._server.complete(
            {**body, "response_format": {"type": "json_object", "schema": schema}}, on_text
        )
        self._takes_json_schema = False
        return completed


def open_server_model(name: str, listen: Listener, concurrency: asyncio.Semaphore | None = None) -> ServerModel:
    """The model of an address, or the first that the server has. The server is only asked which models it has.

    Raises `UsageError` for an address that is none or holds a password, a setting that is none, or a key that is not
    accepted, `MissingError` where the server is not there or does not have the model.
    """
    base, model = _parse_address(name)
    server = Connection(base, concurrency or asyncio.Semaphore(1))
    try:
        info = _find_model(server, model)
    except Exception:
        server.close()
        raise
    name = hide_keys(strip_control_characters(f"{base}#{info.id}"))
    digest = hashlib.sha256(name.encode()).hexdigest()  # weights elsewhere cannot be hashed
    trained = (info.meta and info.meta.n_ctx_train) or DEFAULT_CONTEXT
    size = info.max_model_len or min(trained, DEFAULT_CONTEXT)  # llama-server may have been started with fewer
    return ServerModel(name, digest, listen, server, info.id, size)


def _find_model(server: Connection, model: str) -> ModelInfo:
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
    roles = ["system", *(message.role for message in shown)]
    texts = [conversation.system.strip(), *(message.text.strip() for message in shown)]
    texts[-1] = f"{texts[-1]}\n\n{task.instruction.strip()}".strip()
    pairs = zip(roles, texts, strict=True)
    return [{"role": role, "content": text.encode("utf-8", "replace").decode()} for role, text in pairs]


def _estimate_tokens(messages: Sequence[Mapping[str, str]]) -> int:
    return sum(MESSAGE_TOKENS + math.ceil(len(message["content"]) / TOKEN_CHARACTERS) for message in messages)
