"""What a question asks of a table (a count, a sum, a list, which row has the most), and what its words are to a table.

Every word must be something: a value, a column, a period, the table's name. A question with one word that the table
does not account for is not about it. That is strict, and meant to be: "not", "more than" and "each" are no such words.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal

from agent.turn.question_words import find_other
from agent.turn.tables.meaning import Embed, find_meant
from indexes.documents.tables.cells import (
    CURRENCIES,
    UNIT_WORDS,
    WORD,
    Date,
    Number,
    drop_generic,
    mean_the_same,
    name_the_same,
    read_period,
    split_words,
    stem_of,
)
from indexes.documents.tables.table import Column, Table
from indexes.text.analysis import ENGLISH, load_stop_words
from indexes.words import list_tables, match_any, read_file

# How each language asks of tables, in patterns whose one group is what a table must account for, and what is said.
PHRASES = {language: read_file(language)["table_questions"] for language in (ENGLISH, "de", "fr", "es", "it", "nl")}


@dataclass(frozen=True, slots=True)
class TableQuestion:
    """What is asked, and the words that a table must account for."""

    aim: str  # "count", "times", "list", "money", "amount", "sum", "mean", "most" or "least"
    rest: str
    measure: str = ""  # of a superlative: "date", or a role of columns; empty where a column must be named
    language: str = ENGLISH
    is_continued: bool = False  # whether it goes on with another value or period than before
    said: str = ""  # the words of a superlative

    @property
    def stems(self) -> frozenset[str]:
        """Those of all words of `rest`."""
        return frozenset(split_words(self.rest))


def read_table_question(utterance: str) -> TableQuestion | None:
    """What is asked of a table; None of a question that no table has to be read through for."""
    text = " ".join(utterance.split()).rstrip(" ?!.").lstrip("¿¡ ")
    if re.search(r"[?!;]|\.\s", text):
        return None
    return next((found for language in PHRASES if (found := _read_in(language, text))), None)


def read_list_question(utterance: str) -> TableQuestion | None:
    """Any other question that may ask for rows: "where did we go in May?"."""
    text = " ".join(utterance.split()).rstrip(" ?!.")
    found = re.match(rf"(?:{match_any('table_words.asks')})\b", text, re.IGNORECASE)
    return TableQuestion("list", text[found.end() :]) if found and not re.search(r"[?!;]|\.\s", text) else None


def continue_question(utterance: str, earlier: Sequence[str]) -> TableQuestion | None:
    """The question before with another value or period: "And in May?"; None where it asked for no table."""
    other = find_other(utterance)
    if not other or not earlier:
        return None
    before = read_table_question(earlier[-1]) or continue_question(earlier[-1], earlier[:-1])
    return replace(before, rest=f"{before.rest} {other}", is_continued=True) if before else None


def _read_in(language: str, text: str) -> TableQuestion | None:
    phrases = PHRASES[language]
    text = re.sub("".join(phrases.get("opening", ())), "", text, count=1, flags=re.IGNORECASE)
    which = re.match(phrases["which"], text, re.IGNORECASE)
    for aim, measure, words in phrases["superlatives"]:
        form = rf"(?:\b(?:the|our|my) )?\b(?:{words})\b"
        found = [*re.finditer(form, text, re.IGNORECASE)]
        if len(found) == 1 and (which or found[0].start() == 0):
            rest = f"{text[: found[0].start()]} {text[found[0].end() :]}"[which.end() if which else 0 :]
            return TableQuestion(aim, rest, measure, language, said=found[0][0])
    for aim, form in phrases["forms"]:
        if whole := re.fullmatch(form, text, re.IGNORECASE):
            return TableQuestion(aim, whole[1], "", language)
    return None


MAX_PHRASE = 6  # words of a value or of a column's name
WORDS = {name: frozenset(words) for name, words in list_tables("table_words").items()}
_NEUTRAL = WORDS["breaks"] | WORDS["neutral"] | WORDS["articles"]
_FUNCTION_WORDS = _NEUTRAL | WORDS["has"] | WORDS["lacks"]
_ONE_OF = {name: "|".join(WORDS[name]) for name in ("has", "lacks", "articles", "states")}
_HAS = re.compile("(?:(?:{has})|(?P<lacks>{lacks})) (?:(?:{articles}) )?".format_map(_ONE_OF))
_IS = re.compile("(?:(?:{states}) )?(?P<lacks>not |un)?(?:yet |still |been )*".format_map(_ONE_OF))
_MONEY = "|".join(re.escape(word) for words in CURRENCIES.values() for word in words)
_LIMIT = rf"(?P<before>[€£$] )?(?P<number>\d+)(?! \d)(?P<behind> (?:{_MONEY}))? "
_LIMITS = {kind: re.compile(rf"(?:{match_any(f'table_words.{kind}')}) {_LIMIT}") for kind in ("above", "below")}


@dataclass(frozen=True, slots=True)
class Item:
    """One or more words of a question, and what they are to a table."""

    kind: str  # "value", "part" of values, "column", "has", "lacks", "period", "name", "around", "row", "neutral"
    words: tuple[str, ...]
    columns: Sequence[Column] = ()  # that may be meant
    period: Date | None = None
    value: str = ""  # that the words stand for
    limit: Decimal = Decimal(0)

    @property
    def key(self) -> tuple[str, ...]:
        """The stems of a value."""
        return split_words(self.value or " ".join(self.words))

    def holds(self, number: Number | None) -> bool:
        """Whether a number is beyond the limit."""
        return number is not None and (number.value > self.limit if self.kind == "above" else number.value < self.limit)


@dataclass(frozen=True, slots=True)
class Matched:
    """A question's words, all accounted for."""

    question: TableQuestion
    table: Table
    items: tuple[Item, ...]
    embed: Embed | None = None  # where words were also told by what they mean, and rows may lack a number

    def of_kind(self, *kinds: str) -> list[Item]:
        """The items of some kinds, in order."""
        return [item for item in self.items if item.kind in kinds]

    @property
    def named_columns(self) -> list[Column]:
        """Those that it names or sets a condition on."""
        return list(dict.fromkeys(column for item in self.of_kind("column", "has") for column in item.columns))

    def says_state(self, item: Item) -> bool:
        """Whether the name of a column of yes and no says that it is so: "came with a guarantee"."""
        is_asked = self.question.aim in ("count", "list") and len(item.columns) == 1
        return bool(is_asked) and item.columns[0].tells_yes_from_no

    @property
    def head(self) -> Item | None:
        """What is counted or listed: the last item of the first phrase."""
        ends = WORDS["breaks"] | WORDS["verbs"] | set(PHRASES[self.question.language].get("neutral", "").split())
        found: Item | None = None
        named = self.of_kind("column") if self.embed else []
        numeric = (item for item in named if any(any(one.numbers) for one in item.columns))
        for item in self.items:
            if found and (item.words[0].casefold() in ends or item.kind in ("has", "lacks", "period")):
                break
            found = item if item.kind not in ("neutral", "has", "lacks", "period", "unknown") else found
        return next(numeric, found)


def says_name(words: Sequence[str], table: Table) -> bool:
    """Whether some words say the table's own name, or a part of it."""
    stems = split_words(" ".join(word for word in words if word.casefold() not in _NEUTRAL))
    return any(mean_the_same(stem, other) for stem in stems for other in split_words(table.name))


def split_question(text: str) -> tuple[str, ...]:
    """The words of a question, without "'s", and "not" for "n't" and for what is "out of stock"."""
    text = re.sub(r"(?<=\d),(?=\d{3}\b)", "", text)  # "1,000"
    plain = re.sub(r"\bout of\b", "not in", re.sub(r"n['’]t\b", " not", re.sub(r"['’]s\b", "", text)))
    return tuple(WORD.findall(plain))


FILTERS = ("value", "part", "has", "lacks", "period", "above", "below")
IN_ALL = re.compile(rf"\b(?:{match_any('table_words.in_all')})\b", re.IGNORECASE)
MAX_UNKNOWN = 2  # words that say nothing of a table, where others say which rows are meant


def match_words(question: TableQuestion, table: Table, embed: Embed | None = None) -> Matched | None:
    """What the words of a question are to a table; None where it does not account for one.

    With `embed` it accounts for words by what they mean, too, and some may say nothing of it.
    """
    words, items = split_question(question.rest), list[Item]()
    while words:
        item = _read_item(words, items[-1].words[-1] if items else "", question, table, embed)
        if item is None:
            return None
        is_name = item.kind == "value" and item.key == split_words(table.name)  # "members", some such by their role
        items.append(Item("name", item.words) if is_name else item)
        words = words[len(item.words) :]
    matched = Matched(question, table, tuple(items), embed)
    return matched if _says_which(matched) else None


def _says_which(matched: Matched) -> bool:
    """Whether it is told which rows are meant, where some words say nothing of the table, or rows are only listed."""
    unknown, aim = matched.of_kind("unknown"), matched.question.aim
    states = [item for item in matched.of_kind("column") if matched.says_state(item)]
    if len(unknown) > MAX_UNKNOWN or states or matched.of_kind(*FILTERS):
        return len(unknown) <= MAX_UNKNOWN
    is_of_all = aim in ("most", "least", "mean") or IN_ALL.search(matched.question.rest)
    return not (matched.embed and aim == "list") and bool(is_of_all or not unknown)


def _read_item(
    words: tuple[str, ...], before: str, question: TableQuestion, table: Table, embed: Embed | None
) -> Item | None:
    """What a question goes on with, by stems, else by what the next word means; None where neither tells."""
    first, neutral = words[0].casefold(), PHRASES[question.language].get("neutral", "").split()
    item = max(_find_items(words, table), key=lambda item: len(item.words), default=None)
    if embed and item and item.kind == "around" and (meant := find_meant(first, table, embed)) and meant[0]:
        return Item("column", words[:1], (meant[0],))
    is_verb = item is None and question.aim == "money" and first in WORDS["verbs"]
    may_mean = embed and first not in WORDS["changing"] | WORDS["lacks"]
    is_stop = item is None and may_mean and first in load_stop_words()
    if is_verb or is_stop or (first in neutral and (item is None or len(item.words) == 1)):
        return Item("neutral", words[:1])
    if item and (item.kind != "part" or before.casefold() in WORDS["before_parts"] or not words[0].islower()):
        return item
    return _find_by_meaning(words[:1], table, embed) if embed and may_mean else None


def _find_by_meaning(words: tuple[str, ...], table: Table, embed: Embed) -> Item:
    found = find_meant(words[0], table, embed)
    if found is None or found[0] is None:
        return Item("name" if found else "unknown", words)
    return Item("value" if found[1] else "column", words, (found[0],), value=found[1])


def _find_items(words: tuple[str, ...], table: Table) -> Iterator[Item]:
    """What a question may go on with."""
    first = words[0].casefold()
    stem = split_words(first)[0]
    yield from _find_conditions(words, table)
    for phrase in _list_phrases(words):
        columns = table.values.get(split_words(" ".join(phrase)))
        if columns and not (len(phrase) == 1 and first in _FUNCTION_WORDS | WORDS["changing"]):
            yield Item("value", phrase, columns)
    if first in WORDS["changing"]:
        return
    yield from _find_columns(words, table)
    if found := read_period(words):
        yield Item("period", words[: found[1]], period=found[0])
    if first in _NEUTRAL or stem in UNIT_WORDS:
        yield Item("neutral", words[:1])
    elif any(mean_the_same(stem, other) for other in split_words(table.name)):
        yield Item("name", words[:1])
    elif any(mean_the_same(stem, other) for other in split_words(f"{table.around} {table.header}")):
        yield Item("around", words[:1])
    elif first in WORDS["rows"]:
        yield Item("row", words[:1])
    elif first not in _FUNCTION_WORDS:
        yield from _find_parts(words, table)


def _list_phrases(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """What they begin with, the longest first."""
    return (words[:size] for size in range(min(MAX_PHRASE, len(words)), 0, -1))


def _find_columns(words: tuple[str, ...], table: Table) -> Iterator[Item]:
    """The columns that are named next, by the longest phrase: exactly, or else in part."""
    first = words[0].casefold() if words else ""
    if first in table.name.casefold().split() and first not in table.header.split():
        return  # letter for letter in the table's name and in no column's: "paint", not "painted on"
    for phrase in _list_phrases(words):
        if first not in _FUNCTION_WORDS and phrase[-1].casefold() not in _NEUTRAL:
            stems = drop_generic(split_words(" ".join(phrase)))
            named = [column for column in table.columns if _are_in(stems, column.short_name)]
            if columns := [column for column in named if _are_in(column.short_name, stems)] or named:
                yield Item("column", phrase, tuple(columns))
                return


def _find_parts(words: tuple[str, ...], table: Table) -> Iterator[Item]:
    """The longest phrase that stands in a value: the electricity of "electricity, January"."""
    for phrase in _list_phrases(words):
        stems = split_words(" ".join(phrase))
        if columns := [one for one in table.columns if any(has_phrase(key, stems) for key in one.keys)]:
            yield Item("part", phrase, columns)
            return


def has_phrase(key: Sequence[str], stems: Sequence[str]) -> bool:
    """Whether some stems stand next to each other in a value."""
    return any(key[at : at + len(stems)] == stems for at in range(len(key) - len(stems) + 1))


def _are_in(some: Sequence[str], others: Sequence[str]) -> bool:
    return bool(some) and all(any(name_the_same(stem, other) for other in others) for stem in some)


def _find_conditions(words: tuple[str, ...], table: Table) -> Iterator[Item]:
    """ "without a receipt", "have a phone number"; and what tells yes from no: "not paid yet", "unpaid"."""
    text = f"{' '.join(words).casefold()} "
    for kind, form in _LIMITS.items():
        if found := form.match(text):
            size, is_money = len(found[0].split()), bool(found["before"] or found["behind"])
            columns: Sequence[Column] = [one for one in table.columns if any(one.numbers)]
            if is_money:
                money = [one for one in columns if "amounts of money" in one.kinds]
                columns = [one for one in money if "whole" in one.kinds] or money
            named = () if is_money else tuple(_find_columns(words[size : size + 1], table))
            yield Item(kind, words[:size], named[0].columns if named else columns, limit=Decimal(found["number"]))
    for form, find in ((_HAS, _find_columns), (_IS, _find_states)):
        found = form.match(text)
        if not (found and found[0]):
            continue
        for item in find(tuple(text[found.end() :].split()), table):
            said = words[: found[0].count(" ") + len(item.words)]
            lacks = bool(found["lacks"]) != (item.kind == "unpaid")
            yield Item("lacks" if lacks else "has", said, item.columns)


def _find_states(words: tuple[str, ...], table: Table) -> Iterator[Item]:
    if WORDS["unpaid"].intersection(words[:1]):
        yield Item("unpaid", words[:1], [one for one in table.columns if stem_of("paid") in one.stems])
    for column in table.columns:
        name = tuple(column.name.casefold().split())
        if "yes or no" in column.kinds and words[: len(name)] == name:
            yield Item("state", name, (column,))
    for item in _find_columns(words[:1], table):
        if len(item.columns) == 1 and "yes or no" in item.columns[0].kinds:
            yield Item("state", words[: 2 if WORDS["particles"].intersection(words[1:2]) else 1], item.columns)
