"""The records of a run, the same for all editions.

A field that an edition does not have, or that a run leaves out, is None. `where` is the place in a file (a JSON path);
records are compared without it.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from schemas.errors import InvalidInputError
from schemas.records import Hit, Response, RunInfo, TurnResult


@dataclass(frozen=True, slots=True)
class RunPassage:
    """A passage of a ranking; iKAT 2023 gives the text of those that were read."""

    id: str
    score: float
    text: str = ""


@dataclass(frozen=True, slots=True)
class RunStatement:
    """A statement: iKAT 2024 gives its id, 2025 its text, 2023 both with a score."""

    id: str | None = None
    text: str | None = None
    score: float | None = None


@dataclass(frozen=True, slots=True)
class RunResponse:
    """One response with its ranking; `used` are the passages that the text is drawn from."""

    rank: int
    text: str | None
    passages: tuple[RunPassage, ...] | None
    used: tuple[Hit, ...] = ()
    statements: tuple[RunStatement, ...] = ()
    where: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class RunTurn:
    """All responses to one turn. `info` is given where the file has no head and every turn says it."""

    turn_id: str
    responses: tuple[RunResponse, ...]
    rewrite: str | None = None
    where: str = field(default="", compare=False)
    info: RunInfo | None = field(default=None, compare=False)


def to_run_turns(answered: Iterable[TurnResult], info: RunInfo) -> Iterator[RunTurn]:
    """Answered turns as records of a run. Raises `InvalidInputError` for a turn that lacks a wanted response."""
    for turn in answered:
        if info.parts.answer and not turn.responses:
            raise InvalidInputError("has no response", where=f"turn {turn.turn_id}")
        responses = turn.responses if info.parts.answer else (None,)
        yield RunTurn(
            turn.turn_id,
            tuple(_to_run_response(turn, response, rank, info) for rank, response in enumerate(responses, start=1)),
            turn.query.standalone if info.parts.rewrite else None,
        )


def _to_run_response(turn: TurnResult, response: Response | None, rank: int, info: RunInfo) -> RunResponse:
    """An abstention that cites nothing names the nearest passage: a text must say where it is from."""
    texts = {passage.id: passage.text for passage in turn.passages}
    used = set(response.used or [hit.id for hit in turn.hits[:1]]) if response else set()
    return RunResponse(
        rank,
        response.text if response else None,
        tuple(RunPassage(hit.id, hit.score, texts.get(hit.id, "")) for hit in turn.hits)
        if info.parts.passages
        else None,
        tuple(hit for hit in turn.hits if hit.id in used),
        tuple(RunStatement(c.statement.id, c.statement.text, c.score) for c in turn.selected_statements),
    )
