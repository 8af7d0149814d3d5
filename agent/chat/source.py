"""What is asked: a folder of documents or an index, by its name alone. What reads either is loaded later."""

import os
from pathlib import Path

from indexes.storage.atomic_files import resolve_replaced
from schemas.errors import MissingError, UsageError

DEFAULT_INDEX = Path("index")
INFO_FILE = "convagent-index.json"
SHARD_INFO_FILES = f"shard-*-of-*/{INFO_FILE}"


def resolve_source(docs: Path | None, index: Path | None) -> Path:
    """The folder or index to ask: the one that is named, else the index of `CONVAGENT_INDEX`, else `index`.

    Raises `UsageError` where both are named, or nothing is, `MissingError` where it is not there.
    """
    if docs and index:
        raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
    docs = docs and docs.expanduser()  # in a client's settings, no shell does
    if docs and not docs.exists():
        raise MissingError("no such file or folder", where=str(docs), remedy="--docs takes a folder of documents.")
    named = index or os.environ.get("CONVAGENT_INDEX")
    directory = resolve_replaced(Path(named or DEFAULT_INDEX))
    if not docs and not named and not directory.exists():
        remedy = "Name your documents, as in --docs ~/notes, or an index with --index DIR."
        raise UsageError("nothing to ask was named", remedy=remedy)
    if not docs and not any(place.exists() for place in (directory / INFO_FILE, *directory.glob(SHARD_INFO_FILES))):
        what = f"is no index (it has no {INFO_FILE})" if directory.exists() else "no such index directory"
        remedy = "Give --docs FOLDER, or build an index with `convagent index build PASSAGES... -o DIR`."
        raise MissingError(what, where=str(directory), remedy=remedy)
    return (docs or directory).resolve()
