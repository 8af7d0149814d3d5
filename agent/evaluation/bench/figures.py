"""The figures of one system over a bed: its rankings, its choice of statements, its answers, what they cost."""

from collections.abc import Callable, Mapping, Sequence
from statistics import mean

from agent.evaluation.answers import measure_turn
from agent.evaluation.bench.answering import AnsweredBed
from agent.evaluation.bench.bed import Bed
from agent.evaluation.bench.systems import System
from agent.evaluation.bench.tables import Figure, Row, Table
from agent.evaluation.ptkb import labels_of_topics, measure_ptkb
from agent.evaluation.scores import Qrels
from agent.evaluation.search import measure_search
from agent.runs.evidence import PassageTexts
from agent.tracks.run_records import to_run_turns
from agent.turn.interface_sentences import starts_with_not_found
from schemas.records import RunInfo

Figures = dict[str, Figure]
RANKING = ("nDCG@5", "R@10", "R@100")


def make_table(
    name: str, about: str, answered: Mapping[System, AnsweredBed], measure: Callable[[AnsweredBed], Figures]
) -> Table:
    """A row for each system; the columns are what is measured of any of them."""
    found = {system: measure(run) for system, run in answered.items()}
    columns = tuple(dict.fromkeys(column for figures in found.values() for column in figures))
    rows = (
        Row(system.name, answered[system].command, tuple(figures.get(column) for column in columns))
        for system, figures in found.items()
    )
    return Table(name, about, columns, tuple(rows))


def measure_rankings(bed: Bed, run: AnsweredBed) -> Figures:
    """Over the turns with gold passages in the index; and the tokens that a model reads and writes for a turn."""
    scores = measure_search("", run.read_rankings(), bed.judged)
    read, written = run.count_tokens()
    return {**{measure: scores.mean(measure) for measure in RANKING}, "tokens read": read, "tokens written": written}


def measure_statements(bed: Bed, labels: Mapping[str, Qrels], run: AnsweredBed) -> Figures:
    """Macro F1 and nDCG@3 by each labels, and F1 over all turns by the topics' own choice."""
    chosen = {
        turn_id: {chosen.statement.id: 1.0 / rank for rank, chosen in enumerate(turn.selected_statements, start=1)}
        for turn_id, turn in run.read_turns().items()
    }
    figures: Figures = {}
    for name, judged in labels.items():
        scores = measure_ptkb("", chosen, judged)
        figures |= {f"{name} F1": scores.mean("F1"), f"{name} nDCG@3": scores.mean("nDCG@3")}
    own = labels_of_topics(bed.topics)
    return figures | ({"all turns F1": measure_ptkb("", chosen, own).mean("F1")} if own else {})


def measure_answers(bed: Bed, run: AnsweredBed, turn_ids: Sequence[str]) -> Figures:
    """ROUGE F with the canonical replies, what the cited passages support, what says that there is no answer, words."""
    texts, turns = PassageTexts({}, bed.index), run.read_turns()
    answered = {turn.turn_id: turn for turn in to_run_turns((turns[id] for id in turn_ids), RunInfo("bench"))}
    found = [measure_turn(answered[id], bed.topics.labels[id].reply, texts) for id in turn_ids]
    figures: Figures = {
        name: mean(values)
        for name in ("ROUGE-1", "ROUGE-2", "ROUGE-L", "supported")
        if (values := [turn[name] for turn in found if name in turn])
    }
    said = [turns[id].response.text for id in turn_ids]
    says_none = mean(starts_with_not_found(text) for text in said)
    return {**figures, "says none": float(says_none), "words": round(mean(len(text.split()) for text in said))}


def keep_turns(labels: Qrels, bed: Bed) -> Qrels:
    """The labels of the turns that are asked."""
    asked = set(bed.topics.turn_ids())
    return {turn_id: found for turn_id, found in labels.items() if turn_id in asked}
