"""What a reader of one document type is: the suffixes it reads, and how it turns a file's bytes into chunks.

`readers.py` lists them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from indexes.documents.chunking import Chunk
from indexes.documents.formats.decoding import decode_text
from indexes.text.segmentation import SentenceSplitter

MAX_TEXT_BYTES = 50_000_000  # of a text file; a larger one is left out
MAX_NOTES = 5  # notes on the same oddity in one file


@dataclass(frozen=True, slots=True)
class ChunkedDocument:
    """What a reader found in a document."""

    title: str = ""  # what the document calls itself, or ""
    chunks: tuple[Chunk, ...] = ()
    notes: tuple[str, ...] = ()  # oddities that the user is told
    lacks_ocr: bool = False  # whether more would be read if Tesseract were installed


# Bytes (never none) to chunks. Raises `InvalidInputError` where they cannot be read, and `MissingError` where a library
# for them is not installed; the error's text is the reason given.
ReadDocument = Callable[[bytes, SentenceSplitter], ChunkedDocument]
# Text to a title, or "", and chunks; oddities are added to the list of notes.
ChunkText = Callable[[str, SentenceSplitter, list[str]], tuple[str, Iterable[Chunk]]]


def omit_fragment(_place: str) -> str:
    """The default fragment: none. Most viewers can open a file but not go to a place in it."""
    return ""


@dataclass(frozen=True, slots=True)
class DocumentReader:
    """One document type."""

    suffixes: tuple[str, ...]  # of its files, in lower case, with the dot
    read: ReadDocument
    max_bytes: int = MAX_TEXT_BYTES
    is_data: bool = False  # whether passages are titled with the file's name even where they have headings
    place_fragment: Callable[[str], str] = omit_fragment  # a chunk's place as the fragment of its file's URI: "#page=3"


def read_as_text(chunk_text: ChunkText) -> ReadDocument:
    """The reading function of a type whose files are text: it decodes them and has `chunk_text` cut them."""
    return partial(_decode_and_chunk, chunk_text)


def _decode_and_chunk(chunk_text: ChunkText, data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    text, guessed = decode_text(data)
    notes = [f"is not UTF-8; read as {guessed}, which is a guess"] if guessed else []
    if not text.strip():
        return ChunkedDocument(notes=tuple(notes))
    title, chunks = chunk_text(text, split, notes)
    found = tuple(chunks)  # may add notes
    return ChunkedDocument(title, found, tuple(notes))


class RepeatedNote:
    """Notes on an oddity that many lines may have: the first few one by one, then the number of the others."""

    def __init__(self, notes: list[str], what: str) -> None:
        """`what` says of the others what they are: "lines are broken JSON"."""
        self._notes, self._what, self._count = notes, what, 0

    def add(self, note: str) -> None:
        """Count one, and note it if it is among the first."""
        self._count += 1
        if self._count <= MAX_NOTES:
            self._notes.append(note)

    def add_rest(self) -> None:
        """Note how many more there were."""
        if self._count > MAX_NOTES:
            self._notes.append(f"{self._count - MAX_NOTES} further {self._what}")
