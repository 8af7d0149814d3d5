"""The spans of a sentence that could answer a question of some kind: amounts, dates, places, names, codes.

By rules, without a model. A span stands in its sentence word for word.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from agent.turn.question_kinds import QuestionKind
from agent.turn.spans.amounts_and_dates import (
    DATE,
    DIGITS,
    FREQUENCY,
    MEASURES,
    MONEY,
    MONTH,
    PART_OF_DATE,
    RANGE,
    SEASON,
    SPELLED,
    UNITS,
    WEEKDAY,
    YEAR,
)
from agent.turn.spans.question_words import stem_words
from indexes.text.analysis import load_stop_words
from indexes.words import list_tables, list_words, match_any

MAX_CHARACTERS = 1000  # of a sentence that is looked at


@dataclass(frozen=True, slots=True)
class Span:
    """A candidate: `sentence[start : start + len(text)] == text`."""

    text: str
    start: int
    bare: bool = False  # a number without the noun that was asked for: "Serves six."
    modifiers: str = ""  # between a number and its noun: "homegrown" of "eight homegrown players"

    @property
    def end(self) -> int:
        return self.start + len(self.text)


_IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[\dA-Z]{2,4}){2,8}\b")
_SECRET = re.compile(
    r"\b(?:password|pin|code|passwort|kennwort)(?: (?:of|for) (?:the )?\w+)?(?: is|:| ist|) "
    r"(?P<code>(?=\S*\d)[^\s,;]*[^\s,;.])",
    re.IGNORECASE,
)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_URL = re.compile(r"(?:https?://|www\.)[^\s,;]+[^\s,;.]")
_PHONE = re.compile(r"(?<![\w.-])\+?\(?\d{2,}\)?(?:[ /-]\d{2,}){1,4}(?![\w-])|(?<![\w.-])\+?\d{7,}(?![\w-])")
_CODE = re.compile(
    r"(?<![\w@.-])(?=[\w/.-]*\d)(?:[A-Za-z]+[\w]*[-/.]?[\w]+(?:[-/.][\w]+)*|\d+(?:[-/]\w+)+|\d{3,}(?: "
    r"\d{3,})*)(?![\w@-])(?!\.\d)"
)
_TITLE = r"(?:(?:Mr|Mrs|Ms|Dr|Prof|Sir|Frau|Herr|Familie)\.? )"
_NAME_WORD = r"(?:[A-ZÄÖÜÉ]\.|[A-ZÄÖÜÉÅØ][a-zà-ÿ'’]+(?:-[A-Z][a-zà-ÿ]+)*)"
_NAME = re.compile(
    rf"(?<!\w)(?:{_TITLE}+{_NAME_WORD}(?: {_NAME_WORD})*|{_NAME_WORD}(?: (?:(?:van|von|de|der|del|la|bin) "
    rf")*{_NAME_WORD})*)(?!\w)"
)
_NO_PERSON = frozenset(list_words("no_person"))
_CALENDAR = re.compile(rf"(?:{MONTH}|{WEEKDAY})$")
_PREPOSITION = (
    r"(?:in|at|on|under|underneath|behind|beside|below|above|between|near|next to|opposite|inside|outside|beneath|"
    r"on top of|in front of|im|am|unter|hinter|neben|über|auf|bei|beim|vor|zwischen)"
)
_PLACE = re.compile(
    rf"\b{_PREPOSITION} (?:(?:the|a|an|my|our|his|her|its|their|der|dem|den|das|einem|einer|unserem)\b )?"
    r"(?P<words>[\w'’-]+(?: [\w'’-]+){0,3}?)(?=[.,;:()!]|$| (?:and|or|but|with|from|for|of|to|until|where|which|that"
    r"|is|are|was|were|by|und|oder|mit|von|für|wo|ist|"
    rf"(?:on|at|in) )|(?: {_PREPOSITION}\b))",
    re.IGNORECASE,
)
_NO_PLACE = re.compile(
    rf"\d+[:.]\d\d|\b(?:{YEAR}|{MONTH}|{WEEKDAY}|{SEASON}|time|morning|evening|night|day|days|week|month|"
    rf"year|case|order|"
    r"hand|advance|hours?|minutes?|need|it|them|this|that|moment|end|start|beginning|total|general|foot|request)\b",
    re.IGNORECASE,
)
_COLOUR = re.compile(
    rf"\b(?:(?:dark|light|pale|bright|deep)[ -])?(?:{match_any('colours')})\b",
    re.IGNORECASE,
)
_PAIR = re.compile(r"(?:^|; )(?P<name>[^:;]{1,40}): (?P<value>[^;]*?)(?=; |\.?$)")
_AMOUNT = re.compile(rf"(?:{DIGITS}|{SPELLED})(?: ?[\w°%]+)?", re.IGNORECASE)
_COLUMNS = list_tables("usual_columns")


def find_spans(kind: QuestionKind, sentence: str) -> list[Span]:
    """The candidates of a kind in a sentence, in its order; of a row, the values of the column that is asked for.

    A sentence of more than `MAX_CHARACTERS` has none: it is a list of something.
    """
    if len(sentence) > MAX_CHARACTERS:
        return []
    if row := read_row(sentence):
        return _column_spans(kind, row, sentence)
    return list(_prose_spans(kind, sentence))


def read_row(sentence: str) -> list[tuple[str, Span]]:
    """The names and values of a row of a table, `name: value; name: value.`; nothing of any other sentence."""
    pairs = [(match["name"], Span(match["value"], match.start("value"))) for match in _PAIR.finditer(sentence)]
    return pairs if len(pairs) > 1 else []


def drop_column_names(sentence: str) -> str:
    """A row of two cells without the names of their columns, which seldom say what the row is about."""
    row = read_row(sentence)
    return f"{row[0][1].text}: {row[1][1].text}" if len(row) == 2 else sentence


def _column_spans(kind: QuestionKind, row: Sequence[tuple[str, Span]], sentence: str) -> list[Span]:
    """The values whose column is named like the noun; else those that are wholly of the kind, in the kind's "
    "columns."""
    asked = set(stem_words(kind.noun))
    named = [(name, span) for name, span in row if asked and asked <= set(stem_words(name))]
    if len(named) > 1:  # "colour name" and "colour code"
        named = [(name, span) for name, span in named if "name" in name.lower().split()] or named
    if named:
        return [span for _, span in named if span.text]
    usual = set(_COLUMNS.get(kind.name, ()))
    is_counted = kind.name == "number" and asked and any(asked <= set(stem_words(cell.text)) for _, cell in row)
    if kind.name == "person" or is_counted:
        fits = _NAME if kind.name == "person" else _AMOUNT
        return [cell for name, cell in row if usual & set(name.lower().split()) and fits.fullmatch(cell.text)]
    typed = [
        (name, Span(found.text, span.start + found.start))
        for name, span in row
        for found in _prose_spans(kind, span.text)
        if not found.bare  # of what a number alone counts, its column would have to tell
    ]
    if kind.name == "money":
        typed += [
            (name, cell) for name, cell in row if usual & set(name.lower().split()) and _AMOUNT.fullmatch(cell.text)
        ]
    return [span for name, span in typed if usual & set(name.lower().split())] or [span for _, span in typed]


def _prose_spans(kind: QuestionKind, sentence: str) -> Iterator[Span]:
    if kind.name == "number":
        yield from _number_spans(kind.noun, sentence)
    elif kind.name == "duration":
        measures = ("duration", "length") if kind.noun == "length" else ("duration",)
        yield from _unit_spans(measures, sentence)
    elif kind.name == "date":
        yield from _matches(PART_OF_DATE.get(kind.noun, DATE), sentence)
    elif kind.name == "code":
        yield from _code_spans(kind.noun, sentence)
    elif kind.name == "thing":
        yield from _thing_spans(kind.noun, sentence)
    elif finder := _FINDERS.get(kind.name):
        yield from finder(sentence)


def _matches(pattern: re.Pattern[str], sentence: str) -> Iterator[Span]:
    """What a pattern finds, without the spaces around it."""
    for match in pattern.finditer(sentence):
        text = match.group().strip()
        if text:
            yield Span(text, match.start() + match.group().index(text))


def _unit_spans(measures: Sequence[str], sentence: str) -> Iterator[Span]:
    """Numbers with a unit of one of some measures, "an hour" and "half a year" too."""
    units = "|".join(UNITS[measure] for measure in measures)
    some = r"|(?:half )?\ban?" if "duration" in measures else ""
    yield from _matches(
        re.compile(
            rf"(?:{RANGE}{some})(?: ?|-)(?:{units})(?![\w²³/])(?: (?:at most|at least|or more|or less))?",
            re.IGNORECASE,
        ),
        sentence,
    )


def _number_spans(noun: str, sentence: str) -> Iterator[Span]:
    if noun == "frequency":
        yield from _matches(FREQUENCY, sentence)
    elif measures := MEASURES.get(noun, (noun,) if noun in UNITS else ()):
        yield from _unit_spans(measures, sentence)
    elif noun:
        yield from _counted_spans(noun, sentence)


_SAME_NOUN = {"people": "person persons guests heads", "members": "people", "litres": "l liters", "kilometres": "km"}
_COUNT = re.compile(rf"{RANGE}(?: ?(?:{'|'.join(UNITS.values())})(?!\w))?(?: of)?", re.IGNORECASE)
_COUNTED_WORD = re.compile(r"[^\W\d][\w'’-]*")
_BARE = re.compile(rf"{RANGE}(?=\s*(?:[.,;:!)]|$))", re.IGNORECASE)


def _counted_spans(noun: str, sentence: str) -> Iterator[Span]:
    """Numbers of something: "fifteen tents", "300 g of flour", "seven smoke alarms"; else bare numbers."""
    stems = {stem for word in (noun, *_SAME_NOUN.get(noun, "").split()) for stem in stem_words(word)}
    taken = 0
    for number in _COUNT.finditer(sentence):
        if number.start() < taken:
            continue
        if stems & set(stem_words(number.group())):  # the unit itself was asked for
            taken = number.end()
            yield Span(number.group(), number.start())
            continue
        words = list(_COUNTED_WORD.finditer(sentence[number.end() :]))
        ends = [n for n, word in enumerate(words) if stems & set(stem_words(word.group()))]
        if not ends or sentence[number.end() : number.end() + words[ends[0]].start()].count(" ") > 3:
            continue
        end = number.end() + words[ends[0]].end()
        modifiers = " ".join(word.group() for word in words[: ends[0]])
        between = sentence[number.end() : end]
        if not re.search(r"[.,;:()]", between) and not _COUNT.search(between):
            taken = end
            yield Span(sentence[number.start() : end], number.start(), modifiers=modifiers)
    if not taken:
        for match in _BARE.finditer(sentence):
            yield Span(match.group().strip(), match.start(), bare=True)


def _code_spans(noun: str, sentence: str) -> Iterator[Span]:
    if re.search(r"mail", noun):
        yield from _matches(_EMAIL, sentence)
    elif re.search(r"url|website", noun):
        yield from _matches(_URL, sentence)
    elif re.search(r"phone|telefon|handy|mobile|fax|emergency", noun):
        yield from _matches(_PHONE, sentence)
    elif re.search(r"iban", noun):
        yield from _matches(_IBAN, sentence)
    elif match := _SECRET.search(sentence):
        yield Span(match["code"], match.start("code"))
    else:
        yield from _matches(_CODE, sentence)


def _person_spans(sentence: str) -> Iterator[Span]:
    """Capitalised names; a single word only where a capital does not open the sentence."""
    for span in _matches(_NAME, sentence):
        words = span.text.lower().split()
        if words[0] in load_stop_words() and len(words) > 1:
            offset = len(words[0]) + 1
            span, words = Span(span.text[offset:], span.start + offset), words[1:]
        opens = span.start == 0 or sentence[: span.start].rstrip()[-1:] in ".!?:"
        ordinary = words[0] in load_stop_words() or (opens and len(words) == 1)
        if not ordinary and not _NO_PERSON & set(words) and not _CALENDAR.match(span.text):
            yield span


def _place_spans(sentence: str) -> Iterator[Span]:
    for match in _PLACE.finditer(sentence):
        if (
            not _NO_PLACE.search(match["words"])
            and not match["words"].isdigit()
            and match["words"].lower() not in load_stop_words()
        ):
            yield Span(match.group(), match.start())


_CAPITALISED = r"[A-ZÄÖÜ][\w'’-]*(?: [A-ZÄÖÜ][\w'’-]*)*"


def _thing_spans(noun: str, sentence: str) -> Iterator[Span]:
    """What is named beside the noun: "fuse 14", "the variety Thermidrome", "the capital is Riga"; colours."""
    if noun in ("colour", "color", "farbe"):
        yield from _matches(_COLOUR, sentence)
        return
    if noun == "name":
        pattern = rf"\b(?:called|named|name is|heißt) [\"“]?(?P<value>{_CAPITALISED})"
    else:
        pattern = (
            rf"\b(?P<noun>(?i:{re.escape(noun)}))s? (?P<value>(?:number )?[A-Z]?\d[\w.-]*\w|\d|[A-Z](?!\w)"
            rf"|{_CAPITALISED})|\b(?i:{re.escape(noun)})\b[^,;.]*? (?:is|was|ist|war) (?P<told>{_CAPITALISED})"
        )
    for match in re.finditer(pattern, sentence):
        groups = match.groupdict()
        if groups.get("told"):
            yield Span(match["told"], match.start("told"))
        elif groups.get("noun") and not match["value"][0].isalpha():
            yield Span(match.group(), match.start())
        else:
            yield Span(match["value"], match.start("value"))


_FINDERS: dict[str, Callable[[str], Iterator[Span]]] = {
    "money": partial(_matches, MONEY),
    "person": _person_spans,
    "place": _place_spans,
}


_FOUND_BY_SPANS = frozenset({"number", "money", "date", "duration", "place", "person", "code"})
_ANY_DATE, _DURATION = QuestionKind("date"), QuestionKind("duration")  # "When?" "Within six months."
_ANY_NUMBER = QuestionKind("number")
_NUMBER = re.compile(rf"\b(?:{DIGITS}|{SPELLED})\b", re.IGNORECASE)
_CAUSE = re.compile(rf"\b(?:{match_any('causes')})\b", re.IGNORECASE)
_PERMISSION = re.compile(
    r"^(?:Not|Never|No|Only|Do not|Don['’]t|Nicht|Nie|Kein\w*|Nur|Allowed|Forbidden|Permitted|Verboten|Erlaubt)\b"
)
_DEFINITION = re.compile(
    r"^(?:(?:an?|the|eine?|der|die|das) )?(?:[\w'’“”\"-]+ ){1,4}?"
    r"(?:is|are|means?|refers? to|stands? for|ist|sind|bedeutet|heißt)\b",
    re.IGNORECASE,
)
_INSTRUCTION = re.compile(
    rf"^(?:To \w+|First|Then|Next|If \w|When \w|Do not|Don['’]t|Never|Always|Please|(?:{match_any('imperatives')})\b)"
    r"|\b(?:you (?:can|should|must|have to|need to|may)|what to do)\b|\bSie (?:müssen|können|sollen)\b"
)


def has_kind(kind: QuestionKind, sentence: str, heading: str) -> bool:
    """Whether a sentence could answer a question of a kind; a heading "Why" tells causes. False for other kinds."""
    if kind == _ANY_NUMBER:  # "How much do I feed her?"
        return bool(_NUMBER.search(sentence))
    if _is_labelled(kind, drop_column_names(sentence)):
        return True
    if kind.name in _FOUND_BY_SPANS:
        return bool(find_spans(kind, sentence)) or (kind == _ANY_DATE and bool(find_spans(_DURATION, sentence)))
    if kind.name == "how-to":
        return bool(_INSTRUCTION.search(sentence))
    if kind.name == "definition":
        return bool(_DEFINITION.match(sentence))
    if kind.name == "yes-no":
        return kind.noun == "permission" and bool(_PERMISSION.search(sentence))
    return kind.name == "reason" and bool(_CAUSE.search(f"{heading}: {sentence}"))


def _is_labelled(kind: QuestionKind, sentence: str) -> bool:
    """Whether a number stands behind a label that names what is counted: "Data volume: 25 GB a month."."""
    label, _, value = sentence.partition(": ")
    asked = set(stem_words(kind.noun)) if kind.name == "number" else set[str]()
    return bool(asked and asked <= set(stem_words(label)) and _NUMBER.search(value))
