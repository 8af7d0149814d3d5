"""The pages: the list of conversations, one of them with its sources, and the statements about the person.

Every page is whole at its own address and works by plain links and forms; htmx swaps parts of the same pages where
scripts run. Questions, passages and statements are data: the templates escape them, and nothing else writes HTML.
"""

import logging
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from agent.chat.export import to_markdown, to_topics
from agent.chat.observer import Observer
from agent.chat.scope import list_folders
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.session import Assistant, Session, check_utterance
from agent.chat.store import ChatTurn, Store
from agent.models.cancellation import AnswerCancelledError
from agent.models.catalogue import list_models
from agent.serve.rendering import (
    choose_headers,
    choose_status,
    explain_error,
    make_download,
    read_form,
    read_number,
    render_page,
)
from agent.serve.request_queue import QueuedQuestion, RequestQueue
from indexes.documents.collection import Document
from indexes.documents.readers import READER_BY_SUFFIX
from schemas.errors import ConvagentError, MissingError, UsageError
from schemas.records import Statement

MAX_FOLDERS = 50  # to choose from
MAX_PENDING = 100  # questions of a user whose page can still be opened, answered or not
MAX_STATEMENT = 500  # characters
CHATS_SHOWN = 50  # conversations of the list at once
NOT_KEPT = "This answer is not kept, and is gone when you leave this page. "
T = TypeVar("T")
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class Draft:
    """What stands in the bar where one asks."""

    question: str = ""
    replaces: int = 0  # the number of the turn, the last, whose place the answer takes; 0 for none


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question asked in a page: the next of a conversation, or (None) the first of a new one."""

    id: str
    user: str
    draft: Draft
    chat: int | None
    job: QueuedQuestion[Session]  # its result is the conversation with the answer


@dataclass(slots=True)
class ModelChoice:
    """The assistant that answers in the pages, which may be replaced by one with another model.

    Only models of the list may be chosen: a request names no file and no server.
    """

    assistant: Assistant
    describe_destination: Callable[[str], str]  # where questions go with a model of that name
    open: Callable[[str], Assistant] | None = None  # None where the model may not be chosen
    _first: Assistant = field(init=False)  # that `/v1` answers with, too
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._first = self.assistant

    @property
    def destination(self) -> str:
        return self.describe_destination(self.assistant.model)

    def list_names(self) -> tuple[str, ...]:
        """The models that can be chosen, the first one first. Raises `MissingError` where none may be."""
        if self.open is None:
            raise MissingError("the model of this server is chosen by whoever runs it")
        installed = [model.name for model in list_models() if model.kind == "language" and model.bytes]
        return tuple(dict.fromkeys((self._first.model, *installed, "none")))

    def choose(self, name: str) -> None:
        """Let the next question be answered with this model; a question in hand keeps its own.

        Raises `UsageError` for one that is not in the list, and what opening a model raises.
        """
        if name not in self.list_names() or self.open is None:
            raise UsageError(f"{name!r} is not in the list of models", remedy="`convagent model pull` fetches others.")
        with self._turn:
            if name == self._first.model:
                self.assistant = self._first
            elif name != self.assistant.model:
                self.assistant = self.open(name)


EMPTY = Draft()


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages over one assistant and one store."""

    models: ModelChoice
    store: Store
    queue: RequestQueue
    incognito: bool
    uploads: Path | None = None  # the folder that documents may be added to
    pending: dict[str, PendingQuestion] = field(default_factory=dict)

    @property
    def assistant(self) -> Assistant:
        """What answers the next question."""
        return self.models.assistant

    def routes(self) -> list[Route]:
        return [
            Route("/model", self.show_models),
            Route("/model", self.choose_model, methods=["POST"]),
            Route("/", self.show_start),
            Route("/ask", self.ask, methods=["POST"]),
            Route("/progress", self.show_progress),
            Route("/asked/{id}", self.show_pending),
            Route("/asked/{id}/steps", self.show_steps),
            Route("/asked/{id}/stop", self.cancel, methods=["POST"]),
            Route("/chats/{chat}", self.show_chat),
            Route("/chats/{chat}/conversation.md", self.download_markdown),
            Route("/chats/{chat}/topics.json", self.download_topics),
            Route("/chats/{chat}/delete", self.delete_chat, methods=["POST"]),
            Route("/statements", self.add_statement, methods=["POST"]),
            Route("/statements/{statement}", self.change_statement, methods=["POST"]),
        ]

    def show_models(self, _request: Request) -> Response:
        """The models that can be chosen."""
        return render_page("model.html", {"names": self.models.list_names(), "chosen": self.assistant.model})

    async def choose_model(self, request: Request) -> Response:
        name = (await read_form(request)).get("model", "")
        await run_in_threadpool(self.models.choose, name)
        return RedirectResponse("/", 303)

    def show_start(self, request: Request) -> Response:
        """The start of a new conversation; with `?q=` the list has only conversations with these words."""
        return self._render_chat(request)

    async def ask(self, request: Request) -> Response:
        form = await read_form(request)
        chat, scope, user = read_number(form.get("chat", "")), form.get("scope"), request.state.user
        draft = Draft(form.get("question", ""), read_number(form.get("replaces", "")) or 0)
        try:
            draft = replace(draft, question=check_utterance(draft.question))
            store = self.store.for_user(user)
            job = self.queue.submit(lambda observer: self._answer(store, chat, draft, scope, observer), user)
        except ConvagentError as error:
            return self._render_chat(request, chat, draft=draft, problem=error)
        pending = PendingQuestion(secrets.token_urlsafe(8), user, draft, chat, job)
        self.pending[pending.id] = pending
        for old in [other.id for other in self.pending.values() if other.user == user][:-MAX_PENDING]:
            del self.pending[old]
        return RedirectResponse(f"/asked/{pending.id}", 303)

    def _answer(self, store: Store, chat: int | None, draft: Draft, scope: str | None, observer: Observer) -> Session:
        """Answer a question; the conversation with the answer. A turn that it replaces stays until it is answered."""
        if chat is None:
            session = Session(self.assistant, store)
        elif draft.replaces:
            session = Session.ask_last_again(self.assistant, store, chat, draft.replaces)
        else:
            session = Session.resume(self.assistant, store, chat)
        session.scope = scope
        session.ask(draft.question, observer)
        return session

    def show_pending(self, request: Request) -> Response:
        """The steps of an answer while it is made; then the conversation, or what went wrong."""
        pending = self._find_pending(request)
        if not pending.job.future.done():
            return self._render_chat(request, pending.chat, pending=pending)
        if problem := _find_problem(pending.job):
            return self._render_chat(request, pending.chat, draft=pending.draft, problem=problem)
        session = pending.job.future.result()
        if session.problem:  # it is in no conversation that could be read again
            return self._render_chat(request, session.chat, problem=session.problem, unkept=session.turns)
        return RedirectResponse(f"/chats/{session.chat}#latest", 303)

    def show_steps(self, request: Request) -> Response:
        """The steps alone, for a page that asks for them again and again."""
        pending = self._find_pending(request)
        return render_page("working.html", self._describe_pending(pending) | {"done": pending.job.future.done()})

    def show_progress(self, _request: Request) -> Response:
        """What is made meanwhile, for a page that asks for it again and again."""
        return render_page("progress.html", {"progress": self.assistant.current.progress})

    def cancel(self, request: Request) -> Response:
        pending = self._find_pending(request)
        pending.job.cancel()
        return RedirectResponse(f"/asked/{pending.id}", 303)

    def _find_pending(self, request: Request) -> PendingQuestion:
        pending = self.pending.get(request.path_params["id"])
        if pending is None or pending.user != request.state.user:
            raise MissingError(
                "this question is no longer waiting; if it was answered, its conversation is in the list"
            )
        return pending

    def _describe_pending(self, pending: PendingQuestion | None) -> dict[str, object]:
        """A question that is waiting, with its place in the queue."""
        return {"pending": pending, "before": self.queue.count_before(pending.job) if pending else 0}

    def show_chat(self, request: Request) -> Response:
        """A conversation; with `?edit=` (the number of its last turn) that question is in the bar, to be asked anew."""
        chat, edited = _find_chat(request), read_number(request.query_params.get("edit", "")) or 0
        turns = self._store_of(request).read_turns(chat) if edited else ()
        draft = Draft(turns[-1].utterance, edited) if turns and edited == len(turns) else Draft()
        return self._render_chat(request, chat, draft=draft)

    def download_markdown(self, request: Request) -> Response:
        chat, store = _find_chat(request), self._store_of(request)
        text = to_markdown(store.read_turns(chat), store.read_source(chat))
        return make_download(text.encode(), "text/markdown", f"conversation-{chat}.md")

    def download_topics(self, request: Request) -> Response:
        chat, store = _find_chat(request), self._store_of(request)
        content = to_topics(store.read_turns(chat), store.list_statements(), chat)
        return make_download(content, "application/json", f"conversation-{chat}.topics.json")

    def delete_chat(self, request: Request) -> Response:
        self._store_of(request).delete_chat(_find_chat(request))
        return RedirectResponse("/", 303)

    async def add_statement(self, request: Request) -> Response:
        form, store = await read_form(request), self._store_of(request)
        return self._change_statements(request, form, lambda: store.add_statement(_read_statement(form)))

    async def change_statement(self, request: Request) -> Response:
        """Give a statement another text, or (`do=forget`) delete it."""
        form, store = await read_form(request), self._store_of(request)
        statement = request.path_params["statement"]
        if form.get("do") == "forget":
            return self._change_statements(request, form, lambda: store.delete_statements([statement]))
        return self._change_statements(request, form, lambda: store.change_statement(statement, _read_statement(form)))

    def _store_of(self, request: Request) -> Store:
        """What is kept of the one who asks."""
        return self.store.for_user(request.state.user)

    def _change_statements(self, request: Request, form: Mapping[str, str], change: Callable[[], object]) -> Response:
        """Change the statements, and go back to the page where this was asked for."""
        back = form.get("back", "").removeprefix("/chats/")
        chat = read_number(back)
        try:
            change()
        except ConvagentError as error:
            return self._render_chat(request, chat, problem=error)
        return RedirectResponse("/" if chat is None else f"/chats/{chat}", 303)

    def show_error(self, request: Request, error: Exception) -> Response:
        """What went wrong, in a page."""
        if not isinstance(error, ConvagentError | HTTPException):
            log.error("%s failed", request.url.path, exc_info=error)
        try:
            if request.state.user is not None:
                return self._render_chat(request, problem=error)
        except ConvagentError:  # the store itself may be what fails
            pass
        return PlainTextResponse(f"convagent: {explain_error(error)}\n", choose_status(error))

    def _render_chat(
        self,
        request: Request,
        chat: int | None = None,
        *,
        pending: PendingQuestion | None = None,
        draft: Draft = EMPTY,
        problem: BaseException | None = None,
        unkept: tuple[ChatTurn, ...] = (),
    ) -> Response:
        """A conversation, or the start of one. Turns that could not be kept are shown as they are."""
        store, collection = self._store_of(request), self.assistant.collection
        turns = unkept or (store.read_turns(chat) if chat is not None else ())
        statements = _read(store.list_statements, required=not unkept)
        values = {
            "chat": chat,
            "turns": turns[:-1] if pending and pending.draft.replaces else turns,
            "source": self.assistant.source if chat is None or unkept else store.read_source(chat),
            "assistant": self.assistant,
            "collection": collection,
            "progress": self.assistant.current.progress,
            "left_out": self.assistant.current.left_out,
            "info": collection.index.info,
            "scope": turns[-1].scope if turns else self.assistant.initial_scope,
            "folders": _list_folders(collection.list_documents()) if collection.is_folder else [],
            "incognito": self.incognito,
            "destination": self.models.destination,
            "suffixes": ",".join(READER_BY_SUFFIX) if self.uploads else "",
            "can_choose": self.models.open is not None,
            "user": request.state.user,
            "statements": statements,
            "offers": _find_offers(turns, statements) if pending is None and not unkept else (),
            "draft": draft,
            "can_change": pending is None and not unkept,
            "problem": (NOT_KEPT if unkept else "") + (explain_error(problem) if problem else ""),
            "about_failed": request.url.path.startswith("/statements"),
            "here": f"/chats/{chat}" if chat is not None else "/",
        }
        values |= self._describe_pending(pending) | _list_chats(request, store, required=not unkept)
        status = 200 if unkept else choose_status(problem)
        return render_page("page.html", values, status, choose_headers(problem))


def _list_chats(request: Request, store: Store, *, required: bool) -> dict[str, object]:
    """The list of conversations: those with the words of `?q=`, from the place `?from=` on."""
    words, first = request.query_params.get("q", ""), read_number(request.query_params.get("from", "")) or 0
    found = _read(lambda: store.list_chats(words, first, CHATS_SHOWN + 1), required=required)
    older = first + CHATS_SHOWN if len(found) > CHATS_SHOWN else 0
    return {"words": words, "chats": found[:CHATS_SHOWN], "first": first, "older": older}


def _find_offers(turns: Sequence[ChatTurn], known: Sequence[Statement]) -> tuple[str, ...]:
    """Statements about the person in the latest question that are not kept yet."""
    said = [turn.utterance for turn in turns if turn.kind == "question"][-1:]
    return find_self_disclosures(said[0], known) if said else ()


def _list_folders(documents: Sequence[Document]) -> list[str]:
    return list_folders(document.path for document in documents)[:MAX_FOLDERS]


def _read(read: Callable[[], tuple[T, ...]], *, required: bool) -> tuple[T, ...]:
    """What is read of the store. Where that fails and it is not required, nothing."""
    try:
        return read()
    except ConvagentError:
        if required:
            raise
        return ()


def _find_chat(request: Request) -> int:
    """The conversation of a path. Raises `MissingError` for what can be none."""
    chat = read_number(request.path_params["chat"])
    if chat is None:
        raise MissingError("there is no such page")
    return chat


def _find_problem(job: QueuedQuestion[Any]) -> BaseException | None:
    return AnswerCancelledError("the answer was stopped") if job.future.cancelled() else job.future.exception()


def _read_statement(form: Mapping[str, str]) -> str:
    """The statement of a form. Raises `UsageError` for one that is too long."""
    text = form.get("text", "")
    if len(text) > MAX_STATEMENT:
        raise UsageError(
            f"the statement is too long: {len(text)} characters, where at most {MAX_STATEMENT} can be kept"
        )
    return text
