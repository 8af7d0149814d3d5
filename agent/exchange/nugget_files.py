"""Files of nuggets and of assignments, whichever tool they are from."""

from pathlib import Path

import msgspec

from agent.evaluation.nuggets import AssignedAnswer, NuggetList
from agent.exchange.ikat_nuggets import read_ikat_nuggets
from agent.exchange.nuggetizer import decode_assignments, decode_nuggets
from agent.tracks.oddities import report_oddities
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.wire import decode


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
