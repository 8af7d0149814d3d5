"""OpenDocument texts (.odt) as passages. Footnotes come last; deleted text, comments and tables of contents do not."""

from collections.abc import Iterator
from typing import Any

from indexes.documents.block_building import Outline
from indexes.documents.chunking import Block, Line
from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.libraries import explain_faults
from indexes.documents.office.archives import MAX_ARCHIVE_BYTES
from indexes.documents.office.open_document import (
    LEFT_OUT,
    PARAGRAPHS,
    TABLE,
    TEXT,
    find_outermost,
    find_parents,
    open_content,
    read_paragraphs,
    read_table,
    read_text,
)
from indexes.documents.office.sections import NOTES, chunk_sections
from indexes.text.segmentation import SentenceSplitter

KIND = "OpenDocument text"
TITLE_STYLES = ("Title",)
_INDEXES = {f"{TEXT}{name}-index" for name in ("alphabetical", "illustration", "object", "table", "user")}
_LEFT_OUT = {*LEFT_OUT, *_INDEXES, f"{TEXT}table-of-content", f"{TEXT}bibliography"}
_PARTS = {*PARAGRAPHS, f"{TEXT}list", f"{TABLE}table"}


def chunk_odt(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are headings. Raises as `open_content` does."""
    title, root, body = open_content(data, KIND, "text")
    with explain_faults(KIND):
        blocks = list(_read_blocks(root, body))
    return ChunkedDocument(title, tuple(chunk_sections(blocks, split)))


def _read_blocks(root: Any, body: Any) -> Iterator[Block]:
    outline, titles = Outline(), find_parents(root, TITLE_STYLES)
    for element in find_outermost(body, _PARTS, _LEFT_OUT):
        yield from _read_part(element, outline, titles)
    notes = [" ".join(read_paragraphs(note)) for note in body.iter(f"{TEXT}note-body")]
    if notes:
        yield from outline.add_heading(1, Line(1, NOTES))
        yield from outline.build_list([Line(1, text) for text in notes if text])
    yield from outline.finish()


def _read_part(element: Any, outline: Outline, titles: dict[str, str]) -> Iterator[Block]:
    if element.tag == f"{TEXT}list":
        yield from outline.build_list([Line(1, text) for text in read_paragraphs(element)])
    elif element.tag == f"{TABLE}table":
        yield from outline.build_block(read_table(element), prose=False)
    else:
        yield from _read_paragraph(element, outline, titles)


def _read_paragraph(element: Any, outline: Outline, titles: dict[str, str]) -> Iterator[Block]:
    """A paragraph, or a heading; a title stands above all headings."""
    lines = [Line(1, line) for line in read_text(element).split("\n") if line.strip()]
    is_title = element.get(f"{TEXT}style-name") in titles
    if lines and (is_title or element.tag == f"{TEXT}h"):
        level = 0 if is_title else int(element.get(f"{TEXT}outline-level", "1"))
        yield from outline.add_heading(level, Line(1, " ".join(" ".join(line.text for line in lines).split())))
    else:
        yield from outline.build_block(lines)


READER = DocumentReader((".odt",), chunk_odt, max_bytes=MAX_ARCHIVE_BYTES)
