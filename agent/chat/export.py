"""A kept conversation as a file: Markdown to read, or iKAT topics to test with."""

from collections.abc import Iterator, Sequence

import msgspec

from agent.chat.store import ChatTurn
from agent.tracks.ikat_2023 import Topic, TopicTurn
from schemas.records import Statement, TurnResult


def to_markdown(turns: Sequence[ChatTurn], source: str) -> str:
    """The conversation as Markdown: questions, answers and their sources."""
    return "\n".join([f"# {turns[0].utterance}", "", f"*Asked of {source}.*", *_markdown_turns(turns), ""])


def _markdown_turns(turns: Sequence[ChatTurn]) -> Iterator[str]:
    for turn in turns:
        yield from (
            "",
            f"**{turn.utterance}**",
            "",
            " ".join(to_markdown_pieces(turn.answered)) or "*Nothing was found.*",
        )
        sources = [f"{number}. `{id}`" for number, id in enumerate(turn.answered.response.used, start=1)]
        yield from (["", *sources] if sources else [])


def mark_citations(answered: TurnResult) -> str:
    """The answer with the numbers of its sources, counted in the order of their first citation."""
    return " ".join(mark_sentences(answered))


def to_markdown_pieces(answered: TurnResult) -> list[str]:
    """The answer in Markdown, piece by piece: the direct answer in bold, where there is one, then the sentences."""
    direct = [f"**{answered.response.direct}**"] if answered.response.direct else []
    return [*direct, *mark_sentences(answered)]


def mark_sentences(answered: TurnResult) -> list[str]:
    """The sentences of the answer, each with the numbers of its sources."""
    numbers = {id: str(number) for number, id in enumerate(answered.response.used, start=1)}
    return [
        f"{sentence.text} [{', '.join(numbers[id] for id in sentence.passage_ids)}]"
        if sentence.passage_ids
        else sentence.text
        for sentence in answered.response.sentences
    ]


def to_topics(turns: Sequence[ChatTurn], statements: Sequence[Statement], chat: int) -> bytes:
    """The conversation as an iKAT 2023 topics file, with convagent's rewrites, statements and citations as its labels.

    To make a test case of it, correct these labels.
    """
    texts = {statement.id: statement.text for statement in statements} | {
        chosen.statement.id: chosen.statement.text for turn in turns for chosen in turn.answered.selected_statements
    }
    numbers = {id: number for number, id in enumerate(texts, start=1)}
    topic = Topic(
        number=f"{chat}-1",
        title=turns[0].utterance,
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
    return msgspec.json.format(msgspec.json.encode([topic]), indent=2) + b"\n"
