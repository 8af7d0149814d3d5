"""What a conversation asks: an index, or a folder of documents, which is brought up to date first."""

from collections.abc import Callable
from pathlib import Path

from agent import console
from agent.documents import open_documents
from agent.llm.embedded import cache_directory
from agent.sources import DEFAULT_INDEX
from indexes.passages import INFO_FILE, PassageIndex
from indexes.vectors import Embedder
from schemas.errors import UsageError

OpenSource = Callable[[Path, Embedder | None], PassageIndex]


def named_source(docs: Path | None, index: Path | None) -> Path:
    """The folder or index that is meant; the index in `index` where none is named. Raises `UsageError` for both."""
    if docs and index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    return (docs or index or DEFAULT_INDEX).resolve()


def open_source(source: Path, embedder: Embedder | None) -> PassageIndex:
    """The passages of an index, or of a folder. Raises what `PassageIndex` and `open_documents` do."""
    if source == DEFAULT_INDEX.resolve() or (source / INFO_FILE).exists():
        return PassageIndex(source)
    documents = open_documents(source, cache_directory(), embedder, console.progress)
    console.show_documents(documents.reading)
    return documents.index
