"""An answer made of sentences that stand in the passages: the best one first, then others in their order.

Such an answer is supported by construction. Where even the nearest is far from what is asked, it says so first. What a
model sampled has no say here: the same question has the same answer on every processor (docs/reliability.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.tracks.response_length import MAX_TOKENS, leading_within_limit, response_length
from agent.turn.attribution import supporting_ids
from agent.turn.preference_filter import avoided_things, mentions_any
from indexes.passage_index import WeightedText
from indexes.ranking.in_memory_bm25 import score_by_bm25
from indexes.ranking.vectors import Embed, Vectors, combine_vectors
from indexes.text.analysis import extract_stems
from indexes.text.sentences import split_sentences
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence

SENTENCE_WORDS = (5, 60)  # shorter ones are headings and fragments, longer ones lists
OVERLAP_WEIGHT, RANK_PENALTY = (
    0.1,
    0.02,
)  # beside the cosine: word overlap (at most 1), a place further down the ranking
RANK_PENALTY_WORDS = 0.05  # what a place further down costs where there is word overlap alone
MAX_REDUNDANCY = 0.6  # share of a sentence's words that an earlier one may already have said
ANSWERABLE_COSINE = (
    0.35  # cosine of the nearest sentence below which the passages are taken to have no answer (docs/log.md)
)
FALLBACK_SENTENCES = 2  # sentences quoted then
SAME_SENTENCE_SIMILARITY = 0.5  # cosine, or share of words, from which a sentence may stand for another
NOT_FOUND = "I found no answer to this in the passages. What comes nearest:"


@dataclass(frozen=True, slots=True)
class LengthLimit:
    """How long an answer may be."""

    words: int = Plan().words  # by white space
    tokens: int = MAX_TOKENS  # by both official counts


@dataclass(frozen=True, slots=True)
class CandidateSentence:
    """A sentence of a passage that may become part of the answer."""

    text: str
    rank: int  # of its passage, from 0
    place: int  # in its passage, from 0
    words: frozenset[str]
    score: float = 0.0


def extract_answer(
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    passages: Sequence[Passage],
    embed: Embed | None,
    most: "LengthLimit",
) -> Response:
    """The sentences that best answer, as many as there is room for; empty only where there is none."""
    tokens = most.tokens
    candidates = _drop_avoided(list(candidate_sentences(passages)), query, selected_statements)
    if not candidates:
        return Response(())
    ranked, near = _rank(candidates, query, selected_statements, embed)
    chosen = _drop_redundant(ranked if near else ranked[:FALLBACK_SENTENCES], min(most.words, tokens))
    picked = [*chosen[:1], *sorted(chosen[1:], key=lambda candidate: (candidate.rank, candidate.place))]
    opening = [] if near else [NOT_FOUND]
    kept = leading_within_limit([*opening, *(candidate.text for candidate in picked)], tokens)[len(opening) :] or [
        _truncate_words(candidate.text, tokens - len(opening) * response_length(NOT_FOUND)) for candidate in picked[:1]
    ]
    sentences = (Sentence(text, supporting_ids(text, passages)) for text in kept if text)
    return Response((*(Sentence(text, ()) for text in opening), *sentences))


def says_not_found(response: Response) -> bool:
    """Whether an answer says that the passages have none."""
    return response.sentences[:1] == (Sentence(NOT_FOUND, ()),)


def strip_not_found(text: str) -> str:
    """What an answer says of the matter: without the opening that says that it found none."""
    return text.removeprefix(NOT_FOUND).strip()


def candidate_sentences(passages: Sequence[Passage]) -> Iterator[CandidateSentence]:
    """Every sentence once; fragments only where a passage has nothing else."""
    seen: set[str] = set()
    for rank, passage in enumerate(passages):
        sentences = list(enumerate(split_sentences(passage.text)))
        whole = [(n, text) for n, text in sentences if _is_statement(text)]
        for place, bare in whole or [(n, _truncate_words(text, MAX_TOKENS)) for n, text in sentences]:
            text = _end_sentence(bare)
            if text and text not in seen:
                seen.add(text)
                yield CandidateSentence(text, rank, place, frozenset(extract_stems(text)))


def _drop_avoided(
    candidates: list[CandidateSentence], query: Query, selected_statements: Sequence[ScoredStatement]
) -> list[CandidateSentence]:
    """Those that speak of nothing the person's statements rule out; all, where that would leave none."""
    things = avoided_things(selected_statements, f"{query.utterance} {query.standalone}")
    return [candidate for candidate in candidates if not mentions_any(candidate.text, things)] or candidates


def _is_statement(text: str) -> bool:
    """Of ordinary length, and no question: an answer is not made of either."""
    low, high = SENTENCE_WORDS
    return low <= len(text.split()) <= high and not text.endswith("?")


def _end_sentence(text: str) -> str:
    """With a full stop where the next sentence would else be taken for a part of it; empty where that is no help."""
    stopped = f"{text.rstrip(' :;,-–—')}."
    return next((ended for ended in (text, stopped) if len(split_sentences(f"{ended} Then.")) == 2), "")


def _truncate_words(text: str, tokens: int) -> str:
    """A passage without a sentence of ordinary length still has to be quoted: its beginning, within the limit."""
    words = text.split()[: SENTENCE_WORDS[1]]
    while words and response_length(" ".join(words)) > tokens:
        words.pop()
    return " ".join(words)


def _rank(
    candidates: Sequence[CandidateSentence],
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    embed: Embed | None,
) -> tuple[list[CandidateSentence], bool]:
    """The candidates, best first, and whether any is near enough to what is asked to be an answer."""
    texts = [candidate.text for candidate in candidates]
    words = _word_overlap(texts, query, selected_statements)
    if embed is None:
        scores = [
            share - RANK_PENALTY_WORDS * candidate.rank for share, candidate in zip(words, candidates, strict=True)
        ]
        near = any(words)
    else:
        vectors = embed(texts)
        cosines = vectors @ combine_vectors(embed, question_parts(query))
        scores = [
            float(cosine) + OVERLAP_WEIGHT * share - RANK_PENALTY * candidate.rank
            for cosine, share, candidate in zip(cosines, words, candidates, strict=True)
        ]
        near = max_similarity(vectors, query, embed) >= ANSWERABLE_COSINE
    scored = [replace(candidate, score=score) for candidate, score in zip(candidates, scores, strict=True)]
    return sorted(scored, key=lambda candidate: -candidate.score), near


def max_similarity(vectors: Vectors, query: Query, embed: Embed) -> float:
    """The cosine of the nearest of some sentences with what the conversation is about at this turn."""
    return float((vectors @ combine_vectors(embed, topic_parts(query))).max())


def _word_overlap(texts: Sequence[str], query: Query, selected_statements: Sequence[ScoredStatement]) -> list[float]:
    """BM25 over the sentences themselves for all that is known of the question and the person, the best having 1."""
    known = [query.utterance, query.standalone, query.standalone]
    scores = score_by_bm25(" ".join([*known, *(chosen.statement.text for chosen in selected_statements)]), texts)
    best = max(scores) or 1.0
    return [score / best for score in scores]


def question_parts(query: Query) -> list[WeightedText]:
    """What an answer should say: the utterance and its rewrite, and what it follows."""
    return [(query.utterance, 1.0), (query.standalone, 1.0), (_reply_and_utterance(query), 0.5)]


def topic_parts(query: Query) -> list[WeightedText]:
    """What the conversation is about at this turn: the same, with less weight on the bare words of the utterance."""
    return [(query.standalone, 1.0), (_reply_and_utterance(query), 2.0)]


def _reply_and_utterance(query: Query) -> str:
    return f"{query.reply_lead} {query.utterance}".strip()


def _drop_redundant(candidates: Sequence[CandidateSentence], limit: int) -> list[CandidateSentence]:
    picked: list[CandidateSentence] = []
    said: set[str] = set()
    length = 0
    for candidate in candidates:
        repeated = len(candidate.words & said) / max(1, len(candidate.words))
        words = len(candidate.text.split())
        if picked and (repeated > MAX_REDUNDANCY or length + words > limit):
            continue
        picked.append(candidate)
        said |= candidate.words
        length += words
    return picked


def nearest_sentence(text: str, passages: Sequence[Passage], embed: Embed | None) -> str:
    """The sentence of some passages that says most nearly the same; empty where none is near."""
    texts = [candidate.text for candidate in candidate_sentences(passages)]
    if not texts:
        return ""
    if embed is None:
        wanted = set(extract_stems(text))
        near = [len(wanted & set(extract_stems(other))) / max(1, len(wanted)) for other in texts]
    else:
        vectors = embed([text, *texts])
        near = [float(cosine) for cosine in vectors[1:] @ vectors[0]]
    closeness, found = max(zip(near, texts, strict=True))
    return found if closeness >= SAME_SENTENCE_SIMILARITY else ""
