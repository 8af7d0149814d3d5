"""What `convagent show` prints: a conversation of a trace."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.runs.trace import read_trace
from agent.terminal.escaping import defuse_citations
from agent.terminal.output import open_stdout, to_one_line, to_plain_text
from indexes.text.control_characters import strip_control_characters, strip_directions
from schemas.errors import InvalidInputError

if TYPE_CHECKING:
    from schemas.records import TurnResult


def show_conversation(path: Path, topic: str | None) -> None:
    """One conversation of a trace, by default its first. Raises `InvalidInputError` where it holds no such topic."""
    trace = read_trace(path)
    topics = list(dict.fromkeys(_topic_of(turn_id) for turn_id in trace.places))
    if not topics:
        raise InvalidInputError("holds no answered turn", where=str(path))
    wanted = topic if topic is not None else topics[0]
    if wanted not in topics:
        raise InvalidInputError(f"holds no topic {wanted!r} (there are: {', '.join(topics)})", where=str(path))
    console = open_stdout()
    settings = trace.settings
    about = f"{settings.model}, {settings.edition}, {settings.mode}"
    console.print(to_plain_text(f"Conversation {wanted}", "bold"), to_plain_text(f"({about})\n", "dim"))
    for line in trace.lines(turn_id for turn_id in trace.places if _topic_of(turn_id) == wanted):
        _show_answered(console, line.answered)


def _topic_of(turn_id: str) -> str:
    return turn_id.rpartition("_")[0]


def _show_answered(console: Any, turn: "TurnResult") -> None:
    from rich.markup import escape
    from rich.table import Table

    def row(label: str, text: str, style: str = "") -> None:
        text = strip_directions(strip_control_characters(text))
        line = Table.grid(padding=(0, 2))
        line.add_column(width=12, justify="right", style="dim")
        line.add_column(style=style)
        line.add_row(escape(label), text)
        console.print(line)

    console.rule(to_plain_text(turn.turn_id, "dim"), align="left", style="dim")
    row("asked", escape(turn.query.utterance), "bold")
    row("searched for", escape(turn.query.standalone))
    for chosen in turn.selected_statements:
        row("knowing", escape(f"{chosen.statement.text}  ({chosen.score:+.2f})"), "cyan")
    if not turn.selected_statements:
        row("knowing", "nothing about the person that matters here", "dim")
    sources = {id: str(n) for n, id in enumerate(turn.response.used, start=1)}
    marked = " ".join(
        f"{escape(defuse_citations(s.text))} [green]\\[{','.join(sources[id] for id in s.passage_ids)}][/]"
        if s.passage_ids
        else escape(defuse_citations(s.text))
        for s in turn.response.sentences
    )
    if turn.response.direct:
        row("", escape(defuse_citations(turn.response.direct)), "bold")
    row("answer", marked or f"[dim]({'none was wanted' if turn.hits else 'nothing was found'})[/]")
    ranks = {hit.id: rank for rank, hit in enumerate(turn.hits, start=1)}
    for id, number in sources.items():
        rank = f"rank {ranks[id]} of {len(turn.hits)}" if id in ranks else "not in the ranking"
        row(f"[{number}]", escape(f"{to_one_line(id)}  ({rank})"), "green")
    console.print()
