"""The trace: nothing that was answered is lost, and nothing is mixed."""

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agent.models.scripted import ScriptedModel
from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import VERSION, read_trace, resume_trace
from agent.terminal.progress import turn_progress
from indexes.passage_index import PassageIndex
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Plan
from tests.conftest import EXAMPLES, PATIENCE, ROOT, own_settings_left_out
from tests.processes import write_script


def positions(trace: bytes, some: int) -> list[int]:
    """Around the end of every line, and some others."""
    ends = [at + 1 for at, byte in enumerate(trace) if byte == ord("\n")]
    around = {at + step for at in [0, *ends] for step in (-1, 0, 1)}
    return sorted(around & {*range(len(trace) + 1)} | {*Random(0).sample(range(len(trace)), some)})  # noqa: S311


@pytest.mark.parametrize("some", [20, pytest.param(200, marks=pytest.mark.soak)])
def test_a_run_cut_at_any_byte_ends_the_same(
    some: int, example_index: PassageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a script in which no two turns are alike, so that a turn asked again or left out would show."""
    topics, run, trace = tmp_path / "topics.json", tmp_path / "run.json", tmp_path / "run.trace.jsonl"
    topics.write_text(json.dumps(json.loads((EXAMPLES / "topics.json").read_bytes())[:1]))
    model = f"scripted:{write_script(tmp_path / 'script.json')}"
    asked: list[str] = []
    ask = ScriptedModel.ask

    def counted(self: ScriptedModel, conversation: Any, task: Any, reply: Any) -> Any:
        asked.append(task.name)
        return ask(self, conversation, task, reply)

    monkeypatch.setattr(ScriptedModel, "ask", counted)
    request = RunRequest(topics, EvidenceFiles(example_index.directory, embedder="none"), model, Plan(k=10))
    answer_file(request, Outputs(run, trace, resume=False), turn_progress)
    whole, full, all_asked = run.read_bytes(), trace.read_bytes(), len(asked)
    turns = full.count(b"\n") - 1
    for cut in positions(full, some):
        trace.write_bytes(full[:cut])
        asked.clear()
        report = answer_file(request, Outputs(run, trace, resume=True), turn_progress)
        finished = max(0, full[:cut].count(b"\n") - 1)
        assert (cut, report.resumed, len(asked)) == (cut, finished, all_asked * (turns - finished) // turns)
        assert (cut, run.read_bytes() == whole) == (cut, True)
        assert trace.read_bytes().count(b"\n") == turns + 1


def test_every_setting_counts_when_a_run_is_resumed(
    example_runs: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also those that share a name: `answer`, a part and a way to answer; `passages`, a part and a digest."""
    trace = Path(shutil.copy(example_runs / "automatic.trace.jsonl", tmp_path))
    settings = read_trace(trace).settings
    plan = settings.plan
    weights = replace(plan.tuning.retrieval, cosine_weight=0.1)
    for other, said in (
        (replace(settings, plan=replace(plan, k=20)), "k: 15 then, 20 now"),
        (replace(settings, plan=replace(plan, answer="write")), "answer: 'auto' then, 'write' now"),
        (replace(settings, plan=replace(plan, parts=replace(plan.parts, answer=False))), r"parts\.answer: True then"),
        (replace(settings, passages="another index"), "passages: "),
        (
            replace(settings, plan=replace(plan, tuning=replace(plan.tuning, retrieval=weights))),
            r"tuning\.retrieval\.cosine_weight: 4\.0 then, 0\.1 now",
        ),
    ):
        with pytest.raises(UsageError, match=rf"(?s)made under other settings.*{said}"):
            resume_trace(trace, other)
    with caplog.at_level("WARNING", "convagent"):
        resumed = resume_trace(trace, replace(settings, processor="llama.cpp 0.3, NEON = 1"))
    assert len(resumed.replies) == settings.turns
    assert "begun on another processor" in caplog.text


def test_what_is_no_trace_of_ours_is_named(example_runs: Path, tmp_path: Path) -> None:
    lines = (example_runs / "automatic.trace.jsonl").read_text().splitlines(keepends=True)
    older = lines[0].replace(f'"trace_version":{VERSION}', '"trace_version":3', 1)
    for changed, said in (
        ([*lines[:3], "{}\n", *lines[4:]], r"trace\.jsonl:4: damaged line"),
        ([older, *lines[1:]], rf"another version of convagent \(trace 3; this one reads {VERSION}\)"),
    ):
        (tmp_path / "trace.jsonl").write_text("".join(changed))
        with pytest.raises(InvalidInputError, match=said):
            read_trace(tmp_path / "trace.jsonl")


def test_a_run_of_other_source_code_is_not_gone_on_with(tmp_path: Path) -> None:
    """In a copy of the packages, as a wheel has them, of which one file changes between two calls."""
    for name in ("agent", "indexes", "prompts", "schemas"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "cli.py", tmp_path)
    shutil.copy(EXAMPLES / "topics.json", tmp_path)
    environment = own_settings_left_out() | {"PYTHONPATH": str(tmp_path)}

    def call(*arguments: str) -> "subprocess.CompletedProcess[str]":
        command = [sys.executable, "cli.py", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    answering = ("answer", "topics.json", "-m", "none", "--embedder", "none", "--resume")
    call("index", "build", str(EXAMPLES / "passages.jsonl"), "--embedder", "none")
    assert [call(*answering).returncode for _ in "ab"] == [0, 0]
    with (tmp_path / "agent/models/learned/rewriter.gguf").open("ab") as file:
        file.write(b"\n")
    refused = call(*answering)
    assert refused.returncode == 2
    assert refused.stderr.count("source_code: ") == 1
    assert "topics.run.trace.jsonl" in refused.stderr
    assert "--overwrite" in refused.stderr
