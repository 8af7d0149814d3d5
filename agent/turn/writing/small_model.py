"""The reply: quoted sentences, cleaned and completed by the small model that was taught to, each checked.

It reads the question that stands alone, the statements that matter, and the sentences. What it writes stands in their
place where it says what they say and no less (`paraphrase.py`).
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from agent.models.bundled import WRITER
from agent.models.protocol import Conversation, Task
from agent.turn.quotes import end_sentence
from agent.turn.writing.checked_answer import CheckedAnswer, Writer
from agent.turn.writing.paraphrase import leaves_out, why_not_meant
from agent.turn.writing.sources import Source, find_answers, name_sources, read_written
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import extract_stems
from schemas.records import Message, Passage, Plan, Query, Response, ScoredStatement, Sentence

MAX_REPLY_TOKENS = 200
MAX_SENTENCES = 5  # of a reply
_ROW = re.compile(r"\w: [^;]+; [^;:]+: |: .* [A-Z][^.;]*: ")  # "Cat (USD): 460; Dog: 540"


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
    sources, told = name_sources(quoted.sentences, passages, plan), [scored.statement.text for scored in statements]
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
    stems = set(extract_stems(written))
    return all(words <= stems for words in find_answers(query.standalone, cited, embedder))
