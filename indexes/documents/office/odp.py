"""OpenDocument presentations (.odp) as passages: the texts and tables of each slide, and the speaker's notes."""

from collections.abc import Iterator
from typing import Any

from indexes.documents.chunking import Line
from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.libraries import explain_faults
from indexes.documents.office.archives import MAX_ARCHIVE_BYTES
from indexes.documents.office.open_document import (
    DRAW,
    PRESENTATION,
    TABLE,
    open_content,
    read_paragraphs,
    read_table,
)
from indexes.documents.office.slides import Slide, chunk_slides, number_lines
from indexes.text.segmentation import SentenceSplitter

KIND = "OpenDocument presentation"


def chunk_odp(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are slides. Raises as `open_content` does."""
    title, _, body = open_content(data, KIND, "presentation")
    with explain_faults(KIND):
        slides = [_read_slide(page) for page in body.findall(f"{DRAW}page")]
    return ChunkedDocument(title, tuple(chunk_slides(slides, split)))


def _read_slide(page: Any) -> Slide:
    shapes = list(_walk_shapes(page))
    title = next((shape for shape in shapes if shape.get(f"{PRESENTATION}class") == "title"), None)
    texts = [_read_shape(shape) for shape in shapes if shape is not title]
    notes = page.find(f"{PRESENTATION}notes")
    shown = read_paragraphs(title) if title is not None else []
    return Slide(" ".join(shown), texts, read_paragraphs(notes) if notes is not None else ())


def _walk_shapes(element: Any) -> Iterator[Any]:
    """The shapes of a slide, those in groups too; not its notes."""
    for child in element:
        if child.tag == f"{DRAW}g":
            yield from _walk_shapes(child)
        elif child.tag != f"{PRESENTATION}notes":
            yield child


def _read_shape(shape: Any) -> list[Line]:
    table = next(shape.iter(f"{TABLE}table"), None)
    return read_table(table) if table is not None else number_lines(read_paragraphs(shape))


READER = DocumentReader((".odp",), chunk_odp, max_bytes=MAX_ARCHIVE_BYTES)
