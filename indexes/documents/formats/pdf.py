"""PDF files (.pdf) as passages, page by page. Pages that are pictures are read by Tesseract where it is installed."""

import io
import logging
import re
from collections.abc import Sequence

from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.formats.images import (
    HOW_TO_INSTALL,
    MAX_PAGES,
    MAX_PIXELS,
    chunk_page,
    is_ocr_installed,
    recognize_text,
)
from indexes.documents.formats.libraries import explain_faults, load_library
from schemas.errors import InvalidInputError, list_with_limit

MAX_PDF_BYTES = 200_000_000  # of a file; a larger one is left out
KIND = "PDF"
POINTS_PER_INCH, PIXELS_PER_INCH = 72, 300  # of a page; and of its picture, which is what Tesseract reads best
MAX_NAMED_PAGES = 10


def chunk_pdf(data: bytes) -> ChunkedDocument:
    """The title in a PDF's metadata, or "", and its passages, whose places are pages: `p3`.

    Raises `InvalidInputError` for a PDF that is encrypted or broken.
    """
    title, pages, pictures = _extract_pages(data)
    notes: list[str] = []
    lacks_ocr = bool(pictures) and not is_ocr_installed()
    if lacks_ocr:
        notes.append(f"{_name_pages(pictures)}; the text is read if you install {HOW_TO_INSTALL}")
    elif pictures:
        pages = _recognize_pages(data, pages, pictures, notes)
    chunks = tuple(chunk for number, text in enumerate(pages, start=1) for chunk in chunk_page(number, text))
    return ChunkedDocument(" ".join(title.split()), chunks, tuple(notes), lacks_ocr)


def _extract_pages(data: bytes) -> tuple[str, list[str], list[int]]:
    """The title, the text of each page, and the numbers of those that show a picture and have no text."""
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every fault that it recovers from
    with explain_faults(KIND):
        try:  # it tries the empty password, which opens a PDF that only forbids printing or changing
            reader = pypdf.PdfReader(io.BytesIO(data))
            pages = [page.extract_text() for page in reader.pages]
        except (FileNotDecryptedError, DependencyError) as error:
            what = "is an encrypted PDF; save a copy without its password to have it read"
            raise InvalidInputError(what) from error
        title = str((reader.metadata and reader.metadata.title) or "")
        pictures = []
        for number, (page, text) in enumerate(zip(reader.pages, pages, strict=True), start=1):
            resources = page.get("/Resources") if not re.search(r"\w", text) else None
            if resources is not None and "/XObject" in resources.get_object():
                pictures.append(number)
        return title, pages, pictures


def _name_pages(numbers: Sequence[int]) -> str:
    """`page 3 is a picture`, `pages 3, 4 are pictures`."""
    named = ", ".join(list_with_limit([f"{number}" for number in numbers], MAX_NAMED_PAGES, "and {} more"))
    return f"page {named} is a picture" if len(numbers) == 1 else f"pages {named} are pictures"


def _recognize_pages(data: bytes, pages: Sequence[str], pictures: Sequence[int], notes: list[str]) -> list[str]:
    """The text of each page, of those that are pictures as far as Tesseract reads it."""
    pypdfium2 = load_library("pypdfium2")
    with explain_faults(KIND):
        document = pypdfium2.PdfDocument(data)
    read = list(pages)
    for number in pictures[:MAX_PAGES]:
        try:
            with explain_faults("page"):
                page = document[number - 1]
                width, height = page.get_size()
                scale = min(PIXELS_PER_INCH / POINTS_PER_INCH, (MAX_PIXELS / max(1, width * height)) ** 0.5)
                read[number - 1] = recognize_text(page.render(scale=scale).to_pil())
        except InvalidInputError as error:
            notes.append(f"page {number} {error.what}")
    if len(pictures) > MAX_PAGES:
        notes.append(f"{_name_pages(pictures[MAX_PAGES:])} too, beyond the first {MAX_PAGES}, and not read")
    return read


PDF = DocumentReader((".pdf",), chunk_pdf, max_bytes=MAX_PDF_BYTES, fragment="#page={}")
