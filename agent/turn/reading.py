"""What the reader finds in the passages: how surely each quote answers a question, and the words of it that do.

A passage is read whole, its title in front. How surely a quote answers is the best beginning and end within it, held
against "not here" (the margin of Devlin et al., NAACL 2019; logits). The reader knows English alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agent.turn.quotes import Quote
from indexes.ranking.vectors import Read, Readout, Vectors
from indexes.text.analysis import ENGLISH
from indexes.text.units import split_units
from schemas.records import Passage

MAX_PIECES = 30  # words and signs of what answers
NEVER = -1e4
UNREAD = -8.0  # the margin of what is beyond the reader, a passage in another language: that of another subject


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader makes of one quote."""

    margin: float = 0.0  # above 0, an answer within it is likelier than none in the passage; 0 where nobody reads
    text: str = ""  # the words that answer best, as they stand in the passage
    lead: float = 0.0  # how much likelier they are than any others of the passage


def read_quotes(quotes: Sequence[Quote], question: str, read: Read | None) -> list[Reading]:
    """One reading for each quote."""
    if read is None:
        return [Reading()] * len(quotes)
    passages = {quote.passage: _read_passage(quote.passage, question, read) for quote in quotes}
    return [passages[quote.passage].get(quote.place, Reading(UNREAD)) for quote in quotes]


def _read_passage(passage: Passage, question: str, read: Read) -> dict[int, Reading]:
    """The readings of the statements of a passage, by their places."""
    if passage.language != ENGLISH:
        return {}
    text, ends = f"{passage.title}:" if passage.title else "", dict[int, tuple[int, int]]()
    for unit in split_units(passage):
        text = f"{text} {unit.text}" if text else unit.text
        if unit.is_statement:
            ends[unit.place] = (len(text) - len(unit.text), len(text))
    windows = read(question, text)
    return {place: _find_best(windows, text, within) for place, within in ends.items()}


def _find_best(windows: Sequence[Readout], text: str, within: tuple[int, int]) -> Reading:
    """The best answer within some characters of a text."""
    found = (_find_in_window(window, text, within) for window in windows)
    return max(found, key=lambda reading: reading.margin, default=Reading())


def _find_in_window(window: Readout, text: str, within: tuple[int, int]) -> Reading:
    places = [place for place, (start, end) in enumerate(window.pieces) if within[0] <= start and end <= within[1]]
    if not places:
        return Reading(UNREAD)
    first, last = places[0], places[-1] + 1
    sums = _sum_odds(window)
    start, end = np.unravel_index(int(sums[first:last, first:last].argmax()), (last - first, last - first))
    start, end = start + first, end + first
    best = float(sums[start, end])
    sums[: end + 1, start:] = NEVER  # what overlaps
    words = text[window.pieces[start][0] : window.pieces[end][1]]
    return Reading(best - window.nothing, words, best - float(sums.max()))


def _sum_odds(window: Readout) -> Vectors:
    """(pieces, pieces): the logit of each answer by its first and last piece."""
    sums = window.starts[:, None] + window.ends[None, :]
    is_answer = np.triu(np.ones_like(sums, dtype=bool))
    return np.where(is_answer & ~np.triu(is_answer, MAX_PIECES), sums, np.float32(NEVER))
