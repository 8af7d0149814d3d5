"""Answers over own documents, graded by patterns alone.

| of an answer | |
|---|---|
| first | its first sentence answers: it has all patterns of `first`, and cites the source |
| right | all patterns of `anywhere` stand in it, and every source is cited; first ones are right, too |
| partly | some of these patterns, or all of them without the source |
| wrong | it has what it must not have, lacks a warning, or is about something else and does not say so |
| honest | it says that there is no answer, and there is none |
| false | it says that there is no answer before, or instead of, one that is there; never "first" |

An answer that is wrong is not right. The first sentence is the one after a bold direct answer ("**Nine days.**"),
together with it; a sentence that introduces a list counts with its list. What stands under "Also nearby" is not graded.
"""

import re
import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from agent.evaluation.bench.own.answer_parts import REMARK, Answer
from agent.evaluation.bench.own.questions import Question
from indexes.text.sentences import split_sentences

LEFT_OUT = re.compile(r"\b(?:left out|leave out|leaving out|not for you|avoid|unsuitable)\b", re.IGNORECASE)
OPENING = re.compile(r"^\W*(?P<word>yes|no|ja|nein|oui|non|sí|sì|nee)\W*(?:[.,:;!*—–-]|$)", re.IGNORECASE)
AFFIRMATIVE = dict.fromkeys(("yes", "ja", "oui", "sí", "sì"), "yes") | dict.fromkeys(("no", "nein", "non", "nee"), "no")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is worth."""

    first: bool = False
    right: bool = False
    partly: bool = False
    wrong: str = ""  # why it is wrong; "" where it is not
    honest: bool = False  # says that there is no answer, where there is none
    false: bool = False  # says so where there is one
    words: int = 0


def has(pattern: str, text: str) -> bool:
    return bool(re.search(pattern, text, re.IGNORECASE))


def has_source(source: str, files: Iterable[str]) -> bool:
    return not set(source.split("|")).isdisjoint(files)


def grade(question: Question, answer: Answer) -> Verdict:
    """The verdict on an answer."""
    if question.kind == "not-there":
        wrong = "" if answer.not_found else "answers what no document says"
        return Verdict(not wrong, not wrong, wrong=wrong, honest=not wrong, words=answer.words)
    wrong = find_fault(question, answer)
    if wrong:
        return Verdict(wrong=wrong, false=answer.not_found, words=answer.words)
    right = all(has(pattern, answer.text) for pattern in question.wanted)
    right = right and all(has_source(source, answer.cited) for source in question.source)
    sourced = not question.source or any(has_source(source, answer.cited_first) for source in question.source)
    first = sourced and all(has(pattern, answer.first) for pattern in question.first)
    partly = any(has(pattern, answer.text) for pattern in (*question.first, *question.anywhere, *question.partly))
    if not (right or partly or answer.not_found):
        return Verdict(wrong="is about something else", words=answer.words)
    first = right and first and not answer.not_found
    return Verdict(first, right, partly and not right, false=answer.not_found, words=answer.words)


def find_fault(question: Question, answer: Answer) -> str:
    """What an answer has that it must not have, or lacks though it is dangerous without; "" for neither."""
    return next(_list_faults(question, answer), "")


def _list_faults(question: Question, answer: Answer) -> Iterator[str]:
    if question.kind == "small-talk" and answer.cited:
        yield "cites documents"
    opening = OPENING.match(answer.text)
    if question.answer and opening and AFFIRMATIVE[opening["word"].lower()] != question.answer:
        yield f"says {opening['word']!r}"
    yield from (f"has {pattern!r}" for pattern in question.wrong if has(pattern, answer.text))
    yield from (f"begins with {pattern!r}" for pattern in question.wrong_first if has(pattern, answer.first))
    offered = " ".join(text for text in split_sentences(answer.text) if not is_remark(text))
    yield from (f"recommends {pattern!r}" for pattern in question.excluded if has(pattern, offered))
    if answer.text:
        yield from (f"lacks the warning {one!r}" for one in question.warning if not has(one, answer.text))


def is_remark(sentence: str) -> bool:
    """Whether a sentence says what was left out for this person, and so recommends nothing."""
    return bool(REMARK.match(sentence) or LEFT_OUT.search(sentence))


def count_verdicts(verdicts: Sequence[Verdict]) -> dict[str, float | int]:
    """Shares of answers that are first, right, partly right and wrong; how many are honest and false; mean words."""
    shares = {
        name: sum(bool(getattr(verdict, name)) for verdict in verdicts) / len(verdicts)
        for name in ("first", "right", "partly", "wrong")
    }
    counts = {name: sum(getattr(verdict, name) for verdict in verdicts) for name in ("honest", "false")}
    words = round(statistics.mean(verdict.words for verdict in verdicts))
    return {"questions": len(verdicts), **shares, **counts, "words": words}
