"""Saved messages (.eml) as passages."""

from indexes.documents.document_reader import ChunkedDocument, DocumentReader
from indexes.documents.office.mail import chunk_message
from indexes.text.segmentation import SentenceSplitter

PLACE = "message"


def chunk_eml(data: bytes, split: SentenceSplitter) -> ChunkedDocument:
    """The passages of a message. Raises `InvalidInputError` where it cannot be read."""
    return ChunkedDocument(chunks=tuple(chunk_message(data, PLACE, split)))


READER = DocumentReader((".eml",), chunk_eml)
