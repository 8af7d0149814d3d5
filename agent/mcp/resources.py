"""The documents as resources: a page of their list, and the text behind an address."""

from agent.mcp.calls import CallProgress
from agent.mcp.library import Library
from agent.mcp.records import DOCUMENTS, PASSAGES, ListedDocument, parse_uri
from agent.mcp.tools import find_passage, list_titles
from schemas.errors import MissingError, UsageError

PAGE = 100  # documents of one reply
MAX_TEXT = 1_000_000  # characters of a document that one reply has


def list_page(library: Library, cursor: str | None, progress: CallProgress) -> tuple[list[ListedDocument], str | None]:
    """Some documents from a cursor on, and the cursor of the next ones. Raises `UsageError` for one that is none."""
    if cursor is not None and not (cursor.isascii() and cursor.isdecimal()):
        raise UsageError(f"{cursor!r} is no cursor of this list")
    collection = library.wait_for_documents(progress).collection
    documents, start = collection.list_documents(), int(cursor or 0)
    end = start + PAGE
    return list_titles(documents[start:end], collection), str(end) if end < len(documents) else None


def read_text(library: Library, uri: str, progress: CallProgress) -> str:
    """The text of a document or passage by its address. Raises `MissingError` where there is none."""
    from indexes.documents.whole_documents import WholeDocuments

    collection = library.open_documents(progress).collection
    if (id := parse_uri(uri, PASSAGES)) is not None:
        return find_passage(id, collection).text
    path, documents = parse_uri(uri, DOCUMENTS), WholeDocuments(collection.index)
    if path is None or collection.is_empty or path not in documents.names:
        raise MissingError(f"there is no resource {uri!r}", remedy="resources/list names the documents.")
    text = "\n\n".join(passage.text for passage in documents.read(path))
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}\n\n[The rest is left out: search_passages finds it.]"
