"""Beginning a conversation: what is asked, who answers, and what is known of the person."""

from dataclasses import dataclass
from pathlib import Path

from agent import console
from agent.chat.session import Assistant, Session, open_assistant
from agent.chat.store import Store, data_directory
from agent.chat.terminal import converse, export
from agent.documents import open_documents
from agent.embedders import open_embedder
from agent.files import check_writable
from agent.llm.embedded import cache_directory
from agent.sources import DEFAULT_INDEX
from indexes.passages import INFO_FILE, PassageIndex
from indexes.vectors import Embedder
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
    if wanted.docs and wanted.index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    if wanted.incognito and (wanted.go_on or wanted.chat):
        raise UsageError("--incognito knows no conversation to go on with", remedy="Leave one of the two out.")
    store = Store(None) if wanted.incognito else kept()
    chat = _chat(store, wanted)
    named = wanted.docs or wanted.index
    source = store.source(chat) if chat and not named else str((named or DEFAULT_INDEX).resolve())
    embedder = open_embedder(wanted.embedder)
    index = open_source(Path(source), embedder)

    def opener(model: str) -> Assistant:
        return open_assistant(source, index, model, embedder)

    assistant = opener(wanted.model)
    session = Session.going_on(assistant, store, chat) if chat else Session(assistant, store)
    return converse(session, opener, None if wanted.incognito else data_directory() / "history")


def open_source(source: Path, embedder: Embedder | None) -> PassageIndex:
    """An index, or that of a folder of documents, brought up to date."""
    if source == DEFAULT_INDEX.resolve() or (source / INFO_FILE).exists():
        return PassageIndex(source)
    documents = open_documents(source, cache_directory(), embedder, console.progress)
    console.show_documents(documents.reading)
    return documents.index


def kept() -> Store:
    """The person's own store."""
    return Store(data_directory() / "convagent.sqlite")


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
