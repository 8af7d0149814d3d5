"""Files of nuggets, and of the verdicts on them, as the Nuggetizer and iKAT have them.

The Nuggetizer's are JSON lines, one query each; assignments add the answer that they are about, and how far it says
each nugget:

    {"query": "How long does rice bread keep?", "qid": "9-1_1", "answer_text": "Two days.", "response_length": 2,
     "run_id": "ours", "nuggets": [
       {"text": "Rice bread keeps for two days", "importance": "vital", "assignment": "support"}]}

source: README and `nuggetizer.core.types` of nuggetizer 0.0.5 (castorini/nuggetizer), where a label that could not be
made is "failed".
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec
from msgspec import Meta, Struct

from agent.evaluation.judged_answers import Assignment, Importance, JudgedAnswer, Nugget
from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities, report_oddities
from indexes.storage.files import read_utf8
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.wire import Data, decode

Id = Annotated[str, Meta(extra=IS_ID)]
FAILED = "failed"
REMEDY = 'Nuggets are lines of {"query": ..., "qid": ..., "nuggets": [{"text": ..., "importance": ...}]}.'


class WireNugget(Struct):
    """A nugget; `assignment` is in files of assignments only."""

    text: str
    importance: str | None = None
    assignment: str | None = None


class NuggetLine(Struct):
    """One query, and in a file of assignments one answer to it."""

    qid: Id
    nuggets: list[WireNugget]
    query: str = ""
    answer_text: str = ""
    response_length: int = 0
    run_id: str = ""


def read_nuggets(path: Path) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each turn: of the Nuggetizer (JSON lines), or of iKAT (one JSON object).

    A file of one run's assignments is read, too; its nuggets have them. Raises `InvalidInputError` for any other file.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        ikat = _decode_object(data)
        if ikat and "nuggets" not in ikat:
            found = tuple(JudgedAnswer(id, "", "", "", tuple(_read_ikat_turn(id, each))) for id, each in ikat.items())
        else:
            found = decode_nuggets(data, oddities)
        if not found:
            raise InvalidInputError("holds no nuggets")
        if len({nuggets.turn_id for nuggets in found}) < len(found):
            remedy = "Assignments of several runs are read with --judge FILE."
            raise InvalidInputError("has nuggets for one turn twice", remedy=remedy)
    return found


def _read_ikat_turn(turn_id: str, given: Any) -> Iterator[Nugget]:
    """Gold nuggets as the organisers of iKAT give them: one JSON object, by turn, then by the nugget's number.

        {"9-1_1": {"1": {"text": "Rice bread keeps for two days."}, "2": "It can be frozen."}}

    The two forms of a nugget, and a list in place of the inner object, are all read.

    source: `matching/NtN.py` and `matching/NtR.py` of irlabamsterdam/CONE-RAG (Abbasiantaeb et al., 2025,
    arXiv:2503.09902), which read them so; a topic and a turn are joined as in iKAT 2024.
    """
    if not isinstance(given, dict | list):
        raise InvalidInputError("is no list of nuggets", where=f"$[{turn_id!r}]")
    for key, nugget in given.items() if isinstance(given, dict) else enumerate(given):
        text = nugget.get("text") if isinstance(nugget, dict) else nugget
        if not isinstance(text, str):
            raise InvalidInputError("is no nugget: it has no text", where=f"$[{turn_id!r}][{key!r}]")
        yield Nugget(text)


def decode_nuggets(data: Data, oddities: Oddities) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each line with their assignments. Raises `InvalidInputError` for a line that is none."""

    def read(nugget: WireNugget, where: str) -> Nugget:
        verdict = _read_label(nugget.assignment or None, Assignment, where)
        return Nugget(nugget.text, verdict, _read_label(nugget.importance, Importance, where))

    found = []
    for number, data_of_line in enumerate(bytes(data).splitlines(), start=1):
        if data_of_line.strip():
            where = f"line {number}"
            try:
                line: NuggetLine = decode_leniently(data_of_line, NuggetLine, f"{where} $", oddities)
            except msgspec.DecodeError as error:
                raise InvalidInputError(f"is no line of nuggets ({error})", where=where, remedy=REMEDY) from error
            nuggets = tuple(read(nugget, where) for nugget in line.nuggets)
            found.append(JudgedAnswer(line.qid, line.query, line.run_id, line.answer_text, nuggets))
    return tuple(found)


def _read_label(label: str | None, known: Any, where: str) -> Any:
    if label is None or (label := label.strip().lower()) == FAILED:
        return None
    if label not in get_args(known):
        raise InvalidInputError(f"no such label: {label!r} (known: {', '.join(get_args(known))})", where=where)
    return label


def encode_nuggets(answer: JudgedAnswer) -> bytes:
    """One line of a file of assignments; no label is null."""
    nuggets = [WireNugget(n.text, n.importance, n.verdict) for n in answer.nuggets]
    words = count_whitespace_words(answer.text)
    line = NuggetLine(answer.turn_id, nuggets, answer.query, answer.text, words, answer.run)
    return msgspec.json.encode(line) + b"\n"


def _decode_object(data: Data) -> dict[str, Any] | None:
    """A file that is one JSON object; None for any other."""
    try:
        return decode(data, dict[str, Any])
    except msgspec.DecodeError:
        return None
