"""Files of nuggets and of assignments, whichever tool they are from."""

from pathlib import Path
from typing import Any

import msgspec

from agent.evaluation.nuggets import AssignedAnswer, Nugget, NuggetList
from agent.exchange.nuggetizer import decode_assignments, decode_nuggets
from agent.tracks.oddities import report_oddities
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.wire import decode


def read_ikat_nuggets(turns: dict[str, Any]) -> tuple[NuggetList, ...]:
    """Gold nuggets as the organisers of iKAT give them: one JSON object, by turn, then by the nugget's number.

        {"9-1_1": {"1": {"text": "Rice bread keeps for two days."}, "2": "It can be frozen."}}

    The two forms of a nugget, and a list in place of the inner object, are all read. There is no importance.
    Raises `InvalidInputError` with the place of what is no nugget.

    source: `matching/NtN.py` and `matching/NtR.py` of irlabamsterdam/CONE-RAG (Abbasiantaeb et al., 2025,
    arXiv:2503.09902), which read them so; a topic and a turn are joined as in iKAT 2024.
    """
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


def read_nuggets(path: Path) -> dict[str, NuggetList]:
    """The nuggets of a file by turn id: of the Nuggetizer (JSON lines), or of iKAT (one JSON object).

    A file of one run's assignments is read, too; its nuggets have them. Raises `InvalidInputError` for any other file.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        ikat = _decode_ikat(data)
        lists = decode_nuggets(data, oddities) if ikat is None else read_ikat_nuggets(ikat)
        if not lists:
            raise InvalidInputError("holds no nuggets")
    return {nuggets.turn_id: nuggets for nuggets in lists}


def read_assignments(path: Path) -> tuple[AssignedAnswer, ...]:
    """The answers of a file of assignments, of one run or of several. Raises `InvalidInputError` for any other file."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        return decode_assignments(data, oddities)


def _decode_ikat(data: bytes) -> dict[str, object] | None:
    """The turns of a file in iKAT's form; None where it has another."""
    try:
        found = decode(data, dict[str, object])
    except msgspec.DecodeError:
        return None
    return None if "nuggets" in found else found
