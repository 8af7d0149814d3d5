"""The files of an index: what it says about itself, whether this version can read it, and whether they are whole."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import msgspec

from indexes.storage.atomic_files import resolve_replaced
from indexes.storage.manifest import MANIFEST_FILE, find_damage, is_small, read_manifest
from indexes.storage.quiet_panics import hold_back_panics
from indexes.text.analysis import describe_analyzer, list_languages
from schemas.errors import InvalidInputError, MissingError
from schemas.records import IndexInfo
from schemas.wire import decode

INFO_FILE = "convagent-index.json"
SHARD_PATTERN = "shard-*-of-*"  # the directories of shards in that of their index
FORMAT, SHARDED_FORMAT = 1, 2  # of the files of an index
REBUILD = "Build it again with `convagent index build`."
MAX_LISTED = 3  # damaged files in an error


def read_info(directory: Path) -> IndexInfo:
    """The info of an index. Raises `MissingError` where there is no index, `InvalidInputError` if it is damaged."""
    remedy = "Build one with `convagent index build PASSAGES... -o DIR`."
    directory = resolve_replaced(directory)
    if not directory.exists():
        raise MissingError("no such index directory", where=str(directory), remedy=remedy)
    try:
        info: IndexInfo = decode((directory / INFO_FILE).read_bytes(), IndexInfo)
        return info
    except OSError as error:
        what = f"is no index (it has no {INFO_FILE})"
        if any(directory.glob(SHARD_PATTERN)):
            what, remedy = "has shards that are no index yet", f"Run `convagent index merge-statistics {directory}`."
        raise MissingError(what, where=str(directory), remedy=remedy) from error
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"is a damaged index ({error})", where=str(directory), remedy=remedy) from error


def check_compatible(info: IndexInfo, directory: Path) -> None:
    """Raise `InvalidInputError` for an index whose files or stems are made in another way than this version does."""
    if info.format > SHARDED_FORMAT:
        what = f"is an index of a later version (format {info.format}; this one reads up to {SHARDED_FORMAT})"
        raise InvalidInputError(what, where=str(directory), remedy=f"Install that version, or: {REBUILD}")
    own = describe_analyzer(list_languages(info.analyzer))
    if info.analyzer != own:
        what = f"was built with another analyzer ({info.analyzer!r}; this version has {own!r})"
        raise InvalidInputError(what, where=str(directory), remedy=REBUILD)


def check_whole(info: IndexInfo, directory: Path, *, thorough: bool = False) -> bool:
    """Whether the contents of an index's files were compared, not their sizes alone: if thorough, or if they are small.

    One of an earlier version, which has no checksums, is taken as it is. Raises `InvalidInputError` where the files are
    not those that were built.
    """
    try:
        manifest = read_manifest(directory)
    except (OSError, InvalidInputError) as error:
        raise _make_damage_error(directory, f"{MANIFEST_FILE} cannot be used: {error}") from error
    if manifest is None and info.format:
        raise _make_damage_error(directory, f"{MANIFEST_FILE} is not there")
    damage = list(find_damage(directory, manifest, thorough=thorough)) if manifest else []
    if damage:
        listed = "; ".join(f"{problem.where} {problem.what}" for problem in damage[:MAX_LISTED])
        rest = f" and {len(damage) - MAX_LISTED} more" if len(damage) > MAX_LISTED else ""
        raise _make_damage_error(directory, f"{listed}{rest}")
    return manifest is not None and (thorough or is_small(manifest))


@contextmanager
def explain_damage(directory: Path, *, quiet: bool = True) -> Iterator[None]:
    """What reading damaged files raises, as one error. Tantivy is written in Rust, whose panics are no `Exception`.

    Where it is to be quiet, nothing else is said of such a panic.
    """
    try:
        with hold_back_panics() if quiet else nullcontext():
            yield
    except (ValueError, LookupError, OverflowError, OSError, TypeError, msgspec.DecodeError) as error:
        raise _make_damage_error(directory, str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise _make_damage_error(directory, f"Tantivy cannot read it: {error}") from error


def _make_damage_error(directory: Path, what: str) -> InvalidInputError:
    return InvalidInputError(f"is a damaged index ({what})", where=str(directory), remedy=REBUILD)
