"""The document types that can be read. To add one, write a module with a `READER` and list it here."""

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from indexes.documents import csv_tables, html, images, json_files, json_lines, markdown, pdf, plain_text
from indexes.documents.document_reader import DocumentReader
from indexes.documents.office import docx, eml, epub, mbox, odp, ods, odt, pptx, rtf, xlsx
from schemas.errors import InvalidInputError

READERS: tuple[DocumentReader, ...] = (
    plain_text.READER,
    markdown.READER,
    html.READER,
    csv_tables.READER,
    json_files.READER,
    json_lines.READER,
    pdf.READER,
    docx.READER,
    odt.READER,
    rtf.READER,
    epub.READER,
    pptx.READER,
    odp.READER,
    xlsx.READER,
    ods.READER,
    eml.READER,
    mbox.READER,
    images.READER,
)
LIBRARIES = (
    "charset-normalizer", "defusedxml", "lxml", "mammoth", "markdown-it-py", "openpyxl", "pillow", "pypdf", "pypdfium2",
    "pytesseract", "python-pptx", "spacy", "striprtf",
)  # fmt: skip
READER_BY_SUFFIX = {suffix: reader for reader in READERS for suffix in reader.suffixes}
EXPECTED_SUFFIXES = ", ".join(suffix.removeprefix(".") for suffix in READER_BY_SUFFIX)  # for messages


def has_reader(path: Path) -> bool:
    """Whether a file is of a type that can be read, by the suffix of its name."""
    return path.suffix.lower() in READER_BY_SUFFIX


def find_reader(path: Path) -> DocumentReader:
    """The reader of a file, by the suffix of its name. Raises `InvalidInputError`, without where, if there is none."""
    reader = READER_BY_SUFFIX.get(path.suffix.lower())
    if reader is None:
        raise InvalidInputError(f"is of no kind that can be read ({EXPECTED_SUFFIXES})")
    return reader


@cache
def compute_readers_digest() -> str:
    """A name for the readers, which changes with their code, with Python, and with the libraries that they use."""
    digest = hashlib.sha256(repr((sys.version_info, [_find_version(library) for library in LIBRARIES])).encode())
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _find_version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return ""
