"""The pages: the list of conversations, one of them with its sources, and the statements about the person.

Every page is whole at its own address and works by plain links and forms; htmx swaps parts of the same pages where
scripts run. Questions, passages and statements are data: the templates escape them, and nothing else writes HTML.
"""

import logging
import secrets
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from agent.chat.export import render_conversation
from agent.chat.scope import list_folders
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.session import Assistant, Observer, Session, check_utterance
from agent.chat.small_talk import suggest_follow_ups, suggest_questions
from agent.chat.store import ChatTurn, Store
from agent.models.cancellation import AnswerCancelledError
from agent.serve.rendering import (
    UNCACHED,
    choose_headers,
    choose_status,
    explain_error,
    read_form,
    read_number,
    render_page,
)
from agent.serve.request_queue import QueuedQuestion, RequestQueue
from schemas.errors import ConvagentError, MissingError, UsageError

MAX_FOLDERS = 50  # to choose from
MAX_PENDING = 100  # questions of a user whose page can still be opened, answered or not
MAX_STATEMENT = 500  # characters
CHATS_SHOWN = 500  # in the list, the latest; a search finds others
NOT_KEPT = "This answer is not kept, and is gone when you leave this page. "
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question asked in a page: the next of a conversation, or (None) the first of a new one."""

    id: str
    question: str
    replaces: int  # the number of the turn whose place the answer takes; 0 for none
    chat: int | None
    job: QueuedQuestion[Session]  # its result is the conversation with the answer


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages over one store, and the assistant that answers in them."""

    assistant: Assistant
    store: Store
    queue: RequestQueue
    destination: str  # where questions go, in words
    incognito: bool = False
    uploads: Path | None = None  # the folder that documents may be added to
    is_own: bool = False  # whether the one who asks may choose the model
    pending: dict[str, PendingQuestion] = field(default_factory=dict)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.show_chat),
            Route("/ask", self.ask, methods=["POST"]),
            Route("/progress", self.show_progress),
            Route("/asked/{id}", self.show_pending),
            Route("/asked/{id}/steps", self.show_steps),
            Route("/asked/{id}/stop", self.cancel, methods=["POST"]),
            Route("/chats/{chat:number}", self.show_chat),
            Route("/chats/{chat:number}/conversation{suffix}", self.download),
            Route("/chats/{chat:number}/delete", self.delete_chat, methods=["POST"]),
            Route("/chats/{chat:number}/title", self.rename_chat, methods=["POST"]),
            Route("/chats/{chat:number}/turns/{turn:number}/rating", self.rate_turn, methods=["POST"]),
            Route("/statements", self.change_statement, methods=["POST"]),
            Route("/statements/{statement}", self.change_statement, methods=["POST"]),
        ]

    async def ask(self, request: Request) -> Response:
        form = await read_form(request)
        chat, scope, user = read_number(form.get("chat", "")), form.get("scope"), request.state.user
        question, replaces = form.get("question", ""), read_number(form.get("replaces", "")) or 0
        try:
            question = check_utterance(question)
            answer = partial(self._answer, self.store.for_user(user), chat, question, replaces, scope)
            job = self.queue.submit(answer, user)
        except ConvagentError as error:
            return self._render_chat(request, chat, question=question, replaces=replaces, problem=error)
        pending = PendingQuestion(secrets.token_urlsafe(8), question, replaces, chat, job)
        self.pending[pending.id] = pending
        for old in [other.id for other in self.pending.values() if other.job.user == user][:-MAX_PENDING]:
            del self.pending[old]
        return RedirectResponse(f"/asked/{pending.id}", 303)

    def _answer(
        self, store: Store, chat: int | None, question: str, replaces: int, scope: str | None, observer: Observer
    ) -> Session:
        """The conversation with the answer. A turn that it replaces stays until it is answered."""
        session = Session.resume(self.assistant, store, chat, replaces)
        session.scope = scope
        session.ask(question, observer)
        return session

    def show_pending(self, request: Request) -> Response:
        """The steps of an answer while it is made; then the conversation, or what went wrong."""
        pending = self._find_pending(request)
        if not pending.job.future.done():
            return self._render_chat(request, pending.chat, pending=pending)
        stopped = AnswerCancelledError("the answer was stopped")
        if problem := stopped if pending.job.future.cancelled() else pending.job.future.exception():
            asked, replaces = pending.question, pending.replaces
            return self._render_chat(request, pending.chat, question=asked, replaces=replaces, problem=problem)
        session = pending.job.future.result()
        if session.problem:  # it is in no conversation that could be read again
            return self._render_chat(request, session.chat, problem=session.problem, unkept=session.turns)
        return RedirectResponse(f"/chats/{session.chat}#latest", 303)

    def show_steps(self, request: Request) -> Response:
        """The steps alone, for a page that asks for them again and again."""
        return render_page("working.html", {"pending": self._find_pending(request), "pages": self})

    def show_progress(self, _request: Request) -> Response:
        """What is made meanwhile, for a page that asks for it again and again."""
        return render_page("progress.html", {"progress": self.assistant.current.progress})

    def cancel(self, request: Request) -> Response:
        pending = self._find_pending(request)
        pending.job.cancel()
        return RedirectResponse(f"/asked/{pending.id}", 303)

    def _find_pending(self, request: Request) -> PendingQuestion:
        pending = self.pending.get(request.path_params["id"])
        if pending is None or pending.job.user != request.state.user:
            raise MissingError("this question no longer waits; if it was answered, its conversation is in the list")
        return pending

    def show_chat(self, request: Request) -> Response:
        """A conversation, or the start of one; with `?edit=` (a turn) that question is in the bar again."""
        return self._render_chat(request, request.path_params.get("chat"))

    def download(self, request: Request) -> Response:
        """A conversation as Markdown (`.md`) or iKAT topics (`.json`)."""
        chat, suffix = request.path_params["chat"], request.path_params["suffix"]
        headers = {"Content-Disposition": f'attachment; filename="conversation-{chat}{suffix}"', **UNCACHED}
        content = render_conversation(self._store_of(request), chat, suffix)
        return Response(content, media_type="application/octet-stream", headers=headers)

    def delete_chat(self, request: Request) -> Response:
        self._store_of(request).delete_chat(request.path_params["chat"])
        return RedirectResponse("/", 303)

    async def rename_chat(self, request: Request) -> Response:
        chat, form = request.path_params["chat"], await read_form(request)
        self._store_of(request).rename_chat(chat, form.get("title", ""))
        return RedirectResponse(f"/chats/{chat}", 303)

    async def rate_turn(self, request: Request) -> Response:
        chat, turn, form = request.path_params["chat"], request.path_params["turn"], await read_form(request)
        self._store_of(request).rate_turn(chat, turn, form.get("rating", ""))
        return RedirectResponse(f"/chats/{chat}#asked-{turn}", 303)

    async def change_statement(self, request: Request) -> Response:
        """Add a statement, give one another text, or (`do=forget`) delete it; then back to where this was asked for."""
        form, store = await read_form(request), self._store_of(request)
        id, text = request.path_params.get("statement", ""), form.get("text", "")
        chat = read_number(form.get("back", "").removeprefix("/chats/"))
        try:
            if form.get("do") == "forget":
                store.delete_statements([id])
            elif len(text) > MAX_STATEMENT:
                told = f"{len(text)} characters, where at most {MAX_STATEMENT} can be kept"
                raise UsageError(f"the statement is too long: {told}")
            elif id:
                store.change_statement(id, text)
            else:
                store.add_statement(text)
        except ConvagentError as error:
            return self._render_chat(request, chat, problem=error)
        return RedirectResponse("/" if chat is None else f"/chats/{chat}", 303)

    def _store_of(self, request: Request) -> Store:
        """What is kept of the one who asks."""
        return self.store.for_user(request.state.user)

    def show_error(self, request: Request, error: Exception) -> Response:
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
        question: str = "",
        replaces: int = 0,
        problem: BaseException | None = None,
        unkept: tuple[ChatTurn, ...] = (),
    ) -> Response:
        """A conversation, or the start of one. Turns that could not be kept are shown as they are."""
        store, assistant = self._store_of(request), self.assistant
        turns = unkept or (store.read_turns(chat) if chat is not None else ())
        edited = read_number(request.query_params.get("edit", "")) or 0
        if 0 < edited <= len(turns):
            question, replaces = turns[edited - 1].utterance, edited
        said = [turn.utterance for turn in turns if turn.kind == "question"][-1:]
        collection = assistant.collection
        folders = list_folders(collection.list_documents()) if collection.is_folder else []
        statements, words = store.list_statements(), request.query_params.get("q", "")
        values = {
            "words": words,
            "chats": store.list_chats(words, CHATS_SHOWN),
            "ratings": {} if chat is None or unkept else store.read_ratings(chat),
            "starters": () if turns or pending else suggest_questions(collection),
            "follow_ups": suggest_follow_ups(turns[-1], collection) if turns and not pending and not unkept else (),
            "chat": chat,
            "title": "" if chat is None or unkept else store.read_title(chat),
            "turns": turns[: pending.replaces - 1] if pending and pending.replaces else turns,
            "source": assistant.source if chat is None or unkept else store.read_source(chat),
            "assistant": assistant,
            "pages": self,
            "scope": turns[-1].scope if turns else assistant.initial_scope,
            "folders": folders[:MAX_FOLDERS],
            "user": request.state.user,
            "statements": statements,
            "offers": find_self_disclosures(said[0], statements) if said and pending is None and not unkept else (),
            "question": question,
            "replaces": replaces,
            "pending": pending,
            "can_change": pending is None and not unkept,
            "problem": (NOT_KEPT if unkept else "") + (explain_error(problem) if problem else ""),
            "about_failed": request.url.path.startswith("/statements"),
            "here": f"/chats/{chat}" if chat is not None else "/",
        }
        is_fine = problem is None or unkept or isinstance(problem, AnswerCancelledError)
        status = 200 if is_fine else choose_status(problem)
        return render_page("page.html", values, status, choose_headers(problem))
