"""Answers judged by the nuggets that they should hold, and the scores that follow.

Nuggets are scored as TREC RAG has it (Pradeep et al., 2024, arXiv:2411.09607) and the Nuggetizer computes it: strict
scores count what is said in full alone, the others what is said in part as a half; `weighted` counts a nugget that is
merely okay as half a vital one.

Its files are JSON lines, one query each; assignments add the answer that they are about, and how far it says
each nugget:

    {"query": "How long does rice bread keep?", "qid": "9-1_1", "answer_text": "Two days.", "response_length": 2,
     "run_id": "ours", "nuggets": [
       {"text": "Rice bread keeps for two days", "importance": "vital", "assignment": "support"}]}

source: README and `nuggetizer.core.types` of nuggetizer 0.0.5 (castorini/nuggetizer), where a label that could not be
made is "failed".
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from agent.tracks.lenient_reading import IS_ID, decode_leniently
from agent.tracks.oddities import Oddities, report_oddities
from indexes.storage.files import read_utf8
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.wire import Data, decode

REMEDY = 'Nuggets are lines of {"query": ..., "qid": ..., "nuggets": [{"text": ..., "importance": ...}]}.'
Importance = Literal["vital", "okay", "failed"] | None  # None where nobody said: iKAT has no importance
Verdict = Literal["support", "partial_support", "not_support", "failed"] | None  # None where nobody judged
NO_VERDICT = (None, "failed")
MEASURES = ("vital", "strict vital", "weighted", "strict weighted", "all", "strict all")
STRICT: Mapping[Verdict, float] = {"support": 1.0}
LENIENT: Mapping[Verdict, float] = {"support": 1.0, "partial_support": 0.5}
WEIGHTS: Mapping[Importance, float] = {"vital": 1.0, "okay": 0.5}


class Nugget(Struct, frozen=True):
    """What an answer should hold, and the verdict of a judge on one answer."""

    text: str
    importance: Importance = None
    verdict: Verdict = msgspec.field(name="assignment", default=None)


class JudgedAnswer(Struct, frozen=True):
    """One answer of a run with what it is judged by; without run and text, the nuggets of a turn. A line of a file."""

    turn_id: Annotated[str, Meta(extra=IS_ID)] = msgspec.field(name="qid")
    nuggets: tuple[Nugget, ...]
    query: str = ""
    text: str = msgspec.field(name="answer_text", default="")
    response_length: int = 0  # words of the text, where it is written
    run: str = msgspec.field(name="run_id", default="")

    @property
    def verdicts(self) -> dict[str, Verdict]:
        """By nugget."""
        return {nugget.text: nugget.verdict for nugget in self.nuggets}


def score_nuggets(nuggets: Sequence[Nugget]) -> dict[str, float]:
    """The scores of one answer. Where no nugget has an importance, those of all nuggets alone.

    As the Nuggetizer has it, a score over no nugget at all is 0, and a nugget without assignment is not in the answer.
    """
    vital = [nugget for nugget in nuggets if nugget.importance == "vital"]
    scores = {"all": _share(nuggets, LENIENT), "strict all": _share(nuggets, STRICT)}
    if not any(nugget.importance for nugget in nuggets):
        return scores
    weights = [WEIGHTS.get(nugget.importance, 0.0) for nugget in nuggets]
    return scores | {
        "vital": _share(vital, LENIENT),
        "strict vital": _share(vital, STRICT),
        "weighted": _share(nuggets, LENIENT, weights),
        "strict weighted": _share(nuggets, STRICT, weights),
    }


def _share(nuggets: Sequence[Nugget], worth: Mapping[Verdict, float], weights: Sequence[float] = ()) -> float:
    """How much of the nuggets is in an answer, from 0 to 1."""
    weights = weights or [1.0] * len(nuggets)
    found = sum(weight * worth.get(nugget.verdict, 0.0) for nugget, weight in zip(nuggets, weights, strict=True))
    return found / sum(weights) if any(weights) else 0.0


def read_nuggets(path: Path) -> tuple[JudgedAnswer, ...]:
    """The nuggets of each turn: of the Nuggetizer (JSON lines), or of iKAT (one JSON object).

    A file of one run's assignments is read, too; its nuggets have them. Raises `InvalidInputError` for any other file.
    """
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        ikat: dict[str, Any] = {}
        with suppress(msgspec.DecodeError):  # which lines are not, but one alone
            ikat = decode(data, dict[str, Any])
        if ikat and "nuggets" not in ikat:
            found = tuple(JudgedAnswer(id, tuple(_read_ikat_turn(id, each))) for id, each in ikat.items())
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
    found = []
    for number, line in enumerate(bytes(data).splitlines(), start=1):
        if line.strip():
            try:
                found.append(decode_leniently(line, JudgedAnswer, f"line {number} $", oddities))
            except msgspec.DecodeError as error:
                what = f"is no line of nuggets ({error})"
                raise InvalidInputError(what, where=f"line {number}", remedy=REMEDY) from error
    return tuple(found)


def encode_nuggets(answer: JudgedAnswer) -> bytes:
    """One line of a file of assignments; no label is null."""
    return msgspec.json.encode(replace(answer, response_length=count_whitespace_words(answer.text))) + b"\n"
