"""Documents that are added through the page (`serve --allow-upload`): files go into the folder, none is replaced."""

import os
import re
import tempfile
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import UploadFile
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.serve.rendering import render_page
from indexes.documents.collection import Collection
from indexes.documents.readers import EXPECTED_SUFFIXES, has_reader
from schemas.errors import ConvagentError, InvalidInputError, RunError, UsageError
from schemas.records import Problem

UPLOAD_PATH = "/upload"
MAX_FILES = 50  # of a request
MAX_NAME_BYTES = 200
_BEGUN = ".upload-"  # the beginning of the name of a file that is being written
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069<>:"|?*]')


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
