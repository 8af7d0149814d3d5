"""What is asked: a folder of documents or an index, by its name alone, and by which models. All is loaded later."""

import os
from dataclasses import dataclass
from pathlib import Path

from indexes.storage.atomic_files import resolve_replaced
from schemas.errors import MissingError, UsageError

DEFAULT_INDEX = Path("index")
INFO_FILE = "convagent-index.json"
SHARD_INFO_FILES = f"shard-*-of-*/{INFO_FILE}"


@dataclass(frozen=True, slots=True)
class Asked:
    """What every door is told: `chat`, `ask`, `serve` and `mcp`."""

    docs: Path | None = None
    index: Path | None = None
    model: str = "smollm2"
    embedder: str | None = None
    incognito: bool = False
    only: str = ""  # what conversations are kept to from their beginning, as `agent.chat.scope` has it
    follow_links: bool = False  # also those that lead out of the folder

    def find_source(self) -> Path:
        """The folder or index to ask: the one that is named, else the index of `CONVAGENT_INDEX`, else `index`.

        Raises `UsageError` where both are named, or nothing is, `MissingError` where it is not there.
        """
        if self.docs and self.index:
            raise UsageError("--docs and --index exclude each other", remedy="Give one of them.")
        if self.docs:
            docs = resolve_replaced(self.docs.expanduser())  # in a client's settings, no shell does
            if not docs.exists():
                remedy = "--docs takes a folder of documents."
                raise MissingError("no such file or folder", where=str(docs), remedy=remedy)
            return docs.resolve()
        named = self.index or os.environ.get("CONVAGENT_INDEX")
        directory = resolve_replaced(Path(named or DEFAULT_INDEX))
        if not named and not directory.exists():
            remedy = "Name your documents, as in --docs ~/notes, or an index with --index DIR."
            raise UsageError("nothing to ask was named", remedy=remedy)
        if not any(place.exists() for place in (directory / INFO_FILE, *directory.glob(SHARD_INFO_FILES))):
            what = f"is no index (it has no {INFO_FILE})" if directory.exists() else "no such index directory"
            remedy = "Give --docs FOLDER, or build an index with `convagent index build PASSAGES... -o DIR`."
            raise MissingError(what, where=str(directory), remedy=remedy)
        return directory.resolve()
