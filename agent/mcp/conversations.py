"""The conversations of the clients: in memory, by ids that cannot be guessed, the latest ones only."""

import secrets
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from schemas.errors import MissingError

if TYPE_CHECKING:
    from agent.chat.store import ChatTurn

MAX_CONVERSATIONS = 100
MAX_TURNS = 50  # of one conversation; the oldest are forgotten


@dataclass(frozen=True, slots=True)
class Conversations:
    """Turns by the id of their conversation. When there are too many, those that rested longest are forgotten."""

    _turns: "OrderedDict[str, tuple[ChatTurn, ...]]" = field(default_factory=OrderedDict)
    _lock: Lock = field(default_factory=Lock)

    def read_turns(self, id: str) -> "tuple[ChatTurn, ...]":
        """The turns of a conversation, none for the id "". Raises `MissingError` for one that is not there."""
        with self._lock:
            if id and id not in self._turns:
                kept = f"The last {MAX_CONVERSATIONS} are kept while the server runs."
                raise MissingError(f"there is no conversation {id!r}", remedy=f"{kept} Leave the id out to begin one.")
            return self._turns.get(id, ())

    def add_turn(self, id: str, turn: "ChatTurn") -> str:
        """Keep a turn at the end of a conversation, of a new one for the id "". The id."""
        with self._lock:
            id = id or secrets.token_urlsafe(12)
            self._turns[id] = (*self._turns.get(id, ()), turn)[-MAX_TURNS:]
            self._turns.move_to_end(id)
            while len(self._turns) > MAX_CONVERSATIONS:
                self._turns.popitem(last=False)
            return id
