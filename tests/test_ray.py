"""`--on ray`: the same bytes as here, whatever becomes of the workers; and nothing leaves the machine.

One cluster of two workers serves all tests of this module. `make soak` kills more of them, and more often.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import psutil
import pytest

from agent.runs import ray as ray_backend
from agent.runs import ray_cluster
from agent.runs.answer_topics import OnTurn, Outputs, RunReport, RunRequest, answer_file, open_backend
from agent.runs.evidence import EvidenceFiles, open_evidence
from agent.runs.ray import open_ray
from agent.runs.ray_cluster import HOME, MAX_LOSSES, Cluster, open_cluster
from agent.runs.trace import read_trace
from agent.runs.worker import WorkerSpecification, Workforce
from agent.tracks.files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import Index, PassageIndex
from indexes.sharding.sharded_index import open_index
from schemas.errors import MissingError, RunError, UsageError
from schemas.records import Plan, TurnResult
from tests import ray_workers
from tests.conftest import EXAMPLES, OFFLINE, PATIENCE, ROOT
from tests.processes import run, start

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (extra ray)")
PLAN = Plan(k=20)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Two workers may be on it at a time; a Python process of it that tries to get out of the machine ends."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (OFFLINE | {"PYTHONPATH": f"{OFFLINE['PYTHONPATH']}{os.pathsep}{ROOT}"}).items():
            patch.setenv(name, value)
        with open_cluster(None, 2) as opened:
            yield opened


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """The example topics in a folder of their own."""
    path = tmp_path / "topics.json"
    path.write_bytes((EXAMPLES / "topics.json").read_bytes())
    return path


def request(topics: Path, index: Index, on: str) -> RunRequest:
    files = EvidenceFiles(index.directory, embedder="none")
    return RunRequest(topics, files, "none", PLAN, jobs=1 if on == "local" else 2, cache=False, on=on)


def answer(wanted: RunRequest, on_turn: OnTurn = lambda *_: None, *, resume: bool = False) -> RunReport:
    """A run beside its topics, with its backend's name."""
    run_file = wanted.topics.with_name(f"{wanted.on}.json")
    outputs = Outputs.choose(wanted.topics, run_file, None, resume=resume, overwrite=False)
    return answer_file(wanted, outputs, lambda _total, _done: nullcontext(on_turn))


def connections_of(processes: list[psutil.Process]) -> Iterator[str]:
    """The addresses that they listen on or are connected to."""
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            for connection in process.net_connections("inet"):
                yield from (address.ip for address in (connection.laddr, connection.raddr) if address)


@needs_ray
def test_a_run_has_the_same_bytes_and_talks_to_loopback_alone(
    cluster: Cluster, topics: Path, example_index: PassageIndex
) -> None:
    """Asked of all processes after every turn. Those in Python end when they try to get out, which ends the run."""
    addresses: set[str] = set()
    kinds: set[str] = set()

    def look(_turn: TurnResult, _seconds: float) -> None:
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        kinds.update(process.name() for process in processes)
        addresses.update(connections_of(processes))

    here = answer(request(topics, example_index, "local"))
    there = answer(request(topics, example_index, "ray"), look)
    assert there.run.read_bytes() == here.run.read_bytes()
    answered = [{line.answered.turn_id: line.answered for line in read_trace(r.trace).lines()} for r in (here, there)]
    assert answered[0] == answered[1]
    assert read_trace(here.trace).settings == read_trace(there.trace).settings
    assert {"gcs_server", "raylet"} <= kinds
    assert any(kind.startswith("ray::RayWorker") for kind in kinds)
    assert {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}
    [raylet] = (child for child in psutil.Process().children() if child.name() == "raylet")
    assert raylet.environ()["RAY_USAGE_STATS_ENABLED"] == "0"


@needs_ray
def test_a_run_goes_on_where_workers_are_killed(
    cluster: Cluster, topics: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers at two turns once, and at a third again and again, which ends the run."""
    corpus = find_corpus([EXAMPLES / "passages.jsonl"])
    build_index(corpus, topics.parent / "index", 2, skip_problems=False, progress=lambda: None)
    sharded = open_index(topics.parent / "index")
    monkeypatch.setattr(ray_backend, "RayWorker", ray_workers.MortalWorker)
    for turn_id, times in (("0_1", 1), ("1_3", 1), ("2_1", MAX_LOSSES)):
        ray_workers.prepare_losses(topics.parent, turn_id, times)
    here = answer(request(topics, sharded, "local"))
    with pytest.raises(RunError, match=rf"(?s){MAX_LOSSES} workers were lost at the same task .*--resume goes on"):
        answer(request(topics, sharded, "ray"))
    there = answer(request(topics, sharded, "ray"), resume=True)
    assert there.run.read_bytes() == here.run.read_bytes()
    turns = [line.answered.turn_id for line in read_trace(there.trace).lines()]
    assert len(turns) == len(set(turns)) == there.turns


def write_many_topics(path: Path, times: int) -> Path:
    """The example topics so many times, under other numbers."""
    whole = json.loads((EXAMPLES / "topics.json").read_text())
    path.write_text(json.dumps([topic | {"number": 3 * n + topic["number"]} for n in range(times) for topic in whole]))
    return path


def workforce(topics: Path, index: PassageIndex) -> Workforce:
    files = EvidenceFiles(index.directory, embedder="none")
    evidence = open_evidence(files, read_topics(topics), PLAN)
    return Workforce(WorkerSpecification("none", files, PLAN, cache=False), topics, evidence, count=2, concurrency=2)


@needs_ray
@pytest.mark.parametrize(
    ("worker", "error", "message"),
    [
        (ray_workers.OldWorker, UsageError, r"(?s)node-of-old: a worker would answer .*source_code: 0123 there"),
        (ray_workers.DyingWorker, RunError, "no worker can be started"),
    ],
)
def test_workers_that_cannot_be_used_end_the_run(
    worker: type,
    error: type[Exception],
    message: str,
    cluster: Cluster,
    topics: Path,
    example_index: PassageIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ray_backend, "RayWorker", worker)
    monkeypatch.setattr(ray_cluster, "MAX_LOSSES", 1)
    wanted = replace(workforce(topics, example_index), count=1)
    with pytest.raises(error, match=message), open_ray("ray", wanted):
        pass


def test_what_names_no_cluster_is_refused(topics: Path, example_index: PassageIndex) -> None:
    for name in ("spark", "ray://", "ray://head", "ray://head:many"):
        with pytest.raises(UsageError, match=rf"unknown backend '{name}' .available: local, ray, ray://HOST:PORT"):
            open_backend(name, workforce(topics, example_index)).__enter__()


def test_without_ray_it_is_told_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        pytest.raises(MissingError, match=r"(?s)Ray is not installed.*pip install 'convagent\[ray\]'"),
        open_cluster(None, 1),
    ):
        pass


@needs_ray
def test_an_address_where_no_cluster_is_does_not_keep_one_waiting() -> None:
    """In a process of its own: this one has joined a cluster."""
    code = "from agent.runs.ray_cluster import *\nwith open_cluster('127.0.0.1:9', 1): pass"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "RunError: 127.0.0.1:9: no cluster answers" in result.stderr


@needs_ray
@pytest.mark.soak
def test_a_run_survives_five_kills_of_its_driver(tmp_path: Path, example_index: PassageIndex) -> None:
    """Each has a cluster of its own, which ends with it, and whose files the next one clears away."""
    topics, trace = write_many_topics(tmp_path / "topics.json", 20), tmp_path / "ray.trace.jsonl"
    files = ("-i", example_index.directory, "-m", "none", "--embedder", "none", "-k", "20", "--no-cache")
    call = ("answer", topics, *files, "--on", "ray", "--jobs", "2", "-o", tmp_path / "ray.json", "--resume")
    kept, before = b"", {*HOME.glob(".ray.*.tmp")}
    for _ in range(5):
        with start(*call) as process:
            while not trace.exists() or trace.read_bytes().count(b"\n") < kept.count(b"\n") + 20:
                assert process.poll() is None, process.communicate()
                time.sleep(0.01)
            cluster = psutil.Process(process.pid).children(recursive=True)
            process.kill()
            process.communicate()
        assert trace.read_bytes().startswith(kept)
        kept = trace.read_bytes()[: trace.read_bytes().rindex(b"\n") + 1]
        assert not psutil.wait_procs(cluster, timeout=PATIENCE)[1]
    assert run(*call).returncode == 0
    assert trace.read_bytes().startswith(kept)
    assert {*HOME.glob(".ray.*.tmp")} <= before
    here = answer(request(topics, example_index, "local"))
    assert (tmp_path / "ray.json").read_bytes() == here.run.read_bytes()
