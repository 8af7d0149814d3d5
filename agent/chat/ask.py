"""`convagent ask`: one conversation of a few questions for scripts, of which nothing is kept."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from agent.chat.citations import cited_sources, describe_source
from agent.chat.export import mark_sentences
from agent.chat.opening import begin_to_open_models, open_library
from agent.chat.scope import EVERYWHERE
from agent.chat.session import Assistant, Session
from agent.chat.store import Store
from agent.terminal.escaping import defuse_citations
from agent.terminal.output import open_stdout, to_one_line, to_plain_text
from agent.turn.extractive_answer import says_not_found
from schemas.records import TurnResult


def answer_questions(
    questions: Sequence[str], source: Path, model: str, embedder: str | None, only: str = EVERYWHERE
) -> list[TurnResult]:
    """The turns of these questions, asked one after the other.

    Raises what opening the documents and the models raises, and what `Session.ask` raises.
    """
    answering, embedding = begin_to_open_models(model, embedder, keep_vectors=True)
    with open_library(source, embedding.get, only, words_first=False) as library:
        session = Session(Assistant(library.current, model, answering.get(), library.scope), Store(None))
        session.scope = library.scope if only else None
        return [session.ask(question) for question in questions]


def to_json(answered: TurnResult) -> str:
    """A turn on one line: the answer, its sentences with the numbers of their sources, and the sources."""
    response, sources = answered.response, cited_sources(answered)
    numbers = {source.passage.id: source.number for source in sources}
    shown: dict[str, Any] = {
        "question": answered.query.utterance,
        "searched_for": answered.query.standalone,
        "answered": bool(response.used) and not says_not_found(response),
        "direct": response.direct,
        "sentences": [
            {"text": sentence.text, "sources": [numbers[id] for id in sentence.passage_ids]}
            for sentence in response.sentences
        ],
        "sources": [describe_source(source) for source in sources],
    }
    return msgspec.json.encode(shown).decode()


def show_answers(answered: Sequence[TurnResult], *, as_json: bool) -> None:
    """Print the answers: one line of JSON each, or the answer and its sources."""
    console = open_stdout()
    for turn in answered:
        if as_json:
            console.out(to_json(turn), highlight=False)
            continue
        if turn.response.direct:
            console.print(to_plain_text(defuse_citations(turn.response.direct), "bold"))
        console.print(to_plain_text(" ".join(mark_sentences(turn.response))), soft_wrap=True)
        for source in cited_sources(turn):
            console.print(to_plain_text(f"  [{source.number}] {to_one_line(source.name)}", "green"))
