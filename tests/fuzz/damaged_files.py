"""Byte damage to what is kept of a person: the store, and each cache. Nothing but errors of ours may come of it.

A cache is done without, made anew, or says that it is to be deleted; a store is used as far as it can be read.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import numpy as np

from agent.chat.store import Store
from agent.models.protocol import Conversation, Listener, Task
from agent.models.reply_cache import CachingModel
from agent.models.scripted import Script, ScriptedModel
from indexes.documents.document_index import open_documents
from indexes.ranking.vectors import VectorCache
from indexes.storage.cache import Cache
from schemas.errors import ConvagentError
from schemas.records import Message
from tests.conftest import EXAMPLES
from tests.fuzz.byte_damage import damage_byte
from tests.test_embedder import Counted
from tests.test_index_integrity import NoProgress
from tests.test_store import answered

TALK, TASK = Conversation("Be brief.", (Message("user", "Which bread?"),)), Task("hyde", seed=1)
TEXTS = ("bread", "fern", "a tin")


def open_script(listen: Listener) -> ScriptedModel:
    return ScriptedModel(msgspec.convert({"ask": {"hyde": ["Rice bread."]}}, Script), listen)


def fill_store(folder: Path) -> None:
    store = Store(folder / "convagent.sqlite")
    for number in range(3):
        chat = store.start_chat("notes")
        for turn in range(1, 6):
            store.add_turn(chat, f"Which bread {number}?", answered("Which bread?", "Rice bread. " * 20, turn))
    store.add_statement("I bake.")


def use_store(folder: Path) -> None:
    store = Store(folder / "convagent.sqlite")
    for summary in store.list_chats():
        store.read_turns(summary.id)
    store.read_utterances()
    store.list_statements()
    chat = store.start_chat("notes")
    store.add_turn(chat, "Which?", answered("Which?", "Rice."))
    store.delete_chat(chat)


def use_replies(folder: Path) -> None:
    cache = Cache(folder / "replies.sqlite")
    model = CachingModel(open_script, lambda _call: None, cache, "")
    assert model.ask(TALK, TASK, str) == "Rice bread."
    cache.close()


def use_vectors(folder: Path) -> None:
    cache = Cache(folder / "vectors.sqlite")
    assert np.array_equal(VectorCache(Counted(), cache).embed(TEXTS), Counted().embed(TEXTS))
    cache.close()


def use_documents(folder: Path) -> None:
    opened = open_documents(EXAMPLES / "documents", folder, None, lambda _stage, _total: NoProgress())
    assert opened.index.search([("bread", 1.0)], 3)


@dataclass(frozen=True, slots=True)
class Kept:
    """Something that is kept: how it is made, and used."""

    fill: Callable[[Path], None]
    use: Callable[[Path], None]


KEPT = {
    "store": Kept(fill_store, use_store),
    "replies": Kept(use_replies, use_replies),
    "vectors": Kept(use_vectors, use_vectors),
    "documents": Kept(use_documents, use_documents),
}


def try_damage(kind: str, whole: Path, place: Path, number: int) -> str:
    """Damage one of the files in a copy of what is kept, and use it: the error of ours, or "". Raises any other."""
    copy = place / f"{kind}{number}"
    shutil.copytree(whole, copy)
    files = sorted(path for path in copy.rglob("*") if path.is_file() and path.suffix != ".lock")
    damage_byte(files[number % len(files)], number)
    try:
        KEPT[kind].use(copy)
    except ConvagentError as error:
        return str(error)
    finally:
        shutil.rmtree(copy, ignore_errors=True)  # Tantivy may just be making a lock in it
    return ""
