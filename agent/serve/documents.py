"""A whole document as a page, opened at a passage that an answer cites.

The text is that of the document's passages in the index, in their order: no file is read because a request names it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent.chat.citations import Source, TextPiece, shown_sources
from agent.chat.session import Assistant
from agent.chat.store import ChatTurn, Store
from agent.serve.rendering import read_number, render_page
from indexes.documents.collection import CHANGED, Collection
from schemas.errors import MissingError
from schemas.records import Passage

PASSAGES_SHOWN = 200  # of a document at once
_PLACE = re.compile(r"(p|slide|message|)(\d+)(?:-(\d+))?(?:\.\d+)?")
_KINDS = {"p": "page", "slide": "slide", "message": "message", "": "line"}


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
