"""The topics of Touché, task 1, of 2020 and 2021 alike: a number and a question.

    <topics><topic><number>1</number><title>Should school uniforms be compulsory?</title> ... </topic></topics>

2020 has `<description>` and `<narrative>` too, which an automatic run must not use: they are not read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError

from agent.tracks.oddities import find_duplicates
from indexes.storage.files import read_bytes
from schemas.errors import InvalidInputError

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element


@dataclass(frozen=True, slots=True)
class ControversialQuestion:
    """What an automatic run may see of a topic."""

    number: str
    title: str


def read_questions(path: Path) -> tuple[ControversialQuestion, ...]:
    """The questions of a topics file, in its order.

    Raises `MissingError` where there is no such file, `InvalidInputError` where it is no XML, holds no topic, or has
    topics without a number or a title or two of the same number: all of them are listed.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(read_bytes(path))
    except (ParseError, DefusedXmlException, LookupError, ValueError) as error:
        raise InvalidInputError(f"is no XML that can be read ({error})", where=str(path)) from error
    questions = tuple(
        ControversialQuestion(_element_text(topic, "number"), _element_text(topic, "title"))
        for topic in root.iter("topic")
    )
    wrong = list(_find_problems(questions))
    if not questions:
        wrong = ["there is no <topic>"]
    if wrong:
        listed = "\n".join(f"  {problem}" for problem in wrong)
        remedy = "A topic is <topic><number>1</number><title>Should ...?</title></topic>."
        raise InvalidInputError(f"is no topics file of Touché:\n{listed}", where=str(path), remedy=remedy)
    return questions


def _element_text(topic: "Element", tag: str) -> str:
    """The text of a topic's field, white space folded; empty where it has none."""
    return " ".join((topic.findtext(tag) or "").split())


def _find_problems(questions: Sequence[ControversialQuestion]) -> Iterator[str]:
    for place, question in enumerate(questions, start=1):
        if not question.number:
            yield f"topic {place} has no number"
        elif " " in question.number:
            yield f"topic {place} has white space in its number {question.number!r}"
        if not question.title:
            yield f"topic {place} has no title"
    yield from map(str, find_duplicates(("the number", question.number) for question in questions if question.number))
