"""Whether the passages can have an answer at all, by the words of the question: they speak of whom it names.

What a question names and the document of the best sentence never mentions is no answer, however near the sentence is:
the password of the router is not that of the hotel. Nor is a sentence without an amount the answer to "how much".
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from agent.turn.question_kinds import recognise_kind
from agent.turn.quotes import Quote
from agent.turn.spans.amounts_and_dates import MONTH, WEEKDAY
from agent.turn.spans.kind_evidence import has_kind
from agent.turn.spans.question_words import is_german, stem_words
from indexes.text.analysis import ENGLISH, extract_stems, load_stop_words, separate_pairs
from indexes.text.languages import find_question_language
from schemas.records import Passage, Query

FOREIGN_SHARE = 0.4  # of a question's words, from which a quote in its language may answer it
FOREIGN_COSINE = 0.7  # from which fewer do
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_NAME = re.compile(r"(?<=[a-z,;] )[A-ZÄÖÜ][a-zà-ÿ]{2,}(?:-[A-Z][a-z]+)*\b(?!-)")
_CALENDAR = re.compile(rf"(?:{MONTH}|{WEEKDAY}s?|Easter|Christmas|Internet|English|German|French)$")
_ATTRIBUTE = re.compile(
    r"(?:what|when|which)\s+(?:is|was|are|were)\s+(?:his|her|its|their|\w+['’]s)\s+"
    r"(?P<noun>[a-z-]+(?: [a-z-]+)?)\s*\??$",
    re.IGNORECASE,
)
_TOLD_BY_FORM = frozenset({"money", "number", "date", "duration", "person", "code"})
_SAID_OTHERWISE = (  # what a sentence can tell without the word
    "name price cost costs rent fee age size weight height length width date time day phone number address email "
    "e-mail password code job profession address place colour role opinion plan reason answer"
)


def may_answer(question: str, quote: Quote, passages: Sequence[Passage]) -> bool:
    """Whether a quote has what is asked for, and its document speaks of what the question names."""
    return has_what_is_asked(question, quote) and speaks_of(question, quote, passages)


def speaks_of(question: str, quote: Quote, passages: Sequence[Passage]) -> bool:
    """Whether the document of a quote mentions the names in a question, and any passage the attribute asked for.

    In German, where every noun has a capital, names cannot be told.
    """
    if is_german(question):
        return True
    own = [passage for passage in passages if passage.document == quote.document]
    if not _list_names(question) <= _stems_of(own):
        return False
    found = _ATTRIBUTE.search(question)
    if not found or set(found["noun"].lower().split()) & set(_SAID_OTHERWISE.split()):
        return True
    return bool(set(stem_words(found["noun"])) & _stems_of(passages))


def has_what_is_asked(question: str, quote: Quote) -> bool:
    """Whether a quote has the amount, the time or the name that a question asks for; true of all other questions."""
    kind = recognise_kind(question)
    return kind.name not in _TOLD_BY_FORM or has_kind(kind, quote.lead, quote.heading)


def _list_names(question: str) -> set[str]:
    names = [name for name in _NAME.findall(question) if not _CALENDAR.match(name)]
    return set(extract_stems(" ".join(name for name in names if name.lower() not in load_stop_words())))


def _stems_of(passages: Sequence[Passage]) -> set[str]:
    texts = (f"{re.sub(r'[/._-]', ' ', passage.id)} {passage.title} {passage.text}" for passage in passages)
    return {stem for text in texts for stem in (*extract_stems(text), *stem_words(text))}


def judge_foreign_words(quotes: Sequence[Quote], cosines: Sequence[float], query: Query, answerable: bool) -> bool:
    """Whether quotes answer a question in another language than English: of documents in that language, words tell.

    The embedded model knows English alone: under it any two sentences of another language are near each other. A
    follow-up may have its words from the conversation. `answerable` is what is said of all other questions.
    """
    languages = tuple(sorted({quote.language for quote in quotes}))
    language = find_question_language(query.utterance, languages) if set(languages) != {ENGLISH} else ENGLISH
    if language == ENGLISH or language not in languages:
        return answerable
    asked = dict.fromkeys((query.utterance, query.standalone))
    shares = [max(_share_content_words(text, language, quote) for text in asked) for quote in quotes]
    pairs = zip(shares, cosines, strict=True)
    return any(share >= FOREIGN_SHARE or (share and cosine >= FOREIGN_COSINE) for share, cosine in pairs)


def _share_content_words(question: str, language: str, quote: Quote) -> float:
    """Of a question's words, the share that a quote or its headings have; all of none."""
    wanted = _stem_content_words(question, language, quote.language)
    return len(wanted & quote.headed_stems()) / len(wanted) if wanted else 1.0


@lru_cache(maxsize=256)
def _stem_content_words(question: str, language: str, stemmed_as: str) -> frozenset[str]:
    """The stems of a question without the stop words of its language, and of Japanese without hiragana alone."""
    words = separate_pairs(question.lower()).split()
    bare = [word.strip("?¿!¡.,;:«»„“”\"'()") for word in words]
    stop_words = load_stop_words(language) if language else frozenset[str]()
    kept = [word for word in bare if word not in stop_words and not HIRAGANA.fullmatch(word)]
    return frozenset(stem for word in kept for stem in stem_words(word, stemmed_as))
