"""Word files (.docx) and rich text (.rtf) as passages.

Footnotes come last; comments, deleted text, headers, footers and pictures are left out. Rich text is read as plain text
is.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

from indexes.documents.chunking import NOTES, Block, Line, chunk_sections, format_table
from indexes.documents.document_reader import ChunkedDocument, explain_faults, load_library
from indexes.documents.formats.html import read_html_blocks
from indexes.documents.formats.plain_text import read_text_blocks
from indexes.documents.office.archives import Archive
from schemas.errors import InvalidInputError

WORD = "Word file"
MAX_MARKUP_BYTES = 20_000_000  # of its parts with text, unpacked: some thousand pages, which take a minute
_STYLES = "\n".join(
    [
        "p[style-name='Title'] => h1:fresh",
        *(f"p[style-name='Heading {level}'] => h{min(level + 1, 6)}:fresh" for level in range(1, 7)),
    ]
)
_LOOKS = ("word/theme/", "word/fontTable", "word/webSettings")  # parts that only say how things look
_REFERENCE = re.compile(r'<sup><a href="#(?:foot|end)note-\d+" id="(?:foot|end)note-ref-\d+">\[\d+\]</a></sup>')
_FIRST_NOTE = re.compile(r'<ol>(?=<li id="(?:foot|end)note-\d+">)')
_BACK = re.compile(r'<a href="#(?:foot|end)note-ref-\d+">↑</a>')


def chunk_docx(data: bytes) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are headings. Raises what `Archive` raises."""
    archive = Archive(data, WORD, MAX_MARKUP_BYTES)
    mammoth = load_library("mammoth")
    title = archive.read_title("docProps/core.xml")
    with explain_faults(WORD):
        made = mammoth.convert_to_html(
            archive.repack(_LOOKS), style_map=_STYLES, convert_image=lambda _image: [], external_file_access=False
        )
        notes_apart = _FIRST_NOTE.sub(f"<h2>{NOTES}</h2><ol>", _BACK.sub("", _REFERENCE.sub("", made.value)))
        _, blocks = read_html_blocks(notes_apart)
    return ChunkedDocument(title, tuple(chunk_sections(blocks)))


RICH_TEXT = "rich text file"
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
        raise InvalidInputError(f"is no {RICH_TEXT}, whatever its name says")
    striprtf = load_library("striprtf.striprtf")
    markup = _PICTURE.sub("", data.decode("latin-1"))
    with explain_faults(RICH_TEXT):
        if len(markup) > MAX_MARKUP_CHARACTERS or len(striprtf.font_table_group(markup)) > MAX_FONT_CHARACTERS:
            raise InvalidInputError(f"is a {RICH_TEXT} that is too long; cut it into several files to have it read")
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
