"""The files that a benchmark wants: what each is for and where it is had. Nothing is downloaded."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from schemas.errors import MissingError, format_count


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file or folder below the folder of `--data`."""

    path: str
    purpose: str
    origin: str  # where it is had, and how it is made from what is had there


def check_files(data: Path, wanted: Sequence[WantedFile]) -> None:
    """Raise `MissingError` naming all files that are not there, each with its purpose and origin."""
    missing = [file for file in wanted if not (data / file.path).exists()]
    if missing:
        listed = [f"  {file.path}: {file.purpose}\n    from {file.origin}" for file in missing]
        what = "\n".join([f"{format_count(len(missing), 'file')} of {len(wanted)} not there:", *listed])
        raise MissingError(what, where=str(data), remedy="Put them there, or name another folder with --data.")
