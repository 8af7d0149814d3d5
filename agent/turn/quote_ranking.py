"""How well each quote answers the question, and whether any does.

By reading (`reading.py`); by meaning, the cosine of the sentence, alone and under its headings, with the question; and
by words: the share of the question's words that the sentence and its headings have, the rare ones counting more; of
numbers and codes that the question names, so that "E.17" is not answered with E.28; and by the edition of the document.
Without an embedding model words alone decide.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from agent.turn.answerability import is_answerable, lead_and_utterance, nearest_cosine, score_surety
from agent.turn.question_words import find_codes, stem_words
from agent.turn.quotes import Quote, Reading
from agent.turn.reading import compose_follow_up, find_foreign_language, read_quotes
from indexes.ranking.rankings import score_by_bm25
from indexes.ranking.vectors import Embedder, combine_vectors
from indexes.text.compounds import COMPOUNDING, find_compounds
from indexes.text.dates import MONTH
from schemas.records import Query, ScoredStatement
from schemas.tuning import AnswerTuning, Tuning

YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_TIME = re.compile(rf"\d+|{MONTH}|[\W_]", re.IGNORECASE)  # of a name, what is left is the same for a series
_NAMES_TIME = re.compile(rf"{YEAR.pattern}|\b{MONTH}\b", re.IGNORECASE)


def rank_quotes(
    quotes: Sequence[Quote],
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    embedder: Embedder | None,
    tuning: Tuning,
) -> tuple[list[Quote], bool]:
    """The quotes with their scores, best first, and whether any is near enough to the question to answer it."""
    answer, language = tuning.answer, find_foreign_language(query.utterance, (quote.language for quote in quotes))
    if embedder is None:
        judged, rank_penalty = _score_by_words(quotes, query, selected_statements), answer.rank_penalty_words
        surety = None
    else:
        judged, surety = judge_quotes(quotes, query, embedder, tuning)
        rank_penalty = answer.rank_penalty
    unknown = "" if embedder and embedder.knows_languages else language
    answerable = is_answerable(judged, surety, query, unknown, answer)
    scored = [
        replace(
            quote,
            score=quote.score
            - rank_penalty * quote.rank
            - answer.doubt_penalty * quote.doubtful
            - answer.foreign_penalty * (language not in ("", quote.language)),
        )
        for quote in judged
    ]
    shown = [quote for quote in scored if quote.rank < answer.first_passages or quote.reading.margin > 0] or scored
    return sorted(shown, key=lambda quote: -quote.score), answerable


def judge_quotes(
    quotes: Sequence[Quote], query: Query, embedder: Embedder, tuning: Tuning
) -> tuple[list[Quote], float]:
    """The quotes with their scores by reading, words and meaning, and how surely any answers: the higher, the surer.

    Where passages are read, only the best by reading and words are left: comparing meaning costs the most.
    """
    answer, language = tuning.answer, find_foreign_language(query.utterance, (quote.language for quote in quotes))
    readings = read_quotes(quotes, _phrase_question(query), embedder.read, language)
    judged = [
        replace(quote, reading=reading, score=words + answer.reading_weight * max(reading.margin, answer.least_margin))
        for quote, reading, words in zip(quotes, readings, _judge_words(quotes, query, answer), strict=True)
    ]
    if any(reading != Reading() for reading in readings):
        judged.sort(key=lambda quote: answer.rank_penalty * quote.rank - quote.score)
        judged = judged[: answer.shortlist]
    cosines, nearest = _compare_meaning(judged, query, embedder, tuning.query.lead_characters)
    surety = score_surety(nearest, judged, query, language, answer)
    return [replace(quote, score=quote.score + cosine) for quote, cosine in zip(judged, cosines, strict=True)], surety


def _phrase_question(query: Query) -> str:
    """What the reader is asked: a follow-up that no model completed, after the question before, as it was taught."""
    is_completed = query.rewrite or query.encoded_text or not (query.context and query.earlier_utterances)
    return query.standalone if is_completed else compose_follow_up(query.earlier_utterances[-1], query.utterance)


def _compare_meaning(
    quotes: Sequence[Quote], query: Query, embedder: Embedder, lead_characters: int
) -> tuple[list[float], float]:
    """The cosine of each quote with the question, and how surely any of them answers it: the higher, the surer."""
    embed, spread = embedder.embed, embedder.spread
    plain, headed = embed([quote.lead for quote in quotes]), embed([quote.headed for quote in quotes])
    followed = lead_and_utterance(query, lead_characters)
    question = combine_vectors(embed, [(query.utterance, 1.0), (query.standalone, 1.0), (followed, 0.5)])
    cosines = [float(cosine) / spread for cosine in (plain @ question + headed @ question) / 2]
    return cosines, max(nearest_cosine(plain, query, embed, lead_characters) / spread, *cosines)


def _judge_words(quotes: Sequence[Quote], query: Query, tuning: AnswerTuning) -> list[float]:
    """What the words of each quote add to its cosine; less where its document has a later edition."""
    ages = _judge_age(quotes, query.utterance, tuning)
    return [
        tuning.overlap_weight * share + tuning.code_weight * code - ages.get(quote.document, 0.0)
        for quote, share, code in zip(
            quotes, _share_question_words(quotes, query), _share_codes(quotes, query.utterance), strict=True
        )
    ]


def _judge_age(quotes: Sequence[Quote], utterance: str, tuning: AnswerTuning) -> dict[str, float]:
    """What counts against a document that has a later edition, whose name differs in the year alone, or a successor.

    That is one of a later date whose name differs in that, as minutes do. Nothing where a month or a year is asked for.
    """
    if _NAMES_TIME.search(utterance):
        return {}
    passages = {quote.passage for quote in quotes if quote.passage.date and "T" not in quote.passage.date}  # no mails
    dates = {passage.document: passage.date for passage in passages}
    found = dict.fromkeys(_find_older(dates, _TIME, dates.__getitem__), tuning.successor_weight)
    years = [quote.document for quote in quotes if YEAR.search(quote.document)]
    return found | dict.fromkeys(_find_older(years, YEAR, YEAR.findall), tuning.newest_weight)


def _find_older(documents: Iterable[str], time: re.Pattern[str], find_order: Callable[[str], Any]) -> Iterator[str]:
    """All but the last of those whose names are the same without what tells the time."""
    groups: dict[str, list[str]] = {}
    for document in sorted(set(documents), key=lambda document: (find_order(document), document)):
        groups.setdefault(time.sub("", document.casefold()), []).append(document)
    return (document for group in groups.values() for document in group[:-1])


def _share_codes(quotes: Sequence[Quote], utterance: str) -> list[float]:
    """The share of the utterance's numbers and codes that each quote has; 0 where it names none."""
    wanted = find_codes(utterance)
    held = [find_codes(quote.headed) for quote in quotes]
    return [len(wanted & codes) / max(1, len(wanted)) for codes in held]


def _share_question_words(quotes: Sequence[Quote], query: Query) -> list[float]:
    """Of the question's words, in the language of each quote."""
    words = [quote.headed_stems() for quote in quotes]
    shares = {language: _share_words_in(language, words, query) for language in {quote.language for quote in quotes}}
    return [shares[quote.language][place] for place, quote in enumerate(quotes)]


def _share_words_in(language: str, words: Sequence[frozenset[str]], query: Query) -> list[float]:
    """Of the stems in a language: those of the utterance count twice as much as those of the conversation."""
    own = frozenset(stem_words(query.utterance, language))
    context = frozenset(stem_words(query.standalone, language)) - own
    if language in COMPOUNDING:
        words = [stems | find_compounds(own | context, stems) for stems in words]
    pairs = zip(share_rare_words(words, own), share_rare_words(words, context), strict=True)
    return [said + implied / 2 for said, implied in pairs]


def share_rare_words(texts: Sequence[frozenset[str]], wanted: frozenset[str]) -> list[float]:
    """Which share of the wanted words each text has, the rarer among the texts weighing more; 0 where none occurs."""
    counts = {word: sum(word in words for words in texts) for word in sorted(wanted)}
    weights = {word: math.log((len(texts) + 1) / (count + 0.5)) for word, count in counts.items() if count}
    total = sum(weights.values()) or 1.0
    return [sum(weight for word, weight in weights.items() if word in words) / total for words in texts]


def _score_by_words(
    quotes: Sequence[Quote], query: Query, selected_statements: Sequence[ScoredStatement]
) -> list[Quote]:
    """The quotes by BM25 for all that is known of the question and the person, the best having 1."""
    known = [query.utterance, query.standalone, query.standalone]
    asked = " ".join([*known, *(chosen.statement.text for chosen in selected_statements)])
    scores = score_by_bm25(asked, [quote.lead for quote in quotes], [quote.language for quote in quotes])
    best = max(scores) or 1.0
    return [replace(quote, score=score / best) for quote, score in zip(quotes, scores, strict=True)]
