"""What a conversation asks: an index, or a folder of documents, whose index is brought up to date first."""

import os
from pathlib import Path

from agent.chat.document_index import open_documents
from agent.runs.evidence import DEFAULT_INDEX
from agent.terminal.progress import stage_progress
from agent.terminal.reports import show_documents
from indexes.passage_index import INFO_FILE, PassageIndex, read_info
from indexes.ranking.vectors import Embedder
from indexes.storage.atomic_files import resolve_replaced
from indexes.storage.directories import find_cache_directory
from schemas.errors import UsageError
from schemas.progress import StageProgress


def resolve_source(docs: Path | None, index: Path | None) -> Path:
    """The folder or index to ask: the one that is named, else the index of `CONVAGENT_INDEX`, else `index`.

    Raises `UsageError` where both are named, and what `read_info` raises for a directory that is no index.
    """
    if docs and index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    if docs:
        return docs.resolve()
    directory = index or Path(os.environ.get("CONVAGENT_INDEX", DEFAULT_INDEX))
    read_info(directory)
    return directory.resolve()


def open_source(source: Path, embedder: Embedder | None, progress: StageProgress = stage_progress) -> PassageIndex:
    """The passages of an index, or of a folder, then with vectors of this model where one is given.

    Raises what `PassageIndex` and `open_documents` raise.
    """
    if (resolve_replaced(source) / INFO_FILE).exists():
        return PassageIndex(source)
    documents = open_documents(source, find_cache_directory(), embedder, progress)
    show_documents(documents.reading)
    return documents.index
