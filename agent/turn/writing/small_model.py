"""The reply: what the small model was taught to make of the sentences that answer, each of its sentences checked.

It reads the question that stands alone, the statements that matter, and the sentences, numbered, each after the title
and heading that it stands under; it writes sentences that end with the numbers of those that they were made from. One
that these do not support gives way to them (`paraphrase.py`).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from agent.models.bundled import WRITER
from agent.models.protocol import Conversation, Task
from agent.turn.quotes import Quote, end_sentence, find_quotes
from agent.turn.writing.checked_answer import CheckedAnswer, Writer
from agent.turn.writing.paraphrase import why_not_meant
from indexes.text.analysis import extract_stems
from schemas.records import Message, Passage, Plan, Query, Response, ScoredStatement, Sentence

MAX_REPLY_TOKENS = 200
MAX_SOURCES = 8  # sentences that are read
MAX_NAME_WORDS = 16  # of a title and heading
MAX_SENTENCES = 5  # of a reply
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


def compose_writer_prompt(question: str, statements: Sequence[str], sources: Sequence[Source], sentences: int) -> str:
    """What is read, and what to do with it: how many sentences to write."""
    lines = [f"Q: {question}", *(f"Me: {text}" for text in statements)]
    lines += [f"[{number}] {source.shown}" for number, source in enumerate(sources, start=1)]
    asked = "a sentence" if sentences == 1 else f"{sentences} sentences"
    return "\n".join([*lines, f"Answer in {asked} made of these, each with its numbers."])


def is_taught(writer: Writer, plan: Plan) -> bool:
    """Whether the model was taught to write replies, and may."""
    return plan.answer != "extract" and not writer.quotes and WRITER in writer.llm.adapters


def write_reply(
    query: Query,
    statements: Sequence[ScoredStatement],
    quoted: Response,
    passages: Sequence[Passage],
    writer: Writer,
    plan: Plan,
) -> Response:
    """A quoted answer in the model's words; the quoted one where nothing of what it writes stands.

    What the reader is sure of leads, whoever writes.
    """
    sources, told = _name_sources(quoted, passages, plan), [scored.statement.text for scored in statements]
    asked = " . ".join((query.standalone, *told))
    answer, sure, taken = CheckedAnswer(plan.response_tokens, writer.show), set(extract_stems(quoted.direct)), 0

    def take(text: str, *, is_whole: bool = True) -> None:
        nonlocal taken
        written = read_written(text)
        if not is_whole and text.rstrip().endswith("]"):
            written.pop()  # more numbers may follow
        for sentence in written[taken:]:
            for checked in _check(*sentence, sources, asked):
                if not (answer.sentences or sure <= set(extract_stems(checked.text))):
                    answer.add(quoted.sentences[0])
                answer.add(checked)
        taken = max(taken, len(written))

    prompt = compose_writer_prompt(query.standalone, told, sources, min(len(sources), MAX_SENTENCES))
    task = Task("write", max_tokens=MAX_REPLY_TOKENS, adapter=WRITER)
    prompted = Conversation("", (Message("user", prompt),))
    take(writer.llm.ask(prompted, task, str, partial(take, is_whole=False) if writer.show else None))
    return replace(quoted, sentences=tuple(answer.sentences)) if answer.sentences else quoted


def _name_sources(quoted: Response, passages: Sequence[Passage], plan: Plan) -> list[Source]:
    quotes = find_quotes(passages, plan.tuning.answer)
    names = {text: name_quote(quote) for quote in reversed(quotes) for text in quote.texts}
    return [Source(names.get(each.text, ""), each.text, each.passage_ids) for each in quoted.sentences[:MAX_SOURCES]]


def _check(written: str, numbers: Sequence[int], sources: Sequence[Source], asked: str) -> Iterator[Sentence]:
    """The written sentence where those that it cites mean it, else these."""
    cited = [sources[number - 1] for number in numbers if 0 < number <= len(sources)]
    headings = " . ".join(source.name for source in cited)
    if cited and not why_not_meant(written, [source.text for source in cited], headings, asked):
        yield Sentence(end_sentence(written), tuple(dict.fromkeys(id for each in cited for id in each.passage_ids)))
    else:
        yield from (Sentence(source.text, source.passage_ids) for source in cited)


def read_written(text: str) -> list[tuple[str, tuple[int, ...]]]:
    """The sentences of a reply that are whole, each with the numbers that it cites."""
    return [
        (found[1].strip(), tuple(dict.fromkeys(map(int, re.findall(r"\d+", found[2])))))
        for found in _WRITTEN.finditer(text)
    ]
