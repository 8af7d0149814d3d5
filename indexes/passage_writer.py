"""Writing the files of one passage index, passage by passage."""

import array
import hashlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import msgspec
import tantivy

from indexes.passage_index import (
    DATES_FILE,
    INFO_FILE,
    build_schema,
    build_searchable_text,
    is_english,
    register_analyzer,
)
from indexes.processors import logical_cores
from indexes.storage.manifest import write_manifest
from indexes.text.analysis import ENGLISH, extract_stems
from schemas.records import IndexInfo, Passage

THREAD_BYTES = 64_000_000  # of the buffer that a thread of Tantivy fills before it writes a segment
LEAST_THREAD_BYTES = 16_000_000  # Tantivy asks for 15


@dataclass(frozen=True, slots=True)
class WriterOptions:
    """How an index is written."""

    threads: int = 0  # of Tantivy; 0: one a core
    thread_bytes: int = THREAD_BYTES


class PassageWriter:
    """The files of an index in a directory, whole once the block has ended well."""

    def __init__(self, directory: Path, languages: Sequence[str], options: WriterOptions = WriterOptions()) -> None:
        self._directory = directory
        self._gives_stems = not is_english(languages)
        index = tantivy.Index(build_schema(), path=str(directory))
        register_analyzer(index, languages)
        threads = options.threads or logical_cores()
        self._writer = index.writer(options.thread_bytes * threads, threads)
        self._ids = _IdWriter(directory)
        self._hashed = hashlib.blake2b(digest_size=16)
        self._dates: dict[int, str] = {}  # only documents have them

    def __enter__(self) -> "PassageWriter":
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Commit, or roll back where the block failed; Tantivy's threads end either way."""
        self._ids.close()
        try:
            if error is None:
                self._write_dates()
                self._writer.commit()
                self._writer.wait_merging_threads()
                return
        except BaseException:
            self._abandon()
            raise
        self._abandon()

    def _abandon(self) -> None:
        """What failed first is what is told, so what fails here (also as a panic of Tantivy's) is not."""
        with suppress(BaseException):
            self._writer.rollback()
        with suppress(BaseException):
            self._writer.wait_merging_threads()

    @property
    def count(self) -> int:
        """Passages so far."""
        return self._ids.count

    @property
    def contents(self) -> str:
        """`IndexInfo.contents` so far."""
        return self._hashed.hexdigest()

    def write(self, passage: Passage, encoded: bytes) -> None:
        """Add a passage, and what `encode_passage` makes of it."""
        self._hashed.update(encoded + b"\n")
        self._writer.add_document(self._make_document(passage, encoded))
        if passage.date:
            self._dates[self.count] = passage.date
        self._ids.write_id(passage.id)

    def _make_document(self, passage: Passage, encoded: bytes) -> tantivy.Document:
        """What Tantivy is given of a passage: its text, or its stems with white space between them."""
        text = build_searchable_text(passage)
        if self._gives_stems:
            text = " ".join(extract_stems(text, passage.language))
        document = tantivy.Document()
        document.add_unsigned("number", self.count)
        document.add_text("id", passage.id)
        document.add_text("body", text)
        document.add_bytes("passage", encoded)
        return document

    def _write_dates(self) -> None:
        if self._dates:
            (self._directory / DATES_FILE).write_bytes(msgspec.json.encode(self._dates))


def seal_index(directory: Path, info: IndexInfo) -> None:
    """Add to the files of an index its info, and the checksums of them all."""
    (directory / INFO_FILE).write_bytes(msgspec.json.format(msgspec.json.encode(info)))
    write_manifest(directory)


def encode_passage(passage: Passage) -> bytes:
    """As JSON. English, no date and no marks are left out, so that an index of passages is as it always was."""
    fields = msgspec.to_builtins(passage)
    if passage.language == ENGLISH:
        del fields["language"]
    if not passage.date:
        del fields["date"]
    if not passage.marks:
        del fields["marks"]
    return msgspec.json.encode(fields)


class _IdWriter:
    """Writes the ids in the order of their numbers, with the offsets that they are read by."""

    def __init__(self, directory: Path) -> None:
        self.count, self._position = 0, 0
        self._offsets = array.array("Q", [0])
        self._text = (directory / "ids.txt").open("wb")
        self._offset_file = (directory / "ids.offsets").open("wb")

    def close(self) -> None:
        self._flush()
        self._text.close()
        self._offset_file.close()

    def write_id(self, id: str) -> None:
        data = id.encode("utf-8", "replace")
        self._text.write(data)
        self._position += len(data)
        self._offsets.append(self._position)
        self.count += 1
        if len(self._offsets) >= 1 << 16:
            self._flush()

    def _flush(self) -> None:
        self._offsets.tofile(self._offset_file)
        self._offsets = array.array("Q")
