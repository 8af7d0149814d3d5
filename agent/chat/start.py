"""Beginning a conversation: what is asked, who answers, and what is known of the person."""

from dataclasses import dataclass
from pathlib import Path

from agent.chat.session import Assistant, Session, open_assistant
from agent.chat.sources import open_source, resolve_source
from agent.chat.store import Store, open_store
from agent.chat.terminal import export_conversation, run_chat
from agent.models.embedding.index_vectors import cache_vectors
from agent.models.embedding.registry import open_embedder
from schemas.errors import MissingError, UsageError


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What `convagent chat` was asked for."""

    docs: Path | None = None
    index: Path | None = None
    model: str = "smollm2"
    embedder: str | None = None
    go_on: bool = False  # with the last conversation
    chat: int | None = None  # with this one
    incognito: bool = False


def start_chat(wanted: ChatRequest) -> bool:
    """Open all that is needed, and talk. Whether everything went well (of interest where lines come through a pipe)."""
    if wanted.incognito and (wanted.go_on or wanted.chat is not None):
        raise UsageError("--incognito knows no conversation to go on with", remedy="Leave one of the two out.")
    store = open_store(incognito=wanted.incognito)
    chat = _choose_chat(store, wanted)
    kept = chat is not None and not (wanted.docs or wanted.index)
    source = Path(store.source(chat)) if kept and chat is not None else resolve_source(wanted.docs, wanted.index)
    embedder = open_embedder(wanted.embedder)
    if embedder and not wanted.incognito:
        embedder = cache_vectors(embedder)
    index = open_source(source, embedder)

    def opener(model: str) -> Assistant:
        return open_assistant(str(source), index, model, embedder)

    assistant = opener(wanted.model)
    session = Session(assistant, store) if chat is None else Session.resume(assistant, store, chat)
    return run_chat(session, opener)


def _choose_chat(store: Store, wanted: ChatRequest) -> int | None:
    """The conversation to go on with. Raises `MissingError` where there is none."""
    if wanted.chat is not None or not wanted.go_on:
        return wanted.chat
    chats = store.chats()
    if not chats:
        raise MissingError(
            "there is no conversation to go on with", remedy="Begin one: `convagent chat --docs FOLDER`."
        )
    return chats[0].id


def export_chat(store: Store, chat: int, output: Path | None, *, overwrite: bool) -> None:
    """Write a kept conversation to a file. Raises `UsageError` where none is named, and what `export` does."""
    if output is None:
        raise UsageError("--export needs a file", remedy="Such as: -o conversation.md")
    export_conversation(store, chat, output, overwrite=overwrite)
