"""An answer made of sentences that stand in the passages: the best one first, then others in their order.

Such an answer is supported by construction. Where even the nearest is far from what is asked, it says so first. What a
model sampled has no say here: the same question has the same answer on every processor (docs/reliability.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.aversions import ruled_out, speaks_of
from agent.sentences import MAX_TOKENS, fitting, response_length, split_sentences
from agent.support import supporters
from indexes.handful import overlap
from indexes.passages import Weighted
from indexes.vectors import Embed, Vectors, direction
from indexes.words import stems
from schemas.records import Chosen, Passage, Plan, Query, Response, Sentence

SENTENCE_WORDS = (5, 60)  # shorter ones are headings and fragments, longer ones lists
OVERLAP, OVERLAP_RANK = 0.1, 0.02  # beside the cosine: word overlap (at most 1), a place further down the ranking
RANK = 0.05  # what a place further down costs where there is word overlap alone
REPEATED = 0.6  # share of a sentence's words that an earlier one may already have said
NEAR = 0.35  # cosine of the nearest sentence below which the passages are taken to have no answer (docs/log.md)
NEAREST = 2  # sentences quoted then
SAME = 0.5  # cosine, or share of words, from which a sentence may stand for another
NOT_FOUND = "I found no answer to this in the passages. What comes nearest:"


@dataclass(frozen=True, slots=True)
class Most:
    """How long an answer may be."""

    words: int = Plan().words  # by white space
    tokens: int = MAX_TOKENS  # by both official counts


@dataclass(frozen=True, slots=True)
class Candidate:
    """A sentence of a passage that may become part of the answer."""

    text: str
    rank: int  # of its passage, from 0
    place: int  # in its passage, from 0
    words: frozenset[str]
    score: float = 0.0


def select(
    query: Query, personal: Sequence[Chosen], passages: Sequence[Passage], embed: Embed | None, most: "Most"
) -> Response:
    """The sentences that best answer, as many as there is room for; empty only where there is none."""
    tokens = most.tokens
    candidates = _suitable(list(candidates_of(passages)), query, personal)
    if not candidates:
        return Response(())
    ranked, near = _ranked(candidates, query, personal, embed)
    chosen = _without_repetition(ranked if near else ranked[:NEAREST], min(most.words, tokens))
    picked = [*chosen[:1], *sorted(chosen[1:], key=lambda candidate: (candidate.rank, candidate.place))]
    opening = [] if near else [NOT_FOUND]
    kept = fitting([*opening, *(candidate.text for candidate in picked)], tokens)[len(opening) :] or [
        _shortened(candidate.text, tokens - len(opening) * response_length(NOT_FOUND)) for candidate in picked[:1]
    ]
    sentences = (Sentence(text, supporters(text, passages)) for text in kept if text)
    return Response((*(Sentence(text, ()) for text in opening), *sentences))


def says_none(response: Response) -> bool:
    """Whether an answer says that the passages have none."""
    return response.sentences[:1] == (Sentence(NOT_FOUND, ()),)


def said(text: str) -> str:
    """What an answer says of the matter: without the opening that says that it found none."""
    return text.removeprefix(NOT_FOUND).strip()


def candidates_of(passages: Sequence[Passage]) -> Iterator[Candidate]:
    """Every sentence once; fragments only where a passage has nothing else."""
    seen: set[str] = set()
    for rank, passage in enumerate(passages):
        sentences = list(enumerate(split_sentences(passage.text)))
        whole = [(n, text) for n, text in sentences if _is_statement(text)]
        for place, bare in whole or [(n, _shortened(text, MAX_TOKENS)) for n, text in sentences]:
            text = _closed(bare)
            if text and text not in seen:
                seen.add(text)
                yield Candidate(text, rank, place, frozenset(stems(text)))


def _suitable(candidates: list[Candidate], query: Query, personal: Sequence[Chosen]) -> list[Candidate]:
    """Those that speak of nothing the person's statements rule out; all, where that would leave none."""
    things = ruled_out(personal, f"{query.utterance} {query.standalone}")
    return [candidate for candidate in candidates if not speaks_of(candidate.text, things)] or candidates


def _is_statement(text: str) -> bool:
    """Of ordinary length, and no question: an answer is not made of either."""
    low, high = SENTENCE_WORDS
    return low <= len(text.split()) <= high and not text.endswith("?")


def _closed(text: str) -> str:
    """With a full stop where the next sentence would else be taken for a part of it; empty where that is no help."""
    stopped = f"{text.rstrip(' :;,-–—')}."
    return next((ended for ended in (text, stopped) if len(split_sentences(f"{ended} Then.")) == 2), "")


def _shortened(text: str, tokens: int) -> str:
    """A passage without a sentence of ordinary length still has to be quoted: its beginning, within the limit."""
    words = text.split()[: SENTENCE_WORDS[1]]
    while words and response_length(" ".join(words)) > tokens:
        words.pop()
    return " ".join(words)


def _ranked(
    candidates: Sequence[Candidate], query: Query, personal: Sequence[Chosen], embed: Embed | None
) -> tuple[list[Candidate], bool]:
    """The candidates, best first, and whether any is near enough to what is asked to be an answer."""
    texts = [candidate.text for candidate in candidates]
    words = _overlap(texts, query, personal)
    if embed is None:
        scores = [share - RANK * candidate.rank for share, candidate in zip(words, candidates, strict=True)]
        near = any(words)
    else:
        vectors = embed(texts)
        cosines = vectors @ direction(embed, asked_for(query))
        scores = [
            float(cosine) + OVERLAP * share - OVERLAP_RANK * candidate.rank
            for cosine, share, candidate in zip(cosines, words, candidates, strict=True)
        ]
        near = nearest(vectors, query, embed) >= NEAR
    scored = [replace(candidate, score=score) for candidate, score in zip(candidates, scores, strict=True)]
    return sorted(scored, key=lambda candidate: -candidate.score), near


def nearest(vectors: Vectors, query: Query, embed: Embed) -> float:
    """The cosine of the nearest of some sentences with what the conversation is about at this turn."""
    return float((vectors @ direction(embed, about(query))).max())


def _overlap(texts: Sequence[str], query: Query, personal: Sequence[Chosen]) -> list[float]:
    """BM25 over the sentences themselves for all that is known of the question and the person, the best having 1."""
    known = [query.utterance, query.standalone, query.standalone]
    scores = overlap(" ".join([*known, *(chosen.statement.text for chosen in personal)]), texts)
    best = max(scores) or 1.0
    return [score / best for score in scores]


def asked_for(query: Query) -> list[Weighted]:
    """What an answer should say: the utterance and its rewrite, and what it follows."""
    return [(query.utterance, 1.0), (query.standalone, 1.0), (_followed(query), 0.5)]


def about(query: Query) -> list[Weighted]:
    """What the conversation is about at this turn: the same, with less weight on the bare words of the utterance."""
    return [(query.standalone, 1.0), (_followed(query), 2.0)]


def _followed(query: Query) -> str:
    return f"{query.topic} {query.utterance}".strip()


def _without_repetition(candidates: Sequence[Candidate], limit: int) -> list[Candidate]:
    picked: list[Candidate] = []
    said: set[str] = set()
    length = 0
    for candidate in candidates:
        repeated = len(candidate.words & said) / max(1, len(candidate.words))
        words = len(candidate.text.split())
        if picked and (repeated > REPEATED or length + words > limit):
            continue
        picked.append(candidate)
        said |= candidate.words
        length += words
    return picked


def nearest_sentence(text: str, passages: Sequence[Passage], embed: Embed | None) -> str:
    """The sentence of some passages that says most nearly the same; empty where none is near."""
    texts = [candidate.text for candidate in candidates_of(passages)]
    if not texts:
        return ""
    if embed is None:
        wanted = set(stems(text))
        near = [len(wanted & set(stems(other))) / max(1, len(wanted)) for other in texts]
    else:
        vectors = embed([text, *texts])
        near = [float(cosine) for cosine in vectors[1:] @ vectors[0]]
    closeness, found = max(zip(near, texts, strict=True))
    return found if closeness >= SAME else ""
