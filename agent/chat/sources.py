"""What a conversation asks: an index, or a folder of documents, which is brought up to date first."""

import os
from pathlib import Path

from agent import console
from agent.documents import open_documents
from agent.llm.embedded import cache_directory
from agent.sources import DEFAULT_INDEX
from indexes.passages import INFO_FILE, PassageIndex, read_info
from indexes.vectors import Embedder
from indexes.whole import in_place
from schemas.errors import UsageError


def named_source(docs: Path | None, index: Path | None) -> Path:
    """The folder or index that is meant; where none is named, the index of `CONVAGENT_INDEX`, or in `index`.

    Raises `UsageError` where both are named, and what `read_info` does for an index that is none.
    """
    if docs and index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    if docs:
        return docs.resolve()
    meant = index or Path(os.environ.get("CONVAGENT_INDEX", DEFAULT_INDEX))
    read_info(meant)
    return meant.resolve()


def open_source(source: Path, embedder: Embedder | None) -> PassageIndex:
    """The passages of an index, or of a folder. Raises what `PassageIndex` and `open_documents` do."""
    if (in_place(source) / INFO_FILE).exists():
        return PassageIndex(source)
    documents = open_documents(source, cache_directory(), embedder, console.progress)
    console.show_documents(documents.reading)
    return documents.index
