"""Ranks passages for the topics of RCD-2020: searches for the span, and with little weight its dialogue."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agent.exchange.trec import format_trec_lines
from agent.tasks.rcd.spans import Score, find_spans, read_spans
from agent.tasks.rcd.topics import Dialogue, RcdTopics, read_topics
from indexes.ranking.hybrid import HybridRetriever
from indexes.storage.files import check_writable, write_atomically
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Hit, Problem

# What the words and the meaning of the dialogue weigh beside the span's. Not measured: the collection was not at hand.
WORDS, MEANING = 0.02, 0.2


@dataclass(frozen=True, slots=True)
class SpanSource:
    """Where the spans come from: a file, the topics' own references (labels), or else they are found by `score`."""

    score: Score
    file: Path | None = None
    reference: bool = False

    def choose_spans(self, topics: RcdTopics) -> Mapping[str, str]:
        """A span for every topic. Raises `InvalidInputError` naming the topics that have none."""
        if self.file and self.reference:
            raise UsageError("--spans and --reference-spans exclude each other", remedy="Give one of them.")
        if self.file is None and not self.reference:
            return find_spans(topics, self.score)
        spans = read_spans(self.file, topics) if self.file else topics.references
        missing = [dialogue.id for dialogue in topics.dialogues if dialogue.id not in spans]
        if missing:
            where = str(self.file or "--reference-spans")
            raise InvalidInputError(f"no span for topic {', '.join(missing)}", where=where)
        return spans


def rank_file(
    topics: Path, spans: SpanSource, retriever: HybridRetriever, out: Path, k: int, *, overwrite: bool
) -> tuple[int, tuple[Problem, ...]]:
    """Write a TREC run, `num Q0 id rank score tag`, scores strictly decreasing. Returns how many, and what was odd."""
    check_writable(out, overwrite)
    known = read_topics(topics)
    wanted = spans.choose_spans(known)
    tag = "convagent-reference" if spans.reference else "convagent"
    ranked = ((topic.id, rank_passages(topic, wanted[topic.id], retriever, k)) for topic in known.dialogues)
    write_atomically(out, (format_trec_lines(id, hits, tag).encode() for id, hits in ranked))
    return len(known.dialogues), known.odd


def rank_passages(dialogue: Dialogue, span: str, retriever: HybridRetriever, k: int) -> tuple[Hit, ...]:
    """The `k` best passages for a span of a dialogue."""
    return retriever.find([(span, 1.0), (dialogue.text, WORDS)], [(span, 1.0), (dialogue.text, MEANING)], k)
