"""Starting a conversation at the terminal: opens the store, the passages and the model, then talks."""

import math
import sys
from dataclasses import dataclass
from pathlib import Path

from agent.chat.export import export_conversation
from agent.chat.interactive import run_chat
from agent.chat.opening import READING_SECONDS, begin_to_open_models, open_source, resolve_source
from agent.chat.scope import EVERYWHERE, require_scope
from agent.chat.session import Assistant, Session, open_assistant_over, open_collection
from agent.chat.store import Store, open_store
from indexes.documents.background_vectors import make_vectors_meanwhile
from indexes.documents.watching import watch_documents
from schemas.errors import MissingError, UsageError


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What `convagent chat` was asked for."""

    docs: Path | None = None
    index: Path | None = None
    model: str = "smollm2"
    embedder: str | None = None
    continue_last: bool = False  # go on with the last conversation
    chat: int | None = None  # go on with this one
    incognito: bool = False
    only: str | None = None  # what the conversation is kept to, as `agent.chat.scope` has it
    follow_links: bool = False  # also those that lead out of the folder


def start_chat(request: ChatRequest) -> int:
    """Open all that is needed, and talk. The exit code, which tells of lines that came through a pipe.

    Raises `UsageError` or `MissingError` for a conversation that cannot be continued, and what opening store,
    passages and models raises.
    """
    if request.incognito and (request.continue_last or request.chat is not None):
        raise UsageError("--incognito knows no conversation to go on with", remedy="Leave one of the two out.")
    store = open_store(incognito=request.incognito)
    chat = _choose_chat(store, request)
    if chat is not None and not (request.docs or request.index):
        source = Path(store.read_source(chat))
    else:
        source = resolve_source(request.docs, request.index)
    models = begin_to_open_models(request.model, request.embedder, keep_vectors=not request.incognito)
    words_first = sys.stdin.isatty()  # through a pipe, answers wait for all vectors, and so can be repeated
    before = None if words_first else models.find_embedder()
    in_haste = words_first and not request.only  # which names documents: they must all be known
    seconds = READING_SECONDS if in_haste else math.inf
    index = open_source(source, before, seconds, follow_links=request.follow_links)
    embedder = models.find_embedder()
    current = open_collection(str(source), index, embedder, words_first=words_first)
    only = require_scope(request.only or EVERYWHERE, current.collection)

    def opener(model: str) -> Assistant:
        return open_assistant_over(current, model, embedder, only)

    assistant = open_assistant_over(current, request.model, embedder, only, models.find_model())
    session = Session(assistant, store) if chat is None else Session.resume(assistant, store, chat)
    session.scope = only if request.only else None
    with watch_documents(current, before, follow_links=request.follow_links), make_vectors_meanwhile(current, embedder):
        return run_chat(session, opener)


def _choose_chat(store: Store, request: ChatRequest) -> int | None:
    """The conversation to go on with, if one is asked for. Raises `MissingError` where there is none."""
    if request.chat is not None or not request.continue_last:
        return request.chat
    chats = store.list_chats()
    if not chats:
        raise MissingError(
            "there is no conversation to go on with", remedy="Start one: `convagent chat --docs FOLDER`."
        )
    return chats[0].id


def export_chat(store: Store, chat: int, output: Path | None, *, overwrite: bool) -> None:
    """Write a kept conversation to a file. Raises `UsageError` without one, and what `export_conversation` raises."""
    if output is None:
        raise UsageError("--export needs a file", remedy="Such as: -o conversation.md")
    export_conversation(store, chat, output, overwrite=overwrite)
