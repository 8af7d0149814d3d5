"""What a conversation is about: the passages that are asked, and what they are called."""

from collections.abc import Callable, Sequence
from pathlib import Path

from indexes.passages import PassageIndex
from schemas.errors import UsageError

OpenSource = Callable[[Path, Sequence[Path]], tuple[str, PassageIndex]]


def open_source(index: Path, docs: Sequence[Path]) -> tuple[str, PassageIndex]:
    """An index and its name. Raises what `PassageIndex` does."""
    if docs:
        raise UsageError(
            "folders of documents cannot be read yet", remedy="Build an index with `convagent index build`."
        )
    return str(index), PassageIndex(index)
