"""All that a report shows of one turn: the conversation, and what each run made of it, beside each other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from agent.evaluation.nuggets import Nugget
from agent.evaluation.ptkb import rank_chosen
from agent.evaluation.report.reading import RANKING_SHOWN, answer_of
from agent.evaluation.report.request import Material, OpenedRun, StepCost
from agent.evaluation.scores import RankedScores
from agent.turn.attribution import supporting_ids
from indexes.text.units import split_units
from schemas.records import Message, Passage, Sentence, Statement, Topic, Turn

Mark = Literal["right", "wrong", "missed", "chosen", ""]  # "chosen": where nobody judged
WORD = re.compile(r"\w+|\W+")


@dataclass(frozen=True, slots=True)
class Words:
    """A piece of a rewrite: words that the utterance has, or has not."""

    text: str
    is_new: bool


@dataclass(frozen=True, slots=True)
class StatementRow:
    """A personal statement, and what each run made of it."""

    statement: Statement
    matters: bool
    marks: tuple[Mark, ...]


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage at its rank in one run."""

    id: str
    level: int | None  # of its label; None where nobody judged it
    is_relevant: bool
    citation: int  # its number in the answer; 0 where the answer does not cite it


@dataclass(frozen=True, slots=True)
class RelevantPassage:
    """A relevant passage, and where each run has it."""

    id: str
    level: int
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class RunTurnView:
    """What one run made of the turn."""

    is_missing: bool
    rewrite: tuple[Words, ...]
    has_answer: bool
    sentences: tuple[Sentence, ...]
    citations: Mapping[str, int]  # number by passage id
    without_model: str
    seconds: float | None


@dataclass(frozen=True, slots=True)
class NuggetRow:
    """A nugget, and how far each run's answer says it."""

    text: str
    importance: str
    assignments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, and what it cost each run."""

    step: str
    costs: tuple[StepCost | None, ...]


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn."""

    turn: Turn
    number: int  # in its conversation
    topic: str
    earlier: tuple[Turn, ...]
    last_reply: str
    human_rewrite: tuple[Words, ...]
    reply: str  # the canonical one
    runs: tuple[RunTurnView, ...]
    statements: tuple[StatementRow, ...]  # that matter or that a run chose
    statements_known: int
    statements_judged: bool
    ranking: tuple[tuple[RankedPassage | None, ...], ...]  # rows by rank, of a cell for each run
    ranking_sizes: tuple[int, ...]
    relevant: tuple[RelevantPassage, ...]
    nuggets: tuple[NuggetRow, ...]
    steps: tuple[StepRow, ...]


def view_turns(material: Material) -> Iterator[TurnView]:
    """Every turn of the topics, in their order."""
    chosen = [_chosen_statements(run, material) for run in material.runs]
    for topic in material.topics.topics:
        for number, turn in enumerate(topic.turns, start=1):
            yield view_turn(material, topic, number, [found.get(turn.id, {}) for found in chosen])


def view_turn_of(material: Material, turn_id: str) -> TurnView:
    """The turn of that id, which the topics must have."""
    chosen = [_chosen_statements(run, material).get(turn_id, {}) for run in material.runs]
    topic, number = next(
        (topic, number)
        for topic in material.topics.topics
        for number, turn in enumerate(topic.turns, start=1)
        if turn.id == turn_id
    )
    return view_turn(material, topic, number, chosen)


def _chosen_statements(run: OpenedRun, material: Material) -> RankedScores:
    return rank_chosen(run.turns.values(), material.topics)


def view_turn(material: Material, topic: Topic, number: int, chosen: Sequence[Mapping[str, float]]) -> TurnView:
    """One turn, from 1; `chosen` are the ids of the statements that each run has for it."""
    turn = topic.turns[number - 1]
    known = material.topics.labels.get(turn.id)
    runs = tuple(_view_run(run, turn, material.texts) for run in material.runs)
    rankings = [run.rankings.get(turn.id, ()) for run in material.runs]
    return TurnView(
        turn,
        number,
        topic.id,
        topic.turns[: number - 1],
        _last_reply(turn.history or ()),
        mark_new_words(known.human_rewrite if known else "", turn.utterance),
        known.reply if known else "",
        runs,
        tuple(_compare_statements(topic.ptkb, material.statement_labels.get(turn.id), chosen)),
        len(topic.ptkb),
        turn.id in material.statement_labels,
        tuple(_align_rankings(material, turn.id, rankings, runs)),
        tuple(map(len, rankings)),
        tuple(_find_relevant(material, turn.id, rankings)),
        tuple(_compare_nuggets([_nuggets_of(run, turn.id) for run in material.runs])),
        tuple(_compare_steps([_steps_of(run, turn.id) for run in material.runs])),
    )


def _last_reply(history: Sequence[Message]) -> str:
    return next((message.text for message in reversed(history) if message.role == "assistant"), "")


def _view_run(run: OpenedRun, turn: Turn, texts: Mapping[str, Passage]) -> RunTurnView:
    answered, traced = run.turns.get(turn.id), run.traced.get(turn.id)
    if answered is None:
        return RunTurnView(True, (), False, (), {}, "", None)
    rewrite = traced.rewrite if traced else answered.rewrite or ""
    used = [hit.id for response in answered.responses[:1] for hit in response.used]
    sentences = traced.sentences if traced and traced.sentences else _link_sentences(answer_of(answered), used, texts)
    cited = dict.fromkeys([id for sentence in sentences for id in sentence.passage_ids] + used)
    return RunTurnView(
        False,
        mark_new_words(rewrite, turn.utterance),
        bool(sentences),
        sentences,
        {id: place for place, id in enumerate(cited, start=1)},
        traced.without_model if traced else "",
        traced.seconds if traced else None,
    )


def _link_sentences(text: str, used: Sequence[str], texts: Mapping[str, Passage]) -> tuple[Sentence, ...]:
    """The sentences of an answer, each with those passages among the cited ones that it is an excerpt of."""
    cited = [texts[id] for id in used if id in texts]
    return tuple(Sentence(unit.text, supporting_ids(unit.text, cited)) for unit in split_units(Passage("", text)))


def mark_new_words(rewrite: str, utterance: str) -> tuple[Words, ...]:
    """A rewrite in pieces: what it took over from the utterance, and what it added."""
    said = set(WORD.findall(utterance.lower()))
    pieces: list[Words] = []
    for piece in WORD.findall(rewrite):
        is_new = pieces[-1].is_new if pieces and not piece[0].isalnum() else piece.lower() not in said
        if pieces and pieces[-1].is_new == is_new:
            pieces[-1] = Words(pieces[-1].text + piece, is_new)
        else:
            pieces.append(Words(piece, is_new))
    return tuple(pieces)


def _compare_statements(
    ptkb: Sequence[Statement], labels: Mapping[str, int] | None, chosen: Sequence[Mapping[str, float]]
) -> Iterator[StatementRow]:
    for statement in ptkb:
        matters = bool(labels and labels.get(statement.id, 0) > 0)
        if matters or any(statement.id in found for found in chosen):
            marks = tuple(_mark(statement.id in found, matters, judged=labels is not None) for found in chosen)
            yield StatementRow(statement, matters, marks)


def _mark(is_chosen: bool, matters: bool, *, judged: bool) -> Mark:
    if is_chosen:
        return ("right" if matters else "wrong") if judged else "chosen"
    return "missed" if matters else ""


def _align_rankings(
    material: Material, turn_id: str, rankings: Sequence[Sequence[str]], runs: Sequence[RunTurnView]
) -> Iterator[tuple[RankedPassage | None, ...]]:
    labels = material.passage_labels.get(turn_id, {})
    for rank in range(min(RANKING_SHOWN, max(map(len, rankings), default=0))):
        yield tuple(
            RankedPassage(id := ids[rank], labels.get(id), material.is_relevant(turn_id, id), run.citations.get(id, 0))
            if rank < len(ids)
            else None
            for ids, run in zip(rankings, runs, strict=True)
        )


def _find_relevant(material: Material, turn_id: str, rankings: Sequence[Sequence[str]]) -> Iterator[RelevantPassage]:
    places = [{id: rank for rank, id in enumerate(ids, start=1)} for ids in rankings]
    for id in material.relevant_ids(turn_id):
        level = material.passage_labels[turn_id][id]
        yield RelevantPassage(id, level, tuple(found.get(id) for found in places))


def _nuggets_of(run: OpenedRun, turn_id: str) -> Sequence[Nugget]:
    answer = run.nuggets.get(turn_id)
    return answer.nuggets if answer else ()


def _compare_nuggets(found: Sequence[Sequence[Nugget]]) -> Iterator[NuggetRow]:
    """The nuggets of all runs by their text, in the order of the first run that has any."""
    by_text = [{nugget.text: nugget for nugget in nuggets} for nuggets in found]
    for text in dict.fromkeys(text for nuggets in by_text for text in nuggets):
        known = [nuggets.get(text) for nuggets in by_text]
        importance = next((nugget.importance or "" for nugget in known if nugget), "")
        yield NuggetRow(text, importance, tuple((nugget and nugget.assignment) or "" for nugget in known))


def _steps_of(run: OpenedRun, turn_id: str) -> Sequence[StepCost]:
    traced = run.traced.get(turn_id)
    return traced.steps if traced else ()


def _compare_steps(found: Sequence[Sequence[StepCost]]) -> Iterator[StepRow]:
    by_name = [{cost.step: cost for cost in steps} for steps in found]
    for step in dict.fromkeys(step for steps in by_name for step in steps):
        yield StepRow(step, tuple(steps.get(step) for steps in by_name))
