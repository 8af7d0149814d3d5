"""What a question asks for, by its words: a number, a date, a place, a person, yes or no, a list, a reason and so on.

The first rule of `_RULES` whose pattern a question matches names the kind. English, and the German question words.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from indexes.words import list_tables, list_words, match_any

KindName = Literal[
    "number",
    "money",
    "date",
    "duration",
    "place",
    "person",
    "code",
    "yes-no",
    "choice",
    "list",
    "definition",
    "how-to",
    "comparison",
    "reason",
    "thing",
    "other",
]


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """What a question asks for."""

    name: KindName
    noun: str = ""  # what is counted, measured or named: "people", "weight", "colour"; in lower case
    options: tuple[str, ...] = ()  # of a choice, as they stand in the question


# What an adjective after "how" or "wie" measures.
MEASURE_OF = {word: measure for measure, words in list_tables("measured_by").items() for word in words}
# Nouns after "what is the", "which" or "welche" that ask for one of the kinds; any other noun asks for a thing.
_NOUNS = list_tables("asks_for")
_KIND_OF_NOUN = {word.lower(): cast("KindName", kind) for kind in ("code", "date", *_NOUNS) for word in _NOUNS[kind]}
_CODE = rf"(?:{match_any('numbered')})"
_ASIDE = re.compile(
    r"(?:hi|hello|hey|and|but|so|ok(?:ay)?|also|then|well|please|und|aber|also|bitte)\b[,:]?\s+|"
    r"(?:(?:can|could|would) you (?:please )?(?:tell|show|remind) (?:me|us)|(?:please )?(?:tell|remind) (?:me|us)|"
    r"do (?:you|we) (?:still )?know|i (?:want|need|would like|'d like) to know|any idea|i wonder|"
    r"weißt du|kannst du mir sagen)\b[,:]?\s+",
    re.IGNORECASE,
)
_AUXILIARY = (
    rf"(?:am|{match_any('auxiliaries', ['en'])}|"
    r"(?:is|are|was|were|do|does|did|ca|could|wo|would|should|has|have)n['’]t|"
    rf"{match_any('auxiliaries', ['de'])})"
)
# How a question begins that asks whether something may, should or need be done.
_PERMITTED = (
    r"(?:can|could|may|must|shall|should|need|kann|können|darf|dürfen|muss|müssen|soll|sollte)|(?:do|does|did) \w+ "
    r"(?:have|need) to|(?:is|are|am|was|were) (?:[\w'’]+ ){1,4}?(?:allowed|permitted|okay|ok|safe|all right)"
)
_HOW = r"how|wie"
_WHICH = r"what|which|whose|welche[rsmn]?|was für ein(?:e[nrms]?)?"
_PREPOSITION = (
    r"(?:(?:in|on|at|by|from|for|since|until|till|to|of|with|under|an|um|seit|bis|aus|zu|mit|am|auf|unter)\s+)?"
)
_WORDS = r"[\w'’-]+"
_BE = r"(?:is|are|was|were|['’]s|ist|sind|war|beträgt)"
_ARTICLE = r"(?:the|my|our|your|his|her|its|their|this|that|der|die|das|den|mein|meine|unser|unsere|\w+['’]s)"
_UNITS_OF_TIME = r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|years?|nights?)"

# The first that matches decides. A group "noun" is looked up in `_KIND_OF_NOUN` where the kind is "thing".
_RULES: tuple[tuple[KindName, str], ...] = (
    ("comparison", r".*\b(?:difference|differ|compared? (?:to|with)|versus|vs\.?|unterschied)\b"),
    ("comparison", r"(?:which|who|what|welche[rs]?|wer) .*\b\w+(?:er|re|est) ?[,:] .*\b(?:or|oder)\b"),
    ("comparison", rf"{_AUXILIARY} .*\b(?:\w+er|more|less|mehr|weniger) (?:\w+ )?(?:than|als)\b"),
    ("comparison", rf"(?:{_HOW}) (?:much|many|viel) (?:more|less|\w+er)\b.*\b(?:than|als)\b"),
    ("comparison", r"(?:compare|vergleiche)\b"),
    (
        "reason",
        r"(?:why|how come|what (?:\w+ )?reasons?|for what reason|warum|wieso|weshalb|weswegen)\b|what .* for$",
    ),
    ("reason", r"(?:what|which) (?:is|was|were|are) the (?:reason|cause|purpose)s?\b"),
    ("duration", rf"(?:for )?(?:{_HOW}) (?P<noun>long|lange?)\b"),
    (
        "duration",
        rf"(?:{_HOW}) (?:many|much|viele?) (?P<unit>{_UNITS_OF_TIME}|time|zeit|tage|stunden|minuten|"
        rf"jahre)\b(?! (?:a|per|pro|in|of) )",
    ),
    (
        "duration",
        rf"(?:{_HOW}) (?:early|soon|quickly|schnell|bald|früh|far (?:ahead|in advance)|"
        r"(?:much|viel) (?:notice|time|zeit))\b",
    ),
    ("date", r"um wie viel (?P<noun>uhr)\b"),
    ("money", rf"(?:how high|wie hoch) {_BE} {_ARTICLE} (?P<noun>{match_any('asks_for.money')})\b"),
    ("money", rf"wie hoch {_BE} {_ARTICLE} (?P<noun>\w*(?:{match_any('money_endings')}))\b"),
    ("number", rf"(?:{_HOW}) (?P<measure>often|frequently|oft|häufig)\b"),
    ("number", rf"(?:{_HOW}) (?P<measure>{'|'.join(MEASURE_OF)})\b"),
    ("money", rf"(?:{_HOW}) (?:expensive|cheap|teuer|much (?:money|rent|tax))\b|was kostet\b"),
    ("money", r"what (?:do|does|did|will|would) .*\b(?:costs?|charge|pay|paid|spend)\b"),
    (
        "money",
        rf"(?:{_HOW}) (?:much|viel) .*\b(?:cost|costs|costing|pay|paid|charge|charged|spend|spent|earn|owe|"
        rf"kostet|kosten|zahl\w+|bezahl\w+)\b",
    ),
    (
        "money",
        rf"(?:{_HOW}) much (?:is|are|was|were|['’]s|for|do i|did we|did i|does|did)\b(?!.*\b(?:weigh|hold|"
        rf"contain|feed|eat|drink|need|use|take|give|sleep|weighed|practi[cs]e|grow)s?\b)",
    ),
    ("number", rf"(?:{_HOW}) (?:much|viel) (?:does|do|did|can|may|should) .*\b(?P<weigh>weigh)\b"),
    ("number", rf"(?:{_HOW}) (?:much|viel) {_AUXILIARY}\b"),
    (
        "number",
        rf"(?:{_HOW}) (?:many|much|viele?)(?: of (?:the|my|our))? (?:other |different )?"
        rf"(?P<counted>{_WORDS}(?: {_WORDS})*)",
    ),
    ("date", r"(?:since |until |till |seit |bis )?(?:when|wann)\b"),
    ("place", r"(?:from )?where\b|wo\b|wohin\b|woher\b"),
    ("definition", r"who (?:is|was|are|were) (?-i:[A-ZÄÖÜ])[\w.'’-]*(?: (?-i:[A-ZÄÖÜ])[\w.'’-]*)*$"),
    ("list", r"who (?:are|were) the (?!.*\b\w+s['’])"),
    (
        "person",
        r"(?:(?:to|with|by|for|from) )?(?:who|whom|whose)\b|(?:mit |von |bei |für |zu )?(?:wer|wem|wen|wessen)\b",
    ),
    (
        "definition",
        r"(?:what (?:does|do) .* (?:mean|stand for)|what(?: is|['’]s) (?:meant by|the (?:meaning|definition) "
        r"of)|define|was (?:bedeutet|heißt))\b",
    ),
    ("code", rf"(?:was|wie) (?:ist|lautet) (?:{_ARTICLE} )?(?P<noun>\w*(?:nummer|passwort|code|adresse))\b"),
    (
        "how-to",
        r"how (?:to|do|does|did|can|could|should|must|would|is|are|was|were)\b|what (?:should|can|must|do) "
        r"(?:i|we|one) do\b|what to do\b|wie\b",
    ),
    (
        "list",
        r"(?:list|name|enumerate|give me)\b|what (?:kinds?|types?|sorts?) of\b|(?:what|which) (?:all|else|things)\b",
    ),
    (
        "code",
        rf"(?:{_WHICH}) (?:{_BE} )?(?:{_ARTICLE} )?(?P<noun>(?:{_WORDS} )?(?:{_CODE} (?:number|code|password|"
        rf"address|nummer)))\b",
    ),
    ("code", rf"(?:{_WHICH}) ?{_BE} (?:[\w-]+ ){{0,3}}[\w-]+['’]s (?P<noun>number)$"),
    ("code", rf"(?:{_WHICH}) {_BE} (?:{_ARTICLE} )?(?P<noun>number)(?= of)(?! of (?:{_WORDS}s|people|\w+ \w+s)$)"),
    (
        "list",
        r"(?:what|which) (?:are|were)\b|(?:what|which) (?:do|should|must|can) (?:i|we|one) (?:need|bring|pack|buy)\b",
    ),
    (
        "list",
        r"what (?:must|may|can|should|does|do|goes|comes|came)(?: \w+)? (?:not )?(?:go|goes|come|be|belong|"
        r"contain|include)\b",
    ),
    ("thing", rf"{_PREPOSITION}(?:{_WHICH}) {_BE} {_ARTICLE} (?P<phrase>{_WORDS}(?: {_WORDS})*)"),
    ("definition", rf"(?:what|was) {_BE} (?:an? |eine? )?(?P<noun>{_WORDS})(?: {_WORDS}){{0,2}}$"),
    ("thing", rf"{_PREPOSITION}(?:{_WHICH}) (?!{_AUXILIARY}\b)(?P<phrase>{_WORDS}(?: {_WORDS})*)"),
    ("choice", rf"{_AUXILIARY}\b.* (?:or|oder) (?!not\b|nicht\b)"),
    ("yes-no", rf"(?P<permission>{_PERMITTED})\b"),
    ("yes-no", rf"{_AUXILIARY}\b"),
)
_COMPILED = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _RULES)
_AFTER_PAUSE = re.compile(r"(?<=[,.:;!–—-])\s+(?=\S)")
_QUESTION_WORD = re.compile(
    rf"\b(?:{_PREPOSITION}(?:how|what|which|who|whom|whose|when|where|why|wann|wo|wer|wie|warum|welche[rsmn]?))\b",
    re.IGNORECASE,
)
_OPTIONS = re.compile(r"(?P<before>.*\S)\s+(?:or|oder)\s+(?P<second>[^?,]+)", re.IGNORECASE)


def recognise_kind(question: str) -> QuestionKind:
    """The kind of a question and the noun asked for; "other" where no rule fits."""
    plain = re.sub(r"\b(wie)(viele?)\b", r"\1 \2", " ".join(question.split()), flags=re.IGNORECASE)
    text = _strip_asides(plain.rstrip(" ?!."))
    for part in _starting_points(text):
        if kind := _match_rules(part):
            return kind
    return QuestionKind("other")


def _strip_asides(text: str) -> str:
    """Without "hello," and "can you tell me" at its beginning."""
    while (match := _ASIDE.match(text)) and match.end() < len(text):
        text = text[match.end() :]
    return text


def _starting_points(text: str) -> list[str]:
    """Where a question may begin: at the beginning, after a pause, at the first question word."""
    found = _QUESTION_WORD.search(text)
    later = [_strip_asides(text[match.end() :]) for match in _AFTER_PAUSE.finditer(text)]
    return [text, *later, *([text[found.start() :]] if found else [])]


def _match_rules(text: str) -> QuestionKind | None:
    for name, pattern in _COMPILED:
        if match := pattern.match(text):
            return _describe(name, {key: value for key, value in match.groupdict().items() if value}, text)
    return None


def _describe(name: KindName, groups: dict[str, str], text: str) -> QuestionKind:
    """The kind with the noun that a rule's groups name."""
    if name == "choice":
        return _describe_choice(text)
    if name == "duration":
        return QuestionKind(name, _name_extent(text))
    if "measure" in groups:
        return QuestionKind(name, MEASURE_OF[groups["measure"].lower()])
    if "counted" in groups:
        return QuestionKind(name, _find_head_noun(groups["counted"].lower().split()))
    if "weigh" in groups:
        return QuestionKind(name, "weight")
    if "phrase" in groups:
        return _describe_phrase(groups["phrase"].lower().split(), text)
    if "permission" in groups:
        return QuestionKind(name, "permission")
    noun = groups.get("noun", "").lower() if name != "definition" else ""
    return QuestionKind(name, "time" if noun == "uhr" else noun)


def _name_extent(text: str) -> str:
    """ "length" where "how long" may ask for a distance as well: "How long is the table?"; else nothing."""
    is_length = re.match(r"(?:how long|wie lang) (?:is|are|was|were|ist|sind)\b(?!.*\bfor$)", text, re.IGNORECASE)
    return "length" if is_length else ""


def _describe_choice(text: str) -> QuestionKind:
    """The word before "or" and the words after it are the options."""
    match = _OPTIONS.match(text)
    if not match:
        return QuestionKind("yes-no")
    second = match["second"].split()
    first = match["before"].rstrip(",").split()[-1]
    return QuestionKind("choice", options=(first, " ".join(second)))


_PLURAL = re.compile(r"(?:\w{2,}(?<![siu])s|people|children)$")
_ENDS_PHRASE = frozenset(list_words("ends_phrase"))


def _describe_phrase(words: list[str], text: str) -> QuestionKind:
    """By the noun after "which" or "what is the": the first that a kind is known of, else the last before a verb."""
    end = _phrase_end(words)
    head = words[:end] or words[:1]
    for word in reversed(head):
        if kind := _KIND_OF_NOUN.get(word) or _KIND_OF_NOUN.get(word.removesuffix("s")):
            return QuestionKind(kind, _KIND_NOUNS[kind](word, head) if kind in _KIND_NOUNS else word)
    if re.match(rf"{_PREPOSITION}(?:{_WHICH}) {_BE} ", text, re.IGNORECASE):
        return QuestionKind("thing", head[-1])
    is_plural = _PLURAL.match(head[-1]) and (end == len(words) or re.fullmatch(_AUXILIARY, words[end]))
    return QuestionKind("list", head[-1]) if is_plural else QuestionKind("thing", _find_head_noun(words))


# How the noun is named where it is not the word itself: "days" is a day, a "customer number" is more than a number.
_KIND_NOUNS: dict[KindName, Callable[[str, list[str]], str]] = {
    "date": lambda word, _head: word.removesuffix("s"),
    "code": lambda _word, head: " ".join(head),
}


def _phrase_end(words: list[str]) -> int:
    """How many words stand before the first that no phrase of a noun has."""
    return next((n for n, word in enumerate(words) if word in _ENDS_PHRASE), len(words))


def _find_head_noun(words: list[str]) -> str:
    """The last word before an auxiliary ("smoke alarms are"); else the first ("eggs go into")."""
    end = _phrase_end(words)
    return words[end - 1] if 0 < end < len(words) and re.fullmatch(_AUXILIARY, words[end]) else words[0]
