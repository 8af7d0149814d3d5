"""Pictures of text (.png, .jpg, .tif) as passages, read by Tesseract where it is installed. A place is a page: `p1`."""

import io
from collections.abc import Iterator
from itertools import islice
from typing import Any

from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.libraries import explain_faults, load_library
from indexes.documents.ocr import (
    HOW_TO_INSTALL,
    MAX_DECLARED_PIXELS,
    MAX_PAGES,
    is_ocr_installed,
    recognize_text,
)
from indexes.documents.pages import chunk_page
from indexes.text.segmentation import SentenceSplitter
from schemas.errors import InvalidInputError, MissingError

KIND = "picture"
FORMATS = ("PNG", "JPEG", "TIFF")


def chunk_image(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The passages of a picture. Raises `MissingError` without Tesseract, `InvalidInputError` for a broken picture."""
    if not is_ocr_installed():
        raise MissingError(f"is a picture; its text is read if you install {HOW_TO_INSTALL}")
    with explain_faults(KIND):
        pages = [recognize_text(page) for page in islice(_open_pages(data), MAX_PAGES)]
    chunks = (chunk for number, text in enumerate(pages, start=1) for chunk in chunk_page(number, text, split))
    return ChunkedDocument(chunks=tuple(chunks))


def _open_pages(data: bytes) -> Iterator[Any]:
    """The pages of a picture, of which most have one, turned as they are meant to be seen."""
    image, sequence, operations = (load_library(f"PIL.{name}") for name in ("Image", "ImageSequence", "ImageOps"))
    for page in sequence.Iterator(image.open(io.BytesIO(data), formats=FORMATS)):
        if page.width * page.height > MAX_DECLARED_PIXELS:  # known before it is decoded
            raise InvalidInputError(f"is a picture of more than {MAX_DECLARED_PIXELS // 1_000_000} megapixels")
        yield operations.exif_transpose(page)


READER = DocumentReader((".png", ".jpg", ".jpeg", ".tif", ".tiff"), chunk_image)
