"""What the reader finds in the passages: how surely each quote answers a question, and the words of it that do.

A passage is read whole, its title in front. How surely a quote answers is the best beginning and end within it, held
against "not here" (the margin of Devlin et al., NAACL 2019; logits).
"""

from collections.abc import Iterable, Sequence

import numpy as np

from agent.turn.quotes import Quote, Reading
from indexes.ranking.vectors import Read, Readout, Vectors
from indexes.text.analysis import ENGLISH
from indexes.text.languages import find_question_language
from indexes.text.units import split_units
from schemas.records import Passage

MAX_PIECES = 30  # words and signs of what answers
NEVER = -1e4
UNREAD = -8.0  # the margin of what is beyond the reader, a passage in another language: that of another subject


def compose_follow_up(before: str, utterance: str) -> str:
    """A question after the one that it follows, as the reader was taught to read it."""
    return f"{before} {utterance}"


def read_quotes(quotes: Sequence[Quote], question: str, read: Read | None, language: str) -> list[Reading]:
    """One reading for each quote; `language` is that of the question, or "" for English."""
    if read is None:
        return [Reading()] * len(quotes)
    passages = {quote.passage: _read_passage(quote.passage, question, read, language) for quote in quotes}
    is_read = not language or any(passages.values())
    return [passages[quote.passage].get(quote.place, Reading(UNREAD)) if is_read else Reading() for quote in quotes]


def find_margin(passages: Sequence[Passage], question: str, read: Read, language: str) -> float:
    """How surely any statement of some passages answers."""
    readings = (_read_passage(passage, question, read, language) for passage in passages)
    return max((reading.margin for found in readings for reading in found.values()), default=UNREAD)


def find_foreign_language(utterance: str, languages: Iterable[str]) -> str:
    """The language of a question that is surely not in English, of those that are asked in or some others; else ""."""
    language = find_question_language(utterance, tuple(sorted(set(languages))))
    return "" if language == ENGLISH else language


def _read_passage(passage: Passage, question: str, read: Read, language: str) -> dict[int, Reading]:
    """The readings of the statements of a passage, by their places; none where it cannot be read.

    Of two languages one is English, as was taught.
    """
    if language and passage.language not in (language, ENGLISH):
        return {}
    text, statements = join_units(passage)
    both_english = not language and passage.language == ENGLISH
    windows = [(window, _sum_odds(window)) for window in read(question, text, both_english)]
    if not windows and not both_english:
        return {}
    return {
        place: max(
            (_find_in_window(window, sums, text, within) for window, sums in windows),
            key=lambda found: found.margin,
            default=Reading(),
        )
        for place, within in statements.items()
    }


def find_answer(question: str, text: str, read: Read) -> str:
    """The words of a sentence that answer best; empty where "not here" is likelier."""
    windows = [(window, _sum_odds(window)) for window in read(question, text, True)]
    found = (_find_in_window(window, sums, text, (0, len(text))) for window, sums in windows)
    best = max(found, key=lambda reading: reading.margin, default=Reading())
    return best.text if best.margin > 0 else ""


def join_units(passage: Passage) -> tuple[str, dict[int, tuple[int, int]]]:
    """A passage as it is read, the title and then its units; and where each statement stands in it, by its place."""
    text, statements = f"{passage.title}:" if passage.title else "", dict[int, tuple[int, int]]()
    for unit in split_units(passage):
        text = f"{text} {unit.text}" if text else unit.text
        if unit.is_statement:
            statements[unit.place] = (len(text) - len(unit.text), len(text))
    return text, statements


def _sum_odds(window: Readout) -> Vectors:
    """(pieces, pieces): the logit of each answer by its first and last piece."""
    sums = window.starts[:, None] + window.ends[None, :]
    is_answer = np.triu(np.ones_like(sums, dtype=bool))
    return np.where(is_answer & ~np.triu(is_answer, MAX_PIECES), sums, np.float32(NEVER))


def _find_in_window(window: Readout, sums: Vectors, text: str, within: tuple[int, int]) -> Reading:
    """The best answer within some characters of a text, and how far it is ahead of all that do not overlap it."""
    places = [place for place, (start, end) in enumerate(window.pieces) if within[0] <= start and end <= within[1]]
    if not places:
        return Reading(UNREAD)
    own = sums[places[0] : places[-1] + 1, places[0] : places[-1] + 1]
    start, end = (int(at) + places[0] for at in np.unravel_index(int(own.argmax()), own.shape))
    best = float(sums[start, end])
    others = max(float(sums[:, :start].max(initial=NEVER)), float(sums[end + 1 :].max(initial=NEVER)))
    return Reading(best - window.nothing, text[window.pieces[start][0] : window.pieces[end][1]], best - others)
