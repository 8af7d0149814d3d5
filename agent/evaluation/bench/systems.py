"""The systems that are compared: the default, and what it is without each of its parts."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.runs.answer_topics import RunRequest
from schemas.records import Mode, Plan, QueryPart

QUERY = Plan().query


@dataclass(frozen=True, slots=True)
class System:
    """A way to answer: what it changes of the default."""

    name: str
    asks_model: bool = False  # whether it asks the model of `--model`; else it is run with `--model none`
    embedder: str | None = None
    query: tuple[QueryPart, ...] = QUERY
    mode: Mode | None = None
    min_probability: float | None = None

    @property
    def slug(self) -> str:
        """Its name in a file's."""
        return "-".join(self.name.replace(",", "").split())


DEFAULT = System("default", asks_model=True)
NO_MODEL = System("no model")
WORDS_ONLY = System("no model, words only", embedder="none")
SYSTEMS = (
    DEFAULT,
    System("hypothetical answer", asks_model=True, query=("context", "hyde", "previous")),
    NO_MODEL,
    WORDS_ONLY,
    System("no previous reply", query=("context",)),
    System("no words of the conversation", query=("previous",)),
    System("raw utterance", query=()),
    System("raw utterance, words only", query=(), embedder="none"),
)
WITH_LABELS = (
    System("human rewrite", mode="manual"),
    System("human rewrite, words only", mode="manual", embedder="none"),
)
NO_STATEMENTS = System("no statements", min_probability=1.0)


def format_command(request: RunRequest, run: Path) -> str:
    """The command line that makes the same run, in the folder of the benchmark's files."""
    index = request.origin.index
    words = ["convagent", "answer", request.topics.name, *(("-i", index.name) if index else ()), *_list_flags(request)]
    return shlex.join([*words, "-o", run.name])


def _list_flags(request: RunRequest) -> Iterator[str]:
    """The flags that differ from their defaults."""
    plan, origin = request.plan, request.origin
    yield from ("-m", request.model)
    if origin.embedder:
        yield from ("--embedder", origin.embedder)
    if request.mode:
        yield from ("--mode", request.mode)
    if origin.ranking:
        yield from ("--ranking", origin.ranking.name, "--on-error", origin.on_error)
    if request.edition:
        yield from ("--format", request.edition)
    if plan.query != QUERY:
        yield from ("--query", ",".join(plan.query))
    if plan.k != Plan().k:
        yield from ("-k", str(plan.k))
    if plan.clarify:
        yield "--clarify"
    if request.min_probability is not None:
        yield from ("--statement-threshold", f"{request.min_probability:g}")
