"""The answers to own-documents conversations, kept as they come: a run that is broken off goes on where it ended."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import msgspec

from indexes.storage.files import read_bytes
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Response
from schemas.wire import decode


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """What decides the answers: digests of the questions, of the documents, of the models and of the code."""

    questions: str
    documents: str
    model: str
    embedder: str
    sources: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AnsweredConversation:
    """The answers of one conversation, in order."""

    conversation: str  # its id
    responses: tuple[Response, ...]


def read_answers(path: Path, settings: AnswerSettings) -> dict[str, AnsweredConversation]:
    """What a file has, by conversation; a torn last line is left out.

    Raises `UsageError` where it was made under other settings, `InvalidInputError` where it is no such file.
    """
    if not path.exists():
        return {}
    first, *lines = read_bytes(path).splitlines(keepends=True) or [b""]
    try:
        if first.endswith(b"\n"):
            _check_same(decode(first, AnswerSettings), settings, path)
        whole = [decode(line, AnsweredConversation) for line in lines if line.endswith(b"\n")]
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"holds no answers ({error})", where=str(path)) from error
    return {found.conversation: found for found in whole}


def _check_same(then: AnswerSettings, now: AnswerSettings, path: Path) -> None:
    different = [name for name, value in asdict(now).items() if asdict(then)[name] != value]
    if different:
        what = f"was made with other {', '.join(different)}, so it cannot be resumed"
        raise UsageError(what, where=str(path), remedy="Give --overwrite to start again.")


@contextmanager
def keep_answers(
    path: Path, settings: AnswerSettings, found: Mapping[str, AnsweredConversation]
) -> Iterator[IO[bytes]]:
    """The file opened to go on after what was found in it."""
    with path.open("wb") as file:
        append_line(file, settings)
        for answered in found.values():
            append_line(file, answered)
        yield file


def append_line(file: IO[bytes], line: AnswerSettings | AnsweredConversation) -> None:
    """Write one line and hand it to the disk."""
    file.write(msgspec.json.encode(line) + b"\n")
    file.flush()
    os.fsync(file.fileno())
