"""Beginning a conversation: what is asked, who answers, and what is known of the person."""

from dataclasses import dataclass
from pathlib import Path

from agent.chat.session import Assistant, Session, open_assistant
from agent.chat.sources import named_source, open_source
from agent.chat.store import Store, data_directory, open_store
from agent.chat.terminal import converse, export
from agent.embedders import open_embedder
from agent.files import check_writable
from schemas.errors import MissingError, UsageError


@dataclass(frozen=True, slots=True)
class Wanted:
    """What `convagent chat` was asked for."""

    docs: Path | None = None
    index: Path | None = None
    model: str = "smollm2"
    embedder: str | None = None
    go_on: bool = False  # with the last conversation
    chat: int | None = None  # with this one
    incognito: bool = False


def begin(wanted: Wanted) -> bool:
    """Open all that is needed, and talk. Whether everything went well (of interest where lines come through a pipe)."""
    if wanted.incognito and (wanted.go_on or wanted.chat):
        raise UsageError("--incognito knows no conversation to go on with", remedy="Leave one of the two out.")
    store = open_store(incognito=wanted.incognito)
    chat = _chat(store, wanted)
    named = named_source(wanted.docs, wanted.index)
    source = named if wanted.docs or wanted.index or not chat else Path(store.source(chat))
    embedder = open_embedder(wanted.embedder)
    index = open_source(source, embedder)

    def opener(model: str) -> Assistant:
        return open_assistant(str(source), index, model, embedder)

    assistant = opener(wanted.model)
    session = Session.going_on(assistant, store, chat) if chat else Session(assistant, store)
    return converse(session, opener, None if wanted.incognito else data_directory() / "history")


def _chat(store: Store, wanted: Wanted) -> int | None:
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
    """Write a kept conversation to a file. Raises `UsageError` for a name that is neither `.md` nor `.json`."""
    if output is None or output.suffix not in (".md", ".json"):
        raise UsageError("--export needs a file that ends in .md or .json", remedy="Such as: -o conversation.md")
    check_writable(output, overwrite)
    export(store, chat, output)
