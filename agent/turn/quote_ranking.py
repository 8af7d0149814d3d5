"""How well each quote answers the question, and whether any does.

By reading (`reading.py`); by meaning, the cosine of the sentence, alone and under its headings, with the question; and
by words: the share of the question's words that the sentence and its headings have, the rare ones counting more; of
numbers and codes that the question names, so that "E.17" is not answered with E.28; and by the edition of the document.
Without an embedding model words alone decide. In a chat a model that was taught to compares the best.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.special import logsumexp

from agent.models.protocol import LanguageModel
from agent.turn.answerability import is_answerable, lead_and_utterance, nearest_cosine, score_surety
from agent.turn.question_words import find_codes, stem_words
from agent.turn.quotes import Quote, Reading
from agent.turn.reading import compose_follow_up, find_foreign_language, read_quotes
from indexes.documents.tables.cells import UNIT
from indexes.ranking.rankings import score_by_bm25
from indexes.ranking.vectors import Embedder, combine_vectors
from indexes.text.analysis import ENGLISH
from indexes.text.compounds import COMPOUNDING, find_compounds
from indexes.text.dates import MONTH, MONTHS
from schemas.records import Passage, Query, ScoredStatement
from schemas.tuning import AnswerTuning, Tuning

YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_TIME = re.compile(rf"\d+|{MONTH}|[\W_]", re.IGNORECASE)  # of a name, what is left is the same for a series
_VERBS = r"(?-i:ma[ry]\b|march\b|sep\b)"  # or such words, without a capital
_NAMED_TIME = re.compile(rf"({YEAR.pattern})|(?<=\w )(?!{_VERBS})({MONTH})\b", re.IGNORECASE)
_MAIL_HEADER = re.compile(r"from: .*; subject: ")
LEAST_MARGIN_OF_LATER = -3.0  # of the reader, from which a statement may be on the same thing
_AMOUNT = re.compile(r"([€£$])? ?\d[\d.,]*(?: ?([^\W\d]+|[€£%]))?")
_KINDS = {
    "day": re.compile(rf"\d(?:\.|st|nd|rd|th)?(?: of)? {MONTH}\b|\b{MONTH} \d", re.IGNORECASE),
    "time": re.compile(r"\d[:.]\d\d(?!\d| ?[€£])|\d ?[ap]\.?m\b", re.IGNORECASE),
}
_REPLY = re.compile(r"(?:(?:re|aw|fwd?|wg|sv|tr|rv|r|i): ?)+", re.IGNORECASE)  # before the subject of a mail


def rank_quotes(
    quotes: Sequence[Quote],
    query: Query,
    selected_statements: Sequence[ScoredStatement],
    embedder: Embedder | None,
    tuning: Tuning,
    llm: LanguageModel | None = None,
) -> tuple[list[Quote], bool]:
    """The quotes with their scores, best first, and whether any is near enough to the question to answer it.

    `llm` compares the best of them, if it was taught to.
    """
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
    ranked = sorted(shown, key=lambda quote: -quote.score)
    if llm and not language:
        ranked = _compare_best(ranked, _phrase_question(query), llm, answer)
    return (_put_latest_first(ranked, scored, query.utterance) if answer.successor_weight else ranked), answerable


def _compare_best(ranked: list[Quote], question: str, llm: LanguageModel, tuning: AnswerTuning) -> list[Quote]:
    """The quotes, the best of them held against each other by a model that was taught to, where none is sure.

    Together these stay as likely as they were. In English, and where they were read.
    """
    best, others = ranked[: tuning.compared], ranked[tuning.compared :]
    is_read = any(quote.reading.text for quote in best) and all(quote.language == ENGLISH for quote in best)
    if len(best) < 2 or not is_read or weigh_chances(ranked, tuning)[0] >= tuning.sure_chance:
        return ranked
    before = tuning.chance_scale * np.array([quote.score for quote in best])
    odds = before + tuning.compared_weight * np.array(llm.compare(question, [quote.in_context for quote in best]))
    scores = ((odds - logsumexp(odds) + logsumexp(before)) / tuning.chance_scale).tolist()
    compared = (replace(quote, score=score) for quote, score in zip(best, scores, strict=True))
    return sorted((*compared, *others), key=lambda quote: -quote.score)


def weigh_chances(ranked: Sequence[Quote], tuning: AnswerTuning) -> list[float]:
    """How likely each of the best quotes is the one that answers, all held against each other."""
    odds = [math.exp(tuning.chance_scale * (quote.score - ranked[0].score)) for quote in ranked[: tuning.held]]
    total = sum(odds)
    return [odd / total for odd in odds]


def _put_latest_first(ranked: list[Quote], scored: Sequence[Quote], utterance: str) -> list[Quote]:
    """The quotes; where the best has a day, time or amount, one of the same kind in a later document takes its place.

    That is of the same series, and may answer by reading. Not where a month or a year is asked for.
    """
    best, kinds = ranked[0], find_kinds(ranked[0].reading.text)
    series, time = _place_in_series(best.passage)
    if not time or not kinds or _NAMED_TIME.search(utterance):
        return ranked
    placed = ((quote, *_place_in_series(quote.passage)) for quote in scored if not _MAIL_HEADER.match(quote.lead))
    later = [quote for quote, name, own in placed if name == series and own > time and kinds & find_kinds(quote.lead)]
    latest = max(later, key=lambda quote: quote.reading.margin, default=best)
    if latest is best or latest.reading.margin < LEAST_MARGIN_OF_LATER:
        return ranked
    swapped = (replace(latest, score=best.score), replace(best, score=latest.score))
    others = (quote for quote in ranked if quote not in (best, latest))
    return sorted((*swapped, *others), key=lambda quote: -quote.score)


def find_kinds(text: str) -> frozenset[str]:
    """What kinds of values a text has: a day, a time, amounts by what they measure."""
    units = (UNIT.get(word.casefold(), "") for amount in _AMOUNT.findall(text) for word in amount)
    kinds = {unit.rpartition(" ")[0] or unit for unit in units if unit}
    return frozenset(kinds | {kind for kind, form in _KINDS.items() if form.search(text)})


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
    cosines, nearest = _compare_meaning(judged, query, embedder, tuning)
    surety = score_surety(nearest, judged, query, language, answer)
    return [replace(quote, score=quote.score + cosine) for quote, cosine in zip(judged, cosines, strict=True)], surety


def _phrase_question(query: Query) -> str:
    """What the reader is asked: a follow-up that no model completed, after the question before, as it was taught."""
    is_completed = query.rewrite or query.encoded_text or not (query.context and query.earlier_utterances)
    return query.standalone if is_completed else compose_follow_up(query.earlier_utterances[-1], query.utterance)


def _compare_meaning(
    quotes: Sequence[Quote], query: Query, embedder: Embedder, tuning: Tuning
) -> tuple[list[float], float]:
    """The cosine of each quote with the question, and how surely any of them answers it: the higher, the surer."""
    embed, spread, lead_characters = embedder.embed, embedder.spread, tuning.query.lead_characters
    plain, headed = embed([quote.lead for quote in quotes]), embed([quote.headed for quote in quotes])
    followed = lead_and_utterance(query, lead_characters)
    asked = [(query.utterance, 1.0), (query.standalone, 1.0), (followed, 0.5)]
    takes_questions = tuning.retrieval.takes_questions and all(quote.language == ENGLISH for quote in quotes)
    question = combine_vectors(embedder.embedding_questions(takes_questions), asked)
    cosines = [float(cosine) / spread for cosine in (plain @ question + headed @ question) / 2]
    return cosines, max(nearest_cosine(plain, query, embed, lead_characters) / spread, *cosines)


def _judge_words(quotes: Sequence[Quote], query: Query, tuning: AnswerTuning) -> list[float]:
    """What the words of each quote add to its cosine; less where its document has a later edition."""
    ages = _judge_age(quotes, query.utterance, tuning)
    return [
        tuning.overlap_weight * share + tuning.code_weight * code - ages.get(quote.passage, 0.0)
        for quote, share, code in zip(
            quotes, _share_question_words(quotes, query), _share_codes(quotes, query.utterance), strict=True
        )
    ]


def _judge_age(quotes: Sequence[Quote], utterance: str, tuning: AnswerTuning) -> dict[Passage, float]:
    """What counts against a passage whose document has a later edition or a successor, unless a time is asked for.

    Then it counts against those of other times, where one of the series is of that time.
    """
    named = [months or year for year, months in _NAMED_TIME.findall(utterance)]
    passages, found = dict.fromkeys(quote.passage for quote in quotes), dict[Passage, float]()
    for find_place, weight in ((_place_in_series, tuning.successor_weight), (_place_in_editions, tuning.newest_weight)):
        placed = [(*find_place(passage), passage) for passage in passages if "T" not in passage.date]  # no mails
        for series in sorted({name for name, time, _ in placed if time}):
            times = {time for name, time, _ in placed if name == series}
            kept = {time for time in times if all(_is_of_time(time, one) for one in named)} if named else {max(times)}
            others = times - kept if kept else set[str]()
            found |= {passage: weight for name, time, passage in placed if name == series and time in others}
    return found


def _place_in_series(passage: Passage) -> tuple[str, str]:
    """What the names of documents of a series have in common, all but the date, and when this one was written.

    Of a mail its subject. What has no date is in no series.
    """
    if "T" in passage.date:
        return _REPLY.sub("", passage.title.rpartition(" (")[0]).casefold(), passage.date
    return _TIME.sub("", passage.document.casefold()), passage.date


def _place_in_editions(passage: Passage) -> tuple[str, str]:
    """What is left of a document's name without the years in it, and these."""
    return YEAR.sub("", passage.document.casefold()), " ".join(YEAR.findall(passage.document))


def _is_of_time(time: str, named: str) -> bool:
    """Whether a date, ISO 8601, or some years are of a named month or year."""
    month = MONTHS.get(named.casefold())
    return time[4:7] == f"-{month:02}" if month else named in time


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
