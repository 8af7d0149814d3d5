"""What readers of documents share: what they return, how they decode text, and the libraries that only some need.

`reading.py` lists the readers. Text is decoded as UTF-8, as its byte order mark says, or by a guess, which is told.
"""

import codecs
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from indexes.documents.chunking import Chunk
from schemas.errors import ConvagentError, InvalidInputError, MissingError, list_with_limit

MAX_NOTES = 5  # notes on the same oddity in one file


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    title: str = ""  # what the document calls itself, or ""
    chunks: tuple[Chunk, ...] = ()
    notes: tuple[str, ...] = ()  # oddities that the user is told
    lacks_ocr: bool = False  # whether more would be read if Tesseract were installed


# Bytes (never none) to chunks. Raises `InvalidInputError` where they cannot be read, and `MissingError` where a library
# for them is not installed; the error's text is the reason given.
ReadDocument = Callable[[bytes], ChunkedDocument]
# Text to a title, or "", and chunks; oddities are added to the list of notes.
ChunkText = Callable[[str, list[str]], tuple[str, Iterable[Chunk]]]


def read_as_text(chunk_text: ChunkText) -> ReadDocument:
    """The reading function of a type whose files are text: it decodes them and has `chunk_text` cut them."""

    def read(data: bytes) -> ChunkedDocument:
        text, guessed = decode_text(data)
        notes = [f"is not UTF-8; read as {guessed}, which is a guess"] if guessed else []
        title, chunks = chunk_text(text, notes) if text.strip() else ("", ())
        return ChunkedDocument(title, tuple(chunks), tuple(notes))  # chunking may add notes

    return read


def limit_notes(notes: Sequence[str], what: str) -> list[str]:
    """The first few notes on an oddity, and how many more there were: "7 further lines are broken JSON"."""
    return list_with_limit(notes, MAX_NOTES, f"{{}} further {what}")


BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),  # after those of UTF-32, which begin with the same bytes
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings that are guessed; among equally likely ones, the first is taken.
GUESSED_ENCODINGS = ["cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp932", "euc_jp", "gb18030", "big5", "euc_kr"]
SAMPLE_BYTES = 200_000  # that a guess is made from
MAX_CONTROL_SHARE = 0.01  # of control characters; a file with more is no text
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def decode_text(data: bytes) -> tuple[str, str]:
    """The text, with `\\n` at its line ends, and the name of the encoding if it was guessed, else "".

    Raises `InvalidInputError` where the bytes are no text.
    """
    text, guessed = _decode_bytes(data)
    sample = text[:SAMPLE_BYTES]
    if "\0" in text or len(_CONTROL.findall(sample)) > MAX_CONTROL_SHARE * len(sample):
        raise InvalidInputError("is no text, whatever its name says")
    return text.replace("\r\n", "\n").replace("\r", "\n"), guessed


def _decode_bytes(data: bytes) -> tuple[str, str]:
    encoding = next((encoding for mark, encoding in BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding), ""
    except UnicodeDecodeError as error:
        if encoding != "utf-8" or b"\0" in data:
            raise InvalidInputError("is no text, whatever its name says") from error
    from charset_normalizer import from_bytes

    found = from_bytes(data[:SAMPLE_BYTES], cp_isolation=GUESSED_ENCODINGS)
    if not found:
        raise InvalidInputError("is text in no encoding that is known here, or no text")
    best = min(found, key=lambda match: (match.chaos, -match.coherence, GUESSED_ENCODINGS.index(match.encoding)))
    return data.decode(best.encoding, "replace"), best.encoding


INSTALL = "pip install 'convagent[documents]'"
MAX_ERROR_CHARACTERS = 200  # of a library's own words
DECLARES_ENTITIES = "declares XML entities, which are not expanded"  # which may make it grow, or ask for other files


def load_library(name: str) -> Any:
    """A module of the extra `documents`. Raises `MissingError`, without where, if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingError(f"cannot be read without {name.partition('.')[0]}; install it: {INSTALL}") from error


@contextmanager
def explain_faults(kind: str) -> Iterator[None]:
    """Around a block or a function, what a library raises for broken bytes becomes "is a broken `kind`".

    It becomes an `InvalidInputError`: what libraries raise has no common base. Their warnings are not shown.
    """
    from defusedxml import DefusedXmlException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ConvagentError, MemoryError):
        raise
    except DefusedXmlException as error:
        raise InvalidInputError(DECLARES_ENTITIES) from error
    except RecursionError as error:
        raise InvalidInputError("is nested too deeply") from error
    except Exception as error:
        what = " ".join(str(error).split())[:MAX_ERROR_CHARACTERS] or type(error).__name__
        raise InvalidInputError(f"is a broken {kind} ({what})") from error
