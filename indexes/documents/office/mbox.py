"""Mailboxes of many messages in one file (.mbox) as passages. A place is the number of a message: `message3`."""

import re
from collections.abc import Iterator

from indexes.documents.chunking import Chunk
from indexes.documents.document_reader import ChunkedDocument, DocumentReader, RepeatedNote
from indexes.documents.office.mail import chunk_message
from indexes.text.segmentation import SentenceSplitter
from schemas.errors import InvalidInputError

MAX_MAILBOX_BYTES = 200_000_000  # of a file; a larger one is left out
MAX_MESSAGES = 20_000  # the rest is left out
_START = re.compile(rb"(?:\A|\n\r?\n)From [^\n]*\d{4}\r?\n")
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


def chunk_mbox(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The passages of a mailbox; messages that cannot be read become notes.

    Raises `InvalidInputError` for what is no mailbox.
    """
    if not _START.match(data):
        raise InvalidInputError("is no mailbox, whatever its name says")
    notes: list[str] = []
    return ChunkedDocument(chunks=tuple(_chunk_messages(data, split, notes)), notes=tuple(notes))


def _chunk_messages(data: bytes, split: SentenceSplitter, notes: list[str]) -> Iterator[Chunk]:
    unread = RepeatedNote(notes, "messages cannot be read")
    for number, message in enumerate(_split_messages(data), start=1):
        if number > MAX_MESSAGES:
            notes.append(f"only its first {MAX_MESSAGES:,} messages are read")
            break
        try:
            yield from chunk_message(_ESCAPED_FROM.sub(rb"\1", message), f"message{number}", split)
        except InvalidInputError as error:
            unread.add(f"message {number} {error.what}")
    unread.add_rest()


def _split_messages(data: bytes) -> Iterator[bytes]:
    """What stands between the lines that begin with "From " and end with a year, each below an empty line."""
    starts = _START.finditer(data)
    begin = next(starts).end()
    for start in starts:
        yield data[begin : start.start() + 1]
        begin = start.end()
    yield data[begin:]


READER = DocumentReader((".mbox",), chunk_mbox, max_bytes=MAX_MAILBOX_BYTES)
