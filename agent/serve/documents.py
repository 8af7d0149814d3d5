"""Documents: their list; a whole one as a page, opened at a passage that an answer cites; and those that are added.

The text is that of the document's passages in the index, in their order: no file is read because a request names it.
What is added goes into the folder, and replaces no file.
"""

import os
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from agent.chat.citations import TextPiece, shown_sources
from agent.chat.dated_documents import find_status
from agent.chat.session import Assistant
from agent.chat.store import Store
from agent.serve.rendering import UNCACHED, read_number, render_page
from indexes.documents.collection import CHANGED, Collection, WholeDocuments
from indexes.documents.reading import EXPECTED_SUFFIXES, has_reader
from indexes.storage.atomic_files import scratch_directory, sync_to_disk
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError, UsageError
from schemas.records import Problem

PDF = ".pdf"
PASSAGES_SHOWN = 200  # of a document at once
MIN_DAY = len("2025-03-04")  # of a date with a day; a mailbox has several
FILES_SHOWN = 500  # in the list; a search finds others
UPLOAD_PATH = "/upload"
MAX_FILES = 50  # of a request
MAX_NAME_BYTES = 200
_PLACE = re.compile(r"(p|slide|message|)(\d+)(?:-(\d+))?(?:\.\d+)?")
_KINDS = {"p": "page", "slide": "slide", "message": "message", "": "line"}
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069<>:"|?*]')


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The documents of a folder as pages, and where further ones come in; the watcher of the folder then reads them."""

    assistant: Assistant
    store: Store
    uploads: Path | None  # the folder that documents may be added to

    def routes(self) -> list[Route]:
        shown = [
            Route("/documents", self.list_documents),
            Route("/documents/{name:path}", self.show_document),
            Route("/pages/{name:path}", self.show_pages),
        ]
        return [*shown, Route(UPLOAD_PATH, self.add_documents, methods=["POST"])] if self.uploads else shown

    def list_documents(self, request: Request) -> Response:
        """The documents that are asked, or those with all words of `?q=` in their paths, and what was left out."""
        collection, words = self.assistant.collection, request.query_params.get("q", "")
        wanted = words.casefold().split()
        names = collection.list_documents() if collection.is_folder else {}
        found = [name for name in names if all(word in name.casefold() for word in wanted)]
        shown = found[:FILES_SHOWN]
        firsts = collection.index.read([names[name] for name in shown if not name.casefold().endswith(".mbox")])
        dated = {first.document: first.date for first in firsts if len(first.date) >= MIN_DAY}
        values = {
            "assistant": self.assistant,
            "words": words,
            "total": len(names),
            "dated": dated,
            "files": [(name, find_status(name, collection)) for name in shown],
            "more": len(found[FILES_SHOWN:]),
            "pages": self,
        }
        return render_page("documents.html", values)

    def show_document(self, request: Request) -> Response:
        """A document from the passage `?at=` (its place), or from the `?from=`th on, with its passages in order.

        With `?chat=&turn=`, what that answer took from it is marked. Raises `MissingError` for a document that is not
        among those that are asked now, and for a turn that the one who asks does not have.
        """
        query, collection = request.query_params, self.assistant.collection
        name, documents = self._find_document(request)
        passages = documents.read(name)
        chat, turn, begin = (read_number(query.get(field, "")) for field in ("chat", "turn", "from"))
        store = self.store.for_user(request.state.user)
        turns = () if chat is None else store.read_turns(chat)
        if turns and not 0 < (turn or 0) <= len(turns):
            raise MissingError(f"this conversation has no turn {turn}")
        sources = shown_sources(turns[turn - 1].answered) if turns and turn else ()
        opened = f"{name}:{query.get('at', '')}"
        places = [place for place, passage in enumerate(passages) if passage.id == opened]
        first = (places[0] if places else 0) // PASSAGES_SHOWN * PASSAGES_SHOWN if begin is None else begin
        changes = [collection.explain_change(source.passage) for source in sources if source.passage.id == opened]
        marked = {(source.passage.id, source.passage.text): source.pieces for source in sources}
        values = {
            "name": name,
            "opened": opened,
            "passages": [  # each with its pieces, and its place in words
                (
                    passage,
                    marked.get((passage.id, passage.text), (TextPiece(passage.text, marked=False),)),
                    describe_place(passage.id.removeprefix(f"{name}:")),
                )
                for passage in passages[first : first + PASSAGES_SHOWN]
            ],
            "total": len(passages),
            "first": first,
            "shown": PASSAGES_SHOWN,
            "change": changes[0] if changes else "" if places or "at" not in query else CHANGED,
            "back": "/" if chat is None else f"/chats/{chat}#asked-{turn}",
            "pages": f"/pages/{quote(name)}" if name.casefold().endswith(PDF) else "",
            "address": f"/documents/{quote(name)}?" + (f"chat={chat}&turn={turn}&" if chat is not None else ""),
        }
        return render_page("document.html", values)

    def show_pages(self, request: Request) -> Response:
        """The pages of a PDF as they are, which the browser shows. Raises `MissingError` for any other document."""
        name, _ = self._find_document(request)
        file = self.assistant.collection.locate(name)
        if not (name.casefold().endswith(PDF) and file.is_file()):
            raise MissingError(f"there are no pages of {name!r} to be seen")
        return FileResponse(file, headers=UNCACHED, media_type="application/pdf", content_disposition_type="inline")

    def _find_document(self, request: Request) -> tuple[str, WholeDocuments]:
        """The name of a document, and what reads it. Raises `MissingError` for one that is not asked now."""
        name, documents = request.path_params["name"], self.assistant.collection.open_documents()
        if documents is None or name not in documents.names:
            raise MissingError(f"{name!r} is not among the documents that are asked now")
        return name, documents

    async def add_documents(self, request: Request) -> Response:
        """Add the files of a form, each unless it cannot be; says which were, and why others were not."""
        assert self.uploads
        added: list[str] = []
        problems: list[Problem] = []
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FILES) as form:
            for file in form.getlist("file"):
                if not isinstance(file, UploadFile) or not file.filename:
                    continue
                try:
                    added.append(await run_in_threadpool(add_document, self.uploads, file.filename, await file.read()))
                except ConvagentError as error:
                    problems.append(Problem(file.filename, error.what))
        return render_page("upload.html", {"added": added, "problems": problems}, 200 if added else 400)


def describe_place(place: str) -> str:
    """A place of a passage's id in words; one that says nothing else, such as a heading, as it is."""
    found = _PLACE.fullmatch(place)
    if not found:
        return place
    kind, first, last = found.groups()
    return f"{_KINDS[kind]}s {first} to {last}" if last else f"{_KINDS[kind]} {first}"


def find_upload_folder(collection: Collection) -> Path:
    """The folder that documents are added to. Raises `UsageError` where what is asked is an index or one document."""
    folder = Path(collection.source)
    if not (collection.is_folder and folder.is_dir()):
        raise UsageError("--allow-upload needs a folder of documents", remedy="Name it: --docs ~/notes")
    return folder


def add_document(folder: Path, name: str, content: bytes) -> str:
    """Write a file into a folder, whole or not at all; its name there.

    Raises `InvalidInputError` for what cannot be read, `UsageError` for a name that is taken or is none, and `RunError`
    where it cannot be written.
    """
    name = clean_name(name)
    if not has_reader(Path(name)):
        raise InvalidInputError(f"is of no kind that can be read ({EXPECTED_SUFFIXES})")
    try:
        with scratch_directory(folder / name) as scratch:  # hidden from the watcher
            (scratch / name).write_bytes(content)
            sync_to_disk(scratch / name)
            os.link(scratch / name, folder / name)  # fails where anything has that name
    except FileExistsError as error:
        raise UsageError("there is a file of that name already, which stays as it is") from error
    except OSError as error:
        raise RunError(f"cannot be written ({error.strerror})") from error
    return name


def clean_name(name: str) -> str:
    """The last part of a name, without characters that a file system or a terminal takes for something else.

    Raises `UsageError` where nothing is left, for hidden files, and for a name that is too long.
    """
    last = unicodedata.normalize("NFC", name).replace("\\", "/").rpartition("/")[2]
    cleaned = _FORBIDDEN.sub("_", last.encode("utf-8", "replace").decode()).strip()
    if not Path(cleaned).stem or cleaned.startswith("."):
        raise UsageError("is no name that a document can have")
    if len(cleaned.encode()) > MAX_NAME_BYTES:
        raise UsageError(f"has too long a name: {len(cleaned.encode())} bytes, where {MAX_NAME_BYTES} are possible")
    return cleaned
