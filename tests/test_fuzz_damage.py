"""Damage to what is kept, and servers that reply badly: some cases of each; `make soak` tries thousands.

A cache is done without, made anew, or says that it is to be deleted; a store is used as far as it can be read. A server
may reply any bytes instead of an answer, many of them, packed, slowly, and with our key in them.
"""

import gzip
import json
import shutil
import time
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import numpy as np
import pytest

from agent.chat.store import ChatTurn, Store
from agent.models.openai_server import open_server_model
from agent.models.protocol import Conversation, Listener, Task
from agent.models.scripted import Script, ScriptedModel
from agent.models.wrapper import CachingModel
from indexes.documents.document_index import open_documents
from indexes.ranking.vectors import keep_vectors
from indexes.storage.cache import Cache
from schemas.errors import ConvagentError
from schemas.records import Call, Message
from tests.conftest import EXAMPLES, no_progress
from tests.fuzz.byte_damage import damage_byte
from tests.stand_in import GONE, StandIn, fault, said, standing_in
from tests.test_embedder import Counted
from tests.test_remote import KEY, Question
from tests.test_store import answered

FEW_OR_MANY = [40, pytest.param(1000, marks=pytest.mark.soak)]
TALK, TASK = Conversation("Be brief.", (Message("user", "Which bread?"),)), Task("hyde", seed=1)
TEXTS = ("bread", "fern", "a tin")


def open_script(listen: Listener) -> ScriptedModel:
    return ScriptedModel(msgspec.convert({"ask": {"hyde": ["Rice bread."]}}, Script), listen)


def fill_store(folder: Path) -> None:
    store = Store(folder / "convagent.sqlite")
    for number in range(3):
        chat = store.start_chat("notes")
        for turn in range(1, 6):
            store.add_turn(
                chat, ChatTurn(f"Which bread {number}?", answered("Which bread?", "Rice bread. " * 20, turn))
            )
    store.add_statement("I bake.")


def use_store(folder: Path) -> None:
    store = Store(folder / "convagent.sqlite")
    for summary in store.list_chats():
        store.read_turns(summary.id)
    store.read_utterances()
    store.list_statements()
    chat = store.start_chat("notes")
    store.add_turn(chat, ChatTurn("Which?", answered("Which?", "Rice.")))
    store.delete_chat(chat)


def use_replies(folder: Path) -> None:
    cache = Cache(folder / "replies.sqlite")
    model = CachingModel(open_script, lambda _call: None, cache, "")
    assert model.ask(TALK, TASK, str) == "Rice bread."
    cache.close()


def use_vectors(folder: Path) -> None:
    cache = Cache(folder / "vectors.sqlite")
    assert np.array_equal(keep_vectors(Counted().embedder, cache).embed(TEXTS), Counted().embed(TEXTS))
    cache.close()


def use_documents(folder: Path) -> None:
    opened = open_documents(EXAMPLES / "documents", folder, None, no_progress)
    assert opened.index.search([("bread", 1.0)], 3)


KEPT = {  # how each is made, and used
    "store": (fill_store, use_store),
    "replies": (use_replies, use_replies),
    "vectors": (use_vectors, use_vectors),
    "documents": (use_documents, use_documents),
}


def try_damage(kind: str, whole: Path, place: Path, number: int) -> str:
    """Damage one of the files in a copy of what is kept, and use it: the error of ours, or "". Raises any other."""
    copy = place / f"{kind}{number}"
    shutil.copytree(whole, copy)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and path.suffix != ".lock")
    damage_byte(files[number % len(files)], number)
    try:
        KEPT[kind][1](copy)
    except ConvagentError as error:
        return str(error)
    finally:
        shutil.rmtree(copy, ignore_errors=True)  # Tantivy may just be making a lock in it
    return ""


@pytest.mark.parametrize("cases", FEW_OR_MANY)
@pytest.mark.parametrize("kind", KEPT)
def test_damage_to_what_is_kept_ends_in_an_error_of_ours_or_nothing(kind: str, cases: int, tmp_path: Path) -> None:
    """Of a cache nothing is said at all: its values are computed again, and are the same."""
    cases = cases // 10 if kind == "documents" else cases  # those take longer
    whole = tmp_path / "whole"
    whole.mkdir()
    KEPT[kind][0](whole)
    told = [try_damage(kind, whole, tmp_path, number) for number in range(cases)]
    assert any(told) == (kind == "store") or kind == "documents"
    assert all(
        any(word in error for word in ("damaged", "cannot be", "another version")) for error in filter(None, told)
    )


STATUSES = (200, 200, 200, 204, 301, 400, 401, 404, 408, 422, 429, 500, 503)


def try_reply(address: str, number: int) -> list[str]:
    """Ask a stand-in that replies badly. What is wrong with how that ended; any error but ours is raised."""
    random, calls, shown = Random(number), list[Call](), list[str]()  # noqa: S311
    StandIn.replies = [_choose_reply(random) for _ in range(12)]
    StandIn.models = (200, {"data": [{"id": random.choice(("big", KEY, "\x1b[2J"))}]})
    told = ""
    try:
        model = open_server_model(address, calls.append)
        kind: Any = random.choice((str, Question))
        with suppress(AttributeError):
            told = str(model.ask(TALK, Task("hyde"), kind, random.choice((None, shown.append))))
        model.close()
    except ConvagentError as error:
        told = str(error)
    everything = "".join((told, repr(calls), repr(shown)))
    return [what for what in (KEY, "\x1b") if what in everything]


def _choose_reply(random: Random) -> Any:
    """One of many: a function that sends it, or what the stand-in understands."""
    ways: Any = (
        lambda _: GONE,
        lambda _: None,
        lambda _: lambda stand_in: stand_in.trickle(in_header=random.random() < 0.5),
        lambda rng: lambda stand_in: stand_in.send_packed(_choose_packed(rng), rng.choice(("gzip", "deflate", "br"))),
        lambda rng: (rng.choice(STATUSES), rng.randbytes(rng.randrange(200))),
        lambda rng: (rng.choice(STATUSES), fault(f"your key {KEY} \x1b[2J is http://a:{KEY}@b/?key={KEY}")),
        lambda rng: (200, said(f"I know {KEY}", rng.choice(("stop", "length")))),
        lambda rng: (200, _break(json.dumps(said('{"text": "Rice bread."}')).encode(), rng)),
        lambda rng: (200, rng.choice((b"[" * 100_000, b"9" * 5000, b'{"choices": ' * 5000, b"\xff\xfe{}"))),
        lambda rng: (rng.choice((200, 500)), b" " * rng.choice((1 << 20, (1 << 24) + 1))),
    )
    return random.choice(ways)(random)


def _choose_packed(random: Random) -> bytes:
    whole = gzip.compress(random.choice((b"[" * (1 << 25), json.dumps(said("Rice.")).encode(), b"")))
    return random.choice((whole, whole[: len(whole) // 2], _break(whole, random), random.randbytes(50)))


def _break(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    for _ in range(random.randrange(1, 4)):
        changed[random.randrange(len(changed))] = random.randrange(256)
    return bytes(changed)


@pytest.mark.parametrize("cases", FEW_OR_MANY)
def test_a_server_that_replies_badly_ends_in_an_error_of_ours_or_an_answer(
    cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONVAGENT_API_KEY", KEY)
    monkeypatch.setenv("CONVAGENT_TIMEOUT", "0.3")
    monkeypatch.setattr(time, "sleep", lambda _seconds: None)  # before a further attempt
    for number in range(cases):
        with standing_in() as address:
            assert (number, try_reply(address, number)) == (number, [])
