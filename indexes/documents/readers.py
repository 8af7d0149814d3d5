"""The document types that can be read. To add one, write a module with a `READER` and list it here."""

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
