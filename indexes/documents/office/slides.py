"""Slides as passages, and PowerPoint presentations (.pptx). A place is the number of a slide: `slide4`."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from indexes.documents.chunking import NOTES, Block, Chunk, Line, Outline, chunk_blocks, format_table
from indexes.documents.document_reader import ChunkedDocument, explain_faults, load_library
from indexes.documents.office.archives import Archive


@dataclass(frozen=True, slots=True)
class Slide:
    title: str
    texts: Sequence[Sequence[Line]]  # its boxes with their paragraphs, and its tables with their rows
    notes: Sequence[str] = ()  # the paragraphs of the speaker's notes


def chunk_slides(slides: Iterable[Slide]) -> Iterator[Chunk]:
    for number, slide in enumerate(slides, start=1):
        yield from chunk_blocks(_build_blocks(slide), f"slide{number}")


def number_lines(texts: Iterable[str]) -> list[Line]:
    return [Line(1, text) for text in (" ".join(text.split()) for text in texts) if text]


def _build_blocks(slide: Slide) -> Iterator[Block]:
    outline = Outline()
    if slide.title:
        yield from outline.add_heading(1, Line(1, slide.title))
    for box in slide.texts:
        yield from outline.build_list(box) if len(box) > 1 else outline.build_block(box)
    if notes := number_lines(slide.notes):
        yield from outline.add_heading(2, Line(1, NOTES))
        yield from outline.build_block(notes)
    yield from outline.finish()


REPEATED = {"DATE", "FOOTER", "HEADER", "SLIDE_NUMBER"}  # what stands on every slide


@explain_faults("PowerPoint presentation")
def chunk_pptx(data: bytes) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are slides. Raises what `Archive` raises."""
    archive, pptx = Archive(data, "PowerPoint presentation"), load_library("pptx")
    title = archive.read_title("docProps/core.xml")
    return ChunkedDocument(title, tuple(chunk_slides(map(_read_slide, pptx.Presentation(archive.repack()).slides))))


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
