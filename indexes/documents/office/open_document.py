"""OpenDocument files as passages: texts (.odt), sheets (.ods) and presentations (.odp), and what they share.

Footnotes of a text come last; deleted text, comments and tables of contents are left out. Of a formula the value is
read that was saved with it. Of a slide its texts, tables and the speaker's notes are read.
"""

from collections.abc import Container, Iterator
from itertools import islice
from typing import Any

from indexes.documents.chunking import NOTES, Block, Line, Outline, chunk_sections, format_table
from indexes.documents.document_reader import ChunkedDocument, explain_faults
from indexes.documents.formats.data_files import TableRow
from indexes.documents.office.archives import Archive
from indexes.documents.office.sheets import MAX_COLUMNS, MAX_ROWS, chunk_sheets, format_number
from indexes.documents.office.slides import Slide, chunk_slides, number_lines
from schemas.errors import InvalidInputError

MAX_CONTENT_BYTES = 50_000_000  # of a document's parts that are read, unpacked
MAX_SPACES = 100  # of one mark for repeated spaces
_NAMESPACE = "{urn:oasis:names:tc:opendocument:xmlns:%s:1.0}"
OFFICE, TEXT, TABLE, DRAW, STYLE, PRESENTATION = (
    _NAMESPACE % name for name in ("office", "text", "table", "drawing", "style", "presentation")
)
PARAGRAPHS = (f"{TEXT}p", f"{TEXT}h")
ROW, CELL = f"{TABLE}table-row", f"{TABLE}table-cell"
_WHITE_SPACE = {f"{TEXT}tab": " ", f"{TEXT}line-break": "\n"}
LEFT_OUT = {f"{TEXT}note", f"{OFFICE}annotation", f"{OFFICE}annotation-end", f"{TEXT}tracked-changes"}


def open_content(data: bytes, body: str) -> tuple[str, Any, Any]:
    """The title in the metadata, or "", the root of the contents, and the body: `text`, `spreadsheet`, ...

    Raises `InvalidInputError` for a file that is encrypted or broken, or has another body.
    """
    archive = Archive(data, f"OpenDocument {body}", MAX_CONTENT_BYTES)
    if "META-INF/manifest.xml" in archive.names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise archive.make_encrypted_error()
    title, root = archive.read_title("meta.xml"), archive.read_xml("content.xml")
    found = root.find(f"{OFFICE}body/{OFFICE}{body}")
    if found is None:
        raise InvalidInputError(f"is no {archive.kind}, whatever its name says")
    return title, root, found


def read_text(element: Any) -> str:
    """The text in an element, without notes and comments."""
    return "".join(_read_parts(element))


def _read_parts(element: Any) -> Iterator[str]:
    yield element.text or ""
    for child in element:
        if child.tag == f"{TEXT}s":
            yield " " * min(int(child.get(f"{TEXT}c", "1")), MAX_SPACES)
        elif child.tag in _WHITE_SPACE:
            yield _WHITE_SPACE[child.tag]
        elif child.tag in PARAGRAPHS:  # of a box within a paragraph
            yield f" {read_text(child)} "
        elif child.tag not in LEFT_OUT:
            yield from _read_parts(child)
        yield child.tail or ""


def find_outermost(element: Any, tags: Container[str], left_out: Container[str] = LEFT_OUT) -> Iterator[Any]:
    """The elements with these tags anywhere in an element, but not what is in them, nor in what is left out."""
    for child in element:
        if child.tag in tags:
            yield child
        elif child.tag not in left_out:
            yield from find_outermost(child, tags, left_out)


def read_paragraphs(element: Any) -> list[str]:
    """The paragraphs anywhere in an element, without the empty ones, notes and comments."""
    texts = (" ".join(read_text(found).split()) for found in find_outermost(element, PARAGRAPHS))
    return [text for text in texts if text]


def read_table(table: Any) -> list[Line]:
    """The rows of a table in a text or on a slide as lines, as `format_table` makes them."""
    rows = find_outermost(table, (ROW,))
    return format_table(
        [[Line(1, " ".join(read_paragraphs(cell))) for cell in row if cell.tag == CELL] for row in rows]
    )


def count_repeats(element: Any, what: str) -> int:
    return max(1, int(element.get(f"{TABLE}number-{what}-repeated", "1")))


CURRENCY_DECIMALS = 2
MIDNIGHT = " 00:00:00"
_CELLS = (CELL, f"{TABLE}covered-table-cell")


@explain_faults("OpenDocument spreadsheet")
def chunk_ods(data: bytes) -> ChunkedDocument:
    _, _, body = open_content(data, "spreadsheet")
    tables = find_outermost(body, (f"{TABLE}table",))
    return chunk_sheets((table.get(f"{TABLE}name") or "", _read_table_rows(table)) for table in tables)


def _read_table_rows(table: Any) -> Iterator[TableRow]:
    """The rows; one that is repeated counts as often, and an empty one is given once."""
    number = 1
    for row in find_outermost(table, (ROW,)):
        cells = ((_format_value(cell), count_repeats(cell, "columns")) for cell in row if cell.tag in _CELLS)
        repeated = (value for value, often in cells for _ in range(min(often, MAX_COLUMNS)))
        values, times = list(islice(repeated, MAX_COLUMNS)), count_repeats(row, "rows")
        for further in range(min(times, MAX_ROWS + 1) if any(values) else 1):
            yield TableRow(number + further, number + further, values)
        number += times


def _format_value(cell: Any) -> str:
    """A value as plain as in .csv: of a number the digits, of a date year, month and day; else what is shown."""
    kind, value = cell.get(f"{OFFICE}value-type"), cell.get(f"{OFFICE}value", "")
    if kind == "float":
        return format_number(float(value))
    if kind == "currency":
        return f"{format_number(float(value), CURRENCY_DECIMALS)} {cell.get(f'{OFFICE}currency', '')}".strip()
    if kind == "percentage":
        return f"{format_number(round(100 * float(value), 10))}%"
    if kind == "date":
        return str(cell.get(f"{OFFICE}date-value", "")).replace("T", " ").removesuffix(MIDNIGHT)
    if kind == "boolean":
        return "yes" if cell.get(f"{OFFICE}boolean-value") == "true" else "no"
    return " ".join(read_paragraphs(cell))


TITLE = "Title"  # a style
_INDEXES = {f"{TEXT}{name}-index" for name in ("alphabetical", "illustration", "object", "table", "user")}
_NO_PROSE = {*LEFT_OUT, *_INDEXES, f"{TEXT}table-of-content", f"{TEXT}bibliography"}
_TEXT_PARTS = {*PARAGRAPHS, f"{TEXT}list", f"{TABLE}table"}


@explain_faults("OpenDocument text")
def chunk_odt(data: bytes) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are headings. Raises as `open_content` does."""
    title, root, body = open_content(data, "text")
    return ChunkedDocument(title, tuple(chunk_sections(_read_text_body(root, body))))


def _read_text_body(root: Any, body: Any) -> Iterator[Block]:
    made_of_it = (style for style in root.iter(f"{STYLE}style") if style.get(f"{STYLE}parent-style-name") == TITLE)
    outline, titles = Outline(), {TITLE, *(style.get(f"{STYLE}name") for style in made_of_it)}
    for element in find_outermost(body, _TEXT_PARTS, _NO_PROSE):
        if element.tag == f"{TEXT}list":
            yield from outline.build_list(number_lines(read_paragraphs(element)))
        elif element.tag == f"{TABLE}table":
            yield from outline.build_block(read_table(element), prose=False)
        else:
            yield from _read_paragraph(element, outline, titles)
    if notes := number_lines(" ".join(read_paragraphs(note)) for note in body.iter(f"{TEXT}note-body")):
        yield from outline.add_heading(1, Line(1, NOTES))
        yield from outline.build_list(notes)
    yield from outline.finish()


def _read_paragraph(element: Any, outline: Outline, titles: set[str]) -> Iterator[Block]:
    """A paragraph, or a heading; a title stands above all headings."""
    lines = [Line(1, line) for line in read_text(element).split("\n") if line.strip()]
    is_title = element.get(f"{TEXT}style-name") in titles
    if lines and (is_title or element.tag == f"{TEXT}h"):
        level = 0 if is_title else int(element.get(f"{TEXT}outline-level", "1"))
        yield from outline.add_heading(level, Line(1, " ".join(" ".join(line.text for line in lines).split())))
    else:
        yield from outline.build_block(lines)


@explain_faults("OpenDocument presentation")
def chunk_odp(data: bytes) -> ChunkedDocument:
    """The title in the metadata, or "", and the passages, whose places are slides. Raises as `open_content` does."""
    title, _, body = open_content(data, "presentation")
    return ChunkedDocument(title, tuple(chunk_slides(map(_read_page, body.findall(f"{DRAW}page")))))


def _read_page(page: Any) -> Slide:
    shapes = list(_walk_page(page))
    title = next((shape for shape in shapes if shape.get(f"{PRESENTATION}class") == "title"), None)
    texts = [_read_box(shape) for shape in shapes if shape is not title]
    notes = page.find(f"{PRESENTATION}notes")
    shown = read_paragraphs(title) if title is not None else []
    return Slide(" ".join(shown), texts, read_paragraphs(notes) if notes is not None else ())


def _walk_page(element: Any) -> Iterator[Any]:
    for child in element:
        if child.tag == f"{DRAW}g":
            yield from _walk_page(child)
        elif child.tag != f"{PRESENTATION}notes":
            yield child


def _read_box(shape: Any) -> list[Line]:
    table = next(shape.iter(f"{TABLE}table"), None)
    return read_table(table) if table is not None else number_lines(read_paragraphs(shape))
