"""What TIRA runs: `-i DIR -o DIR` scripts, and images, of which all is done here that needs no Docker."""

import json
import os
import subprocess
import sys
from pathlib import Path

from agent.runs.given_ranking import read_ranking
from agent.runs.validation import check_run
from indexes.passage_index import PassageIndex
from tests.conftest import EXAMPLES, OFFLINE, ROOT
from tests.test_touche import argument, given

DOCKERFILE = EXAMPLES / "Dockerfile"
QUESTIONS = [
    {"Conversation_no": 1, "Turn_no": 1, "Context": [], "Question": "Which bread is without gluten?"},
    {"Conversation_no": 1, "Turn_no": 2, "Context": ["Which?", "Rice bread."], "Question": "How long does it keep?"},
]


def call(command: list[str], program: Path, place: Path, **settings: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the directory `place`, where `convagent` is the program of these files."""
    binary = place / "bin" / "convagent"
    binary.parent.mkdir(exist_ok=True)
    binary.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{program}" "$@"\n')
    binary.chmod(0o755)
    path = f"{binary.parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | OFFLINE | {"PATH": path, "CONVAGENT_MODEL": "none", "CONVAGENT_EMBEDDER": "none"}
    return subprocess.run(command, cwd=place, env=environment | settings, capture_output=True, text=True, check=False)


def call_script(name: str, place: Path, *options: object, **settings: str) -> "subprocess.CompletedProcess[str]":
    command = ["sh", str(EXAMPLES / name), *map(str, options)]
    return call(command, ROOT / "cli.py", place, **settings)


def write_questions(directory: Path) -> Path:
    directory.mkdir()
    (directory / "questions.json").write_text(json.dumps(QUESTIONS))
    return directory


def test_touche(tmp_path: Path) -> None:
    """Bad arguments are no reason to stop, nor is a run that is there."""
    directory, out = given(tmp_path / "in", argument("a"), argument("a"), argument("b")), tmp_path / "out"
    out.mkdir()
    (out / "run.txt").write_text("an old one\n")
    ended = call_script("touche.sh", tmp_path, "--input", directory, "--output", out)
    assert ended.returncode == 0, ended.stderr
    assert [hit.id for hit in read_ranking(out / "run.txt").hits["1"]] == ["a", "b"]


def test_qrecc(tmp_path: Path, example_index: PassageIndex) -> None:
    questions, out = write_questions(tmp_path / "in"), tmp_path / "deep" / "out"
    ended = call_script("qrecc.sh", tmp_path, "-i", questions, "-o", out, "--index", example_index.directory)
    assert ended.returncode == 0, ended.stderr
    verdict = check_run(out / "run.json", questions / "questions.json")
    assert (verdict.turns, verdict.problems) == (2, ())


WRONG = [
    ("touche.sh", ["-o", "out"], "Missing option"),
    ("touche.sh", ["in", "out"], "Missing option"),
    ("qrecc.sh", ["-o", "out"], "qrecc.sh: -i is missing"),
    ("qrecc.sh", ["--input", "in"], "qrecc.sh: -o is missing"),
    ("qrecc.sh", ["-i", "in", "-o"], "qrecc.sh: -o has no value"),
    ("qrecc.sh", ["in", "out"], "qrecc.sh: in is not known"),
]


def test_wrong_options_are_told(tmp_path: Path) -> None:
    for script, options, message in WRONG:
        ended = call_script(script, tmp_path, *options)
        assert (ended.returncode, message in ended.stderr) == (2, True), (script, options)


def test_a_missing_index_is_named(tmp_path: Path) -> None:
    ended = call_script("qrecc.sh", tmp_path, "-i", write_questions(tmp_path / "in"), "-o", tmp_path / "out")
    assert ended.returncode == 4
    assert "no such index directory" in ended.stderr
