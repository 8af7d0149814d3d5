"""Whether the passages can have an answer at all, by the words of the question: they speak of whom it names.

What a question names and the document of the best sentence never mentions is no answer, however near the sentence is:
the password of the router is not that of the hotel. Nor is a sentence without an amount the answer to "how much".
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from agent.turn.question_kinds import QuestionKind, recognise_kind
from agent.turn.quotes import Quote
from agent.turn.spans.amounts_and_dates import MONEY, MONTH, WEEKDAY, YEAR
from agent.turn.spans.answer_spans import has_kind
from agent.turn.spans.question_words import is_german, stem_words
from indexes.ranking.vectors import Embed
from indexes.text.analysis import ENGLISH, extract_stems, load_stop_words, separate_pairs
from indexes.text.languages import find_question_language
from indexes.text.units import split_units
from indexes.words import list_words
from schemas.records import Passage, Query

SAME_THING = 0.5  # cosine of two words, from which one may stand for the other: "dump", "waste"
PART_OF_WORD = 0.5  # what a word counts of which a quote has only a part
FOREIGN_SHARE = 0.35  # of a question's words, from which a quote in its language may answer it
FOREIGN_COSINE = 0.7  # from which fewer do
PATH_MARK = re.compile(r"[/._-]")
HIRAGANA = re.compile(r"[\u3040-\u309f]+")
_NAME = re.compile(r"(?<=[a-z,;] )[A-ZÄÖÜ][a-zà-ÿ]{2,}(?:-[A-Z][a-z]+)*\b(?!-)")
_CALENDAR = re.compile(rf"(?:{MONTH}|{WEEKDAY}s?|Easter|Christmas|Internet|English|German|French)$")
_ATTRIBUTE = re.compile(
    r"(?:what|when|which)\s+(?:is|was|are|were)\s+(?:his|her|its|their|\w+['’]s)\s+"
    r"(?P<noun>[a-z-]+(?: [a-z-]+)?)\s*\??$",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:It|They|He|She|This|That|These|Es|Er|Sie|Das|Dies\w*)\b")
_TIME = re.compile(
    r"\b(?:at|until|till|by|from|before|after|um|bis|ab|vor|nach) "
    rf"(?:\d{{1,2}}|{'|'.join((*list_words('numbers', ['en'])[1:13], *list_words('numbers', ['de'])[1:]))})\b"
    r"(?! (?:times|days|weeks|months|years))",
    re.IGNORECASE,
)
_HOW_HIGH = re.compile(r"\b(?:how high|wie hoch)\b", re.IGNORECASE)
_WHO_IS = re.compile(r"^who(?: is|['’]s| was) (?P<name>[^\W\d_]+(?: [^\W\d_]+)?)\W*$", re.IGNORECASE)
YEAR_SAID = re.compile(rf"(?<!\d){YEAR}(?!\d)")
_TOLD_BY_FORM = frozenset({"money", "number", "date", "duration", "person", "code"})
_SAID_OTHERWISE = (  # what a sentence can tell without the word
    "name price cost costs rent fee age size weight height length width date time day phone number address email "
    "e-mail password code job profession address place colour role opinion plan reason answer"
)


def may_answer(question: str, quote: Quote, passages: Sequence[Passage], embed: Embed | None) -> bool:
    """Whether a quote has what is asked for, its document speaks of what the question names, and it of the thing."""
    speaks = has_what_is_asked(question, quote, passages) and speaks_of(question, quote, passages)
    return speaks and mentions_asked_thing(question, quote, passages, embed)


def mentions_asked_thing(question: str, quote: Quote, passages: Sequence[Passage], embed: Embed | None) -> bool:
    """Whether a quote, what it stands under or beside, has the noun that an amount, a time or a place is asked of.

    Also as a part of a longer word, or by a word that means nearly the same. Without an embedding model that cannot be
    told, and nothing is judged.
    """
    thing = find_asked_thing(question)
    if not thing or embed is None:
        return True
    passage = passages[quote.rank]
    beside = (unit.text for unit in split_units(passage) if abs(unit.place - quote.place) <= 1)
    text = " ".join([PATH_MARK.sub(" ", passage.id), passage.title, quote.headed, *quote.texts, *beside])
    stems, held = (_stem_both(words, quote.language) for words in (thing, text))
    written = sorted(list_written_words(text))
    if not stems or stems & held or has_part_in_common(thing, written):
        return True
    vectors = embed([thing, *written])
    return bool((vectors[1:] @ vectors[0]).max() >= SAME_THING)


def _stem_both(text: str, language: str) -> set[str]:
    """The stems of a text as of its own language and as of English."""
    return {stem for own in (language, ENGLISH) for stem in (*stem_words(text, own), *extract_stems(text, own))}


def speaks_of(question: str, quote: Quote, passages: Sequence[Passage]) -> bool:
    """Whether the document of a quote mentions the names in a question, and any passage the attribute asked for.

    In German, where every noun has a capital, names cannot be told.
    """
    if is_german(question) or find_question_language(question, (ENGLISH, quote.language)) == "de":
        return True
    own = [passage for passage in passages if passage.document == quote.document]
    if not _list_names(question) <= _stems_of(own):
        return False
    found = _ATTRIBUTE.search(question)
    if not found or set(found["noun"].lower().split()) & set(_SAID_OTHERWISE.split()):
        return True
    return bool(set(stem_words(found["noun"])) & _stems_of(passages))


def has_what_is_asked(question: str, quote: Quote, passages: Sequence[Passage]) -> bool:
    """Whether a quote has the amount, the time or the name that a question asks for; true of all other questions.

    Or the sentence after it has, and goes on with it: "It costs 140 euros."
    """
    kind = recognise_kind(question)
    if kind.name not in _TOLD_BY_FORM or has_kind(kind, quote.lead, quote.heading):
        return True
    following = next((unit.text for unit in split_units(passages[quote.rank]) if unit.place == quote.place + 1), "")
    if _GOES_ON.match(following) and has_kind(kind, following, quote.heading):
        return True
    return _has_loosely(kind, question, quote.lead)


def _has_loosely(kind: QuestionKind, question: str, sentence: str) -> bool:
    """Whether a sentence tells a time, an age or an amount in another way than usual, or is about whom it asks for."""
    if kind.name == "date":
        return bool(_TIME.search(sentence))
    if kind.noun == "age":
        return bool(YEAR_SAID.search(sentence))
    if kind.name == "number" and _HOW_HIGH.search(question):
        return bool(MONEY.search(sentence))
    found = _WHO_IS.search(question)
    return bool(found and re.search(rf"\b{re.escape(found['name'].title())}\b", sentence))


def _list_names(question: str) -> set[str]:
    names = [name for name in _NAME.findall(question) if not _CALENDAR.match(name)]
    return set(extract_stems(" ".join(name for name in names if name.lower() not in load_stop_words())))


def _stems_of(passages: Sequence[Passage]) -> set[str]:
    texts = (f"{PATH_MARK.sub(' ', passage.id)} {passage.title} {passage.text}" for passage in passages)
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
    written = list_written_words(f"{quote.heading} {' '.join(quote.texts)}")
    if is_made_of(word, written) or ends_another(word, written):
        return 1.0
    return PART_OF_WORD * has_part_in_common(word, written)


@lru_cache(maxsize=256)
def _list_content_words(question: str, language: str) -> tuple[str, ...]:
    """The words of a question without the stop words of its language, and of Japanese without hiragana alone."""
    words = separate_pairs(question.lower()).split()
    bare = [word.strip("?¿!¡.,;:«»„“”\"'()") for word in words]
    stop_words = load_stop_words(language) if language else frozenset[str]()
    return tuple(dict.fromkeys(word for word in bare if word not in stop_words and not HIRAGANA.fullmatch(word)))


_DETERMINER = (
    r"(?:the|an?|my|our|your|his|her|its|their|this|that|der|die|das|den|dem|ein|eine|einen|mein|meine|unser|unsere"
    r"|\w+['’]s)"
)
_PHRASE = rf"(?:{_DETERMINER} )?(?P<phrase>[\w-]+(?: [\w-]+){{0,4}})"
_DEFINITE = rf"{_DETERMINER} (?P<phrase>[\w-]+(?: [\w-]+){{0,4}})"
_ADJECTIVE = r"(?:big|old|tall|heavy|long|wide|high|deep|far|large|small|fast|hot|cold|expensive|thick|loud)"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:what|how much) (?:does|do|did|would|will) {_PHRASE} (?:cost|weigh|measure|hold)$",
        rf"\bhow much (?:is|are|was|were) {_PHRASE}$",
        rf"\bhow {_ADJECTIVE} (?:is|are|was|were) {_PHRASE}$",
        rf"\bwhat(?: is| was| are| were|['’]s) {_DETERMINER} (?:[\w-]+ ){{1,3}}(?:of|for) {_DEFINITE}$",
        rf"\b(?:when|where|wann|wo) (?:is|are|was|were|ist|sind|war|waren) {_DEFINITE}$",
        rf"\bhow (?:do|can|should) (?:i|we|you) .*\b{_DETERMINER} (?P<phrase>[\w-]+)$",
        rf"\bwas (?:kostet|kosten|kostete) {_PHRASE}$",
        rf"\bwie (?:hoch|groß|alt|teuer|lang|breit|schwer) (?:ist|sind|war|waren) {_PHRASE}$",
        rf"\bwie heißt {_DEFINITE}$",
        rf"\bwann (?:kommt|beginnt|endet) {_DEFINITE}$",
    )
)
_END = re.compile(
    r"\b(?:in|on|at|for|of|to|from|with|by|which|who|im|am|vom|von|für|mit|bei|zum|zur|now|today|again)\b.*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"\b(?:by|i|we|you|he|she|they|it|that|this|there|ich|wir|du|er|sie|es|das|dort)\b", re.IGNORECASE)
# What a thing is, and no thing: "When is the gate locked?"
_STATE = re.compile(
    r"\w+ed|open|due|held|free|off|shut|ready|over|available|born|made|built|done|offen|fällig|frei|ge\w+(?:t|en)"
)


def find_asked_thing(question: str) -> str:
    """The noun, in small letters; empty where the form of the question does not tell it."""
    text = " ".join(question.split()).rstrip(" ?!.")
    for form in _FORMS:
        if found := form.search(text):
            words = [] if _CLAUSE.search(found["phrase"]) else _END.sub("", found["phrase"]).split()
            things = [word.casefold() for word in words if not _STATE.fullmatch(word.casefold())]
            return things[-1] if things else ""
    return ""


COMPOUNDING = frozenset(("de", "nl", "sv", "da", "no"))
MIN_PART = 5  # letters of a part that stands alone: shorter ones begin and end too many words
MIN_PIECE = 4  # of one where another part of the word is found as well: "Honigglas", "Honig", "Glas"
MAX_LINK = 2  # letters between two parts: "Heizung-s-wartung"
_WORD = re.compile(r"[^\W\d_]+")


def list_written_words(text: str) -> frozenset[str]:
    """The words of a text as they are written, in small letters."""
    return frozenset(_WORD.findall(text.casefold()))


def find_compounds(wanted: Iterable[str], held: frozenset[str]) -> frozenset[str]:
    """Those of some words that others have as a part, or that are made of others."""
    return frozenset(word for word in wanted if has_part_in_common(word, held) or is_made_of(word, held))


def ends_another(word: str, others: Iterable[str]) -> bool:
    """Whether a word is what another is a kind of: "Rohrbruch" of "Wasserrohrbruch"."""
    return len(word) >= MIN_PIECE and any(other.endswith(word) and len(other) > len(word) + 1 for other in others)


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
