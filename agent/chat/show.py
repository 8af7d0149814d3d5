"""What `convagent show` prints: a conversation of a trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.chat.export import mark_sentences
from agent.runs.trace import read_trace
from agent.terminal.escaping import defuse_citations
from agent.terminal.output import open_stdout, to_one_line, to_plain_text
from schemas.errors import InvalidInputError

if TYPE_CHECKING:
    from schemas.records import TurnResult


def show_conversation(path: Path, topic: str | None) -> None:
    """One conversation of a trace, by default its first. Raises `InvalidInputError` where it holds no such topic."""
    trace = read_trace(path)
    topics: dict[str, list[str]] = {}  # with the ids of their turns
    for turn_id in trace.places:
        topics.setdefault(turn_id.rpartition("_")[0], []).append(turn_id)
    if not topics:
        raise InvalidInputError("holds no answered turn", where=str(path))
    wanted = topic if topic is not None else next(iter(topics))
    if wanted not in topics:
        raise InvalidInputError(f"holds no topic {wanted!r} (there are: {', '.join(topics)})", where=str(path))
    console = open_stdout()
    settings = trace.settings
    about = f"{settings.model}, {settings.edition}, {settings.mode}"
    console.print(to_plain_text(f"Conversation {wanted}", "bold"), to_plain_text(f"({about})\n", "dim"))
    for line in trace.lines(topics[wanted]):
        _show_answered(console, line.answered)


def _show_answered(console: Any, turn: "TurnResult") -> None:
    def say(text: str, style: str = "") -> None:
        console.print(to_plain_text(text, style))

    say(f"{turn.turn_id}  {turn.query.utterance}", "bold")
    say(f"searched for “{turn.query.standalone}”, {len(turn.hits)} passages", "dim")
    for chosen in turn.selected_statements:
        say(f"knowing: {chosen.statement.text}  ({chosen.score:+.2f})", "cyan")
    if turn.response.direct:
        say(defuse_citations(turn.response.direct), "bold")
    nothing = f"({'no answer was wanted' if turn.hits else 'nothing was found'})"
    say(" ".join(mark_sentences(turn.response)) or nothing)
    ranks = {hit.id: f"rank {rank}" for rank, hit in enumerate(turn.hits, start=1)}
    for number, id in enumerate(turn.response.used, start=1):
        say(f"  [{number}] {to_one_line(id)}  ({ranks.get(id, 'not in the ranking')})", "green")
    say("")
