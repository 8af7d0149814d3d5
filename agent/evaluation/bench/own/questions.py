"""Questions over a person's own documents, in conversations, and what each answer must and must not have."""

from pathlib import Path
from typing import Literal

import msgspec

from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.wire import decode

Kind = Literal[
    "fact", "follow-up", "yes-no", "comparison", "not-there", "personal", "topic-switch", "small-talk",
    "summary", "listing", "computation", "scope", "date",
]  # fmt: skip
Half = Literal["open", "kept"]
Halves = Literal["open", "kept", "all"]


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn of a conversation, and what its answer must and must not have. Patterns ignore case."""

    id: str
    kind: Kind
    ask: str
    asks: str = ""  # what for: number, date, duration, place, person, reason, how-to, definition, list, correction ...
    first: tuple[str, ...] = ()  # all of them in the first sentence
    anywhere: tuple[str, ...] = ()  # all of them in the answer; those of `first`, where there are none
    partly: tuple[str, ...] = ()  # any of them makes an answer partly right; so do those of `first` and `anywhere`
    source: tuple[str, ...] = ()  # files that must be cited; "a.md|b.md": one of them
    answer: Literal["", "yes", "no"] = ""  # an answer that opens with the opposite is wrong
    wrong: tuple[str, ...] = ()  # none of them in the answer
    wrong_first: tuple[str, ...] = ()  # none of them in the first sentence
    excluded: tuple[str, ...] = ()  # what must not be recommended
    warning: tuple[str, ...] = ()  # all of them in the answer: it is dangerous without

    @property
    def wanted(self) -> tuple[str, ...]:
        """The patterns that a right answer has."""
        return self.anywhere or self.first


class Conversation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Turns in order, and statements about the person that were made before (`/about-me add`)."""

    id: str
    half: Half
    about: tuple[str, ...]
    turns: tuple[Question, ...]


class Conversations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    note: str
    conversations: tuple[Conversation, ...]


def read_conversations(questions: Path, half: Halves = "all") -> tuple[Conversation, ...]:
    """The conversations of a half, or of both. Raises `InvalidInputError` for a file that is none of these."""
    try:
        found = decode(read_utf8(questions), Conversations).conversations
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"holds no questions ({error})", where=str(questions)) from error
    return tuple(conversation for conversation in found if half in ("all", conversation.half))
