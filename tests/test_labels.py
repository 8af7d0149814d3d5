"""What a run may not see, it is not handed: whatever is done to the labels, an automatic run stays the same."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from agent.flow import Tools, answer_topic
from agent.models.registry import open_model
from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.terminal.progress import turn_progress
from agent.tracks.run_files import encode_run
from agent.tracks.topic_files import read_topics
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.records import Plan, RunInfo
from tests.conftest import EXAMPLES, examples, needs_model
from tests.test_topics import write

Json = dict[str, Any]
TOPIC: Json = json.loads((EXAMPLES / "topics.json").read_text())[0]
TURNS = len(TOPIC["turns"])
anything = st.text(max_size=40)
LABELS: dict[str, st.SearchStrategy[Any]] = {
    "resolved_utterance": anything,
    "ptkb_provenance": st.lists(st.integers(0, 20) | anything, max_size=3),
    "response_provenance": st.lists(st.sampled_from(["garden-01:1", "bread-01:1"]) | anything, max_size=3),
}
REPLY: dict[str, st.SearchStrategy[Any]] = {"response": anything | st.none()}
SAID: dict[str, st.SearchStrategy[Any]] = {"utterance": st.text(min_size=1, max_size=40).filter(str.strip)}


@st.composite
def tampered(draw: st.DrawFn) -> tuple[int, Json]:
    """A turn's number, and the conversation with its labels, and all from its reply on, changed or gone."""
    topic = json.loads(json.dumps(TOPIC))
    now = draw(st.integers(0, TURNS - 1))
    if draw(st.booleans()):
        topic["title"] = draw(anything)
    else:
        topic.pop("title", None)
    for number, turn in enumerate(topic["turns"]):
        fields = LABELS | (REPLY if number >= now else {}) | (SAID if number > now else {})
        for field, values in fields.items():
            what = draw(st.sampled_from(["keep", "change", "delete"]))
            if what == "change":
                turn[field] = draw(values)
            elif what == "delete" and field not in SAID:
                turn.pop(field, None)
    kept = draw(st.integers(now + 1, TURNS))
    topic["turns"] = topic["turns"][:kept]
    return now, topic


def run_until(now: int, topic: Json, index: PassageIndex, path: Path) -> bytes:
    """The run file of the turns up to number `now`."""
    topics = read_topics(write(path, [topic]))
    searcher = Searcher.over(open_retriever(index, None), Plan(k=50))
    tools = Tools(open_model("none"), searcher.search, searcher.read, Plan(k=50))
    turns = zip(range(now + 1), answer_topic(topics.topics[0], tools), strict=False)
    return b"".join(encode_run(topics.edition, (answered for _, answered in turns), RunInfo("run")))


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=tampered())
def test_labels_and_all_from_the_reply_on_change_nothing(
    case: tuple[int, Json], example_index: PassageIndex, tmp_path: Path
) -> None:
    now, topic = case
    path = tmp_path / "topics.json"
    assert run_until(now, topic, example_index, path) == run_until(now, TOPIC, example_index, path)


@needs_model
def test_an_automatic_run_with_a_model_never_sees_a_label(example_index: PassageIndex, tmp_path: Path) -> None:
    first = {**TOPIC, "turns": TOPIC["turns"][:2]}
    nonsense = {
        "resolved_utterance": "What is a trombone?",
        "ptkb_provenance": [2, 7],
        "response_provenance": ["other-01:1"],
    }
    turns = [{**turn, **nonsense} for turn in first["turns"]]
    relabelled = {**first, "title": "Trombones", "turns": [turns[0], {**turns[1], "response": "A trombone."}]}
    runs = []
    for name, topic in (("given", first), ("relabelled", relabelled)):
        path = write(tmp_path / f"{name}.json", [topic])
        outputs = Outputs.choose(path, tmp_path / f"{name}.run.json", None, resume=False, overwrite=False)
        answer_file(
            RunRequest(path, EvidenceFiles(example_index.directory, embedder="none"), "smollm2", Plan(k=100)),
            outputs,
            turn_progress,
        )
        runs.append(outputs.run.read_bytes())
    assert runs[0] == runs[1]


@pytest.mark.parametrize("field", ["resolved_utterance", "ptkb_provenance"])
def test_a_manual_run_does_see_them(field: str, example_index: PassageIndex, tmp_path: Path) -> None:
    """The counterpart: what an automatic run ignores changes a manual one."""
    value: Any = "What is sourdough?" if field == "resolved_utterance" else [1]
    turns = [{"resolved_utterance": turn["utterance"], "ptkb_provenance": [2], **turn} for turn in TOPIC["turns"]]
    changed = [*turns[:2], {**turns[2], field: value}, *turns[3:]]
    runs = []
    for name, now in (("given", turns), ("changed", changed)):
        path = write(tmp_path / f"{name}.json", [{**TOPIC, "turns": now}])
        outputs = Outputs.choose(path, tmp_path / f"{name}.run.json", None, resume=False, overwrite=False)
        request = RunRequest(
            path, EvidenceFiles(example_index.directory, embedder="none"), "none", Plan(k=100), "manual"
        )
        answer_file(request, outputs, turn_progress)
        runs.append(outputs.run.read_bytes())
    assert runs[0] != runs[1]
