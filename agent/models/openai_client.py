"""OpenAI's own client for one server: it asks three times where a failure may pass, and its errors are in our words.

Beside `agent/models/hub.py` this is the one place that opens a connection, and only for a model that is named so. A
key, where the server wants one, comes from `CONVAGENT_API_KEY`, and is never repeated, whatever a server says;
`CONVAGENT_TIMEOUT` is how many seconds an attempt may take, from its first byte to its last.
"""

import logging
import math
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from agent.models.cancellation import CancellationToken, ConcurrencyLimit, find_token
from agent.models.protocol import TextListener
from indexes.text.control_characters import strip_control_characters
from schemas.addresses import is_loopback
from schemas.errors import ConvagentError, MissingError, ModelError, ModelReplyError, UsageError
from schemas.secrets import hide_keys

if TYPE_CHECKING:
    from openai import OpenAI

MAX_RETRIES = 2
CONNECT_SECONDS, REPLY_SECONDS = 10.0, 120.0
MAX_REPLY_BYTES = 1 << 24
SENT_HEADERS = {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"}
RAW_RESPONSE_HEADER = "x-stainless-raw-response"  # by which the client knows that bytes are wanted
MAX_QUOTED = 200  # characters of a server's own words in an error
ADDRESS_FORM = "A server's model is named http://host:port/v1#name."
Decoded = TypeVar("Decoded")
log = logging.getLogger("convagent")


class RefusedError(ModelError):
    """The server does not take the request as it is."""


class UnusableError(Exception):
    """A reply that is not read on."""


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
    message: Text = Text()  # of a whole reply
    delta: Text = Text()  # of a part of one
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
    """OpenAI's client for one server, which has one request under way at a time. Not connected before the first.

    The client sends what we give it and nothing of its own settings, to no other address. Of itself it would send the
    person's OPENAI_API_KEY, OPENAI_ORG_ID and OPENAI_CUSTOM_HEADERS, follow redirections, and describe this machine in
    its headers. Loopback is never asked through a proxy of the environment.

    A reply is ended by closing its socket from another thread: when its time is over, and when the answer in hand is
    cancelled. The client's own time-outs are for one read: for a server that sends a byte a second it waits for ever.

    Its methods raise `UsageError` where a key is wanted, `MissingError` where there is no such path or model,
    `RefusedError` where the request is not taken, `ModelReplyError` for a reply of another form, `ModelError` where
    every attempt failed, and `AnswerCancelledError` as soon as the answer in hand is cancelled.
    """

    def __init__(self, base: str, concurrency: ConcurrencyLimit) -> None:
        self.base, self.requests = base, 0  # that were begun
        self._key, self._seconds = _read_key(base), _read_timeout()
        self._concurrency, self._token, self._expired = concurrency, CancellationToken(), False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(0, self._expire)
        self._client = self._open_client()

    def close(self) -> None:
        self._timer.cancel()
        self._client.close()

    def list_models(self) -> list[ModelInfo]:
        with self._send():
            reply = self._client.models.with_raw_response.list().content
        return _decode_reply(reply, ModelList, self.base).data

    def complete(self, body: Mapping[str, Any], on_text: TextListener | None = None) -> tuple[str, str | None, Usage]:
        """The text of a reply, why it ends, and what it took.

        With `on_text` it is asked for as a stream, and handed over as far as it is there.
        """
        if on_text is not None:
            streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
            try:
                return self._complete(streamed, on_text)
            except RefusedError as error:  # perhaps only the stream is
                log.debug("%s; asked for the whole reply instead", error.what)
        return self._complete(body, on_text)

    def _complete(self, body: Mapping[str, Any], on_text: TextListener | None) -> tuple[str, str | None, Usage]:
        text, finish_reason, usage = "", None, Usage()
        create = self._client.chat.completions.with_streaming_response.create
        with self._send(), create(**body) as reply:
            if streams := "event-stream" in reply.headers.get("content-type", ""):
                fields = (line.partition(":") for line in reply.iter_lines())  # comments have no name
                parts = (data.encode() for name, _, data in fields if name == "data" and data.strip() != "[DONE]")
            else:
                parts = (whole for whole in [reply.read()])
            for part in parts:
                completion = _decode_reply(part, Completion, self.base)
                if streams and completion.error is not None:
                    raise ModelError(f"the server failed ({_quote(str(completion.error))})", where=self.base)
                usage = completion.usage or usage
                for choice in completion.choices[:1]:
                    finish_reason = choice.finish_reason or finish_reason
                    text += choice.delta.content or choice.message.content or ""
                    if on_text and streams:
                        on_text(hide_keys(text, unfinished=True))
        if streams and not finish_reason:
            raise ModelReplyError("the server's reply ends in the middle", where=self.base)
        if not (streams or completion.choices):
            raise ModelReplyError("the server's reply cannot be read (it has no choices)", where=self.base)
        return hide_keys(text), finish_reason, usage

    @contextmanager
    def _send(self) -> Iterator[None]:
        """Until the block ends, a request is under way, and what goes wrong is said in our words."""
        self._token = find_token()
        with self._concurrency.admit(self._token), self._token.ending_with(self._end_connection):
            try:
                yield
            except ConvagentError:
                raise
            except Exception as error:  # the client's, or its transport's, whose package differs
                self._token.raise_if_cancelled()
                raise self._explain(error) from error
            finally:
                self._timer.cancel()

    def _explain(self, error: Exception) -> ConvagentError:
        from openai import APIStatusError

        if isinstance(error, APIStatusError):
            return _explain_status(error, self.base)
        cause = error.__cause__ or error
        if self._expired or type(cause).__name__ == "ReadTimeout":
            remedy = "Set CONVAGENT_TIMEOUT to more seconds."
            return ModelError(f"no reply within {self._seconds:g} s", where=self.base, remedy=remedy)
        if isinstance(cause, UnusableError):
            return ModelError(f"the server's reply cannot be used: {cause}", where=self.base)
        why = strip_control_characters(str(cause)) or type(cause).__name__
        remedy = "Is the server running, and the address right?"
        return ModelError(f"the server cannot be reached ({why})", where=self.base, remedy=remedy)

    def _open_client(self) -> "OpenAI":
        from openai import DefaultHttpxClient, OpenAI, Timeout

        pause = self._pause

        class Client(OpenAI):
            def _sleep_for_retry(self, *, retries_taken: int, max_retries: int, options: Any, response: Any) -> None:
                """As the client's own, save that it ends when the answer is no longer wanted."""
                headers = response.headers if response is not None else None
                pause(self._calculate_retry_timeout(max_retries - retries_taken, options, headers))

        trust_env = not is_loopback(urlsplit(self.base).hostname or "")
        hooks: Any = {"request": [self._begin_attempt], "response": [self._bound_reply]}
        try:
            transport = DefaultHttpxClient(follow_redirects=False, trust_env=trust_env, event_hooks=hooks)
        except OSError:
            raise
        except Exception:  # its own errors for such an address share no base, and may quote a password
            remedy = "See HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
            raise UsageError("the proxy that the environment names cannot be used", remedy=remedy) from None
        timeout = Timeout(self._seconds, connect=min(CONNECT_SECONDS, self._seconds))
        try:
            # The key is put in by `_begin_attempt`; without one here, the client would take OPENAI_API_KEY.
            return Client(
                api_key="unused", base_url=self.base, timeout=timeout, max_retries=MAX_RETRIES, http_client=transport
            )
        except Exception:
            transport.close()
            raise UsageError("the model's address is none", remedy=ADDRESS_FORM) from None

    def _pause(self, seconds: float) -> None:
        log.debug("%s failed; it is asked again in %.1f s", self.base, seconds)
        self._token.pause(seconds)

    def _begin_attempt(self, request: Any) -> None:
        """A hook of the transport."""
        for name in set(request.headers) - SENT_HEADERS - {RAW_RESPONSE_HEADER}:
            del request.headers[name]
        if self._key:
            request.headers["Authorization"] = f"Bearer {self._key}"
        request.headers["Accept-Encoding"] = "identity"  # a few packed bytes may stand for gigabytes
        request.extensions["trace"] = self._follow_connection
        self.requests, self._expired = self.requests + 1, False
        self._timer.cancel()
        self._timer = threading.Timer(self._seconds, self._expire)
        self._timer.daemon = True
        self._timer.start()

    def _bound_reply(self, response: Any) -> None:
        """A hook of the transport, which wants a stream of its own kind."""
        packed = response.headers.pop("content-encoding", "identity").strip().lower()
        stream, is_over = response.stream, self._is_over
        kind: Any = next(base for base in type(stream).__mro__ if base.__name__ == "SyncByteStream")

        class BoundedStream(kind):  # type: ignore[misc]  # known only when it is there
            def __iter__(self) -> Iterator[bytes]:
                if packed not in ("identity", ""):
                    raise UnusableError(f"it is packed as {packed[:40]!r}, which was not asked for")
                total = 0
                for chunk in stream:
                    total += len(chunk)
                    if total > MAX_REPLY_BYTES:
                        raise UnusableError(f"it has more than {MAX_REPLY_BYTES >> 20} MB")
                    if is_over():  # what came before may be much, and slow to read
                        break
                    yield chunk
                if is_over():  # to the transport it may look like the end
                    raise UnusableError("it was ended")

            def close(self) -> None:
                stream.close()

        response.stream = BoundedStream()

    def _follow_connection(self, event: str, details: dict[str, Any]) -> None:
        if event.endswith(("connect_tcp.complete", "start_tls.complete")):  # TLS takes the socket over
            self._socket = details["return_value"].get_extra_info("socket")
            if self._is_over():  # before there was a connection to end
                self._end_connection()

    def _is_over(self) -> bool:
        """Whether nobody waits for the reply any more."""
        return self._expired or self._token.is_cancelled

    def _expire(self) -> None:
        self._expired = True
        self._end_connection()

    def _end_connection(self) -> None:
        """End it from another thread: who sends or reads fails at once."""
        if self._socket is not None:
            with suppress(OSError):  # ended already; a TLS socket's own `shutdown` would disturb who reads it
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)


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
    """Seconds that an attempt may take."""
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
    """What a status means to a person."""
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
