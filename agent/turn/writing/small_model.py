"""The reply: quoted sentences, cleaned and completed by the small model that was taught to, each checked.

It reads the question that stands alone, the statements that matter, and the sentences, numbered, each after the title
and heading that it stands under; it writes sentences that end with the numbers of those that they were made from. It
stands in their place where it says what they say and no less (`paraphrase.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from agent.models.bundled import WRITER
from agent.models.protocol import Conversation, Task
from agent.turn.quotes import Quote, end_sentence, find_quotes
from agent.turn.reading import find_answer
from agent.turn.writing.checked_answer import CheckedAnswer, Writer
from agent.turn.writing.paraphrase import leaves_out, why_not_meant
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import extract_stems
from schemas.records import Message, Passage, Plan, Query, Response, ScoredStatement, Sentence

MAX_REPLY_TOKENS = 200
MAX_SOURCES = 8  # sentences that are read
MAX_NAME_WORDS = 16  # of a title and heading
MAX_SENTENCES = 5  # of a reply
_WRITTEN = re.compile(r"\s*(.+?)\s*((?:\[\d+\]\s*)+)", re.DOTALL)
_ROW = re.compile(r"\w: [^;]+; [^;:]+: |: .* [A-Z][^.;]*: ")  # "Cat (USD): 460; Dog: 540"
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


def compose_writer_prompt(question: str, statements: Sequence[str], sources: Sequence[Source], sentences: int) -> str:
    """What is read, and what to do with it: how many sentences to write."""
    lines = [f"Q: {question}", *(f"Me: {text}" for text in statements)]
    lines += [f"[{number}] {source.shown}" for number, source in enumerate(sources, start=1)]
    asked = "a sentence" if sentences == 1 else f"{sentences} sentences"
    return "\n".join([*lines, f"Answer in {asked} made of these, each with its numbers."])


def is_taught(writer: Writer, plan: Plan) -> bool:
    """Whether the model was taught to write replies, and is told to: what it gains is small (docs/log.md)."""
    return plan.answer == "write" and not writer.quotes and WRITER in writer.llm.adapters


def write_reply(
    query: Query,
    statements: Sequence[ScoredStatement],
    quoted: Response,
    passages: Sequence[Passage],
    writer: Writer,
    embedder: Embedder | None,
    plan: Plan,
) -> Response:
    """A quoted answer in which what the model wrote stands in the place of what it was made from, where it may.

    Nothing that was quoted is left out, and the order stays: small models choose worse than the reader.
    """
    sources, told = _name_sources(quoted, passages, plan), [scored.statement.text for scored in statements]
    prompt = compose_writer_prompt(query.standalone, told, sources, min(len(sources), MAX_SENTENCES))
    task = Task("write", max_tokens=MAX_REPLY_TOKENS, adapter=WRITER)
    text = writer.llm.ask(Conversation("", (Message("user", prompt),)), task, str)
    asked = " . ".join((query.standalone, *told))
    stands_for: dict[int, Sentence | None] = {}  # by the place of a source; None: another sentence stands for it, too
    for written, numbers in read_written(text):
        places = sorted({number - 1 for number in numbers if 0 < number <= len(sources)})
        cited = [sources[place] for place in places]
        if cited and stands_for.keys().isdisjoint(places) and _may_stand(written, cited, asked, query, embedder):
            ids = dict.fromkeys(id for source in cited for id in source.passage_ids)
            stands_for |= dict.fromkeys(places) | {places[0]: Sentence(end_sentence(written), tuple(ids))}
    answer = CheckedAnswer(plan.response_tokens, writer.show)
    for place, sentence in enumerate(quoted.sentences):
        if said := stands_for.get(place, sentence):
            answer.add(said)
    return replace(quoted, sentences=tuple(answer.sentences))


def _may_stand(written: str, cited: Sequence[Source], asked: str, query: Query, embedder: Embedder | None) -> bool:
    """Whether a written sentence means what it cites, no less, and has the words that the reader finds there.

    Rows of tables are never written anew.
    """
    texts, headings = [source.text for source in cited], " . ".join(source.name for source in cited)
    if any(map(_ROW.search, texts)) or leaves_out(written, texts) or why_not_meant(written, texts, headings, asked):
        return False
    found = (find_answer(query.standalone, text, embedder.read) for text in texts) if embedder and embedder.read else ()
    stems = set(extract_stems(written))
    return all(set(extract_stems(words)) <= stems for words in found)


def _name_sources(quoted: Response, passages: Sequence[Passage], plan: Plan) -> list[Source]:
    quotes = find_quotes(passages, plan.tuning.answer)
    names = {text: name_quote(quote) for quote in reversed(quotes) for text in quote.texts}
    return [Source(names.get(each.text, ""), each.text, each.passage_ids) for each in quoted.sentences[:MAX_SOURCES]]


def read_written(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The sentences of a reply that are whole, each with the numbers that it cites."""
    return [
        (found[1].strip(), tuple(dict.fromkeys(map(int, re.findall(r"\d+", found[2])))))
        for found in _WRITTEN.finditer(text)
    ]
