"""A person is told all that is kept of them, and can have it deleted."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from agent.chat.store import ChatTurn, Store
from indexes.documents.document_index import open_documents
from indexes.storage.cache import Cache
from tests.conftest import EXAMPLES, OFFLINE, PATIENCE, ROOT, no_progress, own_settings_left_out
from tests.test_store import answered
from tests.within import convagent


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Directories in which something of everything is kept, and the settings that name them."""
    data, cache = tmp_path / "data", tmp_path / "cache"
    store = Store(data / "convagent.sqlite")
    store.add_turn(store.start_chat("notes"), ChatTurn("Which bread?", answered("Which bread?", "Rice bread.")))
    store.add_statement("I bake.")
    (data / "serve-token").write_text("abc")
    (data / "mine.txt").write_text("not convagent's")
    for name in ("replies", "vectors"):
        kept = Cache(cache / f"{name}.sqlite")
        kept.put({b"a": b"b"})
        kept.close()
    open_documents(EXAMPLES / "documents", cache, None, no_progress)
    (cache / "documents" / "letters").mkdir()  # a person may have a folder of this name
    (cache / "documents" / "letters" / "dear.txt").write_text("Dear ...")
    (cache / "model.Q8_0.gguf").write_bytes(b"GGUF")
    (tmp_path / "topics.run.trace.jsonl").write_text("{}\n")
    return {"CONVAGENT_DATA": str(data), "CONVAGENT_CACHE": str(cache)}


def files_below(home: dict[str, str]) -> set[str]:
    return {path.name for folder in home.values() for path in Path(folder).rglob("*") if path.is_file()}


def test_every_file_is_listed_with_what_it_holds(home: dict[str, str], tmp_path: Path) -> None:
    """Those that this test does not know, too: what is listed has as many files as the directories have."""
    done = convagent("doctor", "--privacy", "--json", cwd=tmp_path, **home)
    places = {Path(place["path"]).name: place for place in json.loads(done.stdout)["places"]}
    own = [place for name, place in places.items() if name != "topics.run.trace.jsonl"]
    files = [path for folder in home.values() for path in Path(folder).rglob("*") if path.is_file()]
    assert sum(place["files"] for place in own) == len(files)
    assert sum(place["bytes"] for place in own) == sum(path.stat().st_size for path in files)
    store = places["convagent.sqlite"]
    assert "statements about you" in store["holds"]
    assert "chats --forget" in store["delete"]
    (documents,) = [place for name, place in places.items() if "documents" in place["path"] and name != "letters"]
    assert documents["holds"] == f"what was read of your documents in {(EXAMPLES / 'documents').resolve()}"
    assert "topics.run.trace.jsonl" in places
    shown = convagent("doctor", "--privacy", cwd=tmp_path, **home).stdout
    assert all(place["path"] in shown for place in places.values())
    assert "Not in reach" in shown
    assert "convagent forget --everything" in shown


def test_everything_is_forgotten(home: dict[str, str], tmp_path: Path) -> None:
    """What is not convagent's is not: a person may have named a directory with other things in it."""
    done = convagent("forget", "--everything", "--yes", cwd=tmp_path, **home)
    assert done.returncode == 0
    assert files_below(home) == {"mine.txt", "dear.txt", "model.Q8_0.gguf"}
    for name in ("convagent.sqlite", "serve-token", "replies.sqlite", "vectors.sqlite", "documents"):
        assert any(line.startswith("deleted") and name in line for line in done.stdout.splitlines())
    left = [line for line in done.stdout.splitlines() if line.startswith("left")]
    assert [name in line for name, line in zip(("mine.txt", "letters", "gguf", "trace.jsonl"), left, strict=True)] == [
        True
    ] * 4
    assert "exported elsewhere" in done.stdout
    assert (tmp_path / "topics.run.trace.jsonl").exists()
    again = convagent("forget", "--everything", "--yes", cwd=tmp_path, **home)
    assert (again.returncode, "Nothing is kept." in again.stdout) == (0, True)


def test_nothing_is_forgotten_unasked(home: dict[str, str], tmp_path: Path) -> None:
    before = files_below(home)
    for arguments, told in ((["forget"], "--everything"), (["forget", "--everything"], "Give --yes")):
        done = convagent(*arguments, cwd=tmp_path, **home)
        assert (done.returncode, told in done.stderr) == (2, True)
    assert files_below(home) == before


@pytest.mark.parametrize(("reply", "gone"), [(b"n\n", False), (b"y\n", True)])
def test_it_asks_at_a_terminal(reply: bytes, gone: bool, home: dict[str, str], tmp_path: Path) -> None:
    keyboard, terminal = pty.openpty()
    environment = own_settings_left_out() | home | OFFLINE
    command = [sys.executable, str(ROOT / "cli.py"), "forget", "--everything"]
    os.write(keyboard, reply)
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, stdin=terminal, capture_output=True, timeout=PATIENCE, check=False
    )
    os.close(keyboard)
    os.close(terminal)
    assert done.returncode == 0
    assert b"Delete all this for good?" in done.stdout
    assert ("convagent.sqlite" not in files_below(home)) == gone
