"""The command line as a process of its own, to which things happen."""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from tests.conftest import PATIENCE, ROOT, own_settings_left_out


def environment(**more: str) -> dict[str, str]:
    """Nothing of the person's own settings, and `more`."""
    return own_settings_left_out() | {"PYTHONDONTWRITEBYTECODE": "1"} | more


def heed_ctrl_c() -> None:
    """For a process that begins: a shell has those in the background ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def start(
    *arguments: str | Path,
    before: Callable[[], None] | None = None,
    script: str = "cli.py",
    stdin: IO[str] | None = None,
    **more: Any,
) -> subprocess.Popen[str]:
    """The command, begun. `before` runs in the new process; `script` begins the command line in another way."""

    def prepare() -> None:
        heed_ctrl_c()
        if before:
            before()

    command = [sys.executable, str(ROOT / script), *map(str, arguments)]
    env, pipe = environment(**more), subprocess.PIPE
    return subprocess.Popen(command, env=env, stdin=stdin, stdout=pipe, stderr=pipe, text=True, preexec_fn=prepare)


def run(*arguments: str | Path, **more: Any) -> "subprocess.CompletedProcess[str]":
    """The command, finished; `more` is as for `start`."""
    with start(*arguments, **more) as process:
        out, error = process.communicate(timeout=PATIENCE)
    return subprocess.CompletedProcess(process.args, process.returncode, out, error)


def signalled(
    at: int, sent: str, directory: Path, *arguments: str | Path, events: str = "", **more: Any
) -> "subprocess.CompletedProcess[str]":
    """The command, sent a signal just before its `at`-th change in a directory."""
    fault = {"FAULT_IN": str(directory), "FAULT_AT": str(at), "FAULT_SIGNAL": sent}
    return run(*arguments, **fault, **({"FAULT_EVENTS": events} if events else {}), **more)


def killed_after(seconds: float, *arguments: str | Path, **more: Any) -> bool:
    """Begin the command and kill it after so many seconds; False where it had ended well by then."""
    with start(*arguments, **more) as process:
        try:
            _, error = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            return True
    assert process.returncode == 0, error
    return False


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


TREES = ("alder", "birch")


def write_passages(path: Path, tree: str, count: int) -> Path:
    """A file of generated passages, each of which names the tree."""
    numbered = (
        {"id": f"p{n}", "text": f"The {tree} number {n} stands in row {n % 97} of plot {n % 89}."} for n in range(count)
    )
    path.write_text("".join(f"{json.dumps(passage)}\n" for passage in numbered))
    return path


def write_script(path: Path) -> Path:
    """A script for up to sixty turns, no two of them alike: who goes on at the wrong place in it is found out."""
    things = ("rice bread", "the oven", "shade plants", "a night train", "the cat", "water", "Lisbon")
    likes = [[thing.split()[-1]] for thing in things]
    told = [f"It is about {things[n % 7]}, and {things[n % 5]} number {n}." for n in range(60)]
    liked = [likes[(n * n + 3) % 7] for n in range(60)]
    script = {"ask": {"hyde": told}, "score": {"statements": liked, "context": liked[::-1]}}
    path.write_text(json.dumps(script))
    return path
