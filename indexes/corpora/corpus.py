"""Passages from the files people have: JSON lines, TSV and TREC markup, plain or compressed, one after the other.

JSON lines of the iKAT organisers (`{"doc_id", "passage_id", "passage_text"}`, id = `doc_id:passage_id`), generic JSON
lines (`{"id", "contents" or "text"}`, optional `title` and `url`, other fields ignored), and TSV (`id<TAB>text` or
`id<TAB>text<TAB>title`, with or without a header line that begins with `id`), and markup (`indexes/corpora/trec_markup.py`).
"""

import bz2
import gzip
import io
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from indexes.corpora.trec_markup import NumberedItem, read_markup
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Passage
from schemas.wire import decode, utf8

FORMATS = {".jsonl": "json", ".json": "json", ".ndjson": "json", ".tsv": "tsv", ".xml": "markup", ".sgml": "markup"}
COMPRESSIONS = ("", ".gz", ".bz2", ".zst")
TOLD = 256  # lines between two looks at how far in a file they are: each is a call of the system
EXPECTED = (
    f"Expected {', '.join(FORMATS)}, plain or {', '.join(COMPRESSIONS[1:])}. Archives (.tar, .zip) are not unpacked."
)
LONGEST_LINE = 1 << 28  # bytes: a small archive can unpack to a line that no memory holds
Segmenter = Callable[[Passage], Iterable[Passage]]
Parse = Callable[[bytes, int], Passage | None]
Item = tuple[Path, int, Passage | str]  # file, line number and passage; where a line holds none, what is wrong with it


@dataclass(slots=True)
class Corpus:
    """Files in a fixed order, read as a stream. For progress: bytes on disk, and passages with what is not one."""

    files: tuple[Path, ...]
    bytes_total: int
    bytes_read: int = 0
    passages_read: int = 0
    skipped_files: tuple[Path, ...] = field(default=())
    cut: Segmenter | None = None  # documents into passages

    def __iter__(self) -> Iterator[Item]:
        """What the files hold, in their order."""
        done = 0
        for path in self.files:
            with open_file(path) as raw:
                for read, (number, found) in enumerate(_read(_lines(raw, path), _file_format(path))):
                    if read % TOLD == 0:
                        self.bytes_read = done + raw.tell()
                    for passage in (found,) if self.cut is None or isinstance(found, str) else self.cut(found):
                        self.passages_read += 1
                        yield path, number, passage
            done += path.stat().st_size
            self.bytes_read = done


def find_corpus(paths: Iterable[Path], cut: Segmenter | None = None) -> Corpus:
    """The passage files among `paths`; directories are searched, in name order. `cut` makes passages of documents.

    Raises `MissingError` for a path that is not there and `InvalidInputError` where no passage file is found.
    """
    files: list[Path] = []
    skipped: list[Path] = []
    for path in paths:
        if path.is_dir():
            for inside in sorted(p for p in path.rglob("*") if p.is_file()):
                (files if _file_format(inside) else skipped).append(inside)
        elif not path.exists():
            raise MissingError("no such file or directory", where=str(path))
        elif not _file_format(path):
            raise InvalidInputError("not a kind of passage file that can be read", where=str(path), remedy=EXPECTED)
        else:
            files.append(path)
    if not files:
        raise InvalidInputError("no passage file found", where=", ".join(map(str, paths)), remedy=EXPECTED)
    files = list(dict.fromkeys(files))
    size = sum(path.stat().st_size for path in files)
    return Corpus(tuple(files), size, skipped_files=tuple(skipped), cut=cut)


def _file_format(path: Path) -> str | None:
    name = path.name.lower()
    return next((kind for end, kind in FORMATS.items() for pack in COMPRESSIONS if name.endswith(end + pack)), None)


def open_file(path: Path) -> IO[bytes]:
    """A file to read from, or an error that names it."""
    try:
        return path.open("rb")
    except OSError as error:
        raise MissingError(f"cannot be read ({error.strerror})", where=str(path)) from error


def _lines(raw: IO[bytes], path: Path) -> Iterator[bytes]:
    """Lines of a possibly compressed file, without a byte order mark. A damaged archive is an error with its name."""
    import zstandard

    stream: Any = raw
    suffix = path.suffix.lower()
    if suffix == ".gz":
        stream = gzip.GzipFile(fileobj=raw)
    elif suffix == ".bz2":
        stream = bz2.BZ2File(raw)
    elif suffix == ".zst":
        frames = zstandard.ZstdDecompressor().stream_reader(raw, read_across_frames=True)
        stream = io.BufferedReader(cast("io.RawIOBase", frames), buffer_size=1 << 20)
    try:
        for number, line in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), start=1):
            if len(line) == LONGEST_LINE:
                raise InvalidInputError(f"a line of more than {LONGEST_LINE} bytes", where=f"{path}:{number}")
            yield bytes(utf8(line, str(path))) if number == 1 else line
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise InvalidInputError(f"cannot be read ({error})", where=str(path), remedy="Is it complete?") from error


def _read(lines: Iterable[bytes], kind: str | None) -> Iterator[NumberedItem]:
    if kind == "markup":
        yield from read_markup(lines)
        return
    parse = _parse_tsv if kind == "tsv" else _parse_json
    for number, line in enumerate(lines, start=1):
        if line.strip() and (found := _read_line(parse, line, number)) is not None:
            yield number, found


def _read_line(parse: Parse, line: bytes, number: int) -> Passage | str | None:
    try:
        passage = parse(line, number)
    except (msgspec.DecodeError, UnicodeDecodeError, _BadLineError) as error:
        return f"bad line: {error}"
    return f"passage {passage.id!r} has no text" if passage and not passage.text else passage


class _BadLineError(Exception):
    """A line that is well formed but no passage."""


class _Line(msgspec.Struct):
    """The union of the JSON shapes, told apart by which fields are there."""

    doc_id: str = ""
    passage_id: str | int = ""
    passage_text: str | None = None
    id: str | int = ""
    contents: str | None = None
    text: str | None = None
    title: str | None = None
    url: str | None = None


def _parse_json(line: bytes, _number: int) -> Passage:
    found = decode(line, _Line)
    if found.passage_text is not None:
        if not found.doc_id or found.passage_id == "":
            raise _BadLineError("`passage_text` without `doc_id` and `passage_id`")
        return Passage(f"{found.doc_id}:{found.passage_id}", found.passage_text.strip())
    text = found.contents if found.contents is not None else found.text
    if found.id == "" or text is None:
        raise _BadLineError("expected `id` with `contents` or `text`, or `doc_id`, `passage_id`, `passage_text`")
    return Passage(str(found.id), text.strip(), (found.title or "").strip(), (found.url or "").strip())


def _parse_tsv(line: bytes, number: int) -> Passage | None:
    columns = line.decode("utf-8").rstrip("\r\n").split("\t")
    if number == 1 and columns[0].lower() == "id":
        return None
    if len(columns) not in (2, 3) or not columns[0].strip():
        raise _BadLineError(f"expected id<TAB>text or id<TAB>text<TAB>title, found {len(columns)} columns")
    return Passage(columns[0].strip(), columns[1].strip(), columns[2].strip() if len(columns) == 3 else "")
