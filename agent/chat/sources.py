"""What a conversation asks: an index, or a folder of documents, whose index is brought up to date first."""

import logging
import math
import os
from dataclasses import dataclass
from pathlib import Path

from agent.runs.evidence import DEFAULT_INDEX
from agent.terminal.progress import stage_progress
from agent.terminal.reports import show_documents
from indexes.documents.document_index import open_documents
from indexes.passage_index import Index, read_info
from indexes.ranking.vectors import Embedder
from indexes.sharding.shard_files import holds_index
from indexes.sharding.sharded_index import open_index
from indexes.storage.directories import find_cache_directory
from schemas.errors import UsageError
from schemas.progress import StageProgress

READING_SECONDS = 1.5  # before somebody can ask, who does not wait for all documents
log = logging.getLogger("convagent")


def resolve_source(docs: Path | None, index: Path | None) -> Path:
    """The folder or index to ask: the one that is named, else the index of `CONVAGENT_INDEX`, else `index`.

    Raises `UsageError` where both are named, and what `read_info` raises for a directory that is no index.
    """
    if docs and index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    if docs:
        return docs.resolve()
    directory = index or Path(os.environ.get("CONVAGENT_INDEX", DEFAULT_INDEX))
    if not index and "CONVAGENT_INDEX" not in os.environ and not directory.exists():
        remedy = "Name your documents, as in --docs ~/notes, or an index with --index DIR."
        raise UsageError("nothing to ask was named", remedy=remedy)
    if not holds_index(directory):
        read_info(directory)  # which says what is not there
    return directory.resolve()


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """The passages of an index or a folder."""

    index: Index
    is_behind: bool  # whether it is not of all documents as they are now, for want of time


def read_source(
    source: Path,
    embedder: Embedder | None,
    seconds: float = math.inf,
    progress: StageProgress = stage_progress,
    *,
    follow_links: bool = False,
) -> OpenedSource:
    """The passages of an index, or of a folder, then with vectors of this model where one is given.

    Reading takes about that many seconds at most; `watch_documents` reads the rest. Raises what `open_index` and
    `open_documents` raise.
    """
    if holds_index(source):
        return OpenedSource(open_index(source), is_behind=False)
    cache = find_cache_directory()
    documents = open_documents(source, cache, embedder, progress, seconds, follow_links=follow_links)
    show_documents(documents.reading)
    return OpenedSource(documents.index, documents.is_behind)


def open_source(
    source: Path, embedder: Embedder | None, seconds: float = math.inf, *, follow_links: bool = False
) -> Index:
    """The same, for somebody who is told that not all was read. Errors are those of `read_source`."""
    opened = read_source(source, embedder, seconds, follow_links=follow_links)
    if opened.is_behind:
        log.info("You can ask of what was read so far, or before; I go on reading meanwhile.")
    return opened.index
