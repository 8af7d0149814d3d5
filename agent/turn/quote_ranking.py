"""How well each quote answers the question, and whether any does.

By meaning (cosine of the sentence, alone and under its headings, with the question) and by words: the share of the
question's words that the sentence and its headings have, the rare ones counting more, so that "E.17" is not answered
with E.28. Without an embedding model words alone decide.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from agent.turn.quotes import Quote
from indexes.passage_index import WeightedText
from indexes.ranking.in_memory_bm25 import score_by_bm25
from indexes.ranking.vectors import Embed, Vectors, combine_vectors
from indexes.text.analysis import extract_stems
from schemas.records import Query, ScoredStatement
from schemas.tuning import AnswerTuning, Tuning


def rank_quotes(
    quotes: Sequence[Quote],
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    embed: Embed | None,
    tuning: Tuning,
) -> tuple[list[Quote], bool]:
    """The quotes with their scores, best first, and whether the best is near enough to the question to answer it."""
    if embed is None:
        scores = _score_by_words(quotes, query, selected_statements, tuning.answer)
        answerable = any(scores)
    else:
        cosines, answerable = _compare_meaning(quotes, query, embed, tuning)
        shares = _share_question_words(quotes, query)
        scores = [cosine + tuning.answer.overlap_weight * share for cosine, share in zip(cosines, shares, strict=True)]
    penalty = tuning.answer.rank_penalty if embed else tuning.answer.rank_penalty_words
    scored = [replace(quote, score=score - penalty * quote.rank) for quote, score in zip(quotes, scores, strict=True)]
    return sorted(scored, key=lambda quote: -quote.score), answerable


def _compare_meaning(quotes: Sequence[Quote], query: Query, embed: Embed, tuning: Tuning) -> tuple[list[float], bool]:
    """The mean cosine of each quote, alone and under its headings; and whether the nearest is near enough."""
    lead = tuning.query.lead_characters
    question = combine_vectors(embed, question_parts(query, lead))
    plain, headed = embed([quote.lead for quote in quotes]), embed([quote.headed for quote in quotes])
    cosines = ((plain @ question + headed @ question) / 2).tolist()
    return cosines, max_similarity(plain, query, embed, lead) >= tuning.answer.answerable_cosine


def _share_question_words(quotes: Sequence[Quote], query: Query) -> list[float]:
    """Of the question's words: those of the utterance count twice as much as those of the conversation."""
    words = [quote.headed_stems() for quote in quotes]
    own = frozenset(extract_stems(query.utterance))
    context = frozenset(extract_stems(query.standalone)) - own
    pairs = zip(share_rare_words(words, own), share_rare_words(words, context), strict=True)
    return [said + implied / 2 for said, implied in pairs]


def share_rare_words(texts: Sequence[frozenset[str]], wanted: frozenset[str]) -> list[float]:
    """Which share of the wanted words each text has, the rarer among the texts weighing more; 0 where none occurs."""
    counts = {word: sum(word in words for words in texts) for word in sorted(wanted)}
    weights = {word: math.log((len(texts) + 1) / (count + 0.5)) for word, count in counts.items() if count}
    total = sum(weights.values()) or 1.0
    return [sum(weight for word, weight in weights.items() if word in words) / total for words in texts]


def _score_by_words(
    quotes: Sequence[Quote], query: Query, selected_statements: Sequence[ScoredStatement], tuning: AnswerTuning
) -> list[float]:
    """BM25 over the quotes for all that is known of the question and the person, the best having 1."""
    known = [query.utterance, query.standalone, query.standalone]
    asked = " ".join([*known, *(chosen.statement.text for chosen in selected_statements)])
    scores = score_by_bm25(asked, [quote.headed for quote in quotes])
    best = max(scores) or 1.0
    return [score / best for score in scores]


def max_similarity(vectors: Vectors, query: Query, embed: Embed, lead_characters: int) -> float:
    """The highest cosine of some sentences with what the conversation is about at this turn."""
    return float((vectors @ combine_vectors(embed, topic_parts(query, lead_characters))).max())


def question_parts(query: Query, lead_characters: int) -> list[WeightedText]:
    """What an answer should say: the utterance and its rewrite, and what it follows."""
    return [(query.utterance, 1.0), (query.standalone, 1.0), (_lead_and_utterance(query, lead_characters), 0.5)]


def topic_parts(query: Query, lead_characters: int) -> list[WeightedText]:
    """What the conversation is about at this turn: the same, with less weight on the bare words of the utterance."""
    return [(query.standalone, 1.0), (_lead_and_utterance(query, lead_characters), 2.0)]


def _lead_and_utterance(query: Query, lead_characters: int) -> str:
    return f"{query.reply_lead(lead_characters)} {query.utterance}".strip()
