"""The report itself: one page that holds all it shows, needs no network and allows none.

Questions, passages and answers are data. The templates escape them; what the script reads is JSON in which no tag can
begin. The page's own style and script are named to the browser by their digests; nothing else may run or be fetched.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from agent.evaluation.report.charts import (
    BarChart,
    GroupChart,
    Scale,
    draw_bars,
    draw_groups,
    scale_differences,
    scale_means,
    turn_differences,
)
from agent.evaluation.report.comparison import Comparison, compare_runs
from agent.evaluation.report.measures import measure_material
from agent.evaluation.report.reading import ErrorCollection, open_material
from agent.evaluation.report.request import Material, OpenedRun, ReportRequest
from agent.evaluation.report.turn_kinds import KINDS, find_kinds
from agent.evaluation.report.turn_view import TurnView, view_turns
from indexes.storage.files import check_writable, write_atomically
from schemas.records import Passage

if TYPE_CHECKING:
    from jinja2 import Environment

SMALLEST_P = 0.001
MINUS = "−"


def make_environment() -> "Environment":
    """The templates of a report. They escape all that they are given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": format_number, "change": format_change, "p": format_p}
    environment.filters |= {"tick": format_tick, "join_names": join_names}
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def format_number(value: float | None) -> str:
    """A measure: ".594", "1.00"; numbers that are no shares, such as words, with one digit after the point."""
    if value is None:
        return "–"
    if abs(value) > 1:
        return f"{value:,.1f}".replace("-", MINUS)
    written = f"{abs(value):.3f}"
    return (MINUS if value < 0 and float(written) else "") + (written[1:] if written[0] == "0" else written[:4])


def format_change(value: float) -> str:
    """A difference with its sign: "+.109"."""
    written = format_number(value)
    return written if written.startswith(MINUS) else f"+{written}"


def format_tick(value: float, signed: bool = False) -> str:
    """A round value beside a scale: ".2", "1", "+.05"."""
    written = f"{abs(value):g}".removeprefix("0") or "0"
    return written if not value else (MINUS if value < 0 else "+" if signed else "") + written


def format_p(value: float) -> str:
    """A p-value as it is printed: "= .012", "< .001"."""
    return f"< {format_number(SMALLEST_P)}" if value < SMALLEST_P else f"= {format_number(value)}"


def join_names(names: list[str]) -> str:
    """Names in a sentence: "a, b and c"."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


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


@dataclass(frozen=True, slots=True)
class AverageCost:
    """Means over the turns of a trace."""

    tokens_read: float
    tokens_written: float
    seconds: float


def average_costs(run: OpenedRun) -> AverageCost | None:
    """The mean of all turns; None for a run without a trace."""
    turns = run.traced.values()
    if not turns:
        return None
    return AverageCost(
        mean(sum(step.tokens_read for step in turn.steps) for turn in turns),
        mean(sum(step.tokens_written for step in turn.steps) for turn in turns),
        mean(turn.seconds for turn in turns),
    )


TEMPLATES = Path(__file__).parent / "templates"
INTERVAL_WIDTH, DIFFERENCE_WIDTH, MARGIN = 190.0, 150.0, 8.0
GROUPS_SIZE = 480.0, 230.0
BARS_SIZE = 1000.0, 170.0


@dataclass(frozen=True, slots=True)
class MeasureCharts:
    """The charts of one leading measure."""

    by_kind: GroupChart
    by_depth: GroupChart
    bars: tuple[tuple[int, BarChart], ...]  # of each run that is compared with the first, by its place


@dataclass(frozen=True, slots=True)
class Scales:
    """Of the table of means: the same for all measures, so that rows can be compared."""

    means: Scale
    differences: Scale


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn in the list: what it is found by."""

    view: TurnView
    anchor: str
    kinds: tuple[str, ...]
    values: tuple[tuple[float | None, ...], ...]  # by leading measure, of each run


def write_report(request: ReportRequest) -> Path:
    """Read everything, measure and compare it, and write the page. Returns where it is.

    Raises one error for all that is wrong with the files, before anything is written.
    """
    errors = ErrorCollection()
    errors.attempt(lambda: check_writable(request.output, request.overwrite), None)
    material = open_material(request, errors)
    topics_name = request.topics.name if request.topics else "the traces' turns"
    write_atomically(request.output, [render_report(material, topics_name).encode()])
    return request.output


def render_report(material: Material, topics_name: str) -> str:
    """The page of what was read."""
    subjects = measure_material(material)
    leading, others = compare_runs(subjects, material)
    views = tuple(view_turns(material))
    shelf = fill_shelf(views, material.texts)
    rows = _make_rows(views, leading, material)
    style, script = _read_asset("report.css"), _read_asset("report.js")
    environment = make_environment()
    environment.globals |= {"anchor_of": {row.view.turn.id: row.anchor for row in rows}.__getitem__, "shelf": shelf}
    return environment.get_template("report.html").render(
        runs=[run.name for run in material.runs],
        statements_given=[run.statements_given for run in material.runs],
        traced=any(run.traced for run in material.runs),
        topics=material.topics,
        topics_name=topics_name,
        subjects=subjects,
        leading=leading,
        others=others,
        charts=[_draw_charts(each, len(material.runs)) for each in leading],
        scales=_scale_table(leading),
        costs=[average_costs(run) for run in material.runs],
        rows=rows,
        kinds=KINDS,
        rel_level=material.rel_level,
        data=_script_data(rows, shelf),
        style=style,
        script=script,
        style_digest=_digest(style),
        script_digest=_digest(script),
    )


def _draw_charts(comparison: Comparison, runs: int) -> MeasureCharts:
    others = range(1, runs) if runs > 1 else range(1)
    bars = tuple((other, draw_bars(turn_differences(comparison, other), *BARS_SIZE)) for other in others)
    return MeasureCharts(
        draw_groups(comparison.by_kind, *GROUPS_SIZE), draw_groups(comparison.by_depth, *GROUPS_SIZE), bars
    )


def _scale_table(leading: Sequence[Comparison]) -> Scales:
    cells = [cell for each in leading for cell in each.cells if each.is_share]
    differences = [pair.by for each in leading for pair in each.differences if pair.one == 0 and each.is_share]
    return Scales(
        scale_means(cells, MARGIN, INTERVAL_WIDTH - MARGIN),
        scale_differences(differences, MARGIN, DIFFERENCE_WIDTH - MARGIN),
    )


def _make_rows(views: Sequence[TurnView], leading: Sequence[Comparison], material: Material) -> tuple[TurnRow, ...]:
    kinds = find_kinds(material.topics, material.statement_labels)
    anchors = name_anchors(view.turn.id for view in views)
    return tuple(
        TurnRow(
            view,
            anchor,
            kinds[view.turn.id],
            tuple(tuple(found.get(view.turn.id) for found in each.values) for each in leading),
        )
        for view, anchor in zip(views, anchors, strict=True)
    )


def name_anchors(turn_ids: Iterable[str]) -> list[str]:
    """What each turn is linked by: its id where that can stand in an address as it is, else its place."""
    return [
        f"turn-{id}" if re.fullmatch(r"[\w.-]+", id, re.ASCII) else f"turn.{place}"
        for place, id in enumerate(turn_ids, start=1)
    ]


def _script_data(rows: Sequence[TurnRow], shelf: PassageShelf) -> dict[str, object]:
    """What the page's script reads: values by turn, and the texts of passages."""
    values = {row.anchor: [[_round(value) for value in values] for values in row.values] for row in rows}
    return {"values": values, "passages": shelf.entries}


def _round(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def _read_asset(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    """As a content security policy names what may be in a page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
