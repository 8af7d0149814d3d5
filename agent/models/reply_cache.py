"""A model that is never asked the same thing twice: replies are kept by all that decides them."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version

import msgspec

from agent.models.protocol import Conversation, LanguageModel, Listener, Reply, Task
from agent.models.wrapper import ModelWrapper
from indexes.storage.cache import Cache
from schemas.records import Call


class _CachedReply(msgspec.Struct):
    """A call of the model, and its reply as JSON."""

    call: Call
    reply: msgspec.Raw


class CachingModel(ModelWrapper):
    """Never asked the same twice: replies are kept by all that decides them. A reply from the cache has read nothing.

    `way` is what decides them beside weights and prompt: versions, sampling, the shape of a batch.
    """

    def __init__(self, opened: Callable[[Listener], LanguageModel], listen: Listener, cache: Cache, way: str) -> None:
        self._told: list[Call] = []
        super().__init__(opened(self._told.append))
        self._listen, self._cache, self._way = listen, cache, f"{version('convagent')} {way}"

    def ask(self, conversation: Conversation, task: Task, reply: type[Reply]) -> Reply:
        key = self._key(conversation, task, None if reply is str else msgspec.json.schema(reply))
        if (kept := self._known(key)) is not None:
            return msgspec.json.decode(kept.reply, type=reply)
        with self._forwarding_calls():
            given = self._llm.ask(conversation, task, reply)
            self._keep(key, given)
        return given

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        if not candidates:
            return []
        key = self._key(conversation, task, candidates)
        if (kept := self._known(key)) is not None:
            return list(kept.call.scores)
        with self._forwarding_calls():
            scores = self._llm.score(conversation, task, candidates)
            self._keep(key, scores)
        return scores

    def _key(self, conversation: Conversation, task: Task, wanted: object) -> bytes:
        decides = msgspec.json.encode([self.digest, self._way, conversation, task, wanted])
        return blake2b(decides, digest_size=16).digest()

    def _known(self, key: bytes) -> _CachedReply | None:
        packed = self._cache.get([key]).get(key)
        if packed is None:
            return None
        kept = msgspec.json.decode(zlib.decompress(packed), type=_CachedReply)
        self._listen(replace(kept.call, tokens_read=0, tokens_written=0, seconds=0.0, from_cache=True))
        return kept

    def _keep(self, key: bytes, reply: object) -> None:
        for call in self._told[-1:]:  # where nothing was told, nothing was computed
            kept = _CachedReply(call, msgspec.Raw(msgspec.json.encode(reply)))
            self._cache.put({key: zlib.compress(msgspec.json.encode(kept))})

    @contextmanager
    def _forwarding_calls(self) -> Iterator[None]:
        """Whatever the model tells is passed on, also when it fails."""
        try:
            yield
        finally:
            for call in self._told:
                self._listen(call)
            self._told.clear()
