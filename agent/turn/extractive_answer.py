"""An answer made of sentences that stand in the passages: the best one first, then others in their order.

Such an answer is supported by construction. Where even the nearest is far from what is asked, it says so first. What a
model sampled has no say here: the same question has the same answer on every processor (docs/reliability.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from agent.tracks.response_length import MAX_TOKENS, leading_within_limit, response_length
from agent.turn.attribution import supporting_ids
from indexes.passage_index import WeightedText
from indexes.ranking.in_memory_bm25 import score_by_bm25
from indexes.ranking.vectors import Embed, Vectors, combine_vectors
from indexes.text.analysis import extract_stems
from indexes.text.sentences import split_sentences
from schemas.records import Passage, Plan, Query, Response, ScoredStatement, Sentence
from schemas.tuning import AnswerTuning, Tuning

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
    limit: LengthLimit,
    tuning: Tuning,
) -> Response:
    """The sentences that answer best, as many as there is room for; empty only where there is none."""
    candidates = list(candidate_sentences(passages, tuning.answer))
    if not candidates:
        return Response(())
    ranked, answerable = _rank(candidates, query, selected_statements, embed, tuning)
    best = ranked if answerable else ranked[: tuning.answer.fallback_sentences]
    chosen = _drop_redundant(best, min(limit.words, limit.tokens), tuning.answer.max_redundancy)
    texts = _fit(_lead_with_best(chosen), [] if answerable else [NOT_FOUND], limit.tokens, tuning.answer)
    sentences = (Sentence(text, supporting_ids(text, passages)) for text in texts if text)
    return Response((*(() if answerable else (Sentence(NOT_FOUND, ()),)), *sentences))


def _lead_with_best(chosen: Sequence[CandidateSentence]) -> list[str]:
    """The best sentence, then the others in the order of their passages."""
    rest = sorted(chosen[1:], key=lambda candidate: (candidate.rank, candidate.place))
    return [candidate.text for candidate in (*chosen[:1], *rest)]


def _fit(texts: Sequence[str], opening: Sequence[str], tokens: int, tuning: AnswerTuning) -> list[str]:
    """As many sentences as fit after an opening; of the first, where not even that one fits, its beginning."""
    fitting = leading_within_limit([*opening, *texts], tokens)[len(opening) :]
    room = tokens - sum(map(response_length, opening))
    return fitting or [_truncate_words(text, room, tuning.max_sentence_words) for text in texts[:1]]


def says_not_found(response: Response) -> bool:
    """Whether an answer says that the passages have none."""
    return response.sentences[:1] == (Sentence(NOT_FOUND, ()),)


def strip_not_found(text: str) -> str:
    """What an answer says of the matter: without the opening that says that it found none."""
    return text.removeprefix(NOT_FOUND).strip()


def candidate_sentences(passages: Sequence[Passage], tuning: AnswerTuning) -> Iterator[CandidateSentence]:
    """Every sentence once; fragments only where a passage has nothing else."""
    seen: set[str] = set()
    most = tuning.max_sentence_words
    for rank, passage in enumerate(passages):
        sentences = list(enumerate(split_sentences(passage.text)))
        whole = [(n, text) for n, text in sentences if _is_statement(text, tuning)]
        for place, bare in whole or [(n, _truncate_words(text, MAX_TOKENS, most)) for n, text in sentences]:
            text = _end_sentence(bare)
            if text and text not in seen:
                seen.add(text)
                yield CandidateSentence(text, rank, place, frozenset(extract_stems(text)))


def _is_statement(text: str, tuning: AnswerTuning) -> bool:
    """Whether a sentence has an ordinary length and is no question."""
    words = len(text.split())
    return tuning.min_sentence_words <= words <= tuning.max_sentence_words and not text.endswith("?")


def _end_sentence(text: str) -> str:
    """With a full stop where the next sentence would else be taken for a part of it; empty where that is no help."""
    stopped = f"{text.rstrip(' :;,-–—')}."
    return next((ended for ended in (text, stopped) if len(split_sentences(f"{ended} Then.")) == 2), "")


def _truncate_words(text: str, tokens: int, max_words: int) -> str:
    """The beginning of a text: a passage without a sentence of ordinary length is quoted like this."""
    words = text.split()[:max_words]
    while words and response_length(" ".join(words)) > tokens:
        words.pop()
    return " ".join(words)


def _rank(
    candidates: Sequence[CandidateSentence],
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    embed: Embed | None,
    tuning: Tuning,
) -> tuple[list[CandidateSentence], bool]:
    """The candidates, best first, and whether any is near enough to the question to answer it."""
    texts = [candidate.text for candidate in candidates]
    overlaps = _word_overlap(texts, query, selected_statements)
    ranks = [candidate.rank for candidate in candidates]
    weights = tuning.answer
    if embed is None:
        scores = [share - weights.rank_penalty_words * rank for share, rank in zip(overlaps, ranks, strict=True)]
        answerable = any(overlaps)
    else:
        vectors, lead = embed(texts), tuning.query.lead_characters
        cosines = vectors @ combine_vectors(embed, question_parts(query, lead))
        scores = [
            float(cosine) + weights.overlap_weight * share - weights.rank_penalty * rank
            for cosine, share, rank in zip(cosines, overlaps, ranks, strict=True)
        ]
        answerable = max_similarity(vectors, query, embed, lead) >= weights.answerable_cosine
    scored = [replace(candidate, score=score) for candidate, score in zip(candidates, scores, strict=True)]
    return sorted(scored, key=lambda candidate: -candidate.score), answerable


def max_similarity(vectors: Vectors, query: Query, embed: Embed, lead_characters: int) -> float:
    """The highest cosine of some sentences with what the conversation is about at this turn."""
    return float((vectors @ combine_vectors(embed, topic_parts(query, lead_characters))).max())


def _word_overlap(texts: Sequence[str], query: Query, selected_statements: Sequence[ScoredStatement]) -> list[float]:
    """BM25 over the sentences themselves for all that is known of the question and the person, the best having 1."""
    known = [query.utterance, query.standalone, query.standalone]
    scores = score_by_bm25(" ".join([*known, *(chosen.statement.text for chosen in selected_statements)]), texts)
    best = max(scores) or 1.0
    return [score / best for score in scores]


def question_parts(query: Query, lead_characters: int) -> list[WeightedText]:
    """What an answer should say: the utterance and its rewrite, and what it follows."""
    return [(query.utterance, 1.0), (query.standalone, 1.0), (_lead_and_utterance(query, lead_characters), 0.5)]


def topic_parts(query: Query, lead_characters: int) -> list[WeightedText]:
    """What the conversation is about at this turn: the same, with less weight on the bare words of the utterance."""
    return [(query.standalone, 1.0), (_lead_and_utterance(query, lead_characters), 2.0)]


def _lead_and_utterance(query: Query, lead_characters: int) -> str:
    return f"{query.reply_lead(lead_characters)} {query.utterance}".strip()


def _drop_redundant(
    candidates: Sequence[CandidateSentence], max_words: int, max_redundancy: float
) -> list[CandidateSentence]:
    """The best candidates that together have room, without those that repeat what better ones say."""
    chosen: list[CandidateSentence] = []
    stems_so_far: set[str] = set()
    length = 0
    for candidate in candidates:
        redundancy = len(candidate.words & stems_so_far) / max(1, len(candidate.words))
        words = len(candidate.text.split())
        if chosen and (redundancy > max_redundancy or length + words > max_words):
            continue
        chosen.append(candidate)
        stems_so_far |= candidate.words
        length += words
    return chosen


def nearest_sentence(text: str, passages: Sequence[Passage], embed: Embed | None, tuning: AnswerTuning) -> str:
    """The sentence of some passages that says most nearly the same; empty where none is near."""
    texts = [candidate.text for candidate in candidate_sentences(passages, tuning)]
    if not texts:
        return ""
    if embed is None:
        wanted = set(extract_stems(text))
        similarities = [len(wanted & set(extract_stems(other))) / max(1, len(wanted)) for other in texts]
    else:
        vectors = embed([text, *texts])
        similarities = [float(cosine) for cosine in vectors[1:] @ vectors[0]]
    similarity, nearest = max(zip(similarities, texts, strict=True))
    return nearest if similarity >= tuning.same_sentence else ""
