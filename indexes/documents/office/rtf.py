"""Rich text (.rtf) as passages, as plain text is read; pictures in it are left out before."""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from indexes.documents.chunking import Block, Line, chunk_sections
from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.formats.block_building import format_table
from indexes.documents.formats.libraries import explain_faults, load_library
from indexes.documents.formats.plain_text import read_text_blocks
from schemas.errors import InvalidInputError

KIND = "rich text file"
MAX_MARKUP_CHARACTERS = 10_000_000  # without pictures
MAX_FONT_CHARACTERS = 50_000  # of the table of fonts: it is read in time that grows with its square
_PICTURE = re.compile(r"[0-9a-fA-F\r\n]{500,}")
_FIELD = re.compile(r"(?=\{\\field)")
_END = re.compile(r"\n(?!\s*[-*•–·])")  # of a paragraph; the items of a list stay together
_LINK = re.compile("hyperlink", re.IGNORECASE)


def chunk_rtf(data: bytes) -> ChunkedDocument:
    """No title, and the passages, whose places are paragraphs, or the first line where it stands alone as a heading.

    Raises `InvalidInputError` for what is no rich text, is broken, or is too long.
    """
    if not data.lstrip().startswith(b"{\\rtf"):
        raise InvalidInputError(f"is no {KIND}, whatever its name says")
    striprtf = load_library("striprtf.striprtf")
    markup = _PICTURE.sub("", data.decode("latin-1"))
    with explain_faults(KIND):
        if len(markup) > MAX_MARKUP_CHARACTERS or len(striprtf.font_table_group(markup)) > MAX_FONT_CHARACTERS:
            raise InvalidInputError(f"is a {KIND} that is too long; cut it into several files to have it read")
        # links as other fields, each on a line: the library looks for them in time that grows with a line's square
        text = striprtf.rtf_to_text(_LINK.sub("LINK", _FIELD.sub("\n", markup)), errors="replace")
    return ChunkedDocument(chunks=tuple(chunk_sections(_read_blocks(text))))


def _read_blocks(text: str) -> Iterator[Block]:
    """The text between tables as plain text is read, and the tables: each cell ends with a stroke."""
    headings: tuple[str, ...] = ()
    for is_table, lines in groupby(text.split("\n"), key=lambda line: line.rstrip().endswith("|")):
        if is_table:
            rows = [[Line(1, cell.strip()) for cell in line.rstrip().removesuffix("|").split("|")] for line in lines]
            yield Block(tuple(format_table(rows)), headings, prose=False)
        else:
            for block in read_text_blocks(_END.sub("\n\n", "\n".join(lines))):
                headings = block.headings or headings
                yield replace(block, headings=headings)


RTF = DocumentReader((".rtf",), chunk_rtf)
