"""The report itself: one page that holds all it shows, needs no network and allows none.

Questions, passages and answers are data. The templates escape them; what the script reads is JSON in which no tag can
begin. The page's own style and script are named to the browser by their digests; nothing else may run or be fetched.
"""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from agent.evaluation.report.chart import draw_bars, format_change, format_number, format_p
from agent.evaluation.report.comparison import KINDS, Comparison, compare_runs, find_kinds, measure_material
from agent.evaluation.report.reading import ErrorCollection, Material, OpenedRun, ReportRequest, open_material
from agent.evaluation.report.turn_view import TurnView, view_turns
from agent.evaluation.significance import paired_differences
from indexes.storage.files import check_writable, write_atomically
from schemas.records import Passage

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"
MOST_CHARACTERS = 1_600_000  # of all texts, so that a report of 218 turns stays below 5 MB
LEAST_CHARACTERS = 200  # of each


def write_report(request: ReportRequest) -> Path:
    """Read everything, measure and compare it, and write the page. Returns where it is.

    Raises one error for all that is wrong with the files, before anything is written.
    """
    errors = ErrorCollection()
    with errors.keep():
        check_writable(request.output, request.overwrite)
    material = open_material(request, errors)
    topics_name = request.topics.name if request.topics else "the traces' turns"
    write_atomically(request.output, [render_report(material, topics_name).encode()])
    return request.output


def render_report(material: Material, topics_name: str) -> str:
    """The page of what was read."""
    subjects = measure_material(material)
    leading, others = compare_runs(subjects, material)
    views = tuple(view_turns(material))
    anchors = name_anchors([view.turn.id for view in views])
    passages = dict.fromkeys(id for view in views for id in _shown_ids(view))
    texts = [material.texts.get(id, Passage(id, "")) for id in passages]
    bodies = [" ".join(passage.text.split()) for passage in texts]
    longest = choose_length([len(body) for body in bodies])
    values = {anchors[view.turn.id]: [_values_at(view.turn.id, each) for each in leading] for view in views}
    shelf = [(p.id, p.title, _cut(body, longest)) for p, body in zip(texts, bodies, strict=True)]
    style, script = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("report.css", "report.js"))
    return (
        _make_environment()
        .get_template("report.html")
        .render(
            runs=material.runs,
            names=[run.name for run in material.runs],
            traced=any(run.traced for run in material.runs),
            costs=[_average_cost(run) for run in material.runs],
            topics=material.topics,
            topics_name=topics_name,
            missing=[f"{subject.name.lower()} ({subject.missing})" for subject in subjects if subject.missing],
            leading=leading,
            others=others,
            charts=[_draw_charts(each, anchors, len(material.runs)) for each in leading],
            views=views,
            anchors=anchors,
            kinds=KINDS,
            kinds_of=find_kinds(material.topics, material.statement_labels),
            rel_level=material.rel_level,
            places={id: place for place, id in enumerate(passages)},
            longest=longest,
            values=values,
            data={"values": values, "passages": shelf},
            style=style,
            script=script,
            style_digest=_digest(style),
            script_digest=_digest(script),
        )
    )


def _make_environment() -> "Environment":
    """The templates of a report. They escape all that they are given."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": format_number, "change": format_change, "p": format_p}
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False, "separators": (",", ":")}
    return environment


def choose_length(lengths: Sequence[int]) -> int:
    """The length that texts have to be cut to, so that all keep within the limit; 0 where they do."""
    return max(LEAST_CHARACTERS, MOST_CHARACTERS // len(lengths)) if sum(lengths) > MOST_CHARACTERS else 0


def _cut(text: str, longest: int) -> str:
    return text if not longest or len(text) <= longest else f"{text[:longest]}…"


def _shown_ids(view: TurnView) -> Iterable[str]:
    yield from (cell.id for row in view.ranking for cell in row if cell)
    yield from (passage.id for passage in view.relevant)
    yield from (id for run in view.runs for id in run.citations)


def _values_at(turn_id: str, comparison: Comparison) -> list[float | None]:
    found = (values.get(turn_id) for values in comparison.values)
    return [None if value is None else round(value, 4) for value in found]


def _average_cost(run: OpenedRun) -> dict[str, float] | None:
    """Means over the turns of a trace; None for a run without one."""
    lines = run.traced.values()
    read = [sum(call.tokens_read for call in line.calls) for line in lines]
    written = [sum(call.tokens_written for call in line.calls) for line in lines]
    seconds = [line.seconds for line in lines]
    return {"read": mean(read), "written": mean(written), "seconds": mean(seconds)} if lines else None


def _draw_charts(comparison: Comparison, anchors: Mapping[str, str], runs: int) -> dict[int, "Markup"]:
    """Each run against the first by its place; without another run, the first one's own values."""
    label, first = f"{comparison.measure}, turn by turn", comparison.values[0]
    if runs == 1:
        return {0: draw_bars(first, anchors, label, (0, 0))}
    differences = {place: paired_differences(comparison.values[place], first) for place in range(1, runs)}
    return {place: draw_bars(found, anchors, label, (place, 0)) for place, found in differences.items()}


def name_anchors(turn_ids: Sequence[str]) -> dict[str, str]:
    """What each turn is linked by: its id where that can stand in an address as it is, else its place."""
    return {
        id: f"turn-{id}" if re.fullmatch(r"[\w.-]+", id, re.ASCII) else f"turn.{place}"
        for place, id in enumerate(turn_ids, start=1)
    }


def _digest(text: str) -> str:
    """As a content security policy names what may be in a page."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
