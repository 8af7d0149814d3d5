"""From what is there already: exports of a trace, TREC files, metadata; and however long they are."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from shutil import copy

import pytest
import yaml

from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.export import convert_run, export_trace
from agent.runs.given_ranking import read_ranking
from agent.runs.trace import RunSettings, TraceLine, append_line, new_trace, open_for_append, read_trace
from agent.terminal.progress import turn_progress
from agent.tracks.run_files import encode_run, run_problems
from agent.tracks.topic_files import read_topics
from indexes.passage_index import PassageIndex
from indexes.storage.files import map_file, write_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Hit, Plan, Query, RunInfo, TurnResult
from tests.conftest import EXAMPLES
from tests.test_runs import answered
from tests.test_topics import EDITIONS, write

TOPICS = EXAMPLES / "topics.json"


@pytest.fixture
def finished(example_runs: Path, tmp_path: Path) -> Path:
    """A directory with a finished run of 2024 and its trace."""
    for name in ("json", "trace.jsonl", "ir_metadata.yml"):
        copy(example_runs / f"automatic.{name}", tmp_path / f"run.{name}")
    return tmp_path


def test_an_export_in_its_own_edition_is_the_run(finished: Path) -> None:
    turns = export_trace(
        finished / "run.trace.jsonl", None, finished / "again.json", "convagent", "us", overwrite=False
    )
    assert turns == 15
    assert (finished / "again.json").read_bytes() == (finished / "run.json").read_bytes()


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_trace_can_become_a_run_of_any_edition_that_can_express_it(edition: str, finished: Path) -> None:
    out = finished / "export"
    export_trace(finished / "run.trace.jsonl", edition, out, "ours", "us", overwrite=False)
    assert run_problems(out.read_bytes(), read_topics(TOPICS), edition) == []


def test_what_an_edition_cannot_express_is_said_and_nothing_is_written(
    finished: Path, tmp_path: Path, example_index: PassageIndex
) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2023"])
    outputs = Outputs.choose(topics, tmp_path / "other.json", None, resume=False, overwrite=False)
    answer_file(
        RunRequest(topics, EvidenceFiles(example_index.directory, embedder="none"), "none", Plan(k=5)),
        outputs,
        turn_progress,
    )
    with pytest.raises(InvalidInputError, match="turn 9-1_1: qrecc cannot express it"):
        export_trace(outputs.trace, "qrecc", tmp_path / "out", "ours", "us", overwrite=False)
    with pytest.raises(UsageError, match="a run's name has no spaces: 'our run'"):
        export_trace(outputs.trace, None, tmp_path / "out", "our run", "us", overwrite=False)
    assert not (tmp_path / "out").exists()


def test_a_trec_file_is_the_same_ranking(finished: Path) -> None:
    assert convert_run(finished / "run.json", finished / "run.trec", overwrite=False) == 15
    first = (finished / "run.trec").read_text().splitlines()[0].split()
    assert (first[0], first[1], first[3], first[5]) == ("0_1", "Q0", "1", "convagent")
    assert read_ranking(finished / "run.trec").hits == read_ranking(finished / "run.json").hits


def test_the_metadata_say_how_the_run_was_made(finished: Path) -> None:
    told = yaml.safe_load((finished / "run.ir_metadata.yml").read_text())
    assert told["tag"] == "convagent"
    assert {"platform", "implementation", "method", "actor", "data", "resources"} <= set(told)
    assert told["method"]["automatic"] is True
    assert told["data"]["used of the topics"] == [
        "utterances",
        "canonical replies to earlier turns",
        "personal statements",
    ]
    assert told["data"]["test collection"]["turns"] == 15
    settings = told["method"]["settings"]
    assert (settings["mode"], settings["plan"]["k"], len(settings["passages"])) == ("automatic", 15, 64)
    assert told["resources"]["wall time in seconds"]["all turns"] > 0


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
    with open_for_append(new_trace(tmp_path / "trace.jsonl", settings)) as file:
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
