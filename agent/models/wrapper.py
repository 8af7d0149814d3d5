"""A model around a model: its replies are kept under all that decides them, and it is asked again."""

import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version
from typing import Any

import msgspec

from agent.models.protocol import Conversation, LanguageModel, Listener, Reply, Task, TextListener
from indexes.storage.cache import Cache
from schemas.errors import ModelReplyError
from schemas.records import Call

MAX_ATTEMPTS = 3
RETRY_SEED_STEP = 1 << 30  # what a further attempt adds to the seed; those of a run are below


class ModelWrapper:
    """Does what the model inside it does."""

    name: str
    digest: str
    settings: str
    runs_here: bool
    generates_text: bool
    writes_answers: bool
    has_likelihoods: bool
    adapters: Collection[str]

    def __init__(self, llm: LanguageModel) -> None:
        self._inside = llm

    @property
    def _llm(self) -> LanguageModel:
        return self._inside

    def __getattr__(self, name: str) -> Any:
        """The attributes above are those of the model inside."""
        if name.startswith("_"):  # of an object that is only being made
            raise AttributeError(name)
        return getattr(self._llm, name)

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        return self._llm.ask(conversation, task, reply, on_text)

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        return self._llm.score(conversation, task, candidates)

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        return self._llm.compare(question, texts)

    def close(self) -> None:
        self._llm.close()


class _CachedReply(msgspec.Struct):
    """A call of the model, and its reply as JSON."""

    call: Call
    reply: msgspec.Raw


class CachingModel(ModelWrapper):
    """Takes replies from a cache where they are known. Such a reply costs no tokens; the call says what it had cost.

    Where a reply is not of the wanted form, it is asked for again, with other seeds that are always the same.
    `settings` are what decides replies beside weights and prompt: versions, sampling, the shape of a batch.
    """

    def __init__(
        self, open_model: Callable[[Listener], LanguageModel], listen: Listener, cache: Cache, settings: str
    ) -> None:
        self._calls: list[Call] = []  # that the model reported and nobody was given yet
        super().__init__(open_model(self._calls.append))
        self._listen, self._cache, self._settings = listen, cache, f"{version('convagent')} {settings}"

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return self._ask_once(conversation, task, reply, on_text)
            except ModelReplyError:
                task = replace(task, seed=(task.seed or 0) + attempt * RETRY_SEED_STEP)
        return self._ask_once(conversation, task, reply, on_text)

    def _ask_once(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None
    ) -> Reply:
        key = self._key(conversation, task, None if reply is str else msgspec.json.schema(reply))
        if (cached := self._look_up(key)) is not None:
            return msgspec.json.decode(cached.reply, type=reply)
        with self._forward_calls():
            fresh = self._llm.ask(conversation, task, reply, on_text)
            self._store(key, fresh)
        return fresh

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        if not candidates:
            return []
        key = self._key(conversation, task, candidates)
        return self._score_once(key, lambda: self._llm.score(conversation, task, candidates))

    def compare(self, question: str, texts: Sequence[str]) -> list[float]:
        return self._score_once(self._key(question, texts), lambda: self._llm.compare(question, texts))

    def _score_once(self, key: bytes, compute: Callable[[], list[float]]) -> list[float]:
        if (cached := self._look_up(key)) is not None:
            return list(cached.call.scores)
        with self._forward_calls():
            scores = compute()
            self._store(key, scores)
        return scores

    def _key(self, *decides: object) -> bytes:
        hashed = msgspec.json.encode([self.digest, self._settings, *decides])
        return blake2b(hashed, digest_size=16).digest()

    def _look_up(self, key: bytes) -> _CachedReply | None:
        """The reply in the cache, whose call is reported."""
        packed = self._cache.get([key]).get(key)
        if packed is None:
            return None
        cached = msgspec.json.decode(zlib.decompress(packed), type=_CachedReply)
        call = cached.call
        known = replace(
            call, from_cache=True, tokens_read=0, tokens_written=0, seconds=0.0, requests=0, prefix_tokens=0
        )
        self._listen(replace(known, cached_tokens_read=call.tokens_read, cached_tokens_written=call.tokens_written))
        return cached

    def _store(self, key: bytes, reply: object) -> None:
        for call in self._calls[-1:]:  # where no call was reported, nothing was computed
            cached = _CachedReply(call, msgspec.Raw(msgspec.json.encode(reply)))
            self._cache.put({key: zlib.compress(msgspec.json.encode(cached))})

    @contextmanager
    def _forward_calls(self) -> Iterator[None]:
        """Pass on every call that the model reports, also where it fails."""
        try:
            yield
        finally:
            for call in self._calls:
                self._listen(call)
            self._calls.clear()
