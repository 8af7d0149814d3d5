"""A kept conversation as a file: Markdown to read, or iKAT topics to test with; and that of a trace, printed."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent.chat.citations import UNSURE_NOTE
from agent.chat.store import ChatTurn, Store
from agent.runs.trace import read_trace
from agent.terminal.escaping import defuse_citations, escape_markdown, to_code_span
from agent.terminal.output import open_stdout, to_one_line, to_plain_text
from agent.tracks.ikat.ikat_2023 import Topic, TopicTurn
from indexes.storage.files import check_writable, write_atomically
from indexes.text.control_characters import strip_directions
from schemas.errors import InvalidInputError, UsageError, format_count
from schemas.records import Response, Sentence, Statement, TurnResult


def export_conversation(store: Store, chat: int, path: Path | None, *, overwrite: bool) -> None:
    """Write a conversation: as Markdown (`.md`), or as iKAT topics (`.json`), for its owner alone.

    Raises `UsageError` for no file, another ending, or a file that exists already.
    """
    if path is None:
        raise UsageError("--export needs a file", remedy="Such as: -o conversation.md")
    check_writable(path, overwrite)
    write_atomically(path, [render_conversation(store, chat, path.suffix)], private=True)


def render_conversation(store: Store, chat: int, suffix: str) -> bytes:
    """A conversation: as Markdown (`.md`), or as iKAT topics (`.json`). Raises `UsageError` for another ending."""
    turns = store.read_turns(chat)
    title = store.read_title(chat) or turns[0].utterance
    if suffix == ".json":
        return to_topics(turns, store.list_statements(), chat, title)
    if suffix == ".md":
        return to_markdown(turns, title, store.read_source(chat), store.read_ratings(chat)).encode()
    raise UsageError("the file ends neither in .md nor in .json", remedy="Such as: conversation.md")


def to_markdown(turns: Sequence[ChatTurn], title: str, source: str, ratings: Mapping[int, str]) -> str:
    """The conversation as Markdown: questions, answers, their sources, and what the person thinks of them."""
    lines = [f"# {_escape_line(title)}", "", f"*Asked of {escape_markdown(source)}.*"]
    for place, turn in enumerate(turns, start=1):
        response, searched_for = turn.answered.response, turn.answered.query.standalone
        sources = [f"{number}. {to_code_span(id)}" for number, id in enumerate(response.used, start=1)]
        lines += ["", f"**{_escape_line(turn.utterance)}**"]
        lines += ["", f"*Searched for: {_escape_line(searched_for)}*"] if searched_for != turn.utterance else []
        lines += ["", f"*{UNSURE_NOTE}*"] if response.is_unsure else []
        lines += ["", " ".join(mark_in_markdown(response)) or "*Nothing was found.*"]
        lines += ["", *sources] if sources else []
        lines += ["", f"*Rated {ratings[place]}.*"] if place in ratings else []
    return "\n".join([*lines, ""])


def _escape_line(text: str) -> str:
    return " ".join(escape_markdown(text).split())


def mark_in_markdown(response: Response) -> list[str]:
    """The direct answer in bold, where there is one, then the sentences, each with the numbers of its sources.

    What stands in them is text: Markdown and HTML of a passage are escaped.
    """
    direct = [f"**{escape_markdown(response.direct)}**"] if response.direct else []
    return [*direct, *_number_sources(response, response.sentences, escape_markdown)]


def mark_sentences(response: Response, *, nearby: bool = False) -> list[str]:
    """The sentences of an answer, or what came near it, as plain text, each with the numbers of its sources.

    These count in the order of citation; those of what came near follow.
    """
    return _number_sources(response, response.nearby if nearby else response.sentences, defuse_citations)


def _number_sources(response: Response, sentences: Sequence[Sentence], escape: Callable[[str], str]) -> list[str]:
    shown = dict.fromkeys(id for each in (*response.sentences, *response.nearby) for id in each.passage_ids)
    numbers = {id: str(number) for number, id in enumerate(shown, start=1)}
    return [
        f"{escape(sentence.text)} [{', '.join(numbers[id] for id in sentence.passage_ids)}]"
        if sentence.passage_ids
        else escape(sentence.text)
        for sentence in sentences
    ]


def to_topics(turns: Sequence[ChatTurn], statements: Sequence[Statement], chat: int, title: str) -> bytes:
    """The conversation as an iKAT 2023 topics file, with convagent's rewrites, statements and citations as its labels.

    To make a test case of it, correct these labels.
    """
    texts = {statement.id: statement.text for statement in statements} | {
        chosen.statement.id: chosen.statement.text for turn in turns for chosen in turn.answered.selected_statements
    }
    numbers = {id: number for number, id in enumerate(texts, start=1)}
    topic = Topic(
        number=f"{chat}-1",
        title=title,
        ptkb={str(numbers[id]): text for id, text in texts.items()},
        turns=[
            TopicTurn(
                turn_id=number,
                utterance=turn.utterance,
                resolved_utterance=turn.answered.query.standalone,
                response=turn.answered.response.text,
                ptkb_provenance=[numbers[chosen.statement.id] for chosen in turn.answered.selected_statements],
                response_provenance=list(turn.answered.response.used),
            )
            for number, turn in enumerate(turns, start=1)
        ],
    )
    return strip_directions(msgspec.json.format(msgspec.json.encode([topic]), indent=2).decode()).encode() + b"\n"


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


def _show_answered(console: Any, turn: TurnResult) -> None:
    def say(text: str, style: str = "") -> None:
        console.print(to_plain_text(text, style))

    say(f"{turn.turn_id}  {turn.query.utterance}", "bold")
    say(f"searched for “{turn.query.standalone}”, {format_count(len(turn.hits), 'passage')}", "dim")
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
