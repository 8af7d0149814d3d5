"""One shard of an index, and what it may be asked, wherever it is open.

Between processes of this machine questions and replies are msgpack, decoded by the types in `QUESTIONS`: nothing in
them can be run. Arrays are in numpy's own format.
"""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec
import numpy as np

from indexes.passage_index import PassageIndex
from indexes.ranking.bm25 import WeighedTerms
from indexes.ranking.compressed_vectors import CompressedInfo
from indexes.ranking.vectors import VectorInfo
from indexes.sharding.shard_files import identify_shard, read_shard_record
from indexes.storage.framing import read_framed, write_framed
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError
from schemas.records import Passage

T = TypeVar("T")
ERRORS = (MissingError, InvalidInputError, RunError)  # that a shard may raise


@dataclass(frozen=True, slots=True)
class QuestionTypes:
    """The types of what is handed over with a question, and of the reply."""

    arguments: Any
    reply: Any


QUESTIONS = {
    # names of methods and attributes of a `Shard`
    "digest": QuestionTypes(tuple[()], str),
    "dates": QuestionTypes(tuple[()], dict[int, str]),
    "vector_info": QuestionTypes(tuple[()], VectorInfo | None),
    "compressed_info": QuestionTypes(tuple[()], CompressedInfo | None),
    "find_all": QuestionTypes(tuple[list[str]], dict[str, Passage]),
    "get_ids": QuestionTypes(tuple[list[int]], list[str]),
    "count_passages_with": QuestionTypes(tuple[list[str]], dict[str, int]),
    "find_candidates": QuestionTypes(tuple[dict[str, float], int], tuple[np.ndarray, np.ndarray]),
    "score_by_words": QuestionTypes(tuple[list[int], WeighedTerms], list[float]),
}


class Shard(PassageIndex):
    """A shard that is open. Raises `MissingError` where it is not there, and what `PassageIndex` raises."""

    def __init__(self, directory: Path) -> None:
        if not directory.is_dir():
            remedy = "Copy it there, or build it again with `convagent index build PASSAGES... --shard`."
            raise MissingError("this shard of the index is not there", where=str(directory), remedy=remedy)
        super().__init__(directory)

    @property
    def digest(self) -> str:
        """What tells it from every other shard."""
        return identify_shard(self.info, read_shard_record(self.directory))

    def reply(self, question: str, arguments: tuple[Any, ...]) -> Any:
        """The reply to one of `QUESTIONS`."""
        asked = getattr(self, question)
        return asked(*arguments) if callable(asked) else asked


@dataclass(frozen=True, slots=True)
class Failure:
    """What a shard raised in place of a reply."""

    kind: str  # the name of one of `ERRORS`
    what: str
    where: str
    remedy: str

    @classmethod
    def of(cls, error: Exception, directory: Path) -> "Failure":
        """An error that is one of `ERRORS`, or a `RunError` that names any other."""
        if isinstance(error, ConvagentError) and type(error) in ERRORS:
            return cls(type(error).__name__, error.what, error.where, error.remedy)
        return cls(RunError.__name__, f"this shard failed ({type(error).__name__}: {error})", str(directory), "")

    def to_error(self) -> ConvagentError:
        """The error again."""
        kind = next(kind for kind in ERRORS if kind.__name__ == self.kind)
        return kind(self.what, where=self.where, remedy=self.remedy)


@dataclass(frozen=True, slots=True)
class _Message:
    """A question with what is handed over, or the reply to it, or the failure in place of that."""

    question: str
    body: msgspec.Raw  # of the type that the question has in `QUESTIONS`
    failure: Failure | None = None


def write_question(stream: IO[bytes], question: str, arguments: tuple[Any, ...]) -> None:
    """Put a question. Raises `OSError` where nobody reads it."""
    _write(stream, _Message(question, msgspec.Raw(_encode(arguments))))


def write_reply(stream: IO[bytes], question: str, reply: Any) -> None:
    """Give the reply to a question, or a `Failure`."""
    failure = reply if isinstance(reply, Failure) else None
    _write(stream, _Message(question, msgspec.Raw(_encode(None if failure else reply)), failure))


def read_question(stream: IO[bytes]) -> tuple[str, tuple[Any, ...]]:
    """The next question with its arguments. Raises `EOFError` after the last."""
    message = _decode(read_framed(stream), _Message)
    return message.question, _decode(message.body, QUESTIONS[message.question].arguments)


def read_reply(stream: IO[bytes]) -> Any:
    """The next reply, or a `Failure`. Raises `EOFError` where whoever replies has ended."""
    message = _decode(read_framed(stream), _Message)
    return message.failure or _decode(message.body, QUESTIONS[message.question].reply)


def _write(stream: IO[bytes], message: _Message) -> None:
    write_framed(stream, _encode(message))
    stream.flush()


def _encode(value: Any) -> bytes:
    return msgspec.msgpack.encode(value, enc_hook=_to_plain)


def _decode(data: bytes | msgspec.Raw, shape: type[T]) -> T:
    return msgspec.msgpack.decode(data, type=shape, dec_hook=_from_plain)


def _to_plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        written = io.BytesIO()
        np.save(written, value)
        return written.getvalue()
    if isinstance(value, np.floating):
        return float(value)
    raise NotImplementedError(f"{type(value)} is in no message")


def _from_plain(shape: Any, value: Any) -> Any:
    return np.load(io.BytesIO(value)) if shape is np.ndarray else shape(value)
