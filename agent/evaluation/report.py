"""`convagent report`: where runs differ, on which turns and why, as one page that needs no network and allows none.

Questions, passages and answers are data: the template escapes them, nothing on the page runs, and its style alone is
named to the browser, by its digest.
"""

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from agent.evaluation import answers, ptkb
from agent.evaluation.answers import find_cited
from agent.evaluation.scores import (
    Interval,
    Qrels,
    Scores,
    bootstrap_interval,
    check_turns_shared,
    correct_by_holm,
    measure_search,
    name_measures,
    paired_differences,
    randomisation_p,
    read_qrels,
    read_run_file,
)
from agent.runs.evidence import PassageTexts
from agent.runs.given_ranking import begins_as_trec_run, read_ranking, sort_by_score
from agent.runs.trace import TraceLine, is_trace, read_trace
from agent.tracks.files import read_topics
from agent.tracks.registry import load_edition
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn, to_run_turns
from indexes.storage.files import check_writable, read_utf8, write_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Sentence, Topic, Topics

TEMPLATES = Path(__file__).parent
MOST_RUNS = 8  # that fit beside each other
SHOWN = 10  # passages of a ranking
SAME = 1e-9  # values that differ by less are equal
QUICK_ROUGE = "rouge1", "rouge2"  # ROUGE-L would take half of the time of a report
WIDTH, HEIGHT, STUB = 1000, 160, 1.5  # of a chart, and of a bar without a difference, so that it can be pointed at
MINUS = "−"
NO_RESPONSE = RunResponse(1, "", ())
Values = Mapping[str, float]  # by turn id


@dataclass(frozen=True, slots=True)
class ReportRequest:
    """Runs to compare; the others are compared with the first."""

    runs: tuple[Path, ...]  # run files of any edition, TREC runs, or traces, which hold their runs
    topics: Path
    output: Path = Path("report.html")
    qrels: Path | None = None
    ptkb_qrels: Path | None = None
    rel_level: int = 1  # from which a passage counts as relevant
    passages: tuple[Path, ...] = ()  # files with the texts of cited passages
    index: Path | None = None  # that has them
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class OpenedRun:
    name: str
    edition: str  # "" for a TREC run, which has rankings alone
    turns: Mapping[str, RunTurn]
    traced: Mapping[str, TraceLine] = field(default_factory=dict)  # by turn id; empty without a trace
    is_manual: bool = False  # it was given the right statements, so that its choice says nothing

    def find_response(self, turn_id: str) -> RunResponse:
        return self.turns[turn_id].responses[0] if turn_id in self.turns else NO_RESPONSE

    def rank_passages(self, turn_id: str) -> dict[str, float]:
        """The scores of a turn's passages, as trec_eval orders them."""
        found = {passage.id: passage.score for passage in self.find_response(turn_id).passages or ()}
        return dict(sort_by_score([*found.items()]))


@dataclass(frozen=True, slots=True)
class Material:
    topics: Topics
    runs: tuple[OpenedRun, ...]
    passage_labels: Qrels  # empty where nobody gave any
    statement_labels: Qrels
    rel_level: int
    texts: PassageTexts


@dataclass(frozen=True, slots=True)
class Comparison:
    measure: str
    leads: bool  # it stands for others
    values: tuple[Values, ...]  # of each run; empty for one that has no such part
    means: tuple[Interval | None, ...]
    differences: Mapping[int, Mapping[str, Any]]  # from the first run, by the place of the other


def write_report(request: ReportRequest) -> Path:
    """Read everything, measure and compare it, and write the page. Returns where it is."""
    check_writable(request.output, request.overwrite)
    material = open_material(request)
    compared = compare_runs(material)
    anchors = {id: f"turn-{place}" for place, id in enumerate(material.topics.turn_ids(), start=1)}
    charted = next((each for each in compared if each.leads), None)
    values = charted.values if charted else ()  # each run against the first; without another, the first one's own
    shown: dict[int, Values] = {n: paired_differences(each, values[0]) for n, each in enumerate(values) if n}
    shown = shown or dict(enumerate(values))
    style = (TEMPLATES / "report.css").read_text(encoding="utf-8")
    environment = Environment(loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined)
    environment.filters |= {"number": format_number, "change": format_change}
    page = environment.get_template("report.html").render(
        names=[run.name for run in material.runs],
        topics=material.topics,
        topics_name=request.topics.name,
        compared=compared,
        charted=charted,
        charts={place: draw_bars(found, anchors) for place, found in shown.items() if found},
        turns=[view_turn(material, topic, n) for topic in material.topics.topics for n in range(len(topic.turns))],
        anchors=anchors,
        style=style,
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
    )
    write_atomically(request.output, [page.encode()])
    return request.output


def open_material(request: ReportRequest) -> Material:
    """Everything that is shown of runs. Raises for a run of other topics, and for a trace of another run."""
    if not 1 <= len(request.runs) <= MOST_RUNS:
        raise UsageError(f"a report is of 1 to {MOST_RUNS} runs, not of {len(request.runs)}")
    topics = read_topics(request.topics)
    known: Qrels = {id: {} for id in topics.turn_ids()}
    runs = tuple(map(open_run, request.runs))
    own = {id: dict.fromkeys(labels.passage_ids, request.rel_level) for id, labels in topics.labels.items()}
    passages = read_qrels(request.qrels) if request.qrels else own if any(own.values()) else {}
    given = request.ptkb_qrels
    statements = ptkb.read_statement_labels(given) if given else ptkb.labels_of_topics(topics)
    checked = [(path, run.turns) for path, run in zip(request.runs, runs, strict=True)]
    for file, found in (*checked, (request.qrels, passages), (given, statements)):
        if file:
            check_turns_shared(file, found, known)
    passages, statements = ({id: each[id] for id in known if id in each} for each in (passages, statements))
    cited = find_cited([turn for run in runs for turn in run.turns.values()], request.passages, request.index)
    return Material(topics, runs, passages, statements, request.rel_level, cited[1])


def open_run(path: Path) -> OpenedRun:
    """A run with the trace that stands beside it, or that it is. Raises for a trace that tells of other answers."""
    name = path.name.removesuffix(".jsonl").removesuffix(".json").removesuffix(".trace")
    if is_trace(path):
        return _read_traced_run(path, name)
    if begins_as_trec_run(read_utf8(path)):
        ranked = {id: found.items() for id, found in read_ranking(path).scores.items()}
        found = {id: RunResponse(1, None, tuple(RunPassage(*hit) for hit in hits)) for id, hits in ranked.items()}
        return OpenedRun(name, "", {id: RunTurn(id, (response,)) for id, response in found.items()})
    edition, turns = read_run_file(path)
    run = OpenedRun(name, edition, turns)
    beside = path.with_name(f"{name}.trace.jsonl")
    if not beside.is_file():
        return run
    traced = _read_traced_run(beside, name)
    both = run.turns.keys() & traced.turns.keys()
    if not both or any((run.find_response(id).text or "") != (traced.find_response(id).text or "") for id in both):
        what = "is of another run: it has other turns or answers"
        raise InvalidInputError(what, where=str(beside), remedy="Move it away, or report on the trace itself.")
    return replace(traced, edition=edition, turns=run.turns)


def _read_traced_run(path: Path, name: str) -> OpenedRun:
    trace = read_trace(path)
    lines = {line.answered.turn_id: line for line in trace.lines()}
    answered = to_run_turns((line.answered for line in lines.values()), trace.settings.describe_run(path.name, ""))
    turns = {turn.turn_id: turn for turn in answered}
    return OpenedRun(name, trace.settings.edition, turns, lines, trace.settings.mode == "manual")


def compare_runs(material: Material) -> list[Comparison]:
    """What can be measured of search, statements and answers, each as `convagent eval` has it."""
    found = []
    names = name_measures(material.rel_level)
    parts: Sequence[tuple[Callable[[Material, OpenedRun], Scores | None], Sequence[str], set[str]]] = (
        (_measure_search, names, {"nDCG@5", names[-3]}),
        (_measure_statements, ptkb.MEASURES, {"F1"}),
        (_measure_answers, answers.MEASURES, {"ROUGE-1", "supported"}),
    )
    for measure_run, measures, leading in parts:
        scores = [measure_run(material, run) for run in material.runs]
        for measure in measures:
            values = tuple(each.by_turn(measure) if each else {} for each in scores)
            if any(values):
                means = tuple(bootstrap_interval(each) if each else None for each in values)
                found.append(Comparison(measure, measure in leading, values, means, _find_differences(values)))
    return found


def _measure_search(material: Material, run: OpenedRun) -> Scores | None:
    ranked = {id: run.rank_passages(id) for id in run.turns}
    has_both = material.passage_labels and any(ranked.values())
    return measure_search(run.name, ranked, material.passage_labels, material.rel_level) if has_both else None


def _measure_statements(material: Material, run: OpenedRun) -> Scores | None:
    chooses = run.edition and not run.is_manual and load_edition(run.edition).rules.statements
    if not chooses or not material.statement_labels:
        return None
    return ptkb.measure_ptkb(run.name, ptkb.rank_chosen(run.turns.values(), material.topics), material.statement_labels)


def _measure_answers(material: Material, run: OpenedRun) -> Scores | None:
    replies = {id: known.reply for id, known in material.topics.labels.items() if known.reply.strip()}
    if not replies or not any(run.find_response(id).text for id in run.turns):
        return None
    found = {}
    for id, reply in replies.items():
        used = run.find_response(id).used
        texts = material.texts if used and all(material.texts.find(hit.id) for hit in used) else None
        found[id] = answers.measure_turn(run.turns.get(id), reply, texts, rouge=QUICK_ROUGE)
    return Scores(run.name, found, 0)


def _find_differences(values: Sequence[Values]) -> dict[int, dict[str, Any]]:
    """By how much each other run is above the first, and at how many turns; p-values are corrected together."""
    pairs = {place: paired_differences(values[place], values[0]) for place in range(1, len(values))}
    pairs = {place: found for place, found in pairs.items() if found}
    corrected = correct_by_holm([randomisation_p(found) for found in pairs.values()])
    return {
        place: {
            "by": bootstrap_interval(found),
            "p": p,
            "wins": sum(value > SAME for value in found.values()),
            "losses": sum(value < -SAME for value in found.values()),
        }
        for (place, found), p in zip(pairs.items(), corrected, strict=True)
    }


def view_turn(material: Material, topic: Topic, place: int) -> dict[str, Any]:
    """All that is shown of one turn: what was asked, and what each run made of it."""
    turn = topic.turns[place]
    replies = (message.text for message in reversed(turn.history or ()) if message.role == "assistant")
    runs = [_view_run(material, run, topic, turn.id) for run in material.runs]
    cited = dict.fromkeys(id for run in runs for id in run["citations"])
    passages = [passage for id in cited if (passage := material.texts.find(id))]
    known = material.topics.labels.get(turn.id)
    return {"turn": turn, "before": next(replies, ""), "labels": known, "runs": runs, "passages": passages}


def _view_run(material: Material, run: OpenedRun, topic: Topic, turn_id: str) -> dict[str, Any]:
    turn, response, line = run.turns.get(turn_id), run.find_response(turn_id), run.traced.get(turn_id)
    sentences = (line.answered.response.sentences if line else ()) or (Sentence(response.text or "", ()),)
    cited = dict.fromkeys(id for sentence in sentences for id in sentence.passage_ids)
    cited |= dict.fromkeys(hit.id for hit in response.used)
    labels = material.passage_labels.get(turn_id, {})
    relevant = {id for id, level in labels.items() if level >= material.rel_level}
    ranked = list(run.rank_passages(turn_id))
    missed = relevant.difference(ranked[:SHOWN])
    return {
        "lacks_turn": turn is None,
        "rewrite": line.answered.query.standalone if line else (turn and turn.rewrite) or "",
        "sentences": sentences,
        "citations": {id: number for number, id in enumerate(cited, start=1)},
        "without_model": line.answered.without_model if line else "",
        "seconds": line.seconds if line else None,
        "statements": list(_mark_statements(material, turn, topic)) if turn else [],
        "ranking": [(id, id in relevant) for id in ranked[:SHOWN]],
        "missed": [(id, ranked.index(id) + 1 if id in ranked else None) for id in labels if id in missed],
    }


def _mark_statements(material: Material, turn: RunTurn, topic: Topic) -> Iterator[tuple[str, str]]:
    """The statements that matter or were chosen, each with a mark: right, wrong, missed; chosen where nobody judged."""
    labels = material.statement_labels.get(turn.turn_id)
    chosen = ptkb.rank_chosen([turn], Topics("", (topic,), {}))[turn.turn_id]
    for statement in topic.ptkb:
        matters = bool(labels and labels.get(statement.id, 0) > 0)
        if statement.id in chosen:
            yield statement.text, "chosen" if labels is None else "right" if matters else "wrong"
        elif matters:
            yield statement.text, "missed"


def draw_bars(values: Values, anchors: Mapping[str, str]) -> Markup:
    """A bar for each turn, which leads to it, from the greatest win to the greatest loss, as inline SVG."""
    top, low = max(SAME, *values.values()), min(0.0, *values.values())
    room, scale = WIDTH / len(values), (HEIGHT - 2 * STUB) / (top - low)
    zero = top * scale + STUB
    bar = Markup('<a href="#{}"><rect class="{}" x="{}" y="{}" width="{}" height="{}"/><title>{} {}</title></a>')
    bars = [
        bar.format(
            anchors[id],
            "tie" if abs(value) <= SAME else "win" if value > 0 else "loss",
            round(place * room, 2),
            round(zero - max(0.0, value) * scale, 1),
            round(room * 0.85, 2),
            round(max(STUB, abs(value) * scale), 1),
            id,
            format_change(value),
        )
        for place, (id, value) in enumerate(sorted(values.items(), key=lambda pair: -pair[1]))
    ]
    chart = Markup('<svg viewBox="0 0 {} {}" role="group" aria-label="turn by turn, from {} to {}">{}</svg>')
    return chart.format(WIDTH, HEIGHT, format_change(top), format_change(low), Markup("").join(bars))


def format_number(value: float | None) -> str:
    """A measure: ".594", "1.00"; numbers that are no shares, such as words, with one digit after the point."""
    if value is None:
        return "–"
    written = f"{value:.1f}" if abs(value) > 1 else "1.00" if value == 1 else re.sub(r"^(-?)0", r"\1", f"{value:.3f}")
    return written.replace("-.000", ".000").replace("-", MINUS)


def format_change(value: float) -> str:
    """A difference with its sign: "+.109"."""
    written = format_number(value)
    return written if written.startswith(MINUS) else f"+{written}"
