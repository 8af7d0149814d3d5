"""The command line as a person meets it, run from another directory."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from indexes.passage_index import PassageIndex
from tests import within
from tests.conftest import EXAMPLES, PATIENCE, ROOT, own_settings_left_out, read_cases

COMMAND = Path(sys.executable).with_name("convagent")


def convagent(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the installed command; the checkout is not on its path."""
    env = own_settings_left_out() | {"CONVAGENT_DATA": str(cwd / "data")} | environment
    command = [str(COMMAND), *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=PATIENCE)


def quick(*arguments: str | Path, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """The same within this process, by words alone."""
    return within.convagent(
        *arguments, cwd=cwd, CONVAGENT_EMBEDDER="none", **{"CONVAGENT_DATA": str(cwd / "data")} | environment
    )


@pytest.fixture
def place(tmp_path: Path, example_index: PassageIndex) -> Path:
    """A directory of a user's: an index and a topics file."""
    shutil.copytree(example_index.directory, tmp_path / "index")
    shutil.copy(EXAMPLES / "topics.json", tmp_path)
    return tmp_path


def test_a_run_in_every_form(tmp_path: Path) -> None:
    """Indexed, searched, answered, converted, answered from the ranking, exported: each step with what it says."""
    shutil.copy(EXAMPLES / "topics.json", tmp_path)
    only = ("--ranking", "found.trec", "--context-passages", "3", "-o", "only.json")
    steps = {  # the command, its exit code, what it says
        ("index", "build", EXAMPLES / "passages.jsonl", "-o", "index"): (0, "72 passages"),
        ("index", "info", "index"): (0, "72"),
        ("search", "index", "gluten free bread", "-k", "3"): (0, "bread-"),
        ("answer", "topics.json", "-m", "none", "-o", "found.json"): (0, "15 turns answered"),
        ("validate", "found.json", "-t", "topics.json"): (0, "found.json: valid (15 turns)\n"),
        ("show", "found.trace.jsonl", "--topic", "1"): (0, "garden-"),
        ("export", "found.json", "--format", "trec", "-o", "found.trec"): (0, "found.trec: 15 turns"),
        ("answer", "topics.json", "-m", "none", *only, "-q"): (0, ""),
        ("validate", "only.json", "-t", "topics.json", "--collection", "any", "--json"): (0, '"valid":true'),
        ("export", "only.trace.jsonl", "--format", "ikat-2025", "--team", "us", "-o", "only.jsonl"): (0, "15 turns"),
        ("validate", "only.jsonl", "-t", "topics.json", "--format", "ikat-2025", "--strict"): (5, "is no id of the"),
    }
    for step, (code, said) in steps.items():
        done = quick(*step, cwd=tmp_path)
        assert (done.returncode, said in done.stdout + done.stderr) == (code, True), (step, done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    assert json.loads((tmp_path / "only.jsonl").read_text().splitlines()[0])["metadata"]["team_id"] == "us"


def test_the_run_goes_to_stdout_when_asked(place: Path) -> None:
    result = quick("-q", "answer", "topics.json", "-m", "none", "-o", "-", cwd=place)
    assert len(json.loads(result.stdout)["turns"]) == 15
    assert result.stderr == ""


ERRORS = read_cases("cli_errors")["cases"]


@pytest.mark.parametrize(("call", "code", "message"), ERRORS, ids=[row[0] for row in ERRORS])
def test_a_mistake_is_named_and_nothing_is_written(call: str, code: int, message: str, place: Path) -> None:
    (place / "taken.json").write_text("{}")
    (place / "broken.json").write_text("{oops")
    (place / "cut.trace.jsonl").write_text("")
    before = {path: path.stat().st_mtime_ns for path in place.rglob("*")}
    result = quick(*call.split(), cwd=place)
    assert message in result.stderr
    assert result.returncode == code
    assert "Traceback" not in result.stderr
    assert {path: path.stat().st_mtime_ns for path in place.rglob("*")} == before


def test_settings_come_from_the_environment_and_from_a_file(place: Path) -> None:
    (place / "convagent.toml").write_text('[answer]\nmodel = "none"\nrun_name = "from-the-file"\n')
    (place / "index").rename(place / "elsewhere")
    result = quick("answer", "topics.json", cwd=place, CONVAGENT_INDEX="elsewhere")
    assert result.returncode == 0, result.stderr
    assert json.loads((place / "topics.run.json").read_text())["run_name"] == "from-the-file"
    (place / "convagent.toml").write_text("oops")
    assert quick("index", "info", "elsewhere", cwd=place).returncode == 5


def test_prompts_of_ones_own(place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "context.txt").write_text("Tell me of {{ nothing_such }}.")
    result = quick("answer", "topics.json", "-m", "none", cwd=place, CONVAGENT_PROMPTS="mine")
    assert result.returncode == 5
    assert "mine/context.txt: does not render ('nothing_such' is undefined)" in result.stderr


def test_help_is_there_for_every_command(tmp_path: Path) -> None:
    for command in ("", "answer", "chat", "index build", "model pull", "search", "serve", "validate"):
        shown = quick(*command.split(), "--help", cwd=tmp_path)
        assert (shown.returncode, "Usage: convagent" in shown.stdout) == (0, True)


def test_help_loads_nothing_heavy() -> None:
    heavy = ("llama_cpp", "tantivy", "spacy", "numpy", "jinja2", "langchain_core", "rich")
    code = f"import sys, cli; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_the_version(tmp_path: Path) -> None:
    assert convagent("--version", cwd=tmp_path).stdout.startswith("convagent 0.1")


def test_bare_chat_says_what_it_can_be_asked_over(tmp_path: Path) -> None:
    ended = quick("chat", cwd=tmp_path)
    assert (ended.returncode, "nothing to ask was named\n  Name your documents" in ended.stderr) == (2, True)
