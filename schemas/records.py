"""The records that pass between the steps of a turn. All frozen; a new score makes a new record.

The words are the field's: a *topic* is one person's conversation with a *PTKB* (personal statements), made of *turns*,
each opened by an *utterance*; a *passage* is the unit that is searched and cited. `docs/data-model.md` has the diagram.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from schemas.tuning import Tuning

UNSURE = 0.4  # a chance below which hardly one first sentence in four answers (docs/answers.md)


@dataclass(frozen=True, slots=True)
class Message:
    role: Literal["user", "assistant"]
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """One personal statement of a PTKB. Where an edition gives no ids (iKAT 2025) the id is the 1-based position."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Turn:
    """What a run may see of a turn: the utterance, and what was said *before* it.

    `history` holds the track's canonical conversation up to this utterance, or None where the track gives none and the
    agent's own replies are the history. The canonical reply to this turn is a label and lives in `TurnLabels`.
    """

    id: str  # topic and turn joined by "_", as the tracks do: "9-1_3"
    utterance: str
    history: tuple[Message, ...] | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """One conversation. The title is deliberately absent: an automatic run may not use it."""

    id: str
    ptkb: tuple[Statement, ...]
    turns: tuple[Turn, ...]


@dataclass(frozen=True, slots=True)
class TurnLabels:
    """What only an evaluation or a manual run is handed."""

    human_rewrite: str  # the human rewrite
    reply: str  # the canonical reply to this turn
    statement_ids: tuple[str, ...]
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topics:
    """A topics file: what a run sees (`topics`) apart from what it must not see (`labels`, by turn id)."""

    edition: str
    topics: tuple[Topic, ...]
    labels: Mapping[str, TurnLabels]
    rankings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # given with them: passage ids, best first

    def turn_ids(self) -> list[str]:
        return [turn.id for topic in self.topics for turn in topic.turns]


@dataclass(frozen=True, slots=True)
class Query:
    """What to search for. Empty parts are parts that the model could not give, or that a first turn does not have."""

    utterance: str  # the person's own words
    rewrite: str = ""  # the same, made to stand alone
    context: tuple[str, ...] = ()  # words or phrases of the conversation that the utterance refers to
    hypothetical_answers: tuple[str, ...] = ()  # their words are often those of a relevant passage
    previous_reply: str = ""  # the reply that the utterance follows
    earlier_utterances: tuple[str, ...] = ()  # the utterances before it
    encoded_text: str = ""  # the turn and its conversation, as the taught encoder read them; empty where it did not
    today: str = ""  # ISO 8601, the day on which a person asks; "" in a run

    def reply_lead(self, characters: int) -> str:
        return self.previous_reply[:characters]

    @property
    def standalone(self) -> str:
        """The question as it stands alone: rewritten, or with what it refers to in brackets."""
        completed = f"{self.utterance} ({', '.join(self.context)})" if self.context else self.utterance
        return self.rewrite or completed


def find_document(id: str) -> str:
    """The document of a passage: what stands before the place in its id."""
    return id.rpartition(":")[0] or id


class Hit(msgspec.Struct, frozen=True, gc=False):
    """A passage found. Scores decrease strictly down a ranking.

    No dataclass, of which a thousand take a millisecond.
    """

    id: str
    score: float  # higher is better, comparable within one query only


@dataclass(frozen=True, slots=True)
class Mark:
    """From where on in a passage's text another place of its document is meant."""

    start: int  # characters of the text before it, without white space
    place: str  # as in ids: "27", a line; "Keys", a heading; "" for that of the whole passage
    headings: tuple[str, ...] = ()  # above it, without those in the passage's title


@dataclass(frozen=True, slots=True)
class Passage:
    id: str
    text: str
    title: str = ""
    url: str = ""
    language: str = "en"  # ISO 639-1, of a person's own documents; all else is taken for English
    date: str = ""  # ISO 8601: a mail's in UTC, or the year, month or day in a document's name or title; "" for none
    marks: tuple[Mark, ...] = ()  # of a person's own documents, where the passage is of several places

    @property
    def document(self) -> str:
        return find_document(self.id)


UnitKind = Literal["sentence", "item", "row", "heading", "boilerplate"]


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a passage that is quoted whole or not at all. Headings and boilerplate are never quoted."""

    text: str  # as it stands in the passage, white space folded
    kind: UnitKind
    place: int  # in the passage, from 0
    headings: tuple[str, ...] = ()  # above it, the outermost first: of the passage's title, then within the text
    points_back: bool = False  # it hangs on what stands before it; without `needs` that is not in the passage
    needs: tuple[int, ...] = ()  # places of the units that must be shown with it, ascending
    may_have_heading: bool = False  # a heading may be glued to its front, though that is not sure

    @property
    def is_statement(self) -> bool:
        return self.kind in ("sentence", "item", "row")


@dataclass(frozen=True, slots=True)
class ScoredStatement:
    statement: Statement
    score: float  # higher matters more, comparable within one turn only


@dataclass(frozen=True, slots=True)
class Sentence:
    """One sentence of an answer and the ids of the passages that support it."""

    text: str
    passage_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Response:
    """An answer, sentence by sentence. A passage is used exactly when a sentence cites it."""

    sentences: tuple[Sentence, ...]
    direct: str = ""  # the few words that answer, where they are sure: "Nine days."; shown first in a chat
    nearby: tuple[Sentence, ...] = ()  # what comes near and does not answer; folded away in a chat, never in a run
    chance: float | None = None  # that the first sentence answers, beside those that come next; None: not measured

    @property
    def is_unsure(self) -> bool:
        """Whether a person should be told that it may not answer."""
        return self.chance is not None and self.chance < UNSURE and not self.direct

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def cited_text(self) -> str:
        """What is said from the passages, without what is said about the answer itself."""
        return " ".join(sentence.text for sentence in self.sentences if sentence.passage_ids)

    @property
    def used(self) -> tuple[str, ...]:
        """Cited passage ids, in the order of their first citation."""
        return tuple(dict.fromkeys(id for sentence in self.sentences for id in sentence.passage_ids))


@dataclass(frozen=True, slots=True)
class Provided:
    """What a mode hands over for a turn instead of having it found; an automatic run is handed nothing."""

    human_rewrite: str = ""  # the human rewrite (manual)
    statements: tuple[ScoredStatement, ...] | None = None  # the gold statements (manual)
    hits: tuple[Hit, ...] | None = None  # the ranking (only-response)


@dataclass(frozen=True, slots=True)
class TurnResult:
    """A finished turn: everything that any run format needs, and everything that `show` shows."""

    turn_id: str
    query: Query
    selected_statements: tuple[ScoredStatement, ...]  # best first
    hits: tuple[Hit, ...]  # best first
    passages: tuple[Passage, ...]  # the hits whose text was shown to the answer step
    responses: tuple[Response, ...]  # best first; none in a run without answers
    without_model: str = ""  # why the turn was answered as with `--model none`, where the model failed

    @property
    def response(self) -> Response:
        """The first response; empty where there is none."""
        return self.responses[0] if self.responses else Response(())


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a language model or of the search tool, as the trace keeps it."""

    step: str
    verb: Literal["ask", "score", "search"]
    prompt: str  # of a search: the query
    reply: str = ""
    candidates: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()  # natural-log likelihoods, one a candidate
    tokens_read: int = 0  # prompt and candidate tokens that were not already in the KV cache
    tokens_written: int = 0
    seconds: float = 0.0
    omitted: tuple[str, ...] = ()  # what the prompt had no room for: ids of passages, "exchange 1" and so on
    from_cache: bool = False  # whether the reply came from the cache
    cached_tokens_read: int = 0  # of a reply from the cache: those that were read when it was computed
    cached_tokens_written: int = 0
    requests: int = 0  # that were sent to a server for it, those that were sent again included
    prefix_tokens: int = 0  # of the prompt, that the server had in its own cache


Mode = Literal["automatic", "manual", "only-response"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run that are wanted. Steps that none of them needs are skipped."""

    rewrite: bool = True
    passages: bool = True
    answer: bool = True


QueryPart = Literal["context", "hyde", "previous", "rewrite"]


@dataclass(frozen=True, slots=True)
class Plan:
    """How much of what each turn gets. `query` are the parts of a query beside the person's own words.

    context: what the utterance refers to of the conversation, or its rewrite by a larger model. rewrite: the question
    with which the bundled model calls the search, as it was taught. previous: the reply that the utterance follows.
    hyde: hypothetical answers (Gao et al., ACL 2023), of which those of the bundled model gain nothing (docs/log.md).
    """

    k: int = 1000  # passages of the ranking
    context_passages: int = 5  # passages that a response is built from
    responses: int = 1
    parts: Parts = Parts()
    hyde_samples: int = 1  # hypothetical answers a turn
    seed: int = 0
    query: tuple[QueryPart, ...] = ("context", "previous", "rewrite")
    answer: Literal["auto", "extract", "write"] = "auto"  # auto: written where the model is large enough
    words: int = 90  # of an answer, at most; a human one of the track has 86 on average
    address_person: bool = False  # whether an answer says in words how a statement changed it: not in a run
    min_probability: float = 0.3  # how likely the best statement must matter for any to be chosen
    tuning: Tuning = Tuning()
    response_tokens: int = 250  # of one response, at most, by both official counts
    today: str = ""  # ISO 8601, the day on which a person asks; "" in a run

    @property
    def reading_depth(self) -> int:
        return self.context_passages * self.responses if self.parts.answer else 0

    @property
    def retrieval_depth(self) -> int:
        return self.k if self.parts.passages else self.reading_depth


@dataclass(frozen=True, slots=True)
class RunInfo:
    name: str
    type: Mode = "automatic"
    team: str = "convagent"
    parts: Parts = Parts()
    labels: bool = False  # whether labels of the topics were used


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with a file: where (turn id and JSON path, or file and line) and what."""

    where: str
    what: str
    severity: Literal["error", "warning"] = "error"

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


@dataclass(frozen=True, slots=True)
class Shard:
    """Which part of a collection an index holds: of n, the first has the passages 0, n, 2n and so on."""

    number: int  # from 1
    of: int
    collection_passages: int
    collection_contents: str  # a digest of all passages of the collection (`IndexInfo.contents`)


@dataclass(frozen=True, slots=True)
class IndexInfo:
    """What an index directory says about itself (`convagent-index.json`)."""

    passages: int
    skipped: int
    sources: tuple[str, ...]
    analyzer: str
    seconds: float
    made_by: str
    segmentation: str = ""  # how documents were cut into passages; "" where they were not
    format: int = 0  # of the directory's files
    contents: str = ""  # a digest of all passages in their order, ids included; vectors are bound to it
    shards: int = 0  # of an index that is in several
    shard: Shard | None = None  # of one of these


@dataclass(frozen=True, slots=True)
class WholeAnswer:
    """An answer from a whole document, and the passages that it cites."""

    response: Response
    passages: tuple[Passage, ...]
    is_summary: bool = False  # whether a model that writes may say it in its own words
    is_request: bool = False  # whether a model that writes is asked for something made of these passages


@dataclass(frozen=True, slots=True)
class ChatSummary:
    """A conversation as a list shows it. `title` is its first utterance, unless the person gave another."""

    id: int
    started: str  # ISO 8601, UTC
    source: str  # the folder or index that was asked
    title: str
    turns: int
