"""Reports of runs: what they measure, what they refuse, and that what is in them stays text."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.evaluation.answers import evaluate_answers
from agent.evaluation.ptkb import evaluate_ptkb
from agent.evaluation.report import Comparison, ReportRequest, compare_runs, open_material, view_turn, write_report
from agent.evaluation.scores import evaluate_search
from agent.runs.export import export_run
from schemas.errors import ConvagentError
from tests import within
from tests.conftest import EXAMPLES
from tests.test_topics import write

TOPICS, PASSAGES = EXAMPLES / "topics.json", EXAMPLES / "passages.jsonl"


@pytest.fixture
def runs(example_runs: Path) -> tuple[Path, Path]:
    return example_runs / "automatic.json", example_runs / "manual.json"


@pytest.fixture
def request_of(runs: tuple[Path, Path], tmp_path: Path) -> ReportRequest:
    return ReportRequest(runs, TOPICS, tmp_path / "report.html", passages=(PASSAGES,))


def compare(request: ReportRequest) -> dict[str, Comparison]:
    return {each.measure: each for each in compare_runs(open_material(request))}


def test_the_measures_are_those_of_eval(request_of: ReportRequest, runs: tuple[Path, Path]) -> None:
    """But for the statements of a run that was given the right ones."""
    found = compare(request_of)
    search, answers = evaluate_search(runs, None, TOPICS), evaluate_answers(runs, TOPICS, request_of.passages)
    for measure, scores in {"nDCG@5": search, "R@100": search, "ROUGE-1": answers, "supported": answers}.items():
        assert list(found[measure].values) == [each.by_turn(measure) for each in scores]
    [statements] = evaluate_ptkb(runs[:1], None, TOPICS)
    assert found["F1"].values == (statements.by_turn("F1"), {})


def test_labels_of_files_come_before_those_of_the_topics(request_of: ReportRequest, tmp_path: Path) -> None:
    qrels = write(tmp_path / "qrels", "0_1 0 bread-01:1 2\n0_1 0 bread-07:1 1\n9_9 0 x 1\n")
    statements = write(tmp_path / "ptkb", "0_1 0 3 1\n0_1 0 1 0\n")
    request = replace(request_of, qrels=qrels, ptkb_qrels=statements, rel_level=2)
    found = compare(request)
    assert set(found["nDCG@5"].values[0]) == set(found["F1"].values[0]) == {"0_1"}
    assert "R(rel=2)@100" in found
    material = open_material(request)
    run = view_turn(material, material.topics.topics[0], 0)["runs"][0]
    marked = [id for id, is_relevant in run["ranking"] if is_relevant] + [id for id, _ in run["missed"]]
    assert marked == ["bread-01:1"]
    assert {mark for _, mark in run["statements"]} <= {"right", "wrong", "missed"}


def test_rankings_alone_and_a_trace_as_a_run(
    request_of: ReportRequest, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    export_run(runs[1], "trec", trec := tmp_path / "manual.trec", "", "", overwrite=False)
    both = compare(request_of)
    mixed = compare(replace(request_of, runs=(runs[0].with_name("automatic.trace.jsonl"), trec)))
    assert mixed["nDCG@5"].values == both["nDCG@5"].values
    assert mixed["F1"].values[0] == both["F1"].values[0]
    assert mixed["ROUGE-1"].means[1] is None


def test_without_labels_runs_are_read_side_by_side(request_of: ReportRequest, tmp_path: Path) -> None:
    topics = json.loads(TOPICS.read_text())
    for turn in (turn for topic in topics for turn in topic["turns"]):
        turn |= {"ptkb_provenance": [], "response_provenance": [], "response": "", "resolved_utterance": ""}
    page = write_report(replace(request_of, topics=write(tmp_path / "blind.json", json.dumps(topics)))).read_text()
    assert "Nothing is measured" in page
    assert page.count('<details class="turn"') == 15
    assert "<svg" not in page
    assert page.count('<p class="answer">') == 30


def test_what_cannot_be_compared_is_refused(request_of: ReportRequest, runs: tuple[Path, Path], tmp_path: Path) -> None:
    foreign, missing = write(tmp_path / "qrels", "77_1 0 a 1\n"), tmp_path / "none.json"
    other = write(tmp_path / "other.json", runs[0].read_text())
    write(tmp_path / "other.trace.jsonl", runs[1].with_name("manual.trace.jsonl").read_text())
    taken = write(tmp_path / "taken.html", "kept")
    for request, what in (
        (replace(request_of, qrels=foreign), "it has '77_1', the labels have '0_1'"),
        (replace(request_of, runs=(missing,)), r"none\.json: no such file"),
        (replace(request_of, runs=(other,)), r"other\.trace\.jsonl: is of another run"),
        (replace(request_of, runs=runs * 5), "1 to 8 runs, not of 10"),
        (replace(request_of, output=taken), "exists already"),
    ):
        with pytest.raises(ConvagentError, match=what):
            write_report(request)
    assert taken.read_text() == "kept"
    assert not request_of.output.exists()


def test_the_command_line_writes_the_same_bytes_again(runs: tuple[Path, Path], tmp_path: Path) -> None:
    given = ("report", *runs, "-t", TOPICS, "-o", "two.html")
    written = within.convagent(*given, cwd=tmp_path)
    assert (written.returncode, "two.html: written" in written.stderr) == (0, True)
    first = (tmp_path / "two.html").read_bytes()
    assert b"<title>automatic and manual on topics.json" in first
    assert within.convagent(*given, "--overwrite", cwd=tmp_path).returncode == 0
    assert (tmp_path / "two.html").read_bytes() == first


def test_what_is_shown_stays_text(request_of: ReportRequest, tmp_path: Path) -> None:
    attack = "</style><script>alert(1)</script><!--<img src=x onerror=alert(1)>' \" & \u2028"
    topics = json.loads(TOPICS.read_text())
    topics[0]["turns"][0] |= {"utterance": attack, "resolved_utterance": attack, "response": attack}
    topics[0]["ptkb"]["3"] = attack
    run = json.loads(request_of.runs[0].read_text())
    run["turns"][0]["responses"][0]["text"] = attack
    used = [each["id"] for each in run["turns"][0]["responses"][0]["passage_provenance"] if each["used"]]
    texts = write(tmp_path / "texts.jsonl", json.dumps({"id": used[0], "contents": attack}))
    page = write_report(
        replace(
            request_of,
            runs=(write(tmp_path / "<img src=x onerror=alert(1)>.json", json.dumps(run)),),
            topics=write(tmp_path / "t.json", json.dumps(topics)),
            passages=(texts,),
        )
    ).read_text()
    assert not re.search(r"<script|<img|<!--", page)
    assert page.count("</style>") == 1
    assert page.count("&lt;img src=x onerror=alert(1)&gt;") >= 6
