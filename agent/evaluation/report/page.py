"""The report itself: one page that holds all it shows, needs no network and allows none.

Questions, passages and answers are data. The templates escape them; what the script reads is JSON in which no tag can
begin. The page's own style and script are named to the browser by their digests; nothing else may run or be fetched.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

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
from agent.evaluation.report.costs import average_costs
from agent.evaluation.report.figures import make_environment
from agent.evaluation.report.measures import measure_material
from agent.evaluation.report.passages import PassageShelf, fill_shelf
from agent.evaluation.report.reading import ErrorCollection, open_material
from agent.evaluation.report.request import Material, ReportRequest
from agent.evaluation.report.turn_kinds import KINDS, find_kinds
from agent.evaluation.report.turn_view import TurnView, view_turns
from indexes.storage.files import check_writable, write_atomically

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
