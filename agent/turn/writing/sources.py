"""The sentences that a reply is made of, as a model reads them, and what it makes of them, as it is read.

They are numbered, each after the title and heading that it stands under; a reply is sentences that end with the numbers
of those that they were made from.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.turn.quotes import Quote, find_quotes
from agent.turn.reading import find_answer
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import extract_stems
from schemas.records import Passage, Plan, Sentence

MAX_SOURCES = 8  # sentences that are read
MAX_NAME_WORDS = 16  # of a title and heading
_WRITTEN = re.compile(r"\s*(.+?)\s*((?:\[\d+\]\s*)+)", re.DOTALL)
_FILE = re.compile(r"\.(?:md|txt|pdf|docx|html?|odt|eml)(?=:|$)")


@dataclass(frozen=True, slots=True)
class Source:
    """A sentence that is read: its text, the title and heading above it, and the passages that have it."""

    name: str
    text: str
    passage_ids: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """As the model reads it."""
        return f"{self.name} » {self.text}" if self.name and not self.text.startswith(self.name) else self.text


def name_quote(quote: Quote) -> str:
    """The title and the heading that a quote stands under, each once."""
    title, heading = (_FILE.sub("", text).strip() for text in (quote.passage.title, quote.heading))
    name = title if heading in title else heading if heading.startswith(title) else f"{title}: {heading}"
    return " ".join(name.split()[:MAX_NAME_WORDS])


def name_sources(sentences: Iterable[Sentence], passages: Sequence[Passage], plan: Plan) -> list[Source]:
    """Quoted sentences, the first of them, each with its name."""
    quotes = find_quotes(passages, plan.tuning.answer)
    names = {text: name_quote(quote) for quote in reversed(quotes) for text in quote.texts}
    found = [Source(names.get(each.text, ""), each.text, each.passage_ids) for each in sentences]
    return found[:MAX_SOURCES]


def read_written(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The sentences of a reply that are whole, each with the numbers that it cites."""
    return [
        (found[1].strip(), tuple(dict.fromkeys(map(int, re.findall(r"\d+", found[2])))))
        for found in _WRITTEN.finditer(text)
    ]


def find_answers(question: str, sources: Iterable[Source], embedder: Embedder | None) -> list[frozenset[str]]:
    """The stems of the words that the reader finds in each source where it finds any."""
    if not (embedder and embedder.read):
        return []
    found = (find_answer(question, source.text, embedder.read) for source in sources)
    return [frozenset(extract_stems(words)) for words in found if words]


def compose_writer_prompt(question: str, statements: Sequence[str], sources: Sequence[Source], sentences: int) -> str:
    """What is read, and what to do with it: how many sentences to write."""
    lines = [f"Q: {question}", *(f"Me: {text}" for text in statements)]
    lines += [f"[{number}] {source.shown}" for number, source in enumerate(sources, start=1)]
    asked = "a sentence" if sentences == 1 else f"{sentences} sentences"
    return "\n".join([*lines, f"Answer in {asked} made of these, each with its numbers."])
