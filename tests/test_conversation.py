"""A person at a real terminal, over a folder of own documents, with the real models where they are installed."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pexpect
import pytest

from tests.conftest import EXAMPLES, PATIENCE, ROOT, needs_embedder, needs_model, own_settings_left_out
from tests.stand_in import standing_in

DOCUMENTS = EXAMPLES / "documents"


@pytest.fixture
def person(tmp_path: Path) -> dict[str, str]:
    return own_settings_left_out() | {
        "CONVAGENT_DATA": str(tmp_path / "data"),
        "NO_COLOR": "1",
        "TERM": "xterm",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }


class Terminal:
    """What is typed, and what is seen after it."""

    def __init__(self, person: dict[str, str], *arguments: str) -> None:
        command = [str(ROOT / "cli.py"), "chat", *arguments]
        self._child: Any = pexpect.spawn(
            sys.executable, command, env=person, dimensions=(50, 160), encoding="utf-8", timeout=PATIENCE
        )
        self._seen("to leave")

    def type(self, line: str, until: str) -> str:
        """What is shown between a line and some text, that text included."""
        self._child.send(line + "\r")
        return self._seen(until)

    def _seen(self, until: str) -> str:
        self._child.expect(until)
        return str(self._child.before + self._child.after)

    def leave(self) -> None:
        self._child.send("/quit\r")
        self._child.expect(pexpect.EOF)
        self._child.close()
        assert self._child.exitstatus == 0

    def end(self) -> None:
        self._child.close(force=True)


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.end()


@pytest.mark.story
@needs_model
@needs_embedder
def test_questions_a_source_a_statement_and_another_day(person: dict[str, str], terminals: list[Terminal]) -> None:
    first = Terminal(person, "--docs", str(DOCUMENTS))
    terminals.append(first)
    assert "nine days" in first.type("How long does the rye bread keep?", r"\[1\] recipes/rye-bread\.md")
    assert "rye-bread.md" in first.type("And which flour goes into it?", r"rye-bread\.md:\d")
    first.type("What is the phone number of the plumber?", r"0555 238 41\.")
    assert "Rosa Tamm" in first.type("/open 1", r"file://\S+")

    dinner = "Which meal should I eat in Harnby?"
    assert "mackerel" in first.type(dinner, r"\n +\[1\] ")
    first.type("/about-me add I am vegetarian.", "1  I am vegetarian.")
    shown = first.type(dinner, r"\(no sources\)")
    assert "knowing: I am vegetarian." in shown
    assert "mackerel" not in shown.split("conflicts with what you told me (“I am vegetarian”)")[0]
    first.leave()

    second = Terminal(person, "--continue")
    terminals.append(second)
    assert "I am vegetarian." in second.type("/about-me", "1  I am vegetarian.")
    shown = second.type("And what goes into the soup?", r"\n +\[1\] ")
    assert re.search(r"searched for “[^”]*\bsoup\b", shown)
    second.leave()


def test_ctrl_c_stops_what_is_typed_and_not_the_program(person: dict[str, str], terminals: list[Terminal]) -> None:
    terminal = Terminal(person, "--docs", str(DOCUMENTS), "-m", "none", "--embedder", "none", "--incognito")
    terminals.append(terminal)
    terminal.type("half a question\x03", "stopped")
    assert "0555 238 41" in terminal.type("What is the phone number of the plumber?", r"contacts\.csv:4")
    assert "searched" not in terminal.type("thanks!", "You are welcome")
    terminal.leave()


def test_the_first_line_says_where_things_go(person: dict[str, str], terminals: list[Terminal]) -> None:
    arguments = ("--docs", str(DOCUMENTS / "recipes"), "--embedder", "none", "--incognito")
    local = Terminal(person, *arguments, "-m", "none")
    terminals.append(local)
    local.type("", "Nothing leaves this machine.")
    local.leave()
    with standing_in() as address:
        host = address.removeprefix("http://").removesuffix("/v1")
        remote = Terminal(person, *arguments, "-m", address)
        terminals.append(remote)
        told = f"Questions, passages and statements go to the server {host} on this machine."
        assert "Nothing leaves" not in remote.type("", r"(?:\s|\x1b\[\dm)+".join(told.split()))
        remote.type("/model none", "answering with none. Nothing leaves this machine.")
        remote.leave()
