"""A model that fails costs its turn the model and nothing else: the run is whole, valid, and says where it was."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from agent.models.no_model import NoModel
from agent.models.protocol import Conversation, Listener, Reply, Task, TextListener
from agent.models.wrapper import ModelWrapper
from agent.runs import worker
from agent.runs.answer_topics import Outputs, RunReport, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import read_trace
from agent.terminal.progress import turn_progress
from indexes.passage_index import PassageIndex
from schemas.errors import ModelReplyError
from schemas.records import Plan
from tests.conftest import EXAMPLES

Fails = Callable[[Conversation, Task], None]


class Failing(ModelWrapper):
    """The model that is none, except where it fails."""

    generates_text, digest, name = True, "failing", "failing"

    def __init__(self, listen: Listener, fails: Fails) -> None:
        super().__init__(NoModel(listen))
        self._fails = fails

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        self._fails(conversation, task)
        return self._llm.ask(conversation, task, reply, on_text)

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        self._fails(conversation, task)
        return self._llm.score(conversation, task, candidates)


def never(_conversation: Conversation, _task: Task) -> None:
    pass


def cut_off(conversation: Conversation, task: Task) -> None:
    """At every second turn of a conversation, where it imagines an answer."""
    if task.name == "hyde" and len(conversation.messages) % 4 == 3:
        raise ModelReplyError("the model's reply was cut off")


@pytest.fixture
def run(example_index: PassageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunReport]:
    def answer(fails: Fails, name: str = "run", jobs: int = 1, *, resume: bool = False) -> RunReport:
        def opened(_name: str, listen: Listener, **_: object) -> Failing:
            return Failing(listen, fails)

        monkeypatch.setattr(worker, "open_model", opened)
        topics = EXAMPLES / "topics.json"
        outputs = Outputs.choose(topics, tmp_path / f"{name}.json", None, resume=resume, overwrite=False)
        origin = EvidenceFiles(example_index.directory, embedder="none")
        return answer_file(
            RunRequest(topics, origin, "failing", Plan(k=20, query=("context", "hyde", "previous")), jobs=jobs),
            outputs,
            turn_progress,
        )

    return answer


def test_only_the_turns_at_which_it_fails_are_without_it(
    run: Callable[..., RunReport], caplog: pytest.LogCaptureFixture
) -> None:
    report = run(cut_off)
    assert report.problems == ()
    assert 0 < len(report.without_model) < report.turns == 15
    lines = {line.answered.turn_id: line for line in read_trace(report.trace).lines()}
    for turn_id, line in lines.items():
        failed = turn_id in report.without_model
        assert bool(line.answered.without_model) == failed
        assert line.answered.response.sentences
    assert caplog.text.count("is answered without the model: the model's reply was cut off") == len(
        report.without_model
    )


def test_resuming_asks_again_where_it_failed_and_ends_as_if_it_never_had(run: Callable[..., RunReport]) -> None:
    whole = run(never, "whole").run.read_bytes()
    failed = run(cut_off)
    assert failed.without_model
    again = run(never, resume=True)
    assert again.without_model == {}
    assert again.resumed < 15 - len(failed.without_model) + 1
    assert again.run.read_bytes() == whole


def test_several_topics_at_a_time_make_the_same_run(run: Callable[..., RunReport]) -> None:
    """Nor are the calls of workers mixed up."""
    reports = run(cut_off, "one"), run(cut_off, "three", jobs=3)
    one, three = (
        [
            report.run.read_bytes(),
            report.without_model.keys(),
            {
                line.answered.turn_id: [call.prompt for call in line.calls if call.verb != "search"]
                for line in read_trace(report.trace).lines()
            },
        ]
        for report in reports
    )
    assert one == three
