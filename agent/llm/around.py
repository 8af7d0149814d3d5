"""Models around a model: one that is asked again where a reply is of no use, one that remembers replies."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from hashlib import blake2b
from importlib.metadata import version

import msgspec

from agent.llm.seam import LLM, Conversation, Listener, R, Task
from indexes.cache import Cache
from schemas.errors import ModelReplyError
from schemas.records import Call

ATTEMPTS = 3
SEED_AGAIN = 1 << 30  # what a further attempt adds to the seed; those of a run are below


class Around:
    """Does all that another model does."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def digest(self) -> str:
        return self._llm.digest

    @property
    def writes(self) -> bool:
        return self._llm.writes

    @property
    def judges(self) -> bool:
        return self._llm.judges

    def fits(self, conversation: Conversation, task: Task) -> bool:
        return self._llm.fits(conversation, task)

    def ask(self, conversation: Conversation, task: Task, reply: type[R]) -> R:
        return self._llm.ask(conversation, task, reply)

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        return self._llm.score(conversation, task, candidates)

    def close(self) -> None:
        self._llm.close()


class Patient(Around):
    """Asked for a reply that it does not give, it is asked again with other seeds, always the same ones."""

    def ask(self, conversation: Conversation, task: Task, reply: type[R]) -> R:
        for attempt in range(1, ATTEMPTS):
            try:
                return self._llm.ask(conversation, task, reply)
            except ModelReplyError:
                task = replace(task, seed=(task.seed or 0) + attempt * SEED_AGAIN)
        return self._llm.ask(conversation, task, reply)


class _Kept(msgspec.Struct):
    """A call of the model, and its reply as JSON."""

    call: Call
    reply: msgspec.Raw


class Remembering(Around):
    """Never asked the same twice: replies are kept by all that decides them. A reply from the cache has read nothing.

    `way` is what decides them beside weights and prompt: versions, sampling, the shape of a batch.
    """

    def __init__(self, opened: Callable[[Listener], LLM], listen: Listener, cache: Cache, way: str) -> None:
        self._told: list[Call] = []
        super().__init__(opened(self._told.append))
        self._listen, self._cache, self._way = listen, cache, f"{version('convagent')} {way}"

    def ask(self, conversation: Conversation, task: Task, reply: type[R]) -> R:
        key = self._key(conversation, task, None if reply is str else msgspec.json.schema(reply))
        if (kept := self._known(key)) is not None:
            return msgspec.json.decode(kept.reply, type=reply)
        with self._telling():
            given = self._llm.ask(conversation, task, reply)
            self._keep(key, given)
        return given

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        if not candidates:
            return []
        key = self._key(conversation, task, candidates)
        if (kept := self._known(key)) is not None:
            return list(kept.call.scores)
        with self._telling():
            scores = self._llm.score(conversation, task, candidates)
            self._keep(key, scores)
        return scores

    def _key(self, conversation: Conversation, task: Task, wanted: object) -> bytes:
        decides = msgspec.json.encode([self.digest, self._way, conversation, task, wanted])
        return blake2b(decides, digest_size=16).digest()

    def _known(self, key: bytes) -> _Kept | None:
        packed = self._cache.get([key]).get(key)
        if packed is None:
            return None
        kept = msgspec.json.decode(zlib.decompress(packed), type=_Kept)
        self._listen(replace(kept.call, tokens_read=0, tokens_written=0, seconds=0.0, known=True))
        return kept

    def _keep(self, key: bytes, reply: object) -> None:
        for call in self._told[-1:]:  # where nothing was told, nothing was computed
            kept = _Kept(call, msgspec.Raw(msgspec.json.encode(reply)))
            self._cache.put({key: zlib.compress(msgspec.json.encode(kept))})

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """Whatever the model tells is passed on, also when it fails."""
        try:
            yield
        finally:
            for call in self._told:
                self._listen(call)
            self._told.clear()
