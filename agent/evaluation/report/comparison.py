"""The runs beside each other: means with their intervals, differences with corrected tests, by depth and by kind."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from agent.evaluation import answers, judged_answers, ptkb, search
from agent.evaluation.conversation import group_by_depth
from agent.evaluation.report.reading import Material, OpenedRun, answer_of, passages_of
from agent.evaluation.scores import Qrels, Scores
from agent.evaluation.significance import (
    Interval,
    bootstrap_interval,
    correct_by_holm,
    paired_differences,
    randomisation_p,
)
from agent.runs.evidence import PassageTexts
from agent.tracks.registry import load_edition
from agent.tracks.run_records import RunTurn
from indexes.text.analysis import extract_stems
from schemas.records import Topic, Topics

SURE = 0.05  # a difference is called sure below this corrected p
SAME = 1e-9  # values that differ by less are equal
QUICK_ROUGE = "rouge1", "rouge2"  # ROUGE-L would take half of the time of a report
FIRST, FOLLOW_UP, SWITCH, PERSONAL = "first", "follow-up", "topic switch", "needs a statement"
KINDS = (FIRST, FOLLOW_UP, SWITCH, PERSONAL)
FEWEST_WORDS = 3  # that say something, in a turn that can open a subject
SHARED_WITH_REPLY = 1 / 3  # of its words, at most, in a turn that leaves a subject
Values = tuple[Mapping[str, float], ...]  # of a measure by turn id, a run each


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured of one part of the runs: search, statements, answers, nuggets."""

    name: str
    measures: tuple[str, ...]
    leading: tuple[str, ...]  # those that stand for the others
    scores: tuple[Scores | None, ...]  # of each run; None for one that has no such part
    missing: str = ""  # why nothing is measured


@dataclass(frozen=True, slots=True)
class Difference:
    """Two runs by their places: by how much the second is above the first."""

    one: int
    other: int
    by: Interval
    p: float  # corrected for the pairs of this measure
    wins: int  # turns at which the second is better
    losses: int

    @property
    def is_sure(self) -> bool:
        return self.p < SURE


@dataclass(frozen=True, slots=True)
class Group:
    """Some turns: of one kind, or at one depth."""

    name: str
    turns: int  # that are measured
    cells: tuple[Interval | None, ...]  # a run each


@dataclass(frozen=True, slots=True)
class Comparison:
    """One measure of all runs."""

    subject: str
    measure: str
    turns: int  # that are measured
    values: Values
    cells: tuple[Interval | None, ...]
    differences: Mapping[tuple[int, int], Difference]  # of every pair
    groups: tuple[Group, ...] = ()  # by kind of turn, then by depth


def measure_material(material: Material) -> tuple[Subject, ...]:
    """Search, statements, answers and nuggets, each as `convagent eval` measures them, or why it is not measured."""
    steps = _measure_search, _measure_statements, _measure_answers, _measure_nuggets
    return tuple(measure(material) for measure in steps)


def _measure_search(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        ranked = {id: {p.id: p.score for p in passages_of(turn)} for id, turn in run.turns.items()}
        return search.measure_search(run.name, ranked, labels, level) if any(ranked.values()) else None

    labels, level = material.passage_labels, material.rel_level
    measures = search.name_measures(level)
    missing = "" if labels else "no --qrels, and the topics name no passages of their own"
    return _measure("Search", measures, ("nDCG@5", measures[-3]), missing, material, measure)


def _measure_statements(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        if run.statements_given or not run.edition or not load_edition(run.edition).limits.statements:
            return None
        chosen = ptkb.rank_chosen(run.turns.values(), material.topics)
        return ptkb.measure_ptkb(run.name, chosen, material.statement_labels)

    missing = "" if material.statement_labels else "no --ptkb-qrels, and the topics do not say which statements matter"
    return _measure("Statements", ptkb.MEASURES, ("F1",), missing, material, measure)


def _measure_answers(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        if not any(map(answer_of, run.turns.values())):
            return None
        found = {id: _measure_answer(run.turns.get(id), reply, texts) for id, reply in replies.items()}
        return Scores(run.name, found, sum(id not in run.turns for id in replies))

    replies = {id: known.reply for id, known in material.topics.labels.items() if known.reply.strip()}
    texts = PassageTexts(material.texts)
    measures = tuple(name for name in answers.MEASURES if name not in ("judged", "ROUGE-L"))
    missing = "" if replies else "the topics have no canonical replies"
    return _measure("Answers", measures, ("ROUGE-1", "supported"), missing, material, measure)


def _measure_answer(turn: RunTurn | None, reply: str, texts: PassageTexts) -> dict[str, float]:
    """Support is measured where the answer cites passages and the text of each is at hand."""
    cited = turn.responses[0].used if turn and turn.responses else ()
    at_hand = bool(cited) and all(texts.find(hit.id) for hit in cited)
    return answers.measure_turn(turn, reply, texts if at_hand else None, rouge=QUICK_ROUGE)


def _measure_nuggets(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        scores = {id: judged_answers.score_nuggets(run.nuggets[id].criteria) for id in turn_ids if id in run.nuggets}
        return Scores(run.name, scores, 0) if scores else None

    turn_ids = material.topics.turn_ids()
    known = (nugget for run in material.runs for answer in run.nuggets.values() for nugget in answer.criteria)
    leading = "strict vital" if any(nugget.importance for nugget in known) else "strict all"
    missing = "" if any(run.nuggets for run in material.runs) else "no --nuggets"
    return _measure("Nuggets", judged_answers.NUGGET_MEASURES, (leading,), missing, material, measure)


def _measure(
    name: str,
    measures: tuple[str, ...],
    leading: tuple[str, ...],
    missing: str,
    material: Material,
    measure: Callable[[OpenedRun], Scores | None],
) -> Subject:
    scores = () if missing else tuple(measure(run) for run in material.runs)
    return Subject(name, measures, leading, scores, "" if any(scores) else missing or "no run has any")


def compare_runs(subjects: Sequence[Subject], material: Material) -> tuple[list[Comparison], list[Comparison]]:
    """The measures that lead, with their groups, and all others."""
    by_turn = find_kinds(material.topics, material.statement_labels)
    groups = {kind: tuple(id for id, found in by_turn.items() if kind in found) for kind in KINDS}
    groups |= {f"turn {depth}": ids for depth, ids in group_by_depth(material.topics).items()}
    leading: list[Comparison] = []
    others: list[Comparison] = []
    for subject in subjects:
        for measure in subject.measures:
            values = tuple(scores.by_turn(measure) if scores else {} for scores in subject.scores)
            if any(values):
                leads = measure in subject.leading
                (leading if leads else others).append(_compare(subject.name, measure, values, groups if leads else {}))
    return leading, others


def _compare(subject: str, measure: str, values: Values, groups: Mapping[str, Sequence[str]]) -> Comparison:
    total = _group(measure, values)
    kept = (
        (name, tuple({id: found[id] for id in ids if id in found} for found in values)) for name, ids in groups.items()
    )
    found = tuple(_group(name, each) for name, each in kept if any(each))
    return Comparison(subject, measure, total.turns, values, total.cells, _find_differences(values), found)


def _group(name: str, values: Values) -> Group:
    cells = tuple(bootstrap_interval(found) if found else None for found in values)
    return Group(name, len({id for found in values for id in found}), cells)


def _find_differences(values: Values) -> dict[tuple[int, int], Difference]:
    pairs = {
        (one, other): found
        for one, other in combinations(range(len(values)), 2)
        if (found := paired_differences(values[other], values[one]))
    }
    corrected = correct_by_holm([randomisation_p(found) for found in pairs.values()])
    return {
        pair: Difference(
            *pair,
            bootstrap_interval(found),
            p,
            sum(value > SAME for value in found.values()),
            sum(value < -SAME for value in found.values()),
        )
        for (pair, found), p in zip(pairs.items(), corrected, strict=True)
    }


def find_kinds(topics: Topics, statement_labels: Qrels) -> Mapping[str, tuple[str, ...]]:
    """The kinds of every turn, by its id. Every turn is one of the first three; it may need a statement besides."""
    kinds: dict[str, tuple[str, ...]] = {}
    for topic in topics.topics:
        switches = set(_find_switches(topic, topics))
        for place, turn in enumerate(topic.turns):
            position = FIRST if place == 0 else SWITCH if turn.id in switches else FOLLOW_UP
            needs = any(level > 0 for level in statement_labels.get(turn.id, {}).values())
            kinds[turn.id] = (position, PERSONAL) if needs else (position,)
    return kinds


def _find_switches(topic: Topic, topics: Topics) -> Iterator[str]:
    """The turns that leave what was spoken of, by their words alone: topics files do not say it.

    Such a turn, as it stands alone, shares no word with the one before and few with the reply that it follows.
    """
    before: set[str] = set()
    for place, turn in enumerate(topic.turns):
        labels = topics.labels.get(turn.id)
        words = set(extract_stems(labels.human_rewrite if labels and labels.human_rewrite else turn.utterance))
        heard = set(extract_stems(turn.history[-1].text)) if turn.history else set()
        few = len(words & heard) < SHARED_WITH_REPLY * len(words)
        if place and len(words) >= FEWEST_WORDS and few and not words & before:
            yield turn.id
        before = words
