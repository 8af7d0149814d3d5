"""Whether passages in another language than English answer a question in it, by the words that they share.

The embedded model and the reader know English alone. In languages that make one word of several, a part of a word
counts, too: "Jahrespacht", "Pacht".
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from agent.turn.question_words import stem_words
from agent.turn.quotes import Quote
from indexes.text.analysis import load_stop_words, separate_pairs
from schemas.records import Query

PART_OF_WORD = 0.5  # what a word counts of which a quote has only a part
FOREIGN_SHARE = 0.35  # of a question's words, from which a quote may answer it
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
COMPOUNDING = frozenset(("de", "nl", "sv", "da", "no"))
MIN_PART = 5  # letters of a part that stands alone: shorter ones begin and end too many words
MIN_PIECE = 4  # of one where another part of the word is found as well: "Honigglas", "Honig", "Glas"
MAX_LINK = 2  # letters between two parts: "Heizung-s-wartung"
_WORD = re.compile(r"[^\W\d_]+")


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


def find_compounds(wanted: Iterable[str], held: frozenset[str]) -> frozenset[str]:
    """Those of some words that others have as a part, or that are made of others."""
    return frozenset(word for word in wanted if has_part_in_common(word, held) or is_made_of(word, held))


def has_part_in_common(word: str, others: Iterable[str]) -> bool:
    """Whether a word has another as a part or is a part of it; or has its end as their beginning, or the other way."""
    return any(_have_part(word, other) or _have_part(other, word) or _join(word, other) for other in others)


def is_made_of(word: str, others: Iterable[str]) -> bool:
    """Whether a word is two others, with hardly a letter between them."""
    known = [other for other in others if MIN_PIECE <= len(other) < len(word)]
    begins = [len(other) for other in known if word.startswith(other)]
    ends = [len(other) for other in known if word.endswith(other)]
    return any(0 <= len(word) - begin - end <= MAX_LINK for begin in begins for end in ends)


def _have_part(whole: str, part: str) -> bool:
    return len(part) >= MIN_PART and len(whole) > len(part) + 1 and (whole.startswith(part) or whole.endswith(part))


def _join(one: str, other: str) -> bool:
    """Whether one ends as the other begins: "Schrebergarten", "Gartenordnung"."""
    longest = min(len(one), len(other)) - 1
    sizes = range(MIN_PART + 1, longest + 1)
    return any(one[-size:] == other[:size] or other[-size:] == one[:size] for size in sizes)
