"""Templates and responses of the pages. The templates escape what they are given, and nothing else writes HTML."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from urllib.parse import parse_qsl, quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.convertors import IntegerConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from agent.chat.citations import UNSURE_NOTE, shown_sources
from agent.chat.export import mark_sentences
from agent.serve.request_queue import RETRY_SECONDS, BusyError
from indexes.documents.collection import GONE
from indexes.documents.reading import READER_BY_SUFFIX
from indexes.text.control_characters import strip_directions
from indexes.text.units import read_text_blocks
from schemas.errors import ConvagentError, MissingError, UsageError, format_count, list_with_limit
from schemas.records import Passage

HERE = Path(__file__).parent
UNCACHED = {"Cache-Control": "no-store"}
_BETWEEN_CELLS = re.compile(r"; (?=(?:(?!; ).)*?: )", re.DOTALL)  # a value may have a semicolon, too


def render_page(
    template: str, values: Mapping[str, object], status: int = 200, headers: Mapping[str, str] = MappingProxyType({})
) -> Response:
    """A template with its values, as a response that no cache keeps."""
    return HTMLResponse(TEMPLATES.get_template(template).render(values), status, {**UNCACHED, **headers})


async def read_form(request: Request) -> dict[str, str]:
    """The fields of a form; what is no UTF-8 is replaced."""
    body = (await request.body()).decode("utf-8", "replace")
    return dict(parse_qsl(body, keep_blank_values=True))


class NumberConvertor(IntegerConvertor):
    """A number in a path that fits into a row's id."""

    regex = "[0-9]{1,18}"


register_url_convertor("number", NumberConvertor())


def read_number(text: str) -> int | None:
    """A number that a form or a query has; None for anything else, and for one beyond all bounds."""
    return int(text) if re.fullmatch(NumberConvertor.regex, text) else None


def explain_error(error: BaseException) -> str:
    if isinstance(error, HTTPException):
        return "There is no such page." if error.status_code == 404 else f"{error.detail}."
    if not isinstance(error, ConvagentError):
        return f"Something failed inside convagent ({type(error).__name__}: {error})."
    what = f"{error.where}: {error.what}" if error.where else f"{error.what[0].upper()}{error.what[1:]}"
    return f"{what}. {'' if isinstance(error, MissingError) else error.remedy}".strip()


def choose_status(problem: BaseException | None) -> int:
    if isinstance(problem, HTTPException):
        return problem.status_code
    kinds = ((BusyError, 503), (MissingError, 404), (UsageError, 400))
    return next((status for kind, status in kinds if isinstance(problem, kind)), 500)


def choose_headers(problem: BaseException | None) -> dict[str, str]:
    return {"Retry-After": str(RETRY_SECONDS)} if isinstance(problem, BusyError) else {}


def format_day(moment: str | float) -> str:
    """The local day of a moment (ISO 8601, or seconds since 1970)."""
    exact = datetime.fromisoformat(moment) if isinstance(moment, str) else datetime.fromtimestamp(moment, UTC)
    return f"{exact.astimezone():%d %B %Y}".lstrip("0")


def is_web_address(url: str) -> bool:
    """Whether an address of a passage may be linked: `javascript:` and the like may not."""
    return url.startswith(("http://", "https://"))


def link_document(passage: Passage, chat: int | None, turn: int) -> str:
    """The address of a passage's document, opened at it; what an answer took from it is marked where that is kept."""
    name = passage.document
    kept = {} if chat is None else {"chat": str(chat), "turn": str(turn)}
    fields = {"at": passage.id.removeprefix(f"{name}:")} | kept
    return f"/documents/{quote(name)}?{urlencode(fields)}#cited"


def read_row(text: str) -> list[tuple[str, str]]:
    """The names and values of a passage that is a row of a table and nothing else; nothing of any other."""
    blocks = list(read_text_blocks(text))
    if len(blocks) != 1 or blocks[0].kind != "row":
        return []
    parts = [part.partition(": ") for part in _BETWEEN_CELLS.split(blocks[0].text.removesuffix("."))]
    return [(name, value) for name, _, value in parts] if len(parts) > 1 else []


TEMPLATES = Environment(
    # text from outside must not be shown in another order than it has
    finalize=lambda value: strip_directions(value) if isinstance(value, str) else value,
    loader=FileSystemLoader(HERE / "templates"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
TEMPLATES.globals.update(
    shown_sources=shown_sources,
    is_web_address=is_web_address,
    mark_sentences=mark_sentences,
    link_document=link_document,
    read_row=read_row,
    GONE=GONE,
    UNSURE_NOTE=UNSURE_NOTE,
    READER_BY_SUFFIX=READER_BY_SUFFIX,
    format_count=format_count,
)
TEMPLATES.filters.update(format_day=format_day, list_with_limit=list_with_limit)
