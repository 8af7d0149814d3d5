"""Answers from the documents of the date that a question names; where they have none, it is asked of all.

Asked what the latest mail is about, the reply names it and says its most telling sentences.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.chat.selection.date_requests import find_restriction
from agent.chat.selection.dated_items import DatedItem, mark_rows
from agent.chat.store import ChatTurn
from agent.turn.extractive_answer import says_not_found
from indexes.documents.collection import Collection
from indexes.ranking.rankings import Rows
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Message, Query, Response, Sentence, Turn, TurnResult

Answer = Callable[[Turn, Sequence[Message], Rows | None], TurnResult]  # of a question from rows of the index


def answer_by_date(
    turn: Turn, history: Sequence[Message], collection: Collection, rows: Rows | None, answer: Answer
) -> ChatTurn | None:
    """The answer from documents of a date, of these rows alone; None where none is named, or they have none."""
    restriction = find_restriction(turn.utterance, collection)
    if restriction is None:
        return None
    marked = mark_rows(restriction.items, collection)
    marked = marked if rows is None else marked & rows
    if not marked.any():
        return None
    if restriction.is_overview:
        (item,) = restriction.items
        overview = answer(replace(turn, utterance=f"Summarise {item.path}"), (), marked)
        return ChatTurn(turn.utterance, _present(replace(overview, query=Query(turn.utterance)), item))
    found = answer(replace(turn, utterance=restriction.question), history, marked)
    if says_not_found(found.response) or not found.response.used:
        return None
    return ChatTurn(turn.utterance, found, within=restriction.words)


def _is_header(sentence: Sentence, item: DatedItem) -> bool:
    """Whether a sentence is the row that says who wrote when to whom, which the title has, too."""
    return item.is_message and sentence.text.startswith(("from: ", "to: ", "date: ", "subject: "))


def _present(overview: TurnResult, item: DatedItem) -> TurnResult:
    """What an item says, below its name and date; of one that is too short for a summary the first sentence.

    A message is named by its title, which has its subject, date and sender.
    """
    first = item.passages[0]
    name = first.title if item.is_message else item.describe()
    if overview.response.used and not says_not_found(overview.response):
        said = tuple(each for each in overview.response.sentences if not _is_header(each, item))
        response = replace(overview.response, sentences=said or overview.response.sentences, direct=name)
        return replace(overview, responses=(response,))
    opening = Sentence(next(iter(split_sentences(first.text)), first.text), (first.id,))
    response = Response((opening,), name)
    return replace(overview, hits=(Hit(first.id, 1.0),), passages=item.passages, responses=(response,))
