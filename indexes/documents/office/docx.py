"""Word files (.docx) as passages. Footnotes come last; comments, deleted text, headers and footers are left out."""

import re

from indexes.documents.chunking import NOTES, chunk_sections
from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.formats.html import read_html_blocks
from indexes.documents.formats.libraries import explain_faults, load_library
from indexes.documents.office.archives import MAX_ARCHIVE_BYTES, Archive

KIND = "Word file"
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
    archive = Archive(data, KIND, MAX_MARKUP_BYTES)
    mammoth = load_library("mammoth")
    title = archive.read_title("docProps/core.xml")
    with explain_faults(KIND):
        made = mammoth.convert_to_html(
            archive.repack(_LOOKS), style_map=_STYLES, convert_image=lambda _image: [], external_file_access=False
        )
        notes_apart = _FIRST_NOTE.sub(f"<h2>{NOTES}</h2><ol>", _BACK.sub("", _REFERENCE.sub("", made.value)))
        _, blocks = read_html_blocks(notes_apart)
    return ChunkedDocument(title, tuple(chunk_sections(blocks)))


DOCX = DocumentReader((".docx",), chunk_docx, max_bytes=MAX_ARCHIVE_BYTES)
