"""Documents: a whole one as a page, opened at a passage that an answer cites; and those added (`serve --allow-upload`).

The text is that of the document's passages in the index, in their order: no file is read because a request names it.
What is added goes into the folder, and replaces no file.
"""

import os
import re
import tempfile
import unicodedata
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.chat.citations import Source, TextPiece, shown_sources
from agent.chat.session import Assistant
from agent.chat.store import ChatTurn, Store
from agent.serve.rendering import read_number, render_page
from indexes.documents.collection import CHANGED, Collection
from indexes.documents.readers import EXPECTED_SUFFIXES, has_reader
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError, UsageError
from schemas.records import Passage, Problem

PASSAGES_SHOWN = 200  # of a document at once
_PLACE = re.compile(r"(p|slide|message|)(\d+)(?:-(\d+))?(?:\.\d+)?")
_KINDS = {"p": "page", "slide": "slide", "message": "message", "": "line"}
UPLOAD_PATH = "/upload"
MAX_FILES = 50  # of a request
MAX_NAME_BYTES = 200
_BEGUN = ".upload-"  # the beginning of the name of a file that is being written
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069<>:"|?*]')


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage of a document that is shown."""

    passage: Passage
    pieces: Sequence[TextPiece]
    is_opened: bool  # whether the document was opened at it

    @property
    def place(self) -> str:
        """Where it stands in its document, in words."""
        return describe_place(self.passage.id.removeprefix(f"{self.passage.document}:"))

    @property
    def is_marked(self) -> bool:
        return any(piece.marked for piece in self.pieces)


@dataclass(frozen=True, slots=True)
class DocumentPages:
    """The documents of a folder as pages."""

    assistant: Assistant
    store: Store

    def routes(self) -> list[Route]:
        return [Route("/documents/{name:path}", self.show_document)]

    def show_document(self, request: Request) -> Response:
        """A document from the passage `?at=` (its place), or from the `?from=`th on, with its passages in order.

        With `?chat=&turn=`, what that answer took from it is marked. Raises `MissingError` for a document that is not
        among those that are asked now, and for a turn that the one who asks does not have.
        """
        name, query = request.path_params["name"], request.query_params
        collection = self.assistant.collection
        passages = _read_document(name, collection)
        chat, turn = (read_number(query.get(field, "")) for field in ("chat", "turn"))
        store = self.store.for_user(request.state.user)
        sources = [] if chat is None else list(shown_sources(read_turn(store, chat, turn or 0).answered))
        opened = f"{name}:{query.get('at', '')}"
        places = [place for place, passage in enumerate(passages) if passage.id == opened]
        begin = read_number(query.get("from", ""))
        first = (places[0] if places else 0) // PASSAGES_SHOWN * PASSAGES_SHOWN if begin is None else begin
        values = {
            "name": name,
            "passages": [_show_passage(each, sources, opened) for each in passages[first : first + PASSAGES_SHOWN]],
            "total": len(passages),
            "first": first,
            "shown": PASSAGES_SHOWN,
            "change": _explain_change(
                sources, opened, is_there=bool(places or "at" not in query), collection=collection
            ),
            "back": "/" if chat is None else f"/chats/{chat}#asked-{turn}",
            "address": f"/documents/{quote(name)}?" + (f"chat={chat}&turn={turn}&" if chat is not None else ""),
        }
        return render_page("document.html", values)


def read_turn(store: Store, chat: int, number: int) -> ChatTurn:
    """A turn of a conversation. Raises `MissingError` for one that the one who asks does not have."""
    turns = store.read_turns(chat)
    if not 0 < number <= len(turns):
        raise MissingError(f"this conversation has no turn {number}")
    return turns[number - 1]


def describe_place(place: str) -> str:
    """A place of a passage's id in words; one that says nothing else, such as a heading, as it is."""
    found = _PLACE.fullmatch(place)
    if not found:
        return place
    kind, first, last = found.groups()
    return f"{_KINDS[kind]}s {first} to {last}" if last else f"{_KINDS[kind]} {first}"


def _read_document(name: str, collection: Collection) -> tuple[Passage, ...]:
    """The passages of a document. Raises `MissingError` where it is not among those that are asked now."""
    documents = collection.open_documents(None)
    if documents is None or name not in documents.names:
        raise MissingError(f"{name!r} is not among the documents that are asked now")
    return documents.read(name)


def _show_passage(passage: Passage, sources: Sequence[Source], opened: str) -> ShownPassage:
    """A passage, with what an answer took from it marked where its text is still the same."""
    cited = [
        source.pieces for source in sources if source.passage.id == passage.id and source.passage.text == passage.text
    ]
    plain = (TextPiece(passage.text, marked=False),)
    return ShownPassage(passage, cited[0] if cited else plain, passage.id == opened)


def _explain_change(sources: Sequence[Source], opened: str, *, is_there: bool, collection: Collection) -> str:
    """What became of the passage that a document was opened at; "" where it is as it was."""
    changed = [collection.explain_change(source.passage) for source in sources if source.passage.id == opened]
    return changed[0] if changed else "" if is_there else CHANGED


@dataclass(frozen=True, slots=True)
class UploadPages:
    """Where files come in; the watcher of the folder then reads them."""

    folder: Path

    def routes(self) -> list[Route]:
        return [Route(UPLOAD_PATH, self.add_documents, methods=["POST"])]

    async def add_documents(self, request: Request) -> Response:
        """Add the files of a form, each unless it cannot be; says which were, and why others were not."""
        added: list[str] = []
        problems: list[Problem] = []
        async with request.form(max_files=MAX_FILES, max_fields=MAX_FILES) as form:
            files = [file for file in form.getlist("file") if isinstance(file, UploadFile) and file.filename]
            for file in files:
                name = file.filename or ""
                try:
                    added.append(await run_in_threadpool(add_document, self.folder, name, await file.read()))
                except ConvagentError as error:
                    problems.append(Problem(name, error.what))
        return render_page("upload.html", {"added": added, "problems": problems}, 200 if added else 400)


def find_upload_folder(collection: Collection) -> Path:
    """The folder that documents are added to. Raises `UsageError` where what is asked is an index or one document."""
    folder = Path(collection.source)
    if not (collection.is_folder and folder.is_dir()):
        raise UsageError("--allow-upload needs a folder of documents", remedy="Name it: --docs ~/notes")
    return folder


def clear_left_uploads(folder: Path) -> None:
    """Remove what an upload left that was ended by force: before the folder is served, none is under way."""
    for left in folder.glob(_BEGUN + "[a-z0-9_]" * 8):  # as `tempfile` names them
        with suppress(OSError):  # it stays, hidden as it is
            left.unlink()


def add_document(folder: Path, name: str, content: bytes) -> str:
    """Write a file into a folder, whole or not at all; its name there.

    Raises `InvalidInputError` for what cannot be read, `UsageError` for a name that is taken or is none, and `RunError`
    where it cannot be written.
    """
    name = clean_name(name)
    if not has_reader(Path(name)):
        raise InvalidInputError(f"is of no kind that can be read ({EXPECTED_SUFFIXES})")
    try:
        handle, written = tempfile.mkstemp(prefix=_BEGUN, dir=folder)  # hidden from the watcher
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            os.link(written, folder / name)  # fails where anything has that name
        finally:
            Path(written).unlink()
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
