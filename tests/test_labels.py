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
from agent.tracks.files import encode_run, read_topics
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.records import Mode, Plan, RunInfo
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
    searcher = Searcher(open_retriever(index, None), Plan(k=50))
    tools = Tools(open_model("none"), searcher.search, searcher.read, Plan(k=50))
    turns = zip(range(now + 1), answer_topic(topics.topics[0], tools), strict=False)
    return b"".join(encode_run(topics.edition, (answered for _, answered in turns), RunInfo("run")))


@pytest.fixture
def unchanged() -> dict[int, bytes]:
    """The run files of the turns up to each number, with all labels as they are."""
    return {}


@examples(20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=tampered())
def test_labels_and_all_from_the_reply_on_change_nothing(
    case: tuple[int, Json], example_index: PassageIndex, tmp_path: Path, unchanged: dict[int, bytes]
) -> None:
    now, topic = case
    path = tmp_path / "topics.json"
    if now not in unchanged:
        unchanged[now] = run_until(now, TOPIC, example_index, path)
    assert run_until(now, topic, example_index, path) == unchanged[now]


def answer_by_mode(path: Path, topic: Json, index: PassageIndex, model: str, mode: Mode) -> bytes:
    """The run file of one conversation."""
    files = EvidenceFiles(index.directory, embedder="none")
    topics = write(path, [topic])
    outputs = Outputs.choose(topics, path.with_suffix(".run"), None, resume=False, overwrite=False)
    answer_file(RunRequest(topics, files, model, Plan(k=100), mode), outputs, turn_progress)
    return outputs.run.read_bytes()


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
    given, changed = (
        answer_by_mode(tmp_path / f"{n}.json", topic, example_index, "smollm2", "automatic")
        for n, topic in enumerate((first, relabelled))
    )
    assert given == changed


@pytest.mark.parametrize("field", ["resolved_utterance", "ptkb_provenance"])
def test_a_manual_run_does_see_them(field: str, example_index: PassageIndex, tmp_path: Path) -> None:
    """The counterpart: what an automatic run ignores changes a manual one."""
    value: Any = "What is sourdough?" if field == "resolved_utterance" else [1]
    turns = [{"resolved_utterance": turn["utterance"], "ptkb_provenance": [2], **turn} for turn in TOPIC["turns"]]
    given, changed = (
        answer_by_mode(tmp_path / f"{n}.json", {**TOPIC, "turns": now}, example_index, "none", "manual")
        for n, now in enumerate((turns, [*turns[:2], {**turns[2], field: value}, *turns[3:]]))
    )
    assert given != changed
