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
    from rich.table import Column, Table

    def row(label: str, text: str, style: str = "") -> None:
        line = Table.grid(Column(width=12, justify="right", style="dim"), Column(style=style), padding=(0, 2))
        line.add_row(label, to_plain_text(text))
        console.print(line)

    console.rule(to_plain_text(turn.turn_id, "dim"), align="left", style="dim")
    row("asked", turn.query.utterance, "bold")
    row("searched for", turn.query.standalone)
    for chosen in turn.selected_statements:
        row("knowing", f"{chosen.statement.text}  ({chosen.score:+.2f})", "cyan")
    if not turn.selected_statements:
        row("knowing", "nothing about the person that matters here", "dim")
    if turn.response.direct:
        row("", defuse_citations(turn.response.direct), "bold")
    said = " ".join(mark_sentences(turn.response))
    row("answer", said or f"({'none was wanted' if turn.hits else 'nothing was found'})", "" if said else "dim")
    ranks = {hit.id: rank for rank, hit in enumerate(turn.hits, start=1)}
    for number, id in enumerate(turn.response.used, start=1):
        rank = f"rank {ranks[id]} of {len(turn.hits)}" if id in ranks else "not in the ranking"
        row(f"\\[{number}]", f"{to_one_line(id)}  ({rank})", "green")
    console.print()
