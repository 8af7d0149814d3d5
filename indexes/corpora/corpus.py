"""Streams of passages from files of JSON lines, TSV and TREC markup, plain or compressed, and from those of args.me.

JSON lines of the iKAT organisers (`{"doc_id", "passage_id", "passage_text"}`, id = `doc_id:passage_id`), generic JSON
lines (`{"id", "contents" or "text"}`, optional `title` and `url`, other fields ignored), TSV (`id<TAB>text` or
`id<TAB>text<TAB>title`, with or without a header line that begins with `id`), and TREC markup (`<DOC>`, `<DOCNO>`).

The corpus of args.me (Ajjour et al. 2019; one JSON file of gigabytes a debate portal, or all in one):

    {"arguments": [{"id": "f62beb77-2019-04-18T11:00:00Z-00000-000", "conclusion": "School uniforms save money",
                    "premises": [{"text": "A uniform is worn for a year ...", "stance": "PRO"}], "context": {...}}]}

Each argument is a passage: its conclusion is the title, its premises are the text. The context is dropped.
"""

import bz2
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec

from indexes.storage.files import open_to_read
from indexes.text.analysis import ENGLISH
from indexes.text.control_characters import TolerantHtmlParser
from indexes.text.sentences import cut_into_windows
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Passage
from schemas.wire import decode, utf8

NumberedItem = tuple[int, Passage | str]  # a line number, and the passage or what is wrong there


# The fields of markup, each with those that end where it begins.
FIELDS = {"doc": ("docno", "title", "pno"), "docno": ("docno", "title"), "title": ("title",), "p": ("p",)}


class _MarkupParser(TolerantHtmlParser):
    """Collects passages. A tag that opens a field ends the field before it; text outside fields is dropped.

    Other tags are dropped, but not the text in them. A paragraph's number is its attribute, or a <pno> in it or before.
    """

    def __init__(self) -> None:
        super().__init__()
        self.items: list[NumberedItem] = []
        self._texts: dict[str, list[str]] = {"docno": [], "title": [], "pno": [], "p": []}
        self._field, self._is_number, self._line = "", False, 0

    def set_cdata_mode(self, elem: str, **_: Any) -> None:
        """Do nothing: here no tag holds only text, as the `title` of HTML does."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._is_number = tag == "pno"
        if tag in FIELDS:
            self._finish_field()
            self._field, self._line = tag, self.getpos()[0]
            for field in FIELDS[tag]:
                self._texts[field].clear()
        number = dict(attrs).get("pno") if tag == "p" else None
        if number or self._is_number:
            self._texts["pno"] = [number or ""]

    def handle_endtag(self, tag: str) -> None:
        self._is_number = False
        if tag in ("doc", self._field):
            self._finish_field()

    def handle_data(self, data: str) -> None:
        if (field := "pno" if self._is_number else self._field) in self._texts:
            self._texts[field].append(data)

    def close(self) -> None:
        super().close()
        self._finish_field()

    def _finish_field(self) -> None:
        if self._field == "p":
            self.items.append((self._line, self._to_passage()))
            self._texts["pno"].clear()
        self._field = ""

    def _to_passage(self) -> Passage | str:
        docno, title, pno, text = (" ".join("".join(texts).split()) for texts in self._texts.values())
        docno = docno or pno.rpartition("-")[0]
        if not docno or not pno:
            return "bad passage: expected <docno> before it, and <p pno=...> or <pno>"
        id = pno if pno.startswith(f"{docno}-") else f"{docno}-{pno}"
        return Passage(id, text, title) if text else f"passage {id!r} has no text"


FORMATS = {".jsonl": "json", ".json": "json", ".ndjson": "json", ".tsv": "tsv", ".xml": "markup", ".sgml": "markup"}
COMPRESSIONS = ("", ".gz", ".bz2", ".zst")
PROGRESS_PASSAGES = 256  # between two updates of `bytes_read`, each of which is a system call
EXPECTED = (
    f"Expected {', '.join(FORMATS)}, plain or {', '.join(COMPRESSIONS[1:])}. Archives (.tar, .zip) are not unpacked."
)
MAX_LINE_BYTES = 1 << 28  # a small archive can unpack to a line that does not fit into memory
Item = tuple[Path, int, Passage | str]  # file, line number, and the passage or what is wrong with the line


@dataclass(slots=True)
class Corpus:
    """Files in a fixed order, read as a stream."""

    files: tuple[Path, ...]
    bytes_total: int  # on disk
    bytes_read: int = 0  # so far, for progress
    passages_read: int = 0  # so far, with lines that hold none
    skipped_files: tuple[Path, ...] = ()
    segment: bool = False  # whether these are documents, to be cut into passages
    languages: tuple[str, ...] = (ENGLISH,)  # of the passages, each of which has its own

    def __iter__(self) -> Iterator[Item]:
        """The passages of all files in order, and what is wrong with lines that hold none."""
        done = 0
        for path in self.files:
            with open_to_read(path) as raw:
                for number, passage in self._read_file(raw, path):
                    if self.passages_read % PROGRESS_PASSAGES == 0:
                        self.bytes_read = done + raw.tell()
                    self.passages_read += 1
                    yield path, number, passage
            done += path.stat().st_size
            self.bytes_read = done

    def _read_file(self, raw: IO[bytes], path: Path) -> Iterator[NumberedItem]:
        for number, found in _read_items(_read_lines(raw, path), _find_format(path)):
            cut = cut_into_windows(found) if self.segment and isinstance(found, Passage) else (found,)
            yield from ((number, passage) for passage in cut)


def find_corpus(paths: Iterable[Path], *, segment: bool = False) -> Corpus:
    """The passage files among `paths`; directories are searched, in name order; `segment` if they are to be cut.

    Raises `MissingError` for a path that is not there and `InvalidInputError` where no passage file is found.
    """
    files: list[Path] = []
    skipped: list[Path] = []
    for path in paths:
        if path.is_dir():
            for inside in sorted(p for p in path.rglob("*") if p.is_file()):
                (files if _find_format(inside) else skipped).append(inside)
        elif not path.exists():
            raise MissingError("no such file or directory", where=str(path))
        elif not _find_format(path):
            raise InvalidInputError("not a kind of passage file that can be read", where=str(path), remedy=EXPECTED)
        else:
            files.append(path)
    if not files:
        raise InvalidInputError("no passage file found", where=", ".join(map(str, paths)), remedy=EXPECTED)
    files = list(dict.fromkeys(files))
    size = sum(path.stat().st_size for path in files)
    return Corpus(tuple(files), size, skipped_files=tuple(skipped), segment=segment)


def _find_format(path: Path) -> str | None:
    name = path.name.lower()
    return next((format for end, format in FORMATS.items() for pack in COMPRESSIONS if name.endswith(end + pack)), None)


def _read_lines(raw: IO[bytes], path: Path) -> Iterator[bytes]:
    """Lines of a file that may be compressed, without a byte order mark. Raises `InvalidInputError`."""
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
        for number, line in enumerate(iter(lambda: stream.readline(MAX_LINE_BYTES), b""), start=1):
            if len(line) == MAX_LINE_BYTES:
                raise InvalidInputError(f"a line of more than {MAX_LINE_BYTES} bytes", where=f"{path}:{number}")
            yield bytes(utf8(line, str(path))) if number == 1 else line
    except (OSError, EOFError, zlib.error, zstandard.ZstdError) as error:
        raise InvalidInputError(f"cannot be read ({error})", where=str(path), remedy="Is it complete?") from error


def _read_items(lines: Iterable[bytes], format: str | None) -> Iterator[NumberedItem]:
    if format == "markup":
        yield from _read_markup(lines)
        return
    parse = _parse_tsv if format == "tsv" else _parse_json
    for number, line in enumerate(lines, start=1):
        try:
            passage = parse(line, number) if line.strip() else None
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            yield number, f"bad line: {error}"
        else:
            if passage:
                yield number, passage if passage.text else f"passage {passage.id!r} has no text"


def _read_markup(lines: Iterable[bytes]) -> Iterator[NumberedItem]:
    parser = _MarkupParser()
    for line in lines:
        try:
            parser.feed(line.decode("utf-8", "replace"))
        except InvalidInputError as error:
            parser.items.append((parser.getpos()[0], f"{error.what}: nothing can be read from here on"))
            break
        yield from parser.items
        parser.items.clear()
    else:
        parser.close()
    yield from parser.items


class _JsonLine(msgspec.Struct):
    """All fields of both kinds of JSON lines. Which are there shows which kind a line is."""

    doc_id: str = ""
    passage_id: str | int = ""
    passage_text: str | None = None
    id: str | int = ""
    contents: str | None = None
    text: str | None = None
    title: str | None = None
    url: str | None = None


def _parse_json(line: bytes, _number: int) -> Passage:
    found = decode(line, _JsonLine)
    if found.passage_text is not None:
        if not found.doc_id or found.passage_id == "":
            raise msgspec.ValidationError("`passage_text` without `doc_id` and `passage_id`")
        return Passage(f"{found.doc_id}:{found.passage_id}", found.passage_text.strip())
    text = found.contents if found.contents is not None else found.text
    if found.id == "" or text is None:
        raise msgspec.ValidationError(
            "expected `id` with `contents` or `text`, or `doc_id`, `passage_id`, `passage_text`"
        )
    return Passage(str(found.id), text.strip(), (found.title or "").strip(), (found.url or "").strip())


def _parse_tsv(line: bytes, number: int) -> Passage | None:
    columns = line.decode("utf-8").rstrip("\r\n").split("\t")
    if number == 1 and columns[0].lower() == "id":
        return None
    if len(columns) not in (2, 3) or not columns[0].strip():
        raise msgspec.ValidationError(f"expected id<TAB>text or id<TAB>text<TAB>title, found {len(columns)} columns")
    id, text, title = (column.strip() for column in (*columns, "")[:3])
    return Passage(id, text, title)


MAX_DEPTH = 10_000  # brackets of an argument that are open at a time
MAX_DIGITS = 2000  # of a number in one block; one of 4,300 digits in two blocks has more in one of them
DIGITS = re.compile(rb"\d\d")
LONG_NUMBER = re.compile(rb"(?:\A|[:,\[]\s*-?)\d{%d}" % MAX_DIGITS)


class ArgumentCorpus(Corpus):
    """Files of args.me as a corpus. Its items have the numbers of arguments (from 1), not of lines."""

    def _read_file(self, raw: IO[bytes], path: Path) -> Iterator[NumberedItem]:
        import ijson

        number, guarded = 0, _GuardedFile(raw)
        try:
            for number, found in enumerate(ijson.items(guarded, "arguments.item"), start=1):
                guarded.depth = 0
                yield number, _to_passage(found, number)
            if not number:
                yield number, "holds no list `arguments`, or an empty one"
        except (ijson.JSONError, ValueError):  # broken text, and numbers beyond all bounds
            yield number + 1, "broken JSON, or not the whole file: nothing can be read from here on"


def find_arguments(directory: Path) -> ArgumentCorpus:
    """The files of args.me in a directory: all `.json` files, in name order.

    Raises `MissingError` where there is no such directory and `InvalidInputError` where it holds no such file.
    """
    if not directory.is_dir():
        raise MissingError("no such directory", where=str(directory))
    files = tuple(sorted(path for path in directory.glob("*.json") if path.is_file()))
    if not files:
        remedy = "Expected files of args.me, unpacked: debateorg.json, idebate.json, ... or args-me.json."
        raise InvalidInputError("holds no .json file of a debate portal", where=str(directory), remedy=remedy)
    return ArgumentCorpus(files, sum(path.stat().st_size for path in files))


class _GuardedFile:
    """A file that keeps back what crashes the C library that reads it: 100,000 open brackets, a number of 4,300 digits.

    A block with either is not passed on at all: reading it raises `ValueError`. Brackets in texts are counted too, so
    set `depth` to 0 after each argument.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self.depth = raw, 0

    def read(self, size: int = -1) -> bytes:
        data = self._raw.read(size)
        self.depth += data.count(b"[") + data.count(b"{") - data.count(b"]") - data.count(b"}")
        may_be_long = DIGITS.search(data[:: MAX_DIGITS // 2])  # few bytes tell of most blocks
        if self.depth > MAX_DEPTH or (may_be_long and LONG_NUMBER.search(data)):
            raise ValueError("it would crash the parser")
        return data


class _Premise(msgspec.Struct):
    text: str = ""


class _Argument(msgspec.Struct):
    id: str
    conclusion: str = ""
    premises: list[_Premise] = []


def _to_passage(found: Any, number: int) -> Passage | str:
    try:
        argument = msgspec.convert(found, _Argument)
    except msgspec.ValidationError as error:
        return f"argument {number} is not in the format of args.me: {error}"
    if not argument.id or argument.id.split() != [argument.id]:
        return f"argument {number} has an id that a run cannot name: {argument.id!r}"
    text = "\n".join(premise.text.strip() for premise in argument.premises).strip()
    return Passage(argument.id, text, argument.conclusion.strip()) if text else f"argument {argument.id} has no premise"
