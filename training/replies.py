"""Questions with sentences that answer them, and the reply that is made of these: written, or the sentences themselves.

`written_replies.jsonl` has replies that were written for this, over what the program chose from the training documents.
Of other questions with marked sentences the reply is those sentences, and what is read is spoilt as text from the web
is: headings and list numbers glued on, menus, halves of sentences, a neighbour that is beside the question.
"""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.turn.writing.sources import Source, compose_writer_prompt, read_written
from training.reading import Marked, is_held_out, read_qed, read_selqa, split_sentences

WRITTEN = Path(__file__).parent / "written_replies.jsonl"
NEIGHBOURS = 3  # sentences at most beside those that answer
SPOILT = 0.5  # of the sentences
LEAST_WORDS, MOST_WORDS = 6, 45  # of a sentence that is learned from
MENUS = ("Home | About | Contact", "Read more", "Share this:", "Advertisement", "Skip to content", "Click here to")


@dataclass(frozen=True, slots=True)
class ReplyExample:
    """What is read and what is to be written."""

    prompt: str
    reply: str


def read_written_replies() -> Iterator[ReplyExample]:
    """Those that were written for this."""
    for line in WRITTEN.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        sources = [Source(each["name"], each["text"]) for each in row["sources"]]
        count = len(read_written(row["reply"]))
        yield ReplyExample(compose_writer_prompt(row["question"], row["person"], sources, count), row["reply"])


def read_cleaning(data: Path, order: random.Random) -> list[ReplyExample]:
    """Marked questions, each spoilt anew for an `order`."""
    marked = [each for read in (read_selqa, read_qed) for each in read(data / "reading", order)]
    return [made for each in marked if not is_held_out(each) if (made := _spoil_question(each, order))]


def _spoil_question(marked: Marked, order: random.Random) -> ReplyExample | None:
    """The sentences with an answer, and some others; the reply has the first ones alone, or all of them, clean."""
    spans = split_sentences(marked.text)
    sentences = [marked.text[start:end].strip() for start, end in spans]
    answering = [
        text
        for text, (start, end) in zip(sentences, spans, strict=True)
        if any(a < end and b > start for a, b in marked.answers)
    ]
    others = [text for text in sentences if text not in answering and _is_whole(text)]
    if not answering or not all(map(_is_whole, answering)):
        return None
    beside = order.sample(others, min(len(others), order.randint(0, NEIGHBOURS)))
    read = [*answering, *beside]
    said = order.choice([answering, read])
    sources = [Source(marked.title if order.random() < 0.5 else "", _spoil(text, marked.title, order)) for text in read]
    reply = " ".join(f"{_join_marks(text)} [{number}]" for number, text in enumerate(said, start=1))
    return ReplyExample(compose_writer_prompt(marked.question, (), sources, len(said)), reply)


def _join_marks(text: str) -> str:
    """A text in which marks stand by themselves, as people write it."""
    text = re.sub(r"``\s*|\s*''", '"', text).replace(" -- ", " \u2013 ")
    text = re.sub(r"(?<=\w) - (?=\w)", "-", re.sub(r"\s+(?=[,.;:!?)%]|'s\b|n't\b)", "", text))
    return re.sub(r"(?<=[(])\s+", "", text)


def _is_whole(text: str) -> bool:
    return LEAST_WORDS <= len(text.split()) <= MOST_WORDS and text[:1].isupper() and text[-1:] == "."


def _spoil(text: str, title: str, order: random.Random) -> str:
    """A sentence with what flattening a page leaves on it; half of them as they are."""
    if order.random() > SPOILT:
        return text
    heading = " ".join(word.capitalize() for word in title.split()[:4])
    before: Sequence[str] = (heading, f"{order.randint(1, 9)}.", "\u2022", order.choice(MENUS), f"{heading} |", "-")
    return f"{order.choice(before)} {text}".strip()
