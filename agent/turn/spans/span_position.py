"""Whether a name or a place stands where the answer to "who" or "where" stands: beside the verb, after "by" or "is".

Any sentence may name people and places; the words around one say whether it is the one that is asked for.
"""

import re
from collections.abc import Set

from agent.turn.question_kinds import QuestionKind
from agent.turn.spans.answer_spans import Span, find_spans, read_row
from agent.turn.spans.question_words import stem_words

_LOCATED = re.compile(
    r"(?:\b(?:is|are|was|were|be|located|found|kept|stored|situated|lies?|lying|hangs?|stands?|sits?|lives?|"
    r"stays?|remains?|"
    r"ist|sind|war|liegt|hängt|steht|befindet sich)|:)$",
    re.IGNORECASE,
)
_NAMED_PLACE = re.compile(r"(?:^|\s)(?:[A-ZÄÖÜ]|\d)")
_DEFINITE_PLACE = re.compile(
    r"^(?:[\w ]*?)\b(?:im|am|beim|the|a|an|my|our|his|her|its|their|der|dem|den|das|einem|einer|unserem)\b",
    re.IGNORECASE,
)
_AND_ELSEWHERE = re.compile(r"^,? (?:and|or|und|oder) (?:in|at|on|near|im|am|bei)\b")
_BY = re.compile(r"\b(?P<verb>[\w'’-]+) (?:by|von) (?:(?:the |a |an )?[a-z-]+ )?$")
_IS = re.compile(r"\b(?:is|was|are|were|ist|war|sind)(?: called)?:?$|:$", re.IGNORECASE)
_LIST_BEFORE = re.compile(r"[A-ZÄÖÜ][\w.'’-]*(?:,| and| und| &|, and)$")
_LIST_AFTER = re.compile(r"^(?:,| and| und| &|, and) (?:(?:the|its|his|her) )?[A-ZÄÖÜ]")
_SKIPPED = re.compile(r"^(?:has|have|had|also|first|then|later|himself|herself|who|,)\s+")
_TO_BE = re.compile(r"^(?:is|was|are|were|ist|war|sind)\s+")
_PARTIAL = re.compile(
    r"\b(?:some|partly|mostly|mainly|predominantly|primarily|various|several|among|including|such as|other|"
    r"alleged\w*|"
    r"reported\w*|possibly|probably|perhaps|may|might|believed|einige|vermutlich)\b",
    re.IGNORECASE,
)
_QUOTE = '"“”«»‘'


def is_where_a_place_stands(span: Span, question: str, sentence: str, *, named: bool) -> bool:
    """Whether a place follows the question's verb, or a verb of being somewhere where the question has none.

    `named` asks for one with a name or a number, as "in which city" does.
    """
    if _PARTIAL.search(sentence) or not (_DEFINITE_PLACE.match(span.text) or _NAMED_PLACE.search(span.text)):
        return False
    if named and not _NAMED_PLACE.search(span.text):
        return False
    if _AND_ELSEWHERE.match(sentence[span.end :]):
        return False
    before = _strip_date(sentence[: span.start].rstrip())
    last_asked, last_said = stem_words(question)[-1:], stem_words(before.rsplit(" ", 1)[-1])
    return bool(_LOCATED.search(before)) or (bool(last_said) and last_asked == last_said)


def _strip_date(before: str) -> str:
    """Without a date at its end: "rehearses on Mondays" in the hall."""
    dates = find_spans(QuestionKind("date"), before)
    if dates and dates[-1].end == len(before):
        return re.sub(r"\s(?:on|at|in|um|am)$", "", before[: dates[-1].start].rstrip())
    return before


def is_where_a_person_stands(span: Span, asked: Set[str], question: str, sentence: str) -> bool:
    """Whether a name is beside the question's verb: "Ada wrote", "written by Ada", "the author is Ada", "the "
    "author, Ada"."""
    before, after = sentence[: span.start], sentence[span.end :]
    if read_row(sentence):
        return True
    if asked & set(stem_words(span.text)) or _PARTIAL.search(sentence) or (before[-1:] in _QUOTE and before):
        return False
    if _LIST_AFTER.match(after) or _LIST_BEFORE.search(before.rstrip()):
        return False
    if passive := _BY.search(before):
        return bool(asked & set(stem_words(passive["verb"])))
    if _IS.search(before.rstrip()):
        return True
    if before.endswith(", ") and re.match(r"[,.]|$", after):
        return bool(asked & set(stem_words(before)))
    return _verb_follows(after.lstrip(), asked, question)


def _verb_follows(after: str, asked: Set[str], question: str) -> bool:
    """Whether the next word is one of the question's; "is" is skipped where the question has it too."""
    if re.search(r"\b(?:is|was|are|were|ist|war)\b", question):
        after = _TO_BE.sub("", after)
    while skipped := _SKIPPED.match(after):
        after = after[skipped.end() :]
    words = re.findall(r"[\w'’-]+", after)[:3]
    heads = words if re.search(r"\b(?:is|was|ist|war)\b", question) else words[:1]
    return any(asked & set(stem_words(word)) for word in heads)
