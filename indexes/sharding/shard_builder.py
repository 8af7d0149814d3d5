"""Building the shards of an index: all of them in one pass through the corpus, or one, where others build the others.

Who builds one shard reads the whole corpus all the same: a passage's place follows from those before it, and an id that
was seen before is found wherever it was.
"""

import re
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from indexes.corpora.corpus import Corpus
from indexes.index_builder import BuildReport, CorpusReading, build_index, check_replaceable, explain_failed_writing
from indexes.passage_index import INFO_FILE
from indexes.passage_writer import LEAST_THREAD_BYTES, THREAD_BYTES, PassageWriter, WriterOptions, seal_index
from indexes.processors import logical_cores
from indexes.sharding.shard_files import find_counts, name_shard, read_joined_info
from indexes.storage.atomic_files import replace_directory, resolve_replaced, sync_to_disk
from schemas.errors import InvalidInputError, UsageError, format_count
from schemas.records import IndexInfo, Shard

MAX_SHARDS = 1000
Parts = int | tuple[int, int] | None  # so many shards, or one of how many; None: no shards


def choose_parts(shards: int | None, shard: str | None) -> Parts:
    """How a collection is divided, by `--shards` and `--shard`. Raises `UsageError`."""
    if shards is not None and shard is not None:
        remedy = "Give --shards 8 to build all of them here, or --shard 3/8 to build one."
        raise UsageError("--shards and --shard exclude each other", remedy=remedy)
    if shard is None:
        return shards
    found = re.fullmatch(r"(\d+)/(\d+)", shard)
    if not found or not 1 <= int(found[1]) <= int(found[2]) <= MAX_SHARDS:
        remedy = f"Give which of how many, as in --shard 3/8; at most {MAX_SHARDS}."
        raise UsageError(f"{shard!r} is no shard", remedy=remedy)
    return int(found[1]), int(found[2])


def build_in_parts(
    corpus: Corpus,
    out: Path,
    parts: Parts,
    *,
    skip_problems: bool,
    overwrite: bool = False,
    progress: Callable[[], None],
) -> BuildReport:
    """Index a corpus into the directory `out`, in parts, which appear whole or not at all.

    Of several shards, one is built into its directory there, all of them as `out` itself.
    """
    if parts is None:
        return build_index(corpus, out, skip_problems=skip_problems, overwrite=overwrite, progress=progress)
    single, of = (0, parts) if isinstance(parts, int) else parts
    if single:
        _check_room(out, of)
    target = out / name_shard(single, of) if single else out
    check_replaceable(resolve_replaced(target), overwrite)
    reading = CorpusReading(corpus, skip_problems=skip_problems, progress=progress)
    with explain_failed_writing(target), replace_directory(target) as building:
        if single:
            (info,) = _write_shards(reading, {single: building}, of, building)
        else:
            directories = {number: building / name_shard(number, of) for number in range(1, of + 1)}
            for directory in directories.values():
                directory.mkdir()
            _write_shards(reading, directories, of, building)
            info = read_joined_info([*directories.values()])
            for file in (file for directory in directories.values() for file in directory.iterdir()):
                sync_to_disk(file)
    return BuildReport(info, reading.problems)


def _check_room(out: Path, of: int) -> None:
    """Raise `UsageError` where a directory holds something else than shards of that number."""
    what = ""
    if find_counts(out) - {of}:
        what = f"holds shards of another number than {of}"
    elif (out / INFO_FILE).exists():
        what = "is an index of its own"
    elif out.exists() and not out.is_dir():
        what = "is no directory"
    if what:
        raise UsageError(what, where=str(out), remedy="Give another directory.")


def _write_shards(reading: CorpusReading, directories: Mapping[int, Path], of: int, scratch: Path) -> list[IndexInfo]:
    """Write some of so many shards of a corpus, each into its directory: what each holds."""
    threads = logical_cores() if len(directories) == 1 else 1
    memory = max(LEAST_THREAD_BYTES, THREAD_BYTES * logical_cores() // (threads * len(directories)))
    with ExitStack() as stack:
        writers = {
            number: stack.enter_context(
                PassageWriter(directory, reading.corpus.languages, WriterOptions(threads, memory))
            )
            for number, directory in directories.items()
        }
        for place, (passage, encoded) in enumerate(reading.iterate_passages(scratch)):
            if writer := writers.get(place % of + 1):
                writer.write(passage, encoded)
        if reading.count < of:
            what = f"holds {format_count(reading.count, 'passage')}, too few for {of} shards"
            raise InvalidInputError(what, where=", ".join(map(str, reading.corpus.files)))
    infos = []
    for number, writer in writers.items():
        shard = Shard(number, of, reading.count, reading.contents)
        infos.append(replace(reading.describe(writer.count, writer.contents), shard=shard))
        seal_index(directories[number], infos[-1])
    return infos
