"""Answers sentence by sentence with what each cites: what the forms of TREC's RAG tracks say of a run."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from schemas.errors import InvalidInputError
from schemas.records import Hit, RunInfo, Sentence, TurnResult


@dataclass(frozen=True, slots=True)
class CitedAnswer:
    """The first answer to one turn."""

    turn_id: str
    question: str  # as it stands alone
    sentences: tuple[Sentence, ...]
    references: tuple[str, ...]  # passage ids, best first; every passage that is cited is among them
    run: RunInfo


def cite_answers(answered: Iterable[TurnResult], info: RunInfo) -> Iterator[CitedAnswer]:
    """The first answer of each turn, and the passages that were read for it.

    Raises `InvalidInputError` for a turn without an answer.
    """
    for turn in answered:
        if not turn.responses:
            raise InvalidInputError("has no response", where=f"turn {turn.turn_id}")
        read = (passage.id for passage in turn.passages)
        references = tuple(dict.fromkeys((*read, *turn.response.used)))
        yield CitedAnswer(turn.turn_id, turn.query.standalone, turn.response.sentences, references, info)


def to_run_turn(answer: CitedAnswer, where: str) -> RunTurn:
    """The answer as a turn of a run. References have an order and no scores: those are 1, 1/2, 1/3, ..."""
    scores = {id: 1.0 / rank for rank, id in enumerate(answer.references, start=1)}
    cited = dict.fromkeys(id for sentence in answer.sentences for id in sentence.passage_ids)
    response = RunResponse(
        1,
        " ".join(sentence.text for sentence in answer.sentences),
        tuple(RunPassage(id, score) for id, score in scores.items()),
        tuple(Hit(id, scores[id]) for id in cited),
        where=where,
    )
    return RunTurn(answer.turn_id, (response,), where=where, info=answer.run)
