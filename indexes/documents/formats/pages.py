"""PDF files, and pictures of text (.png, .jpg, .tif), as passages, page by page: a place is `p3`.

Pictures, and pages of PDFs that are pictures, are read by Tesseract where it is installed. The lines of a page are as
they were printed.
"""

import io
import logging
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from itertools import groupby, islice
from typing import Any

from indexes.documents.chunking import Block, Chunk, Line, chunk_blocks, end_with_full_stop
from indexes.documents.document_reader import INSTALL, ChunkedDocument, explain_faults, load_library
from schemas.errors import InvalidInputError, MissingError, list_with_limit

PROGRAM = "tesseract"
LIBRARIES = ("pytesseract", "PIL", "pypdfium2")
HOW_TO_INSTALL = f"Tesseract (apt install tesseract-ocr; brew install tesseract) and {INSTALL}"
MAX_PAGES = 200  # of a document that are read so; the rest is left out
MAX_SECONDS = 60  # for one page
MAX_PIXELS = 20_000_000  # of a picture that is given to Tesseract; a larger one is made smaller
MAX_DECLARED_PIXELS = 100_000_000  # of a picture that is opened at all
MIN_CONFIDENCE = 50  # percent, of a word; photographs are full of words that are none
MAX_LANGUAGES = 3  # installed ones that are looked for together; more take longer and mistake more
_NO_LANGUAGES = {"osd", "equ"}


page_listener: ContextVar[Callable[[], None]] = ContextVar("page_listener", default=lambda: None)  # told of each page


def is_ocr_installed() -> bool:
    """Whether the program and the libraries that it needs here are there."""
    return shutil.which(PROGRAM) is not None and all(find_spec(name) for name in LIBRARIES)


def recognize_text(picture: Any) -> str:
    """The lines of text in a picture (of Pillow), with an empty line between paragraphs; "" where there are none.

    Raises what the libraries raise, `RuntimeError` where it takes longer than `MAX_SECONDS`.
    """
    page_listener.get()()
    share = min(1, (MAX_PIXELS / (picture.width * picture.height)) ** 0.5)
    if share < 1:
        picture = picture.resize((max(1, int(picture.width * share)), max(1, int(picture.height * share))))
    grey = picture.convert("L")
    low, high = grey.getextrema()
    if low == high:
        return ""
    pytesseract = load_library("pytesseract")
    output, language = pytesseract.Output.DICT, _find_languages()
    found = pytesseract.image_to_data(grey, lang=language, output_type=output, timeout=MAX_SECONDS)
    return "\n\n".join("\n".join(paragraph) for paragraph in _join_words(found))


@cache
def _find_languages() -> str:
    """The installed languages as Tesseract is told them, English first: "eng+deu"."""
    installed = set(load_library("pytesseract").get_languages()) - _NO_LANGUAGES
    return "+".join(sorted(installed, key=lambda name: (name != "eng", name))[:MAX_LANGUAGES])


def _join_words(found: dict[str, list[Any]]) -> Iterator[list[str]]:
    columns = ("block_num", "par_num", "line_num", "text", "conf")
    words = [row for row in zip(*(found[name] for name in columns), strict=True) if float(row[4]) >= MIN_CONFIDENCE]
    for _, paragraph in groupby(words, key=lambda word: word[:2]):
        yield [" ".join(word[3] for word in line) for _, line in groupby(paragraph, key=lambda word: word[2])]


FORMATS = ("PNG", "JPEG", "TIFF")


@explain_faults("picture")
def chunk_image(data: bytes) -> ChunkedDocument:
    """The passages of a picture. Raises `MissingError` without Tesseract, `InvalidInputError` for a broken picture."""
    if not is_ocr_installed():
        raise MissingError(f"is a picture; its text is read if you install {HOW_TO_INSTALL}")
    image, sequence, operations = (load_library(f"PIL.{name}") for name in ("Image", "ImageSequence", "ImageOps"))
    pages = []
    for page in islice(sequence.Iterator(image.open(io.BytesIO(data), formats=FORMATS)), MAX_PAGES):
        if page.width * page.height > MAX_DECLARED_PIXELS:  # known before it is decoded
            raise InvalidInputError(f"is a picture of more than {MAX_DECLARED_PIXELS // 1_000_000} megapixels")
        pages.append(recognize_text(operations.exif_transpose(page)))
    return ChunkedDocument(chunks=tuple(_chunk_pages(pages)))


MIN_FULL_LINE = 0.6  # share of a page's widest line; a shorter line ends a paragraph
_HYPHEN_AT_END = re.compile(r"(?<=[^\W\d_])[-\u00ad]$")


def _chunk_pages(pages: Iterable[str]) -> Iterator[Chunk]:
    for number, text in enumerate(pages, start=1):
        paragraphs = _split_paragraphs(text.split("\n"))
        blocks = [Block(tuple(Line(number, line) for line in paragraph)) for paragraph in paragraphs]
        yield from chunk_blocks(blocks, f"p{number}")


def _split_paragraphs(lines: Sequence[str]) -> Iterator[list[str]]:
    """A page's paragraphs: an empty or a short line ends one. Words broken at the end of a line are joined again."""
    full = MIN_FULL_LINE * max(map(len, lines), default=0)
    paragraph: list[str] = []
    for line, after in zip(lines, [*lines[1:], ""], strict=True):
        text, follows = line.strip(), after.strip()
        if paragraph and _HYPHEN_AT_END.search(paragraph[-1]) and text[:1].islower():
            paragraph[-1] = _HYPHEN_AT_END.sub("", paragraph[-1]) + text
        elif text:
            paragraph.append(text)
        if paragraph and (not follows or (len(line) < full and not follows[0].islower())):
            paragraph[-1] = end_with_full_stop(paragraph[-1])
            yield paragraph
            paragraph = []


POINTS_PER_INCH, PIXELS_PER_INCH = 72, 300  # of a page; and of its picture, which is what Tesseract reads best
MAX_NAMED_PAGES = 10


@explain_faults("PDF")
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
    return ChunkedDocument(" ".join(title.split()), tuple(_chunk_pages(pages)), tuple(notes), lacks_ocr)


def _extract_pages(data: bytes) -> tuple[str, list[str], list[int]]:
    """The title, the text of each page, and the numbers of those that show a picture and have no text."""
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL)  # it logs every fault that it recovers from
    try:  # it tries the empty password, which opens a PDF that only forbids printing or changing
        reader = pypdf.PdfReader(io.BytesIO(data))
        pages = [page.extract_text() for page in reader.pages]
    except (FileNotDecryptedError, DependencyError) as error:
        raise InvalidInputError("is an encrypted PDF; save a copy without its password to have it read") from error
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
    document = load_library("pypdfium2").PdfDocument(data)
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
