"""The forms for other tools that a trace can be written in. A module is imported when its form is asked for."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schemas.records import RunInfo, TurnResult

# Name to module. Each has `encode_turns(answered, info)`; those of answers also `detects` and `decode_answer`.
MODULES = {
    "autojudge": "agent.exchange.autojudge",
    "nuggetizer": "agent.exchange.candidates",
    "ragnarok": "agent.exchange.ragnarok",
    "trec": "agent.exchange.trec",
}
EXCHANGE_NAMES = tuple(MODULES)


def encode_turns(form: str, answered: "Iterable[TurnResult]", info: "RunInfo") -> Iterator[bytes]:
    """The answered turns in that form, piece by piece. Raises `InvalidInputError` for what it cannot express."""
    turns: Iterator[bytes] = import_module(MODULES[form]).encode_turns(answered, info)
    return turns
