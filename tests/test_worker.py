"""A worker is made from plain values, so that another process can make the same one."""

import pickle
import subprocess
import sys
from pathlib import Path

from agent.runs.evidence import EvidenceFiles, open_evidence
from agent.runs.worker import WorkerSpecification
from agent.tracks.topic_files import read_topics
from indexes.passage_index import PassageIndex
from schemas.records import Plan
from tests.conftest import EXAMPLES, ROOT, own_settings_left_out

ELSEWHERE = """
import pickle, sys
from pathlib import Path
import msgspec
from agent.runs.evidence import open_evidence
from agent.tracks.topic_files import read_topics

specification = pickle.loads(Path(sys.argv[1]).read_bytes())
topics = read_topics(Path(sys.argv[2]))
worker = specification.open(open_evidence(specification.files, topics, specification.plan))
lines = list(worker.answer(topics.topics[0], {}, {}))
sys.stdout.buffer.write(msgspec.json.encode([line.answered for line in lines]))
"""


def test_another_process_makes_the_same_worker(example_index: PassageIndex, tmp_path: Path) -> None:
    import msgspec

    files = EvidenceFiles(example_index.directory, embedder="none")
    specification = WorkerSpecification("none", files, Plan(k=20), cache=False)
    path = tmp_path / "specification.pickle"
    path.write_bytes(pickle.dumps(specification))
    topics = read_topics(EXAMPLES / "topics.json")
    worker = specification.open(open_evidence(files, topics, specification.plan))
    here = [line.answered for line in worker.answer(topics.topics[0], {}, {})]
    command = [sys.executable, "-c", ELSEWHERE, str(path), str(EXAMPLES / "topics.json")]
    there = subprocess.run(command, cwd=ROOT, env=own_settings_left_out(), capture_output=True, check=True)
    assert there.stdout == msgspec.json.encode(here)


def test_the_calls_of_a_turn_come_with_its_line(example_index: PassageIndex) -> None:
    files = EvidenceFiles(example_index.directory, embedder="none")
    specification = WorkerSpecification("none", files, Plan(k=20), cache=False)
    topics = read_topics(EXAMPLES / "topics.json")
    worker = specification.open(open_evidence(files, topics, specification.plan))
    for line in worker.answer(topics.topics[0], {}, {}):
        assert [call.step for call in line.calls if call.verb == "search"] == ["search"]
