"""All that a report shows of one turn: the conversation, and what each run made of it, beside each other."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from agent.evaluation.ptkb import rank_chosen
from agent.evaluation.report.reading import RANKING_SHOWN, Material, OpenedRun, answer_of
from agent.turn.attribution import supporting_ids
from indexes.text.units import split_units
from schemas.records import Call, Passage, Sentence, Statement, Topic, Topics, Turn

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
    ranks: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class RunTurnView:
    """What one run made of the turn."""

    is_missing: bool = False
    rewrite: tuple[Words, ...] = ()
    sentences: tuple[Sentence, ...] = ()
    citations: Mapping[str, int] = field(default_factory=dict)  # number by passage id
    without_model: str = ""
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class NuggetRow:
    """A nugget, and how far each run's answer says it."""

    text: str
    importance: str
    assignments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StepCost:
    """What one step of a turn cost: all its calls together."""

    tokens_read: int
    tokens_written: int
    seconds: float


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step, and what it cost each run."""

    step: str
    costs: tuple[StepCost | None, ...]


@dataclass(frozen=True, slots=True)
class TurnView:
    """One turn."""

    turn: Turn
    topic: Topic
    earlier: tuple[Turn, ...]
    last_reply: str
    human_rewrite: tuple[Words, ...]
    reply: str  # the canonical one
    runs: tuple[RunTurnView, ...]
    statements: tuple[StatementRow, ...]  # that matter or that a run chose
    statements_judged: bool
    ranking: tuple[tuple[RankedPassage | None, ...], ...]  # rows by rank, of a cell for each run
    ranking_sizes: tuple[int, ...]
    relevant: tuple[RelevantPassage, ...]
    nuggets: tuple[NuggetRow, ...]
    steps: tuple[StepRow, ...]


def view_turns(material: Material) -> Iterator[TurnView]:
    """Every turn of the topics, in their order."""
    for topic in material.topics.topics:
        for place in range(len(topic.turns)):
            yield _view_turn(material, topic, place)


def view_turn_of(material: Material, turn_id: str) -> TurnView:
    """The turn of that id, which the topics must have."""
    return next(
        _view_turn(material, topic, place)
        for topic in material.topics.topics
        for place, turn in enumerate(topic.turns)
        if turn.id == turn_id
    )


def _view_turn(material: Material, topic: Topic, place: int) -> TurnView:
    turn = topic.turns[place]
    known = material.topics.labels.get(turn.id)
    runs = tuple(_view_run(run, turn, material.texts) for run in material.runs)
    rankings = [run.rankings.get(turn.id, ()) for run in material.runs]
    replies = (message.text for message in reversed(turn.history or ()) if message.role == "assistant")
    return TurnView(
        turn,
        topic,
        topic.turns[:place],
        next(replies, ""),
        mark_new_words(known.human_rewrite if known else "", turn.utterance),
        known.reply if known else "",
        runs,
        tuple(_compare_statements(material, topic, turn.id)),
        turn.id in material.statement_labels,
        tuple(_align_rankings(material, turn.id, rankings, runs)),
        tuple(map(len, rankings)),
        tuple(_find_relevant(material, turn.id, rankings)),
        tuple(_compare_nuggets(material, turn.id)),
        tuple(_compare_steps(material, turn.id)),
    )


def _view_run(run: OpenedRun, turn: Turn, texts: Mapping[str, Passage]) -> RunTurnView:
    answered, line = run.turns.get(turn.id), run.traced.get(turn.id)
    if answered is None:
        return RunTurnView(is_missing=True)
    used = [hit.id for response in answered.responses[:1] for hit in response.used]
    sentences = line.answered.response.sentences if line else ()
    sentences = sentences or _link_sentences(answer_of(answered), used, texts)
    cited = dict.fromkeys([id for sentence in sentences for id in sentence.passage_ids] + used)
    citations = {id: number for number, id in enumerate(cited, start=1)}
    rewrite = mark_new_words(line.answered.query.standalone if line else answered.rewrite or "", turn.utterance)
    if line is None:
        return RunTurnView(False, rewrite, sentences, citations)
    return RunTurnView(False, rewrite, sentences, citations, line.answered.without_model, line.seconds)


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
        pieces.append(Words(piece, is_new))
    grouped = groupby(pieces, key=lambda piece: piece.is_new)
    return tuple(Words("".join(piece.text for piece in same), is_new) for is_new, same in grouped)


def _compare_statements(material: Material, topic: Topic, turn_id: str) -> Iterator[StatementRow]:
    labels = material.statement_labels.get(turn_id)
    turns = [[turn] if (turn := run.turns.get(turn_id)) else [] for run in material.runs]
    chosen = [rank_chosen(each, Topics("", (topic,), {})).get(turn_id, {}) for each in turns]
    for statement in topic.ptkb:
        matters = bool(labels and labels.get(statement.id, 0) > 0)
        if matters or any(statement.id in found for found in chosen):
            marks = (_mark(statement.id in found, matters, judged=labels is not None) for found in chosen)
            yield StatementRow(statement, tuple(marks))


def _mark(is_chosen: bool, matters: bool, *, judged: bool) -> Mark:
    if is_chosen:
        return ("right" if matters else "wrong") if judged else "chosen"
    return "missed" if matters else ""


def _align_rankings(
    material: Material, turn_id: str, rankings: Sequence[Sequence[str]], runs: Sequence[RunTurnView]
) -> Iterator[tuple[RankedPassage | None, ...]]:
    labels, relevant = material.passage_labels.get(turn_id, {}), material.relevant_ids(turn_id)
    for rank in range(min(RANKING_SHOWN, max(map(len, rankings), default=0))):
        yield tuple(
            RankedPassage(id := ids[rank], labels.get(id), id in relevant, run.citations.get(id, 0))
            if rank < len(ids)
            else None
            for ids, run in zip(rankings, runs, strict=True)
        )


def _find_relevant(material: Material, turn_id: str, rankings: Sequence[Sequence[str]]) -> Iterator[RelevantPassage]:
    ranks = [{id: rank for rank, id in enumerate(ids, start=1)} for ids in rankings]
    for id in material.relevant_ids(turn_id):
        yield RelevantPassage(id, tuple(found.get(id) for found in ranks))


def _compare_nuggets(material: Material, turn_id: str) -> Iterator[NuggetRow]:
    """The nuggets of all runs by their text, in the order of the first run that has any."""
    answers = [run.nuggets.get(turn_id) for run in material.runs]
    by_text = [{nugget.text: nugget for nugget in answer.criteria} if answer else {} for answer in answers]
    for text in dict.fromkeys(text for nuggets in by_text for text in nuggets):
        known = [nuggets.get(text) for nuggets in by_text]
        importance = next((nugget.importance or "" for nugget in known if nugget), "")
        yield NuggetRow(text, importance, tuple(str((nugget and nugget.verdict) or "") for nugget in known))


def _compare_steps(material: Material, turn_id: str) -> Iterator[StepRow]:
    """The steps in the order of their first calls."""
    lines = [run.traced.get(turn_id) for run in material.runs]
    calls = [line.calls if line else () for line in lines]
    for step in dict.fromkeys(call.step for each in calls for call in each):
        of_step = ([call for call in each if call.step == step] for each in calls)
        yield StepRow(step, tuple(_sum_calls(found) if found else None for found in of_step))


def _sum_calls(calls: Sequence[Call]) -> StepCost:
    read, written = (sum(call.tokens_read for call in calls), sum(call.tokens_written for call in calls))
    return StepCost(read, written, sum(call.seconds for call in calls))
