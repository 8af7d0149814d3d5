"""Everything about runs that can be measured with the labels there are, and why the rest is not."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from agent.evaluation import answers, nuggets, ptkb, search
from agent.evaluation.report.reading import answer_of, passages_of
from agent.evaluation.report.request import Material, OpenedRun
from agent.evaluation.scores import Scores
from agent.runs.evidence import PassageTexts
from agent.tracks.registry import load_edition
from agent.tracks.run_records import RunTurn

QUICK_ROUGE = "rouge1", "rouge2"  # ROUGE-L would take half of the time of a report
MeasureRun = Callable[[OpenedRun], Scores | None]  # None where a run has none, or was given them


@dataclass(frozen=True, slots=True)
class Subject:
    """What is measured of one part of the runs: search, statements, answers, nuggets."""

    name: str
    measures: tuple[str, ...]
    leading: tuple[str, ...]  # those that stand for the others
    scores: tuple[Scores | None, ...]  # of each run; None for one that has no such part
    missing: str = ""  # why nothing is measured

    @property
    def is_measured(self) -> bool:
        return any(self.scores)

    def measured(self) -> tuple[str, ...]:
        """The measures that at least one run has."""
        return tuple(name for name in self.measures if any(each and each.by_turn(name) for each in self.scores))


def measure_material(material: Material) -> tuple[Subject, ...]:
    """Search, statements, answers and nuggets, each as `convagent eval` measures them."""
    return (
        _measure_search(material),
        _measure_statements(material),
        _measure_answers(material),
        _measure_nuggets(material),
    )


def _measure_search(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        ranked = {id: {p.id: p.score for p in passages_of(turn)} for id, turn in run.turns.items()}
        return search.measure_search(run.name, ranked, labels, level) if any(ranked.values()) else None

    labels, level = material.passage_labels, material.rel_level
    measures, leading = search.name_measures(level), ("nDCG@5", search.name_measures(level)[-3])
    if not labels:
        return Subject("Search", measures, leading, (), "no --qrels, and the topics name no passages of their own")
    return _subject("Search", measures, leading, material, measure)


def _measure_statements(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        if run.statements_given or not run.edition or not load_edition(run.edition).limits.statements:
            return None
        chosen = ptkb.rank_chosen(run.turns.values(), material.topics)
        return ptkb.measure_ptkb(run.name, chosen, material.statement_labels)

    if not material.statement_labels:
        missing = "no --ptkb-qrels, and the topics do not say which statements matter"
        return Subject("Statements", ptkb.MEASURES, ("F1",), (), missing)
    return _subject("Statements", ptkb.MEASURES, ("F1",), material, measure)


def _measure_answers(material: Material) -> Subject:
    replies = {id: known.reply for id, known in material.topics.labels.items() if known.reply.strip()}
    texts = PassageTexts(material.texts)

    def measure(run: OpenedRun) -> Scores | None:
        if not any(map(answer_of, run.turns.values())):
            return None
        measured = {
            id: answers.measure_turn(
                turn := run.turns.get(id), reply, texts if _has_cited(turn, texts) else None, rouge=QUICK_ROUGE
            )
            for id, reply in replies.items()
        }
        return Scores(run.name, measured, sum(id not in run.turns for id in replies))

    measures = tuple(name for name in answers.MEASURES if name not in ("judged", "ROUGE-L"))
    if not replies:
        return Subject("Answers", measures, (), (), "the topics have no canonical replies")
    return _subject("Answers", measures, ("ROUGE-1", "supported"), material, measure)


def _has_cited(turn: RunTurn | None, texts: PassageTexts) -> bool:
    """Whether an answer cites passages, and the text of each is at hand."""
    cited = turn.responses[0].used if turn and turn.responses else ()
    return bool(cited) and all(texts.find(hit.id) for hit in cited)


def _measure_nuggets(material: Material) -> Subject:
    def measure(run: OpenedRun) -> Scores | None:
        scores = {id: nuggets.score_nuggets(run.nuggets[id].nuggets) for id in turn_ids if id in run.nuggets}
        return Scores(run.name, scores, 0) if scores else None

    turn_ids = material.topics.turn_ids()
    if not any(run.nuggets for run in material.runs):
        return Subject("Nuggets", nuggets.MEASURES, (), (), "no --nuggets")
    found = _subject("Nuggets", nuggets.MEASURES, ("strict vital",), material, measure)
    return (
        found
        if "strict vital" in found.measured()
        else _subject("Nuggets", nuggets.MEASURES, ("strict all",), material, measure)
    )


def _subject(
    name: str, measures: tuple[str, ...], leading: tuple[str, ...], material: Material, measure: MeasureRun
) -> Subject:
    scores = tuple(measure(run) for run in material.runs)
    return Subject(name, measures, leading, scores, "" if any(scores) else "no run has any")


def turn_values(scores: Scores | None, measure: str) -> Mapping[str, float]:
    """A measure by turn id; nothing for a run that lacks it."""
    return scores.by_turn(measure) if scores else {}
