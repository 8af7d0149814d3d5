"""Whether any of some quotes answers the question, or it is to be said that none does: the abstention.

By meaning and by reading; in a language that the embedding model does not know, by the words that question and quotes
share, or where the reader is very sure.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from agent.turn.question_words import stem_words
from agent.turn.quotes import Quote, Reading
from agent.turn.safety.needs import classify_request
from indexes.ranking.vectors import Embed, Vectors, combine_vectors
from indexes.text.analysis import load_stop_words, separate_pairs
from indexes.text.compounds import COMPOUNDING, MIN_PIECE, has_part_in_common, is_made_of
from schemas.records import Query
from schemas.tuning import AnswerTuning

PART_OF_WORD = 0.5  # what a word counts of which a quote has only a part
FOREIGN_READING = 0.02  # what a margin adds to the cosine, for a question in another language than English
SURE_MARGIN = 7.0  # of the reader
FOREIGN_SHARE = 0.35  # of a question's words, from which a quote may answer it
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_WORD = re.compile(r"[^\W\d_]+")


def is_answerable(
    judged: Sequence[Quote], surety: float | None, query: Query, unknown: str, tuning: AnswerTuning
) -> bool:
    """By how surely one answers (None: by words alone); in a language `unknown` to the embedding model, by its words.

    There, a quote may answer without them of which the reader is very sure.
    """
    if any(quote.language == unknown for quote in judged):
        is_read = any(quote.reading.margin > SURE_MARGIN for quote in judged)
        return is_read or has_foreign_words(judged, query, unknown)
    return any(quote.score for quote in judged) if surety is None else surety >= tuning.answerable_cosine


def score_surety(nearest: float, quotes: Sequence[Quote], query: Query, language: str, tuning: AnswerTuning) -> float:
    """How surely any quote answers, by the nearest cosine and by the best margin: the higher, the surer.

    To a question in another `language` than English, what the reader misses counts nothing; little where it could read
    none, and where a recommendation is asked for.
    """
    margins = [quote.reading.margin for quote in quotes if quote.reading.text]
    best = max(margins or [quote.reading.margin for quote in quotes])
    if language:
        return nearest + FOREIGN_READING * max(0.0, best)
    if all(quote.reading == Reading() for quote in quotes):
        return nearest
    request = classify_request((*query.earlier_utterances, query.utterance))
    can_tell = margins and request != "recommendation"
    weight = tuning.answerable_reading if can_tell else tuning.answerable_unread
    return nearest + weight * (tuning.answerable_offset + best)


def nearest_cosine(quotes: Vectors, query: Query, embed: Embed, lead_characters: int) -> float:
    """How near the nearest of some quotes is to what the conversation is about at this turn.

    The question counts with less weight on the bare words of the utterance, which may be "And why?".
    """
    lead = lead_and_utterance(query, lead_characters)
    return float((quotes @ combine_vectors(embed, [(query.standalone, 1.0), (lead, 2.0)])).max())


def lead_and_utterance(query: Query, lead_characters: int) -> str:
    return f"{query.reply_lead(lead_characters)} {query.utterance}".strip()


def has_foreign_words(quotes: Sequence[Quote], query: Query, language: str) -> bool:
    """Whether any quote has enough words of a question in this language to answer it.

    Under the embedded model any two sentences of another language are near each other. A follow-up may have its words
    from the conversation.
    """
    asked = (query.utterance, query.standalone)
    return any(_share_content_words(text, language, quote) >= FOREIGN_SHARE for quote in quotes for text in asked)


def _share_content_words(question: str, language: str, quote: Quote) -> float:
    """Of a question's words, the share that a quote or its headings have; all of none. Parts of words count, too."""
    words = _list_content_words(question, language)
    wanted = {word: stems for word in words if (stems := frozenset(stem_words(word, quote.language)))}
    if not wanted:
        return 1.0
    held = quote.headed_stems()
    return sum(_share_word(word, stems, held, quote) for word, stems in wanted.items()) / len(wanted)


def _share_word(word: str, stems: frozenset[str], held: frozenset[str], quote: Quote) -> float:
    if stems & held:
        return len(stems & held) / len(stems)
    if quote.language not in COMPOUNDING:
        return 0.0
    written = frozenset(_WORD.findall(f"{quote.heading} {' '.join(quote.texts)}".casefold()))
    ends_another = len(word) >= MIN_PIECE and any(one.endswith(word) and len(one) > len(word) + 1 for one in written)
    if ends_another or is_made_of(word, written):  # "Rohrbruch" is what "Wasserrohrbruch" is a kind of
        return 1.0
    return PART_OF_WORD * has_part_in_common(word, written)


@lru_cache(maxsize=256)
def _list_content_words(question: str, language: str) -> tuple[str, ...]:
    """The words of a question without the stop words of its language, and of Japanese without hiragana alone."""
    words = separate_pairs(question.lower()).split()
    bare = [word.strip("?¿!¡.,;:«»„“”\"'()") for word in words]
    stop_words = load_stop_words(language) if language else frozenset[str]()
    return tuple(dict.fromkeys(word for word in bare if word not in stop_words and not HIRAGANA.fullmatch(word)))
