"""What was computed once: never asked again, exactly as it was, and never in the way."""

import sqlite3
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.models.protocol import Conversation, Reply, Task, TextListener
from agent.models.scripted import Script, ScriptedModel
from agent.models.wrapper import MAX_ATTEMPTS, CachingModel
from indexes.storage.cache import Cache
from indexes.storage.directories import make_private_file
from schemas.errors import ModelReplyError
from schemas.records import Call, Message
from tests.conftest import PATIENCE

TALK = Conversation("Be brief.", (Message("user", "Which bread can I eat?"),))
HYDE = Task("hyde", max_tokens=20)
CHANGES: tuple[dict[str, Any], ...] = ({"instruction": "Now."}, {"opening": "It"}, {"max_tokens": 21}, {"seed": 0})


class TextReply(msgspec.Struct):
    text: str = ""


def remembering(path: Path | None, calls: list[Call], **script: object) -> CachingModel:
    opened = partial(ScriptedModel, msgspec.convert(script, Script))
    return CachingModel(opened, calls.append, Cache(path), "1")


def test_the_same_is_never_asked_twice(tmp_path: Path) -> None:
    calls: list[Call] = []
    kept = tmp_path / "replies.sqlite"
    first = remembering(kept, calls, ask={"hyde": ["Rice bread.", {"text": "Rye."}]}, score={"context": [["rice"]]})
    said = first.ask(TALK, HYDE, str), first.ask(TALK, HYDE, TextReply)
    scores = first.score(TALK, Task("context"), ["rice bread", "a car"])
    assert [call.from_cache for call in calls] == [False] * 3
    assert kept.stat().st_mode & 0o077 == 0
    again = remembering(kept, calls)  # a script with no reply at all: whatever it is asked would be an error
    assert (again.ask(TALK, HYDE, str), again.ask(TALK, HYDE, TextReply)) == said == ("Rice bread.", TextReply("Rye."))
    assert again.score(TALK, Task("context"), ["rice bread", "a car"]) == scores == [-1.0, -50.0]
    assert [replace(call, from_cache=False) for call in calls[3:]] == calls[:3]  # the trace is whole
    assert all(call.from_cache for call in calls[3:])


def test_whatever_decides_a_reply_is_part_of_what_it_is_kept_by(tmp_path: Path) -> None:
    asked = [
        (TALK, HYDE),
        (replace(TALK, system="Be long."), HYDE),
        (replace(TALK, messages=(*TALK.messages, *TALK.messages)), HYDE),
        *((TALK, replace(HYDE, **changed)) for changed in CHANGES),
    ]
    replies = [str(number) for number in range(len(asked))]
    model = remembering(tmp_path / "replies.sqlite", [], ask={"hyde": replies})
    for _ in range(2):
        assert [model.ask(*each, str) for each in asked] == replies
    for name, way in (("a", "1"), ("b", "1"), ("a", "2")):  # of another model, or in another way
        calls: list[Call] = []
        opened = partial(ScriptedModel, Script(ask={"hyde": [name]}), digest=name)
        caching = CachingModel(opened, calls.append, Cache(tmp_path / "replies.sqlite"), way)
        assert (caching.ask(TALK, HYDE, str), calls[0].from_cache) == (name, False)


def test_two_processes_use_one_file(tmp_path: Path) -> None:
    path = tmp_path / "kept.sqlite"
    writes = (
        "import sys, logging; from pathlib import Path; from indexes.storage.cache import Cache\n"
        "logging.basicConfig(level=logging.INFO)\n"
        "cache, own = Cache(Path(sys.argv[1])), sys.argv[2].encode()\n"
        "for n in range(300): cache.put({own + str(n).encode(): own * 100, b'both': own})\n"
    )
    pipe = subprocess.PIPE
    calls = ([sys.executable, "-c", writes, str(path), name] for name in ("a", "b"))
    started = [subprocess.Popen(call, stderr=pipe, text=True) for call in calls]
    assert [process.communicate(timeout=PATIENCE)[1] for process in started] == ["", ""]
    cache = Cache(path)
    keys = {name + str(n).encode(): name * 100 for name in (b"a", b"b") for n in range(300)}
    assert cache.get(list(keys)) == keys
    assert cache.get([b"both"])[b"both"] in (b"a", b"b")


def test_it_stays_within_its_bound_and_forgets_the_oldest(tmp_path: Path) -> None:
    path, bound = tmp_path / "kept.sqlite", 2_000_000
    cache = Cache(path, bound)
    for n in range(1000):
        cache.put({f"key {n}".encode(): bytes(10_000)})
    cache.close()
    assert path.stat().st_size < bound * 1.1
    again = Cache(path, bound)
    assert again.get([b"key 999"])
    assert not again.get([b"key 0"])


def test_a_file_that_is_no_cache_is_done_without(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "kept.sqlite"
    caplog.set_level("INFO", "convagent")
    path.write_bytes(b"no database at all" * 1000)
    cache = Cache(path)
    cache.put({b"key": b"value"})
    assert cache.get([b"key"]) == {}
    assert path.read_bytes().startswith(b"no database")
    assert "cannot be used" in caplog.text


class Stubborn(ScriptedModel):
    """Never gives a reply of the asked form."""

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        SEEDS.append(task.seed)
        raise ModelReplyError("cut off")


SEEDS: list[int | None] = []  # with which a stubborn model is asked


def test_a_reply_that_is_none_is_asked_for_again_with_other_seeds() -> None:
    """The same ones each time, as a run repeats itself; and patience has an end."""
    model = CachingModel(partial(Stubborn, Script()), print, Cache(None), "")
    for _ in range(2):
        with pytest.raises(ModelReplyError):
            model.ask(TALK, HYDE, TextReply)
    seeds = SEEDS[:MAX_ATTEMPTS]
    assert seeds * 2 == SEEDS
    assert (seeds[0], len(set(seeds))) == (None, MAX_ATTEMPTS)


def test_a_cache_that_is_opened_again_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    """Closing a file ends all locks of the process on it: another process would write where we do."""
    path = tmp_path / "values.sqlite"
    first = sqlite3.connect(path, isolation_level=None)
    first.execute("CREATE TABLE kept (key BLOB)")
    first.execute("BEGIN EXCLUSIVE")
    make_private_file(path)
    other = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
    done = subprocess.run([sys.executable, "-c", other], capture_output=True, text=True, timeout=PATIENCE, check=False)
    first.close()
    assert "database is locked" in done.stderr
