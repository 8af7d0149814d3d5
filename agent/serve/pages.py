"""The pages: the list of conversations, one of them with its sources, and the statements about the person.

Every page is whole at its own address and works by plain links and forms; htmx swaps parts of the same pages where
scripts run. Questions, passages and statements are data: the templates escape them, and nothing else writes HTML.
"""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from agent.chat.cancellation import AnswerCancelledError
from agent.chat.citations import shown_sources
from agent.chat.export import mark_sentences, to_markdown, to_topics
from agent.chat.observer import Observer
from agent.chat.scope import list_folders
from agent.chat.selection.dated_items import describe_date
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.session import Assistant, Session, check_utterance
from agent.chat.small_talk import ANSWERED
from agent.chat.store import ChatTurn, Store
from agent.serve.request_queue import QueuedQuestion, RequestQueue
from schemas.errors import ConvagentError, MissingError, UsageError, list_with_limit

HERE = Path(__file__).parent
MAX_FOLDERS = 50  # to choose from
MAX_PENDING = 100  # questions whose page can still be opened, answered or not
NOT_KEPT = "This answer is not kept, and is gone when you leave this page. "
T = TypeVar("T")
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question asked in a page: the next of a conversation, or (None) the first of a new one."""

    id: str
    question: str
    chat: int | None
    job: QueuedQuestion[Session]  # its result is the conversation with the answer


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages over one assistant and one store."""

    assistant: Assistant
    store: Store
    queue: RequestQueue
    incognito: bool
    pending: dict[str, PendingQuestion] = field(default_factory=dict)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.show_start),
            Route("/ask", self.ask, methods=["POST"]),
            Route("/progress", self.show_progress),
            Route("/asked/{id}", self.show_pending),
            Route("/asked/{id}/steps", self.show_steps),
            Route("/asked/{id}/stop", self.cancel, methods=["POST"]),
            Route("/chats/{chat:int}", self.show_chat),
            Route("/chats/{chat:int}/conversation.md", self.download_markdown),
            Route("/chats/{chat:int}/topics.json", self.download_topics),
            Route("/chats/{chat:int}/delete", self.delete_chat, methods=["POST"]),
            Route("/statements", self.add_statement, methods=["POST"]),
            Route("/statements/{statement}", self.change_statement, methods=["POST"]),
        ]

    def show_start(self, request: Request) -> Response:
        """The start of a new conversation; with `?q=` the list has only conversations with these words."""
        return self._render_page(request)

    async def ask(self, request: Request) -> Response:
        form = await _read_form(request)
        chat = int(form["chat"]) if form.get("chat", "").isdecimal() else None
        scope = form.get("scope")
        try:
            question = check_utterance(form.get("question", ""))
            job = self.queue.submit(lambda observer: self._answer(chat, question, scope, observer))
        except ConvagentError as error:
            return self._render_page(request, chat, question=form.get("question", ""), problem=error)
        pending = PendingQuestion(secrets.token_urlsafe(8), question, chat, job)
        self.pending[pending.id] = pending
        for old in list(self.pending)[:-MAX_PENDING]:
            del self.pending[old]
        return RedirectResponse(f"/asked/{pending.id}", 303)

    def _answer(self, chat: int | None, question: str, scope: str | None, observer: Observer) -> Session:
        """Answer a question; the conversation with the answer."""
        turns = self.store.read_turns(chat) if chat is not None else ()
        session = Session(self.assistant, self.store, chat, turns, scope)
        session.ask(question, observer)
        return session

    def show_pending(self, request: Request) -> Response:
        """The steps of an answer while it is made; then the conversation, or what went wrong."""
        pending = self._find_pending(request)
        if not pending.job.future.done():
            return self._render_page(request, pending.chat, pending=pending)
        if problem := _find_problem(pending.job):
            return self._render_page(request, pending.chat, question=pending.question, problem=problem)
        session = pending.job.future.result()
        if session.problem:  # it is in no conversation that could be read again
            return self._render_page(request, session.chat, problem=session.problem, unkept=session.turns)
        return RedirectResponse(f"/chats/{session.chat}#latest", 303)

    def show_steps(self, request: Request) -> Response:
        """The steps alone, for a page that asks for them again and again."""
        pending = self._find_pending(request)
        return _html_response("working.html", pending=pending, done=pending.job.future.done())

    def show_progress(self, _request: Request) -> Response:
        """What is made meanwhile, for a page that asks for it again and again."""
        return _html_response("progress.html", progress=self.assistant.current.progress)

    def cancel(self, request: Request) -> Response:
        pending = self._find_pending(request)
        pending.job.cancel()
        return RedirectResponse(f"/asked/{pending.id}", 303)

    def _find_pending(self, request: Request) -> PendingQuestion:
        pending = self.pending.get(request.path_params["id"])
        if pending is None:
            what = "this question is no longer waiting; if it was answered, its conversation is in the list"
            raise MissingError(what)
        return pending

    def show_chat(self, request: Request) -> Response:
        return self._render_page(request, request.path_params["chat"])

    def download_markdown(self, request: Request) -> Response:
        chat = request.path_params["chat"]
        text = to_markdown(self.store.read_turns(chat), self.store.read_source(chat))
        return _download_response(text.encode(), "text/markdown", f"conversation-{chat}.md")

    def download_topics(self, request: Request) -> Response:
        chat = request.path_params["chat"]
        content = to_topics(self.store.read_turns(chat), self.store.list_statements(), chat)
        return _download_response(content, "application/json", f"conversation-{chat}.topics.json")

    def delete_chat(self, request: Request) -> Response:
        self.store.delete_chat(request.path_params["chat"])
        return RedirectResponse("/", 303)

    async def add_statement(self, request: Request) -> Response:
        form = await _read_form(request)
        return self._change_statements(request, form, lambda: self.store.add_statement(form.get("text", "")))

    async def change_statement(self, request: Request) -> Response:
        """Give a statement another text, or (`do=forget`) delete it."""
        form, statement = await _read_form(request), request.path_params["statement"]
        if form.get("do") == "forget":
            return self._change_statements(request, form, lambda: self.store.delete_statements([statement]))
        return self._change_statements(
            request, form, lambda: self.store.change_statement(statement, form.get("text", ""))
        )

    def _change_statements(self, request: Request, form: Mapping[str, str], change: Callable[[], object]) -> Response:
        """Change the statements, and go back to the page where this was asked for."""
        back = form.get("back", "").removeprefix("/chats/")
        chat = int(back) if back.isdecimal() else None
        try:
            change()
        except ConvagentError as error:
            return self._render_page(request, chat, problem=error)
        return RedirectResponse("/" if chat is None else f"/chats/{chat}", 303)

    def show_error(self, request: Request, error: Exception) -> Response:
        """What went wrong, in a page."""
        if not isinstance(error, ConvagentError | HTTPException):
            log.error("%s failed", request.url.path, exc_info=error)
        try:
            return self._render_page(request, problem=error)
        except ConvagentError:  # the store itself may be what fails
            return PlainTextResponse(f"convagent: {_explain_error(error)}\n", _status_code(error))

    def _render_page(
        self,
        request: Request,
        chat: int | None = None,
        *,
        pending: PendingQuestion | None = None,
        question: str = "",
        problem: BaseException | None = None,
        unkept: tuple[ChatTurn, ...] = (),
    ) -> Response:
        """A conversation, or the start of one. Turns that could not be kept are shown as they are."""
        words = request.query_params.get("q", "")
        turns = unkept or (self.store.read_turns(chat) if chat is not None else ())
        return _html_response(
            "page.html",
            200 if unkept else _status_code(problem),
            chat=chat,
            turns=turns,
            source=self.assistant.source if chat is None or unkept else self.store.read_source(chat),
            assistant=self.assistant,
            collection=(collection := self.assistant.collection),
            progress=self.assistant.current.progress,
            info=collection.index.info,
            scope=turns[-1].scope if turns else self.assistant.initial_scope,
            folders=list_folders(collection.list_documents())[:MAX_FOLDERS] if collection.is_folder else [],
            incognito=self.incognito,
            chats=_read(lambda: self.store.list_chats(words), required=not unkept),
            words=words,
            statements=_read(self.store.list_statements, required=not unkept),
            offers=self._find_offers(turns) if pending is None and not unkept else (),
            pending=pending,
            question=question,
            problem=(NOT_KEPT if unkept else "") + (_explain_error(problem) if problem else ""),
            about_failed=request.url.path.startswith("/statements"),
            here=f"/chats/{chat}" if chat is not None else "/",
        )

    def _find_offers(self, turns: Sequence[ChatTurn]) -> tuple[str, ...]:
        """Statements about the person in the latest question that are not kept yet."""
        said = [turn.utterance for turn in turns if turn.kind == "question"][-1:]
        return find_self_disclosures(said[0], self.store.list_statements()) if said else ()


def _read(read: Callable[[], tuple[T, ...]], *, required: bool) -> tuple[T, ...]:
    """What is read of the store. Where that fails and it is not required, nothing."""
    try:
        return read()
    except ConvagentError:
        if required:
            raise
        return ()


def _find_problem(job: QueuedQuestion[Any]) -> BaseException | None:
    return AnswerCancelledError("the answer was stopped") if job.future.cancelled() else job.future.exception()


def _explain_error(error: BaseException) -> str:
    """An error in plain words."""
    if isinstance(error, HTTPException):
        return "There is no such page." if error.status_code == 404 else f"{error.detail}."
    if not isinstance(error, ConvagentError):
        return f"Something failed inside convagent ({type(error).__name__}: {error})."
    what = f"{error.where}: {error.what}" if error.where else f"{error.what[0].upper()}{error.what[1:]}"
    return f"{what}. {'' if isinstance(error, MissingError) else error.remedy}".strip()


def _status_code(problem: BaseException | None) -> int:
    if problem is None or isinstance(problem, AnswerCancelledError):
        return 200
    if isinstance(problem, HTTPException):
        return problem.status_code
    return 404 if isinstance(problem, MissingError) else 400 if isinstance(problem, UsageError) else 500


def _html_response(template: str, status: int = 200, **values: object) -> Response:
    return HTMLResponse(TEMPLATES.get_template(template).render(values), status, {"Cache-Control": "no-store"})


def format_day(started: str) -> str:
    """The local day of a stored moment (ISO 8601)."""
    return f"{datetime.fromisoformat(started).astimezone():%d %B %Y}".lstrip("0")


def shorten_source(source: str) -> str:
    """The name of a folder or index, without the folders that it is in."""
    return ", ".join(Path(path).name for path in source.split(", "))


def is_web_address(url: str) -> bool:
    """Whether an address of a passage may be linked: `javascript:` and the like may not."""
    return url.startswith(("http://", "https://"))


TEMPLATES = Environment(
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals.update(
    ANSWERED=ANSWERED,
    shown_sources=shown_sources,
    describe_date=describe_date,
    is_web_address=is_web_address,
    mark_sentences=mark_sentences,
)
TEMPLATES.filters.update(format_day=format_day, shorten_source=shorten_source, list_with_limit=list_with_limit)


async def _read_form(request: Request) -> dict[str, str]:
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))


def _download_response(content: bytes, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type=kind, headers=headers)
