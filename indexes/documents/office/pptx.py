"""PowerPoint presentations (.pptx) as passages: the texts and tables of each slide, and the speaker's notes."""

from collections.abc import Iterable, Iterator
from typing import Any

from indexes.documents.block_building import format_table
from indexes.documents.chunking import Line
from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.libraries import explain_faults, load_library
from indexes.documents.office.archives import MAX_ARCHIVE_BYTES, Archive
from indexes.documents.office.slides import Slide, chunk_slides, number_lines
from indexes.text.segmentation import SentenceSplitter

KIND = "PowerPoint presentation"
REPEATED = {"DATE", "FOOTER", "HEADER", "SLIDE_NUMBER"}  # what stands on every slide


def chunk_pptx(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are slides. Raises what `Archive` raises."""
    archive = Archive(data, KIND)
    pptx = load_library("pptx")
    title = archive.read_title("docProps/core.xml")
    with explain_faults(KIND):
        slides = [_read_slide(slide) for slide in pptx.Presentation(archive.repack()).slides]
    return ChunkedDocument(title, tuple(chunk_slides(slides, split)))


def _read_slide(slide: Any) -> Slide:
    title = slide.shapes.title
    texts = [_read_shape(shape) for shape in _walk_shapes(slide.shapes) if title is None or shape != title]
    notes = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    shown = title.text_frame.text if title is not None else ""
    return Slide(" ".join(shown.split()), texts, notes.text.split("\n") if notes is not None else ())


def _walk_shapes(shapes: Iterable[Any]) -> Iterator[Any]:
    for shape in shapes:
        if hasattr(shape, "shapes"):
            yield from _walk_shapes(shape.shapes)
        elif not shape.is_placeholder or shape.placeholder_format.type.name not in REPEATED:
            yield shape


def _read_shape(shape: Any) -> list[Line]:
    if getattr(shape, "has_table", False):
        rows = [[Line(1, " ".join(cell.text.split())) for cell in row.cells] for row in shape.table.rows]
        return format_table(rows)
    return number_lines(paragraph.text for paragraph in shape.text_frame.paragraphs) if shape.has_text_frame else []


READER = DocumentReader((".pptx",), chunk_pptx, max_bytes=MAX_ARCHIVE_BYTES)
