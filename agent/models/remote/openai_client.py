"""OpenAI's own client for one server: what is sent and read, whole or as a stream, with the errors in our words.

Beside `agent/models/hub.py` this is the one place that opens a connection, and only for a model that is named so. A
key, where the server wants one, comes from `CONVAGENT_API_KEY`, and is never repeated, whatever a server says;
`CONVAGENT_TIMEOUT` is how many seconds a reply may take, from its first byte to its last.
"""

import logging
import math
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from agent.models.cancellation import find_token
from agent.models.protocol import Reply, TextListener
from agent.models.remote.reply_limits import PackingError, ReplyLimits, TooLargeError
from agent.models.remote.resending import ConcurrencyLimit, Resending, TransientError, read_retry_after
from indexes.text.control_characters import strip_control_characters
from schemas.addresses import is_loopback
from schemas.errors import ConvagentError, MissingError, ModelError, ModelReplyError, UsageError
from schemas.secrets import hide_keys

if TYPE_CHECKING:
    from openai import APIStatusError, OpenAI

CONNECT_SECONDS, REPLY_SECONDS = 10.0, 600.0
SENT_HEADERS = {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "user-agent"}
RAW_RESPONSE_HEADER = "x-stainless-raw-response"  # by which the client knows that bytes are wanted
MAX_QUOTED = 200  # characters of a server's own words in an error
ADDRESS_FORM = "A server's model is named http://host:port/v1#name."
log = logging.getLogger("convagent")
T = TypeVar("T")


class RefusedError(ModelError):
    """The server does not take the request as it is."""


class _Training(Struct):
    n_ctx_train: int | None = None  # tokens; of llama-server, which may have been started with fewer


class ModelInfo(Struct):
    """A model as GET /models describes it."""

    id: Annotated[str, Meta(min_length=1)]
    max_model_len: int | None = None  # tokens; of vLLM
    meta: _Training | None = None


class _ModelList(Struct):
    data: Annotated[list[ModelInfo], Meta(min_length=1)]


class MessageText(Struct, frozen=True):
    content: str | None = None


class Choice(Struct):
    message: MessageText
    finish_reason: str | None = None


class _PromptDetails(Struct):
    cached_tokens: int | None = None


class Usage(Struct):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _PromptDetails | None = None


class Completion(Struct):
    """The reply of POST /chat/completions. Servers differ in all that is not named here."""

    choices: Annotated[list[Choice], Meta(min_length=1)]
    usage: Usage | None = None


class _ChunkChoice(Struct):
    delta: MessageText = MessageText()
    finish_reason: str | None = None


class _Chunk(Struct):
    """An event of a stream; the last one may have no choice, but the usage."""

    choices: list[_ChunkChoice] = []
    usage: Usage | None = None
    error: Any = None


@dataclass(frozen=True, slots=True)
class Server:
    """A server and OpenAI's client for it, with its errors in our words.

    A request waits until there is room for it, and is sent again where its failure may pass. Both raise `UsageError`
    where a key is wanted, `MissingError` where there is no such path or model, `RefusedError` where the request is not
    taken, `ModelReplyError` for a reply of another form, `ModelError` where every attempt failed, and
    `AnswerCancelledError` as soon as the answer in hand is cancelled.
    """

    base: str
    client: "OpenAI"
    limits: ReplyLimits
    concurrency: ConcurrencyLimit

    def close(self) -> None:
        self.limits.end()
        self.client.close()

    def list_models(self) -> list[ModelInfo]:
        with self._send(self.client.models.with_raw_response.list) as reply:
            return _decode_reply(reply.content, _ModelList, self.base).data

    def complete(self, body: Mapping[str, Any], on_text: TextListener | None = None) -> Completion:
        """The reply to a request; with `on_text` it is asked for as a stream, and handed over as far as it is there."""
        if on_text is not None:
            try:
                return self._stream(body, on_text)
            except RefusedError as error:  # perhaps only the stream is
                log.debug("%s; asked for the whole reply instead", error.what)
        with self._send(lambda: self.client.chat.completions.with_raw_response.create(**body)) as reply:
            return _hide_keys_in(_decode_reply(reply.content, Completion, self.base))

    def _stream(self, body: Mapping[str, Any], on_text: TextListener) -> Completion:
        """The same, read as it comes. A server that knows no streams gives it whole."""
        streamed = {**body, "stream": True, "stream_options": {"include_usage": True}}
        text, finish_reason, usage = "", None, None
        create = self.client.chat.completions.with_streaming_response.create
        with ExitStack() as stack, self._send(lambda: stack.enter_context(create(**streamed))) as reply:
            if "event-stream" not in reply.headers.get("content-type", ""):
                whole = "\n".join(self._read_lines(reply)).encode()
                return _hide_keys_in(_decode_reply(whole, Completion, self.base))
            for chunk in self._read_chunks(reply):
                usage = chunk.usage or usage
                for choice in chunk.choices[:1]:
                    finish_reason = choice.finish_reason or finish_reason
                    text += choice.delta.content or ""
                    on_text(hide_keys(text, unfinished=True))
        if not finish_reason:
            raise ModelReplyError("the server's reply ends in the middle", where=self.base)
        return Completion([Choice(MessageText(hide_keys(text)), finish_reason)], usage)

    @contextmanager
    def _send(self, request: Callable[[], T]) -> Iterator[T]:
        """What a request brings, which is under way as long as it is read; then it is not sent again."""
        resending = Resending(self.limits.seconds)
        self.limits.token = token = find_token()
        while True:
            with self.concurrency.admit(token), token.ending_with(self.limits.end_connection):
                try:
                    with self._explain_errors():
                        reply = request()
                except TransientError as error:
                    pause = resending.choose_pause(error)
                    log.debug("%s; sent again in %.1f s", error.what, pause)
                else:
                    yield reply
                    return
            token.pause(pause)

    def _read_chunks(self, reply: Any) -> Iterator[_Chunk]:
        """The events of a stream up to its end. Comments and the names of events are left out."""
        for line in self._read_lines(reply):
            field, _, data = line.partition(":")
            if field != "data" or data.strip() == "[DONE]":
                continue
            chunk = _decode_reply(data.encode(), _Chunk, self.base)
            if chunk.error is not None:
                raise ModelError(f"the server failed ({_quote(str(chunk.error))})", where=self.base)
            yield chunk

    def _read_lines(self, reply: Any) -> Iterator[str]:
        """The lines of a reply, for as many seconds as it may take."""
        with self._explain_errors():
            yield from reply.iter_lines()

    @contextmanager
    def _explain_errors(self) -> Iterator[None]:
        from openai import APIStatusError

        try:
            yield
        except ConvagentError:
            raise
        except Exception as error:
            self.limits.token.raise_if_cancelled()
            if isinstance(error, APIStatusError):
                raise self._status_error(error) from error
            raise self._connection_error(error) from error  # of the client's transport, whose package differs

    def _connection_error(self, error: Exception) -> ModelError:
        cause = error.__cause__ or error
        if isinstance(cause, TooLargeError | PackingError):
            return ModelError(f"the server's reply cannot be used: {cause}", where=self.base)
        if self.limits.expired or type(cause).__name__ == "ReadTimeout":
            return self._timeout_error()
        why = strip_control_characters(str(cause)) or type(cause).__name__
        remedy = "Is the server running, and the address right?"
        return TransientError(f"the server cannot be reached ({why})", where=self.base, remedy=remedy)

    def _timeout_error(self) -> ModelError:
        """Whoever began to reply and took too long would again."""
        remedy = "Set CONVAGENT_TIMEOUT to more seconds."
        error = ModelError if self.limits.reply_began else TransientError
        return error(f"no reply within {self.limits.seconds:g} s", where=self.base, remedy=remedy)

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
            after = read_retry_after(error.response.headers)
            return TransientError(f"the server failed ({quoted})", where=self.base, remedy=remedy, retry_after=after)
        return ModelError(f"the server gives something else ({quoted})", where=self.base, remedy=ADDRESS_FORM)


def open_server(base: str, concurrency: ConcurrencyLimit | None = None) -> Server:
    """A server with OpenAI's client for it, not connected yet. Who shares a limit is counted together.

    The client sends what we give it and nothing of its own settings, to no other address.
    Of itself it would send the person's OPENAI_API_KEY, OPENAI_ORG_ID and OPENAI_CUSTOM_HEADERS, follow redirections,
    and describe this machine in its headers. Loopback is never asked through a proxy of the environment.
    """
    from openai import DefaultHttpxClient, OpenAI, Timeout

    key, limits = _read_key(), ReplyLimits(_read_timeout())
    _warn_of_open_key(key, base)
    timeout = Timeout(limits.seconds, connect=min(CONNECT_SECONDS, limits.seconds))

    def reduce_headers(request: Any) -> None:
        for name in set(request.headers) - SENT_HEADERS - {RAW_RESPONSE_HEADER}:
            del request.headers[name]
        if key:
            request.headers["Authorization"] = f"Bearer {key}"

    try:
        connections = DefaultHttpxClient(
            follow_redirects=False,
            trust_env=not is_loopback(urlsplit(base).hostname or ""),
            event_hooks={"request": [limits.begin, reduce_headers], "response": [limits.bound_reply]},
        )
    except OSError:
        raise
    except Exception:  # its own errors for such an address share no base, and may quote a password
        remedy = "See HTTP_PROXY, HTTPS_PROXY and ALL_PROXY."
        raise UsageError("the proxy that the environment names cannot be used", remedy=remedy) from None
    try:
        # The key is put in by `reduce_headers`; without one here, the client would take OPENAI_API_KEY.
        client = OpenAI(api_key="unused", base_url=base, timeout=timeout, max_retries=0, http_client=connections)
        return Server(base, client, limits, concurrency or ConcurrencyLimit(1))
    except Exception:
        connections.close()
        raise UsageError("the model's address is none", remedy=ADDRESS_FORM) from None


def _warn_of_open_key(key: str, base: str) -> None:
    address = urlsplit(base)
    if key and address.scheme == "http" and not is_loopback(address.hostname or ""):
        log.warning(
            "CONVAGENT_API_KEY goes to %s unencrypted, as does all that is asked: whoever is on the way reads it. "
            "Where the server has https://, name it so.",
            address.hostname,
        )


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


def _decode_reply(data: bytes, kind: type[Reply], where: str) -> Reply:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelReplyError(f"the server's reply cannot be read ({error})", where=where) from error


def _hide_keys_in(completion: Completion) -> Completion:
    """The completion without keys that its texts repeat."""
    choices = [
        Choice(MessageText(hide_keys(choice.message.content or "")), choice.finish_reason)
        for choice in completion.choices
    ]
    return Completion(choices, completion.usage)


def _error_words(error: "APIStatusError") -> str:
    """What a server says of its failure, in a line."""
    words = error.body.get("message") if isinstance(error.body, dict) else None
    text = words if isinstance(words, str) else error.response.text
    return _quote(text)


def _quote(words: str) -> str:
    """A server's own words, in a line."""
    return hide_keys(strip_control_characters(" ".join(words.split())))[:MAX_QUOTED]
