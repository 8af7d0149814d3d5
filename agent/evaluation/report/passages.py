"""The passages of a report: each text once, however often it is ranked, and all together within a limit."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agent.evaluation.report.turn_view import TurnView
from schemas.records import Passage

MOST_CHARACTERS = 1_600_000  # of all texts, so that a report of 218 turns stays below 5 MB
LEAST_CHARACTERS = 200  # of each


@dataclass(frozen=True, slots=True)
class PassageShelf:
    """The texts that the page's script shows, and where each passage stands among them."""

    entries: tuple[tuple[str, str, str], ...]  # id, title, text; both empty for one whose text nobody gave
    places: Mapping[str, int]
    longest: int  # characters that texts were cut to; 0 where all are whole


def fill_shelf(views: Iterable[TurnView], texts: Mapping[str, Passage]) -> PassageShelf:
    """The passages that some turn shows, in the order in which they are met."""
    shown = {id: texts.get(id, Passage(id, "")) for view in views for id in _shown_ids(view)}
    bodies = {id: " ".join(passage.text.split()) for id, passage in shown.items()}
    longest = choose_length([len(body) for body in bodies.values()])
    entries = tuple((id, shown[id].title, _cut(body, longest)) for id, body in bodies.items())
    return PassageShelf(entries, {id: place for place, id in enumerate(bodies)}, longest)


def choose_length(lengths: Sequence[int]) -> int:
    """The length that texts have to be cut to, so that all keep within the limit; 0 where they do."""
    if sum(lengths) <= MOST_CHARACTERS:
        return 0
    low, high = LEAST_CHARACTERS, max(lengths)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if sum(min(n, middle) for n in lengths) <= MOST_CHARACTERS else (low, middle - 1)
    return low


def _cut(text: str, longest: int) -> str:
    return text if not longest or len(text) <= longest else f"{text[:longest]}…"


def _shown_ids(view: TurnView) -> Iterable[str]:
    yield from (cell.id for row in view.ranking for cell in row if cell)
    yield from (passage.id for passage in view.relevant)
    yield from (id for run in view.runs for id in run.citations)
