"""Gold nuggets as the organisers of iKAT give them: one JSON object, by turn, then by the nugget's number.

    {"9-1_1": {"1": {"text": "Rice bread keeps for two days."}, "2": "It can be frozen."}}

The two forms of a nugget, and a list in place of the inner object, are all read. There is no importance.

source: `matching/NtN.py` and `matching/NtR.py` of irlabamsterdam/CONE-RAG (Abbasiantaeb et al., 2025,
arXiv:2503.09902), which read them so; a topic and a turn are joined as in iKAT 2024.
"""

from typing import Any

from agent.evaluation.nuggets import Nugget, NuggetList
from schemas.errors import InvalidInputError


def read_ikat_nuggets(turns: dict[str, Any]) -> tuple[NuggetList, ...]:
    """The nuggets of each turn. Raises `InvalidInputError` with the place of what is no nugget."""
    return tuple(NuggetList(turn_id, "", _read_turn(turn_id, given)) for turn_id, given in turns.items())


def _read_turn(turn_id: str, given: Any) -> tuple[Nugget, ...]:
    if not isinstance(given, dict | list):
        raise InvalidInputError("is no list of nuggets", where=f"$[{turn_id!r}]")
    items = given.items() if isinstance(given, dict) else enumerate(given)
    return tuple(Nugget(_read_text(nugget, f"$[{turn_id!r}][{key!r}]")) for key, nugget in items)


def _read_text(nugget: Any, where: str) -> str:
    text = nugget.get("text") if isinstance(nugget, dict) else nugget
    if not isinstance(text, str):
        raise InvalidInputError("is no nugget: it has no text", where=where)
    return text
