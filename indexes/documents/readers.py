"""The document types that can be read. To add one, write a module with a `DocumentReader` and list it here."""

from pathlib import Path

from indexes.documents.document_reader import DocumentReader
from indexes.documents.formats.csv_tables import CSV_TABLES
from indexes.documents.formats.html import HTML
from indexes.documents.formats.images import IMAGES
from indexes.documents.formats.json_files import JSON_FILES, JSON_LINES
from indexes.documents.formats.markdown import MARKDOWN
from indexes.documents.formats.pdf import PDF
from indexes.documents.formats.plain_text import PLAIN_TEXT
from indexes.documents.office.docx import DOCX
from indexes.documents.office.epub import EPUB
from indexes.documents.office.mail import EML, MBOX
from indexes.documents.office.open_document import ODP, ODS, ODT
from indexes.documents.office.rtf import RTF
from indexes.documents.office.sheets import XLSX
from indexes.documents.office.slides import PPTX
from schemas.errors import InvalidInputError

READERS: tuple[DocumentReader, ...] = (
    PLAIN_TEXT, MARKDOWN, HTML, CSV_TABLES, JSON_FILES, JSON_LINES, PDF, DOCX, ODT, RTF, EPUB, PPTX, ODP, XLSX, ODS,
    EML, MBOX, IMAGES,
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
