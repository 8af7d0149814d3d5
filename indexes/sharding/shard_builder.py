"""Building the shards of an index: all of them in one pass through the corpus, or one, where others build the others.

Who builds one shard reads the whole corpus all the same: a passage's place follows from those before it, and an id that
was seen before is found wherever it was.
"""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from indexes.corpora.corpus import Corpus
from indexes.index_builder import BuildReport, CorpusReading, build_index, check_replaceable, explain_failed_writing
from indexes.passage_index import INFO_FILE
from indexes.passage_writer import LEAST_THREAD_BYTES, THREAD_BYTES, PassageWriter, WriterOptions, seal_index
from indexes.processors import logical_cores
from indexes.sharding.shard_files import ShardPlace, ShardRecord, find_shards, write_shard_record
from indexes.sharding.statistics import merge_statistics
from indexes.storage.atomic_files import replace_directory, resolve_replaced, sync_to_disk
from schemas.errors import InvalidInputError, UsageError, format_count
from schemas.records import IndexInfo


def choose_parts(shards: int | None, shard: str | None) -> int | ShardPlace | None:
    """How a collection is divided: in so many shards, of which one is built where one is named; None: not at all.

    Raises `UsageError`.
    """
    if shards is not None and shard is not None:
        remedy = "Give --shards 8 to build all of them here, or --shard 3/8 to build one."
        raise UsageError("--shards and --shard exclude each other", remedy=remedy)
    return shards if shard is None else ShardPlace.parse(shard)


def build_in_parts(
    corpus: Corpus,
    out: Path,
    parts: int | ShardPlace | None,
    *,
    skip_problems: bool,
    overwrite: bool = False,
    progress: Callable[[], None],
) -> BuildReport:
    """Index a corpus into `out` as `choose_parts` has it; the rest as in `build_index`."""
    build: Callable[..., BuildReport] = build_index
    if isinstance(parts, ShardPlace):
        build = partial(build_shard, place=parts)
    elif parts:
        build = partial(build_sharded_index, shards=parts)
    return build(corpus, out, skip_problems=skip_problems, overwrite=overwrite, progress=progress)


def build_sharded_index(
    corpus: Corpus,
    out: Path,
    shards: int,
    *,
    skip_problems: bool,
    overwrite: bool = False,
    progress: Callable[[], None],
) -> BuildReport:
    """Index a corpus in shards into the directory `out`, which appears whole or not at all; as `build_index` does."""
    check_replaceable(resolve_replaced(out), overwrite)
    reading = CorpusReading(corpus, skip_problems=skip_problems, progress=progress)
    places = [ShardPlace(number, shards) for number in range(1, shards + 1)]
    with explain_failed_writing(out), replace_directory(out) as building:
        directories = [building / place.name for place in places]
        for directory in directories:
            directory.mkdir()
        _write_shards(reading, dict(zip(places, directories, strict=True)), building)
        info = merge_statistics(building)
        for directory in directories:
            for file in directory.iterdir():
                sync_to_disk(file)
    return BuildReport(info, reading.problems)


def build_shard(
    corpus: Corpus,
    out: Path,
    place: ShardPlace,
    *,
    skip_problems: bool,
    overwrite: bool = False,
    progress: Callable[[], None],
) -> BuildReport:
    """Index one shard of a corpus into its directory in `out`, which appears whole or not at all."""
    _check_room(out, place)
    directory = out / place.name
    check_replaceable(resolve_replaced(directory), overwrite)
    reading = CorpusReading(corpus, skip_problems=skip_problems, progress=progress)
    with explain_failed_writing(directory), replace_directory(directory) as building:
        (info,) = _write_shards(reading, {place: building}, building)
    return BuildReport(info, reading.problems)


def _check_room(out: Path, place: ShardPlace) -> None:
    """Raise `UsageError` where a directory holds something else than shards of that number."""
    if any(other.of != place.of for other, _ in find_shards(out)):
        what = f"holds shards of another number than {place.of}"
        raise UsageError(what, where=str(out), remedy="Give another directory.")
    if (out / INFO_FILE).exists() and not any(find_shards(out)):
        raise UsageError("is an index of its own", where=str(out), remedy="Give another directory.")
    if out.exists() and not out.is_dir():
        raise UsageError("is no directory", where=str(out), remedy="Give another directory.")


def _write_shards(reading: CorpusReading, directories: Mapping[ShardPlace, Path], scratch: Path) -> list[IndexInfo]:
    """Write some shards of a corpus, each into its directory: what each holds."""
    (shards,) = {place.of for place in directories}
    memory = max(LEAST_THREAD_BYTES, THREAD_BYTES * logical_cores() // len(directories))
    options = WriterOptions(threads=1, thread_bytes=memory, counts_words=True)
    with ExitStack() as stack:
        writers = {
            place: stack.enter_context(PassageWriter(directory, reading.corpus.languages, options))
            for place, directory in directories.items()
        }
        by_turn = [writers.get(ShardPlace(number, shards)) for number in range(1, shards + 1)]
        for number, (passage, encoded) in enumerate(reading.iterate_passages(scratch)):
            if writer := by_turn[number % shards]:
                writer.write(passage, encoded)
        if reading.count < shards:
            what = f"holds {format_count(reading.count, 'passage')}, too few for {shards} shards"
            raise InvalidInputError(what, where=", ".join(map(str, reading.corpus.files)))
    return [_seal_shard(reading, place, writer, directories[place]) for place, writer in writers.items()]


def _seal_shard(reading: CorpusReading, place: ShardPlace, writer: PassageWriter, directory: Path) -> IndexInfo:
    write_shard_record(directory, ShardRecord(place, writer.words, reading.count, reading.contents))
    info = reading.describe(writer.count, writer.contents)
    seal_index(directory, info)
    return info
