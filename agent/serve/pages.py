"""The pages: conversations, one of them with its sources, and what the person said of themselves.

Every page is whole at its own address and works by plain links and forms; htmx swaps parts of the same pages where
scripts run. Questions, passages and statements are data: the templates escape them, and nothing else writes HTML.
"""

import logging
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from urllib.parse import parse_qsl

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route

from agent.chat.citations import cited_sources
from agent.chat.export import to_markdown, to_topics
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.session import Assistant, Session, check_utterance
from agent.chat.store import ChatTurn, Store
from agent.models.protocol import Listener
from agent.serve.request_queue import QueuedQuestion, RequestQueue, StoppedError
from schemas.errors import ConvagentError, MissingError, UsageError
from schemas.records import IndexInfo

HERE = Path(__file__).parent
KEPT = 100  # questions whose page stays after they were answered
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class PendingQuestion:
    """A question that somebody asked in a page, of a conversation or (None) of a new one."""

    id: str
    question: str
    chat: int | None
    job: QueuedQuestion[int]  # gives the conversation that holds the answer


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages over one assistant and one store."""

    assistant: Assistant
    store: Store
    desk: RequestQueue
    info: IndexInfo
    incognito: bool
    asked: dict[str, PendingQuestion] = field(default_factory=dict)

    def routes(self) -> list[Route]:
        return [
            Route("/", self.begin),
            Route("/ask", self.ask, methods=["POST"]),
            Route("/asked/{asked}", self.wait),
            Route("/asked/{asked}/steps", self.steps),
            Route("/asked/{asked}/stop", self.stop, methods=["POST"]),
            Route("/chats/{chat:int}", self.chat),
            Route("/chats/{chat:int}/conversation.md", self.markdown),
            Route("/chats/{chat:int}/topics.json", self.topics),
            Route("/chats/{chat:int}/delete", self.delete, methods=["POST"]),
            Route("/statements", self.remember, methods=["POST"]),
            Route("/statements/{statement}", self.change, methods=["POST"]),
        ]

    def begin(self, request: Request) -> Response:
        """A new conversation; `?q=` looks for words in those that are kept."""
        return self._page(request)

    async def ask(self, request: Request) -> Response:
        form = await _form(request)
        chat = int(form["chat"]) if form.get("chat", "").isdecimal() else None
        try:
            question = check_utterance(form.get("question", ""))
            job = self.desk.submit(lambda listen: self._answer(chat, question, listen))
        except ConvagentError as error:
            return self._page(request, chat, question=form.get("question", ""), problem=error)
        asked = PendingQuestion(secrets.token_urlsafe(8), question, chat, job)
        self.asked[asked.id] = asked
        for old in list(self.asked)[:-KEPT]:
            del self.asked[old]
        return RedirectResponse(f"/asked/{asked.id}", 303)

    def _answer(self, chat: int | None, question: str, listen: Listener) -> int:
        """The conversation that holds the answer."""
        turns = self.store.turns(chat) if chat is not None else ()
        session = Session(self.assistant, self.store, chat, turns)
        session.ask(question, listen)
        return session.chat or 0

    def wait(self, request: Request) -> Response:
        """The steps of an answer while it is being made; then the conversation, or what went wrong."""
        asked = self._asked(request)
        if not asked.job.future.done():
            return self._page(request, asked.chat, asked=asked)
        if problem := _problem_page(asked.job):
            return self._page(request, asked.chat, question=asked.question, problem=problem)
        return RedirectResponse(f"/chats/{asked.job.future.result()}#latest", 303)

    def steps(self, request: Request) -> Response:
        asked = self._asked(request)
        return _html_response("working.html", asked=asked, done=asked.job.future.done())

    def stop(self, request: Request) -> Response:
        asked = self._asked(request)
        asked.job.stop()
        return RedirectResponse(f"/asked/{asked.id}", 303)

    def _asked(self, request: Request) -> PendingQuestion:
        asked = self.asked.get(request.path_params["asked"])
        if asked is None:
            raise MissingError(
                "this question is no longer waiting; if it was answered, its conversation is in the list"
            )
        return asked

    def chat(self, request: Request) -> Response:
        return self._page(request, request.path_params["chat"])

    def markdown(self, request: Request) -> Response:
        chat = request.path_params["chat"]
        text = to_markdown(self.store.turns(chat), self.store.source(chat))
        return _download_response(text.encode(), "text/markdown", f"conversation-{chat}.md")

    def topics(self, request: Request) -> Response:
        chat = request.path_params["chat"]
        content = to_topics(self.store.turns(chat), self.store.statements(), chat)
        return _download_response(content, "application/json", f"conversation-{chat}.topics.json")

    def delete(self, request: Request) -> Response:
        self.store.forget(request.path_params["chat"])
        return RedirectResponse("/", 303)

    async def remember(self, request: Request) -> Response:
        form = await _form(request)
        return self._about(request, form, lambda: self.store.remember(form.get("text", "")))

    async def change(self, request: Request) -> Response:
        """Say a statement otherwise, or (`do=forget`) forget it."""
        form, statement = await _form(request), request.path_params["statement"]
        if form.get("do") == "forget":
            return self._about(request, form, lambda: self.store.delete_statements([statement]))
        return self._about(request, form, lambda: self.store.change(statement, form.get("text", "")))

    def _about(self, request: Request, form: Mapping[str, str], done: Callable[[], object]) -> Response:
        """Something done to the statements, and back to the page that it was done on."""
        back = form.get("back", "").removeprefix("/chats/")
        chat = int(back) if back.isdecimal() else None
        try:
            done()
        except ConvagentError as error:
            return self._page(request, chat, problem=error)
        return RedirectResponse("/" if chat is None else f"/chats/{chat}", 303)

    def failed(self, request: Request, error: Exception) -> Response:
        """What went wrong, in a page."""
        if not isinstance(error, ConvagentError | HTTPException):
            log.error("%s failed", request.url.path, exc_info=error)
        try:
            return self._page(request, problem=error)
        except ConvagentError:  # the store itself may be what fails
            return PlainTextResponse(f"convagent: {_explain_error(error)}\n", _status_code(error))

    def _page(
        self,
        request: Request,
        chat: int | None = None,
        *,
        asked: PendingQuestion | None = None,
        question: str = "",
        problem: BaseException | None = None,
    ) -> Response:
        """A conversation, or the beginning of one."""
        words = request.query_params.get("q", "")
        turns = self.store.turns(chat) if chat is not None else ()
        return _html_response(
            "page.html",
            _status_code(problem),
            chat=chat,
            turns=turns,
            source=self.store.source(chat) if chat is not None else self.assistant.source,
            assistant=self.assistant,
            info=self.info,
            incognito=self.incognito,
            chats=self.store.chats(words),
            words=words,
            statements=self.store.statements(),
            offered=self._offered(turns) if asked is None else (),
            asked=asked,
            question=question,
            problem=_explain_error(problem) if problem else "",
            about_failed=request.url.path.startswith("/statements"),
            here=f"/chats/{chat}" if chat is not None else "/",
        )

    def _offered(self, turns: Sequence[ChatTurn]) -> tuple[str, ...]:
        """What the person said of themselves in the latest turn, and did not yet have remembered."""
        return find_self_disclosures(turns[-1].utterance, self.store.statements()) if turns else ()


def _problem_page(job: QueuedQuestion[int]) -> BaseException | None:
    return StoppedError("the answer was broken off") if job.future.cancelled() else job.future.exception()


def _explain_error(error: BaseException) -> str:
    """An error in plain words."""
    if isinstance(error, HTTPException):
        return "There is no such page." if error.status_code == 404 else f"{error.detail}."
    if not isinstance(error, ConvagentError):
        return f"Something failed inside convagent ({type(error).__name__}: {error})."
    what = f"{error.where}: {error.what}" if error.where else f"{error.what[0].upper()}{error.what[1:]}"
    return f"{what}. {'' if isinstance(error, MissingError) else error.remedy}".strip()


def _status_code(problem: BaseException | None) -> int:
    if problem is None or isinstance(problem, StoppedError):
        return 200
    if isinstance(problem, HTTPException):
        return problem.status_code
    return 404 if isinstance(problem, MissingError) else 400 if isinstance(problem, UsageError) else 500


def _html_response(template: str, status: int = 200, **values: object) -> Response:
    return HTMLResponse(TEMPLATES.get_template(template).render(values), status, {"Cache-Control": "no-store"})


def day(started: str) -> str:
    """A stored moment as the day it was here."""
    return f"{datetime.fromisoformat(started).astimezone():%d %B %Y}".lstrip("0")


def shorten(source: str) -> str:
    """What is asked, without the folders that it is in."""
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
TEMPLATES.globals.update(sources=cited_sources, is_web=is_web_address)
TEMPLATES.filters.update(day=day, short=shorten)


async def _form(request: Request) -> dict[str, str]:
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))


def _download_response(content: bytes, kind: str, name: str) -> Response:
    headers = {"Content-Disposition": f'attachment; filename="{name}"', "Cache-Control": "no-store"}
    return Response(content, media_type=kind, headers=headers)
