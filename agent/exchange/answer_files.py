"""Files of answers in another tool's form, read as runs are."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module

import msgspec

from agent.exchange.cited_answers import CitedAnswer, to_run_turn
from agent.exchange.registry import MODULES
from agent.tracks.oddities import Oddities
from agent.tracks.rules import EditionLimits
from agent.tracks.run_layouts import JsonArray, JsonLines, RunLayout
from agent.tracks.run_records import RunTurn
from schemas.errors import InvalidInputError
from schemas.wire import Data

FORMS = ("ragnarok", "autojudge")
LAYOUTS: tuple[RunLayout, ...] = (JsonLines(), JsonArray())
LIMITS = EditionLimits(tokens=None, passages=None, statements=False, responses=1, collection="any")
DecodeAnswer = Callable[[Data | msgspec.Raw, str, Oddities], CitedAnswer]


@dataclass(frozen=True, slots=True)
class AnswerFile:
    """A file of answers: its form, and how they stand in it."""

    form: str
    layout: RunLayout

    def read(self, data: Data, oddities: Oddities) -> Iterator[RunTurn]:
        """Its turns. Raises `InvalidInputError` with the place of what is none."""
        decode_answer: DecodeAnswer = import_module(MODULES[self.form]).decode_answer
        try:
            _, entries = self.layout.split_entries(data, oddities)
            for entry in entries:
                yield to_run_turn(decode_answer(entry.data, entry.where, oddities), entry.where)
        except msgspec.DecodeError as error:
            raise InvalidInputError(f"is no valid {self.form} file ({error})") from error


def detect_answers(data: Data) -> AnswerFile | None:
    """The form of a file of answers; None for any other file."""
    for layout in LAYOUTS:
        fields = layout.read_first_fields(data)
        for form in FORMS if fields else ():
            if import_module(MODULES[form]).detects(fields):
                return AnswerFile(form, layout)
    return None
