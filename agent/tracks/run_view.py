"""A run of any edition, as the rules of all years see it."""

from dataclasses import dataclass

from schemas.records import Hit


@dataclass(frozen=True, slots=True)
class RunResponse:
    """One response. `where` is its JSON path. A statement is (id, text); an edition that gives only one leaves None."""

    where: str
    rank: int
    text: str
    passages: tuple[Hit, ...]
    used: tuple[str, ...]
    statements: tuple[tuple[str | None, str | None], ...]
    statement_scores: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class RunTurn:
    """All responses to one turn."""

    where: str
    turn_id: str
    responses: tuple[RunResponse, ...]


@dataclass(frozen=True, slots=True)
class RunView:
    """A whole run. `text_needed` is false for retrieval-only runs."""

    edition: str
    turns: tuple[RunTurn, ...]
    text_needed: bool = True
