"""From what is there already: exports of a trace for editions and other tools, TREC files; however long they are."""

import json
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.export import export_run
from agent.runs.trace import RunSettings, Trace, TraceLine, append_line, open_for_append, read_trace
from agent.terminal.progress import turn_progress
from agent.tracks.files import encode_run, read_topics, run_problems
from indexes.passage_index import PassageIndex
from indexes.storage.files import map_file, write_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Hit, Plan, Query, RunInfo, TurnResult
from tests.conftest import EXAMPLES
from tests.test_runs import answered
from tests.test_topics import EDITIONS, write

TOPICS = EXAMPLES / "topics.json"
needs = {
    module: pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")
    for module in ("autojudge_base", "ragnarok", "nuggetizer")
}


@pytest.fixture
def trace(example_runs: Path) -> Path:
    """Of a run of 2024."""
    return example_runs / "automatic.trace.jsonl"


def export(trace: Path, form: str | None, out: Path, name: str = "convagent") -> Path:
    assert export_run(trace, form, out, name, "us", overwrite=False) == 15
    return out


def test_a_trace_becomes_its_own_run_and_one_of_any_edition_that_can_express_it(trace: Path, tmp_path: Path) -> None:
    assert export(trace, None, tmp_path / "own").read_bytes() == trace.with_name("automatic.json").read_bytes()
    for edition in EDITIONS:
        out = export(trace, edition, tmp_path / edition, "ours")
        assert run_problems(out.read_bytes(), read_topics(TOPICS), edition) == []


def test_what_an_edition_cannot_express_is_said_and_nothing_is_written(
    tmp_path: Path, example_index: PassageIndex
) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2023"])
    outputs = Outputs.choose(topics, tmp_path / "other.json", None, resume=False, overwrite=False)
    origin = EvidenceFiles(example_index.directory, embedder="none")
    answer_file(RunRequest(topics, origin, "none", Plan(k=5)), outputs, turn_progress)
    with pytest.raises(InvalidInputError, match="turn 9-1_1: qrecc cannot express it"):
        export_run(outputs.trace, "qrecc", tmp_path / "out", "ours", "us", overwrite=False)
    with pytest.raises(UsageError, match="a run's name has no spaces: 'our run'"):
        export_run(outputs.trace, None, tmp_path / "out", "our run", "us", overwrite=False)
    assert not (tmp_path / "out").exists()


# For other tools


def in_python(code: str, *arguments: Path) -> Any:
    """What a process of its own prints: other tools fetch data and change settings where they are imported."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# Where it is imported, autojudge-base fetches lists of words with which our files have nothing to do.
AUTOJUDGE = """
import json, sys, nltk, nltk.corpus
from pathlib import Path
nltk.data.find = nltk.download = lambda *_, **__: None
nltk.corpus.stopwords = type("NoWords", (), {"words": lambda _self, _language: []})()
"""
LOAD_REPORTS = """
from autojudge_base.report import load_report
from autojudge_base.report_verification import ReportVerification
reports = load_report(Path(sys.argv[1]))
assert not ReportVerification(reports, "kiddie", strict=True).all().findings
print(json.dumps([
    [r.metadata.topic_id, r.metadata.narrative, r.get_report_text(),
     list(dict.fromkeys(id for s in r.get_sentences_with_citations() for id in s.citations))] for r in reports
]))
"""
LOAD_RAGNAROK = "import json, sys\nfrom ragnarok import data\nprint(json.dumps({}))".format
ANSWERED = LOAD_RAGNAROK(
    "[[r.query.qid, r.query.text, ' '.join(s.text for s in r.answer), "
    "list(dict.fromkeys(r.references[n] for s in r.answer for n in s.citations))] "
    "for r in data.read_results_from_file(sys.argv[1])]"
)
ASKED = LOAD_RAGNAROK(
    "[[r.query.qid, r.query.text, [[c.docid, c.doc['segment']] for c in r.candidates]] "
    "for r in data.read_requests_from_file(sys.argv[1])]"
)


def describe_answer(turn: TurnResult) -> list[Any]:
    return [turn.turn_id, turn.query.standalone, turn.response.text, list(turn.response.used)]


def describe_passages(turn: TurnResult) -> list[Any]:
    return [turn.turn_id, turn.query.standalone, [[p.id, p.text] for p in turn.passages]]


@pytest.mark.parametrize(
    ("form", "code", "describe"),
    [
        pytest.param("autojudge", AUTOJUDGE + LOAD_REPORTS, describe_answer, marks=needs["autojudge_base"]),
        pytest.param("ragnarok", ANSWERED, describe_answer, marks=needs["ragnarok"]),
        pytest.param("nuggetizer", ASKED, describe_passages, marks=needs["ragnarok"]),
    ],
)
def test_other_tools_own_loaders_take_an_exported_run(
    form: str, code: str, describe: Callable[[TurnResult], list[Any]], trace: Path, tmp_path: Path
) -> None:
    """And Auto-Judge's checks of a track that has no collection of its own find nothing."""
    found = in_python(code, export(trace, form, tmp_path / "answers.jsonl", "ours"))
    assert found == [describe(line.answered) for line in read_trace(trace).lines()]


# A long run


def long_turns(count: int) -> Iterator[TurnResult]:
    hits = tuple(Hit(f"some-collection-{n:07}:1", 2000.0 - n) for n in range(1000))
    for number in range(1, count + 1):
        yield TurnResult(f"{number}_1", Query("Why?"), (), hits, (), answered("1_1").responses)


def test_a_long_run_is_written_exported_and_checked_turn_by_turn(tmp_path: Path) -> None:
    """16,000 rows stream: what is in memory is one turn, and a few bytes for each that is finished."""
    count = 100
    rows = [{"Conversation_no": n, "Turn_no": 1, "Question": "Why?"} for n in range(1, count + 1)]
    topics = read_topics(write(tmp_path / "topics.json", rows))
    settings = RunSettings(edition="qrecc", turns=count, model="none")
    with open_for_append(Trace(tmp_path / "trace.jsonl", settings)) as file:
        for turn in long_turns(count):
            append_line(file, TraceLine(turn, (), 0.0))
    tracemalloc.start()
    trace = read_trace(tmp_path / "trace.jsonl")
    turns = (line.answered for line in trace.lines())
    write_atomically(tmp_path / "run.json", encode_run("qrecc", turns, RunInfo("")))
    problems = run_problems(map_file(tmp_path / "run.json"), topics)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert problems == []
    assert (tmp_path / "run.json").stat().st_size > 3_000_000
    assert peak < 2_000_000
