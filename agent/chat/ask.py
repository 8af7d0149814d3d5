"""`convagent ask`: one conversation of a few questions for scripts, of which nothing is kept."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console

from agent.chat.citations import cited_sources, describe_source
from agent.chat.interactive import Terminal
from agent.chat.opening import open_assistant_over
from agent.chat.session import Session
from agent.chat.source import Asked
from agent.chat.store import Store
from agent.terminal.output import print_json
from agent.turn.extractive_answer import says_not_found
from schemas.records import TurnResult


def answer_questions(questions: Sequence[str], asked: Asked, *, as_json: bool) -> None:
    """Ask one after the other, and print each answer with its sources, or as a line of JSON.

    Raises what opening the documents and the models raises, and what `Session.ask` raises.
    """
    with open_assistant_over(asked, words_first=False) as assistant:
        session = Session(assistant, Store(None))
        terminal = Terminal(session, Console(highlight=False, soft_wrap=True))
        for question in questions:
            if as_json:
                print_json(describe_answer(question, session.ask(question)))
            else:
                terminal.ask(question)


def describe_answer(question: str, answered: TurnResult) -> dict[str, Any]:
    """A turn as scripts are given it: the answer, its sentences with the numbers of their sources, and the sources."""
    response, sources = answered.response, cited_sources(answered)
    numbers = {source.passage.id: source.number for source in sources}
    return {
        "question": question,
        "searched_for": answered.query.standalone,
        "answered": bool(response.used) and not says_not_found(response),
        "direct": response.direct,
        "sentences": [
            {"text": sentence.text, "sources": [numbers[id] for id in sentence.passage_ids]}
            for sentence in response.sentences
        ],
        "sources": [describe_source(source) for source in sources],
    }
