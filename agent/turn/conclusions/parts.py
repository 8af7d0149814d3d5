"""A question of two parts ("When is it released, and why so late?") and the steps that follow an instruction.

What is added stands behind the best quote, and is wanted whether it comes near that one or not.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from agent.turn.question_kinds import QuestionKind, recognise_kind
from agent.turn.quotes import Quote
from agent.turn.spans.kind_evidence import has_kind
from agent.turn.spans.question_words import stem_words
from schemas.records import Query

MAX_STEPS = 2  # that follow the one that answers
_QUESTION_WORD = (
    r"(?:how|what|which|who|whom|when|where|why|from when|until when|since when|wann|wo|wer|wie|warum|was|welche\w*)"
)
_NEXT_PART = re.compile(rf"(?:,\s*|\?\s*|\s+)(?:and|und)\s+(?={_QUESTION_WORD}\b)", re.IGNORECASE)
_BEGINS_QUESTION = re.compile(rf".*\b{_QUESTION_WORD}\b", re.IGNORECASE | re.DOTALL)


def find_further(query: Query, ranked: Sequence[Quote], rank: Callable[[Query], list[Quote]]) -> list[Quote]:
    """What answers the second part of a question, and the steps after the best quote where it is asked what to do."""
    kind = recognise_kind(query.utterance)
    return [*_answer_second_part(query, rank), *_list_steps(kind, ranked)]


def split_parts(question: str) -> tuple[str, str] | None:
    """The two parts of a question that asks twice; None of any other."""
    found = _NEXT_PART.search(question)
    if not found or not _BEGINS_QUESTION.match(question[: found.start()]) or not stem_words(question[: found.start()]):
        return None
    return question[: found.start()].strip(), question[found.end() :].strip()


def _answer_second_part(query: Query, rank: Callable[[Query], list[Quote]]) -> list[Quote]:
    """The best quote for the second part that has what it asks for; none where that cannot be told."""
    parts = split_parts(query.utterance)
    kind = recognise_kind(parts[1]) if parts else QuestionKind("other")
    if parts is None or kind == recognise_kind(parts[0]):
        return []
    ranked = rank(replace(query, utterance=parts[1], rewrite=f"{parts[1]} ({parts[0]})"))
    return [quote for quote in ranked if has_kind(kind, quote.lead, quote.heading)][:1]


def _list_steps(kind: QuestionKind, ranked: Sequence[Quote]) -> list[Quote]:
    """The instructions that follow the best quote in its section, where it is asked what to do."""
    if kind.name != "how-to":
        return []
    best = ranked[0]
    following = range(best.place + 1, best.place + 1 + MAX_STEPS)
    steps = [quote for quote in ranked if quote.rank == best.rank and quote.heading == best.heading]
    steps = [quote for quote in steps if quote.place in following and has_kind(kind, quote.lead, quote.heading)]
    return sorted(steps, key=lambda quote: quote.place)
