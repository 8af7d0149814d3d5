"""What the OpenDocument formats (odt, ods, odp) share: opening them, paragraphs, lists and tables."""

from collections.abc import Container, Iterator, Sequence
from typing import Any

from indexes.documents.block_building import format_table
from indexes.documents.chunking import Line
from indexes.documents.libraries import explain_faults
from indexes.documents.office.archives import Archive
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


def open_content(data: bytes, kind: str, body: str) -> tuple[str, Any, Any]:
    """The title in the metadata, or "", the root of the contents, and the body: `text`, `spreadsheet`, ...

    Raises `InvalidInputError` for a file that is encrypted or broken, or has another body.
    """
    archive = Archive(data, kind, MAX_CONTENT_BYTES)
    if "META-INF/manifest.xml" in archive.names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
        raise archive.make_encrypted_error()
    title, root = archive.read_title("meta.xml"), archive.read_xml("content.xml")
    with explain_faults(kind):
        found = root.find(f"{OFFICE}body/{OFFICE}{body}")
    if found is None:
        raise InvalidInputError(f"is no {kind}, whatever its name says")
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
    """How often a row or cell stands there: `what` is "rows" or "columns"."""
    return max(1, int(element.get(f"{TABLE}number-{what}-repeated", "1")))


def find_parents(root: Any, names: Sequence[str]) -> dict[str, str]:
    """Those of the document's own styles that are made from one of these, with its name."""
    styles = (
        (style.get(f"{STYLE}name"), style.get(f"{STYLE}parent-style-name")) for style in root.iter(f"{STYLE}style")
    )
    return {str(name): str(parent) for name, parent in styles if parent in names} | {name: name for name in names}
