"""OpenAI's own client for one server: it asks three times where a failure may pass, and its errors are in our words.

Beside `agent/models/hub.py` this is the one place that opens a connection, and only for a model that is named so. A
key, where the server wants one, comes from `CONVAGENT_API_KEY`, and is never repeated, whatever a server says;
`CONVAGENT_TIMEOUT` is how many seconds a reply may take, all attempts included.
"""

import asyncio
import logging
import math
import os
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import cache
from queue import SimpleQueue
from typing import Annotated, Any, TypeVar
from urllib.parse import urlsplit

import httpx2
import msgspec
from msgspec import Meta, Struct
from openai import APIStatusError, AsyncOpenAI, DefaultAsyncHttpxClient, Timeout

from agent.models.cancellation import find_token
from agent.models.protocol import TextListener
from indexes.text.control_characters import strip_control_characters
from schemas.addresses import is_loopback
from schemas.errors import ConvagentError, MissingError, ModelError, ModelReplyError, UsageError
from schemas.secrets import hide_keys

MAX_RETRIES = 2
CONNECT_SECONDS, REPLY_SECONDS = 10.0, 120.0
MAX_REPLY_BYTES = 1 << 24
SENT_HEADERS = {"accept", "connection", "content-length", "content-type", "host", "user-agent"}
RAW_RESPONSE_HEADER = "x-stainless-raw-response"  # by which the client knows that bytes are wanted
MAX_QUOTED = 200  # characters of a server's own words in an error
ADDRESS_FORM = "A server's model is named http://host:port/v1#name."
Decoded = TypeVar("Decoded")
log = logging.getLogger("convagent")


class RefusedError(ModelError):
    """The server does not take the request as it is."""


class Training(Struct):
    n_ctx_train: int | None = None  # tokens; of llama-server, which may have been started with fewer


class ModelInfo(Struct):
    """A model as GET /models describes it."""

    id: Annotated[str, Meta(min_length=1)]
    max_model_len: int | None = None  # tokens; of vLLM
    meta: Training | None = None


class ModelList(Struct):
    data: Annotated[list[ModelInfo], Meta(min_length=1)]


class Text(Struct, frozen=True):
    content: str | None = None


class Choice(Struct):
    message: Text | None = None  # of a whole reply
    delta: Text | None = None  # of a part of one
    finish_reason: str | None = None


class PromptDetails(Struct):
    cached_tokens: int | None = None


class Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: PromptDetails | None = None


class Completion(Struct):
    """The reply of POST /chat/completions, or an event of its stream. Servers differ in all that is not named here."""

    choices: list[Choice] = []  # the last event may have none, but the usage
    usage: Usage | None = None
    error: Any = None


class Connection:
    """OpenAI's client for one server. Not connected before the first request.

    The client sends what we give it and nothing of its own settings, to no other address. Of itself it would send the
    person's OPENAI_API_KEY, OPENAI_ORG_ID and OPENAI_CUSTOM_HEADERS, follow redirections, and describe this machine in
    its headers. Loopback is never asked through a proxy of the environment.

    It works in the event loop of all connections, in a thread of its own, where a reply can be ended at any moment:
    when its time is over, and when the answer in hand is cancelled.

    Its methods raise `UsageError` where a key is wanted, `MissingError` where there is no such path or model,
    `RefusedError` where the request is not taken, `ModelReplyError` for a reply of another form, `ModelError` where
    every attempt failed, and `AnswerCancelledError` as soon as the answer in hand is cancelled.
    """

    def __init__(self, base: str, concurrency: asyncio.Semaphore) -> None:
        self.base, self.requests = base, 0  # that were begun
        self._key, self._seconds = _read_key(base), _read_timeout()
        self._concurrency, self._client = concurrency, self._open_client()

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._client.close(), _start_loop()).result()

    def list_models(self) -> list[ModelInfo]:
        with self._send(self._client.models.with_streaming_response.list) as parts:
            return [info for part in parts for info in _decode_reply(part, ModelList, self.base).data]

    def complete(self, body: Mapping[str, Any], on_text: TextListener | None = None) -> tuple[str, str | None, Usage]:
        """The text of a reply, why it ends, and what it took.

        With `on_text` it is asked for as a stream, and handed over as far as it is there.
        """
        text, finish_reason, usage, is_whole = "", None, Usage(), False
        streamed = {"stream": True, "stream_options": {"include_usage": True}} if on_text else {}
        create: Any = self._client.chat.completions.with_streaming_response.create
        with self._send(lambda: create(**body, **streamed)) as parts:
            for part in parts:
                completion = _decode_reply(part, Completion, self.base)
                if completion.error is not None:
                    raise ModelError(f"the server failed ({_quote(str(completion.error))})", where=self.base)
                usage = completion.usage or usage
                for choice in completion.choices[:1]:
                    finish_reason, is_whole = choice.finish_reason or finish_reason, choice.message is not None
                    text += (choice.message or choice.delta or Text()).content or ""
                    if on_text:
                        on_text(hide_keys(text, unfinished=True))
        if not (finish_reason or is_whole):
            raise ModelReplyError("the server's reply ends in the middle", where=self.base)
        return hide_keys(text), finish_reason, usage

    @contextmanager
    def _send(self, request: Callable[[], AbstractAsyncContextManager[Any]]) -> Iterator[Iterator[bytes]]:
        """The parts of a reply as they come: the events of a stream, or all at once. The block reads them."""
        token, parts = find_token(), SimpleQueue[bytes | None]()
        running = asyncio.run_coroutine_threadsafe(self._receive(request, parts), _start_loop())
        running.add_done_callback(lambda _: parts.put(None))

        def has_failed() -> bool:  # what came before may be much, and slow to read
            return running.done() and (running.cancelled() or running.exception() is not None)

        try:
            with token.ending_with(running.cancel):
                yield (part for part in iter(parts.get, None) if not has_failed())
                running.result()
        except ConvagentError:
            raise
        except Exception as error:  # the client's, or its transport's
            token.raise_if_cancelled()
            raise self._explain(error) from error
        finally:
            running.cancel()

    async def _receive(
        self, request: Callable[[], AbstractAsyncContextManager[Any]], parts: "SimpleQueue[bytes | None]"
    ) -> None:
        async with self._concurrency, asyncio.timeout(self._seconds), request() as reply:
            if "event-stream" not in reply.headers.get("content-type", ""):
                parts.put(await reply.read())
                return
            async for line in reply.iter_lines():
                name, _, data = line.partition(":")  # a comment has no name
                if name == "data" and data.strip() != "[DONE]":
                    parts.put(data.encode())

    def _explain(self, error: Exception) -> ConvagentError:
        if isinstance(error, APIStatusError):
            return _explain_status(error, self.base)
        if isinstance(error, TimeoutError):
            remedy = "Set CONVAGENT_TIMEOUT to more seconds."
            return ModelError(f"no reply within {self._seconds:g} s", where=self.base, remedy=remedy)
        cause = error.__cause__ or error
        why = strip_control_characters(str(cause)) or type(cause).__name__
        remedy = "Is the server running, and the address right?"
        return ModelError(f"the server cannot be reached ({why})", where=self.base, remedy=remedy)

    def _open_client(self) -> AsyncOpenAI:
        trust_env = not is_loopback(urlsplit(self.base).hostname or "")
        hooks: Any = {"request": [self._prepare_request], "response": [self._bound_reply]}
        try:
            transport = DefaultAsyncHttpxClient(follow_redirects=False, trust_env=trust_env, event_hooks=hooks)
        except OSError:
            raise
        except Exception:  # its own errors for such an address share no base, and may quote a password
            remedy = "See HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
            raise UsageError("the proxy that the environment names cannot be used", remedy=remedy) from None
        timeout = Timeout(None, connect=CONNECT_SECONDS)  # the rest has the deadline of the whole
        try:
            # The key is put in by `_prepare_request`; without one here, the client would take OPENAI_API_KEY.
            return AsyncOpenAI(
                api_key="unused", base_url=self.base, timeout=timeout, max_retries=MAX_RETRIES, http_client=transport
            )
        except Exception:
            raise UsageError("the model's address is none", remedy=ADDRESS_FORM) from None

    async def _prepare_request(self, request: httpx2.Request) -> None:
        """A hook of the transport."""
        self.requests += 1
        for name in set(request.headers) - SENT_HEADERS - {RAW_RESPONSE_HEADER}:
            del request.headers[name]
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        request.headers["Accept-Encoding"] = "identity"  # a few packed bytes may stand for gigabytes

    async def _bound_reply(self, response: httpx2.Response) -> None:
        """A hook of the transport."""
        packed = response.headers.pop("content-encoding", "identity").strip().lower()
        response.stream = BoundedStream(response.stream, packed, self.base)


class BoundedStream(httpx2.AsyncByteStream):
    """What comes of a reply, which must be unpacked and of at most `MAX_REPLY_BYTES`."""

    def __init__(self, stream: Any, packed: str, where: str) -> None:
        self._stream, self._packed, self._where = stream, packed, where

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._packed not in ("identity", ""):
            what = f"the server's reply cannot be used: it is packed as {self._packed[:40]!r}, which was not asked for"
            raise ModelError(what, where=self._where)
        total = 0
        async for chunk in self._stream:
            total += len(chunk)
            if total > MAX_REPLY_BYTES:
                what = f"the server's reply cannot be used: it has more than {MAX_REPLY_BYTES >> 20} MB"
                raise ModelError(what, where=self._where)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


@cache
def _start_loop() -> asyncio.AbstractEventLoop:
    """The event loop of all connections. Its thread is a daemon: a server that says nothing keeps no process alive."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="connections", daemon=True).start()
    return loop


def _read_key(base: str) -> str:
    """The key for the server; empty where there is none."""
    key, address = os.environ.get("CONVAGENT_API_KEY", "").strip(), urlsplit(base)
    if not (key.isascii() and key.isprintable()):
        raise UsageError("CONVAGENT_API_KEY holds characters that no key has")
    if key and address.scheme == "http" and not is_loopback(address.hostname or ""):
        log.warning(
            "CONVAGENT_API_KEY goes to %s unencrypted, as does all that is asked: whoever is on the way reads it. "
            "Where the server has https://, name it so.",
            address.hostname,
        )
    return key


def _read_timeout() -> float:
    setting = os.environ.get("CONVAGENT_TIMEOUT", "")
    try:
        seconds = float(setting or REPLY_SECONDS)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise UsageError(f"CONVAGENT_TIMEOUT is no number of seconds: {setting!r}")
    return seconds


def _decode_reply(data: bytes, kind: type[Decoded], where: str) -> Decoded:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelReplyError(f"the server's reply cannot be read ({error})", where=where) from error


def _explain_status(error: Any, where: str) -> ConvagentError:
    status, words = error.status_code, error.body.get("message") if isinstance(error.body, dict) else None
    quote = _quote(words if isinstance(words, str) else error.response.text)
    said = f"HTTP {status}: {quote}" if quote else f"HTTP {status}"
    if status in (401, 403):  # its words may quote the key
        remedy = "Set CONVAGENT_API_KEY to a key that it accepts."
        return UsageError(f"the server does not let us in (HTTP {status})", where=where, remedy=remedy)
    if status == 404:
        remedy = f"Is the address right, up to /v1, and the model still served? {ADDRESS_FORM}"
        return MissingError(f"the server has no such model or path ({said})", where=where, remedy=remedy)
    # llama-cpp-python's server answers 500 to a request that it does not understand
    if status in (400, 422) or (status == 500 and "response_format" in quote):
        remedy = "Where the prompt is too long: start the server with a larger context, or shorten the turn."
        return RefusedError(f"the server refuses the request ({said})", where=where, remedy=remedy)
    if status in (408, 409, 429) or status >= 500:
        remedy = "Its log may say why. What was answered is kept: `answer --resume` goes on."
        return ModelError(f"the server failed ({said})", where=where, remedy=remedy)
    return ModelError(f"the server gives something else ({said})", where=where, remedy=ADDRESS_FORM)


def _quote(words: str) -> str:
    """A server's own words, in a line."""
    return hide_keys(strip_control_characters(" ".join(words.split())))[:MAX_QUOTED]
