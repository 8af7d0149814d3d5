"""What each word of a question is to a table: a value of a column, a column, a period, its name.

Every word must be something: a question with one word that the table does not account for is not about it. That is
strict, and meant to be: "not", "more than", "last" and "each" are no such words.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from agent.turn.tables.cells import (
    CURRENCIES,
    NO,
    UNIT_WORDS,
    WORD,
    YES,
    Period,
    mean_the_same,
    name_the_same,
    read_number,
    read_period,
    split_words,
)
from agent.turn.tables.question import LANGUAGES
from agent.turn.tables.rows import Table
from indexes.text.analysis import ENGLISH, word_set
from indexes.words import list_words

MAX_PHRASE = 6  # words of a value or of a column's name
_ARTICLES = word_set("a an any the")
# "I" and "my" are looked at by `is_about_speaker`.
_BREAKS, _VERBS, _CHANGING, _ROW_NOUNS = (
    frozenset(list_words(f"table_words.{name}")) for name in ("breaks", "verbs", "changing", "rows")
)
_NEUTRAL = _BREAKS.union(_ARTICLES, list_words("table_words.neutral"))
_HAS, _LACKS = word_set("with have has had having"), word_set("no without")
_STATES, _PARTICLES = word_set("are is was were been"), word_set("out back in up off yet already")
_FILLERS = word_set("yet been")
_GENERIC = frozenset(split_words("number address no nr field"))
_SPEAKER = word_set("i my me mine")


@dataclass(frozen=True, slots=True)
class Item:
    """One or more words of a question, and what they are to a table."""

    kind: str  # "value", "column", "has", "lacks", "period", "name", "around", "row", "neutral"
    size: int  # words
    columns: tuple[str, ...] = ()  # that may be meant
    key: tuple[str, ...] = ()  # of a value
    period: Period | None = None


@dataclass(frozen=True, slots=True)
class Matched:
    """A question's words, all accounted for."""

    items: tuple[Item, ...]
    words: tuple[str, ...]
    neutral: frozenset[str] = frozenset()  # words of another language that say nothing of which rows are meant

    def of_kind(self, *kinds: str) -> list[Item]:
        """The items of some kinds, in order."""
        return [item for item in self.items if item.kind in kinds]

    @property
    def head(self) -> Item | None:
        """What is counted or listed: the last item of the first phrase."""
        found: Item | None = None
        at = 0
        for item in self.items:
            if self.words[at].casefold() in _BREAKS | _VERBS | self.neutral and found:
                return found
            if item.kind in ("has", "lacks", "period") and found:
                return found
            found = item if item.kind not in ("neutral", "has", "lacks", "period") else found
            at += item.size
        return found

    @property
    def is_about_speaker(self) -> bool:
        """Whether it asks of "me" or "my": in a table of several people that is one of them."""
        return any(word.casefold() in _SPEAKER for word in self.words)


class TableWords:
    """The words that a table accounts for."""

    def __init__(self, table: Table) -> None:
        self.table = table

    @cached_property
    def values(self) -> Mapping[tuple[str, ...], tuple[str, ...]]:
        """The columns that have a value, by the stems of the value."""
        found: dict[tuple[str, ...], dict[str, None]] = {}
        for row in self.table.rows:
            for column, cell in row.cells.items():
                key = split_words(cell)
                if 0 < len(key) <= MAX_PHRASE and not all(stem.isdigit() for stem in key):
                    found.setdefault(key, {})[column] = None
        return {key: tuple(columns) for key, columns in found.items()}

    @cached_property
    def cells(self) -> frozenset[str]:
        """The stems of all cells."""
        return frozenset(stem for row in self.table.rows for cell in row.cells.values() for stem in split_words(cell))

    @cached_property
    def columns(self) -> Mapping[str, tuple[str, ...]]:
        """The stems of the columns' names, without units."""
        return {column: _simplify_column(column) for column in self.table.columns}

    @cached_property
    def name(self) -> frozenset[str]:
        """The stems of the table's own name."""
        return frozenset(split_words(self.table.name))

    @cached_property
    def around(self) -> frozenset[str]:
        """The stems of the file's name and of all headings, and of the columns' names."""
        return frozenset(split_words(f"{self.table.around} {' '.join(self.table.columns)}"))


def says_name(words: Sequence[str], words_of: TableWords) -> bool:
    """Whether some words say the table's own name, or a part of it."""
    stems = split_words(" ".join(word for word in words if word.casefold() not in _NEUTRAL))
    return any(mean_the_same(stem, other) for stem in stems for other in words_of.name)


def split_question(text: str) -> tuple[str, ...]:
    """The words of a question, without "'s", and "not" for "n't"."""
    return tuple(WORD.findall(re.sub(r"n['’]t\b", " not", re.sub(r"['’]s\b", "", text))))


def match_words(
    words: tuple[str, ...], words_of: TableWords, language: str = ENGLISH
) -> tuple[Matched | None, list[str]]:
    """What the words of a question are to a table, and the words that it does not account for."""
    items, unknown, at, neutral = list[Item](), list[str](), 0, LANGUAGES[language].neutral
    while at < len(words):
        item = _match_next(words[at:], words_of)
        if words[at].casefold() in neutral and (item is None or item.size == 1):
            item = Item("neutral", 1)
        if item is None:
            unknown.append(words[at])
        else:
            items.append(item)
        at += item.size if item else 1
    return (None if unknown else Matched(tuple(items), words, neutral)), unknown


def _match_next(words: Sequence[str], words_of: TableWords) -> Item | None:
    """What a question goes on with: the longest of what it may be."""
    if words[0].casefold() in _CHANGING:
        return next(_find_denied(words, words_of), None)
    found = [item for finder in _FINDERS for item in finder(words, words_of)]
    return max(found, key=lambda item: item.size, default=None)


def _find_values(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    for size in range(min(MAX_PHRASE, len(words)), 0, -1):
        key = split_words(" ".join(words[:size]))
        columns = words_of.values.get(key, ())
        if columns and not (size == 1 and words[0].casefold() in _NEUTRAL | _LACKS | _HAS):
            yield Item("value", size, columns, key)


def _find_conditions(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    """ "without a receipt", "have a phone number", "are paid", "unpaid"."""
    first = words[0].casefold()
    if first in _HAS | _LACKS:
        start = 2 if len(words) > 1 and words[1].casefold() in _ARTICLES else 1
        for item in _find_columns(words[start:], words_of):
            yield Item("has" if first in _HAS else "lacks", start + item.size, item.columns)
    elif first in _STATES:
        for item in _find_state(words[1:], words_of):
            yield Item("has", 1 + item.size, item.columns)
    elif first.startswith("un"):
        for item in _find_state((first.removeprefix("un"),), words_of):
            yield Item("lacks", 1, item.columns)


def _find_denied(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    """ "not paid yet": of a column that tells yes from no."""
    start = next((at for at, word in enumerate(words[1:], start=1) if word.casefold() not in _FILLERS), len(words))
    if words[0].casefold() == "not":
        for item in _find_state(words[start:], words_of):
            yield Item("lacks", start + item.size, item.columns)


def _find_state(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    """A column that is named next and tells yes from no, with a particle behind it: "paid back"."""
    for item in _find_columns(words[:1], words_of):
        if len(item.columns) == 1 and _tells_yes_from_no(item.columns[0], words_of.table):
            particles = 1 if words[1:2] and words[1].casefold() in _PARTICLES else 0
            yield Item("state", 1 + particles, item.columns)


def _tells_yes_from_no(column: str, table: Table) -> bool:
    """Whether all cells say yes or no, or those that are there say that something was done, and when or by whom."""
    cells = [row.cells.get(column, "").casefold().strip(" .") for row in table.rows]
    if all(cell in YES | NO for cell in cells):
        return True
    return "" in cells and NO.isdisjoint(cells) and not any(map(read_number, cells))


def _find_columns(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    for size in range(min(MAX_PHRASE, len(words)), 0, -1):
        if columns := _name_columns(words[:size], words_of):
            yield Item("column", size, columns)
            return


def _name_columns(words: Sequence[str], words_of: TableWords) -> tuple[str, ...]:
    """The columns that a phrase names, exactly or else in part."""
    first, last, table = words[0].casefold(), words[-1].casefold(), words_of.table
    if first in _NEUTRAL | _HAS | _LACKS or last in _NEUTRAL:
        return ()
    if first in table.name.casefold().split() and first not in " ".join(table.columns).casefold().split():
        return ()  # letter for letter in the table's name and in no column's: "paint", not "painted on"
    phrase = _drop_generic(split_words(" ".join(words)))
    named = {name: stems for name, stems in words_of.columns.items() if _are_in(phrase, stems)}
    return tuple(name for name, stems in named.items() if _are_in(stems, phrase)) or tuple(named)


def _are_in(some: Sequence[str], others: Sequence[str]) -> bool:
    return bool(some) and all(any(name_the_same(stem, other) for other in others) for stem in some)


def _simplify_column(name: str) -> tuple[str, ...]:
    stems = split_words(re.sub(r"\([^)]*\)", "", name)) or split_words(name)
    return _drop_generic(tuple(stem for stem in stems if stem not in UNIT_WORDS) or stems)


def _drop_generic(stems: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(stem for stem in stems if stem not in _GENERIC) or stems


def _find_period(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    if found := read_period(list(words)):
        period, size = found
        yield Item("period", size, period=period)


def _find_name(words: Sequence[str], words_of: TableWords) -> Iterator[Item]:
    """A word of the table's name, or of what stands around it; an item is a row."""
    first = words[0].casefold()
    if first in _NEUTRAL or first in CURRENCIES:
        yield Item("neutral", 1)
        return
    stem = split_words(first)[0]
    if any(mean_the_same(stem, other) for other in words_of.name):
        yield Item("name", 1)
    elif any(mean_the_same(stem, other) for other in words_of.around):
        yield Item("around", 1)
    elif first in _ROW_NOUNS:
        yield Item("row", 1)


_FINDERS = (_find_values, _find_columns, _find_name, _find_period, _find_conditions)
