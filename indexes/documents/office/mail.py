"""Messages (.eml) and mailboxes (.mbox) as passages: who wrote when to whom, then the text.

Attachments are named and not opened. A passage's title is the subject with date and sender; what is quoted from another
message comes last, below "quoted". A place in a mailbox is the number of a message: `message3`.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC
from email import message_from_bytes
from email.errors import MessageError
from email.header import decode_header, make_header
from email.message import Message
from email.utils import getaddresses, parsedate_to_datetime
from itertools import groupby, islice

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, format_row
from indexes.documents.document_reader import ChunkedDocument, decode_text, explain_faults, limit_notes
from indexes.documents.formats.markup import read_html_blocks
from indexes.documents.formats.plain_text import read_text_blocks
from schemas.errors import InvalidInputError

QUOTED = "quoted"  # the heading of what a message quotes from another
MAX_HEADER_CHARACTERS = 5_000  # of a field; the rest is left out
MAX_NAMES = 20  # people and attachments that are named
MAX_PARTS = 1_000
NO_TEXT_ENCODINGS = {"idna", "punycode"}  # of names of hosts; they take long with a long text
_ENCODED_WORD = r"=\?[^?\s]{1,100}\?[bqBQ]\?[^?\n]*\?="
_ENCODED_WORDS = re.compile(rf"{_ENCODED_WORD}(?:\s*{_ENCODED_WORD})*")
_QUOTE = re.compile(r"^[ \t]*(?:>[ \t]?)+", re.MULTILINE)


@explain_faults("message")
def chunk_message(data: bytes, place: str) -> Iterator[Chunk]:
    """The passages of a message, all of one place. Raises `InvalidInputError` for a message that cannot be read."""
    message = message_from_bytes(data)
    parts = list(islice(_walk_parts(message), MAX_PARTS))
    attached = [part for part in parts if _is_attachment(part)]
    names = [" ".join(str(part.get_filename() or part.get_content_type()).split()) for part in attached]
    shown_date, date = _read_date(message)
    heading, described = _describe_message(message, shown_date, names[:MAX_NAMES])
    blocks = [described, *_read_body([part for part in parts if part not in attached])]
    headed = [replace(block, headings=(heading, *block.headings), heading_line=0) for block in blocks]
    return (replace(chunk, date=date) for chunk in chunk_blocks(headed, place))


def chunk_eml(data: bytes) -> ChunkedDocument:
    return ChunkedDocument(chunks=tuple(chunk_message(data, "message")))


def _describe_message(message: Message, date: str, attachments: Sequence[str]) -> tuple[str, Block]:
    """The heading, `The keys (2 March 2025, from Ida Berg)`, as far as these are known; and what a mail program shows
    above the text, as a row of a table."""
    subject, senders = _read_field(message, "Subject"), _read_people(message, "From")
    details = ", ".join(filter(None, (date, *(f"from {sender}" for sender in senders[:1]))))
    fields = {
        "from": ", ".join(senders),
        "to": ", ".join([*_read_people(message, "To"), *_read_people(message, "Cc")][:MAX_NAMES]),
        "date": date,
        "subject": subject,
        "attachments": ", ".join(attachments),
    }
    plain = [value.replace(";", ",") for value in fields.values()]
    heading = f"{subject or 'Message'}{f' ({details})' if details else ''}"
    return heading, Block((Line(1, format_row(list(fields), plain)),), prose=False)


def _read_field(message: Message, name: str) -> str:
    """A field of the header with its encoded words decoded, or "".

    Bytes beyond ASCII, which RFC 6532 allows and the parser keeps as surrogates, are UTF-8, or else a guess.
    """
    value = next((value for key, value in message.raw_items() if key.lower() == name.lower()), "")
    raw = decode_text(str(value)[:MAX_HEADER_CHARACTERS].encode("utf-8", "surrogateescape"))[0]
    return " ".join(_ENCODED_WORDS.sub(_decode_words, raw).split())


def _decode_words(found: re.Match[str]) -> str:
    try:
        return str(make_header(decode_header(found[0])))
    except (LookupError, ValueError, MessageError):  # no such encoding, or other bytes than it has
        return found[0]


def _read_people(message: Message, name: str) -> list[str]:
    """The names in a field, or where there is none the addresses."""
    return [person or address for person, address in getaddresses([_read_field(message, name)]) if person or address]


def _read_date(message: Message) -> tuple[str, str]:
    """The day as it is shown, and the moment in UTC, by which messages from anywhere are in order; or "".

    `2 March 2025` and `2025-03-02T08:30:00+00:00`.
    """
    shown = ""
    try:
        date = parsedate_to_datetime(str(message.get("Date", ""))[:MAX_HEADER_CHARACTERS])
        shown = f"{date.day} {date:%B %Y}"
        return shown, date.replace(tzinfo=date.tzinfo or UTC).astimezone(UTC).isoformat(timespec="seconds")
    except (ValueError, TypeError, OverflowError):  # the last one also in the first or the last year that there is
        return shown, ""


def _walk_parts(message: Message) -> Iterator[Message]:
    """The parts that hold no others. A whole message that is sent along is one part."""
    held = message.get_payload()
    if message.get_content_maintype() == "multipart" and isinstance(held, list):
        for part in held:
            if isinstance(part, Message):
                yield from _walk_parts(part)
    else:
        yield message


def _is_attachment(part: Message) -> bool:
    return part.get_content_disposition() == "attachment" or part.get_content_type() not in ("text/plain", "text/html")


def _read_body(parts: Sequence[Message]) -> Iterator[Block]:
    """The plain text, or where there is none the text of the web page."""
    plain = [part for part in parts if part.get_content_type() == "text/plain"]
    for part in plain or parts:
        text = _decode_part(part)
        yield from _read_plain_text(text) if plain else read_html_blocks(text)[1]


def _decode_part(part: Message) -> str:
    """The text in the encoding that the part names, or else by a guess."""
    payload = part.get_payload(decode=True)
    data = payload if isinstance(payload, bytes) else b""
    encoding = part.get_content_charset() or "utf-8"
    try:
        return data.decode("utf-8" if encoding in NO_TEXT_ENCODINGS else encoding).replace("\r\n", "\n")
    except (LookupError, ValueError):
        return decode_text(data)[0]


def _read_plain_text(text: str) -> Iterator[Block]:
    """Its own paragraphs, then those with a `>` before each line, below a heading that says so."""
    lines = groupby(text.split("\n"), key=lambda line: bool(_QUOTE.match(line)))
    runs = [(quoted, "\n".join(run)) for quoted, run in lines]
    yield from (block for quoted, run in runs if not quoted for block in read_text_blocks(run, headed=False))
    for run in (_QUOTE.sub("", run) for quoted, run in runs if quoted):
        yield from (replace(block, headings=(QUOTED, *block.headings)) for block in read_text_blocks(run, headed=False))


MAX_MESSAGES = 20_000  # the rest is left out
# A line that begins with "From " and ends with a year, below an empty line.
_START = re.compile(rb"(?:\A|(?<=\n)\r?\n)From [^\n]*\d{4}\r?\n")
_ESCAPED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)


def chunk_mbox(data: bytes) -> ChunkedDocument:
    """The passages of a mailbox; messages that cannot be read become notes.

    Raises `InvalidInputError` for what is no mailbox.
    """
    if not _START.match(data):
        raise InvalidInputError("is no mailbox, whatever its name says")
    notes: list[str] = []
    return ChunkedDocument(chunks=tuple(_chunk_messages(data, notes)), notes=tuple(notes))


def _chunk_messages(data: bytes, notes: list[str]) -> Iterator[Chunk]:
    unread: list[str] = []
    for number, message in enumerate(_START.split(data, MAX_MESSAGES + 1)[1:], start=1):
        if number > MAX_MESSAGES:
            notes.append(f"only its first {MAX_MESSAGES:,} messages are read")
            break
        try:
            yield from chunk_message(_ESCAPED_FROM.sub(rb"\1", message), f"message{number}")
        except InvalidInputError as error:
            unread.append(f"message {number} {error.what}")
    notes += limit_notes(unread, "messages cannot be read")
