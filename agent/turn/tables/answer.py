"""Answers that are computed over all rows of a table: "780.00 + 312.00 = 1,092.00 EUR", "7 of 22 rows".

Only what is sure is concluded: whatever could be understood in two ways raises `UnsureError`. Then, and where a second
table has an answer of its own, there is none, and the question is answered from passages like any other.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from agent.turn.question_words import points_back
from agent.turn.quotes import to_sentence
from agent.turn.tables.meaning import Embed, choose_column, choose_table
from agent.turn.tables.question import (
    IN_ALL,
    PHRASES,
    WORDS,
    Matched,
    TableQuestion,
    continue_question,
    has_phrase,
    match_words,
    read_list_question,
    read_table_question,
    says_name,
    split_question,
)
from indexes.documents.collection import WholeDocuments
from indexes.documents.tables.cells import (
    GROUP_OF,
    NO,
    ROLES,
    UNIT_OF,
    YES,
    Date,
    Number,
    read_numbers,
    split_words,
    stem_of,
)
from indexes.documents.tables.table import Column, Row, Table, list_tables
from indexes.words import match_any
from schemas.records import Response, Sentence, WholeAnswer

MAX_ROWS, MAX_NAMED, MAX_ADDENDS = 5, 10, 6  # that are shown, named, and written out in a sum
_DOUBTFUL = re.compile(rf"\?|\b(?:{match_any('cells.doubtful')})\b", re.IGNORECASE)
_BY = re.compile(rf" (?:{match_any('table_words.by')})\b", re.IGNORECASE)  # who or when, and not whether
Computed = tuple[str, tuple[Row, ...]]  # "7 of 22 rows", and the rows that it rests on


class UnsureError(Exception):
    """A question is about a table, but what it asks for is not sure."""


def compute_over_tables(
    utterance: str, documents: WholeDocuments, earlier: Sequence[str] = (), embed: Embed | None = None
) -> WholeAnswer | None:
    """The answer that a table of a folder has as a whole; None where none is sure. `earlier`: what was asked before.

    Words are told by their stems, and where no table accounts for all of them, by what they mean.
    """
    question = read_table_question(utterance) or continue_question(utterance, earlier)
    tables = list_tables(documents) if question or embed else ()
    found = _compute_in(tables, question, None) if question else None
    if embed and not found and not (earlier and points_back(utterance)):
        question = question or read_list_question(utterance)
        found = _compute_in(choose_table(utterance, tuple(tables), embed), question, embed) if question else None
    return _show(*found, question.language) if found and question else None


def _compute_in(tables: Sequence[Table], question: TableQuestion, embed: Embed | None) -> Computed | None:
    """What all tables that have an answer say, those in the question's language first; None where it is not sure."""
    own = [table for table in tables if table.rows[0].passage.language == question.language]
    try:
        asked = _find_asked(question, own, embed) or _find_asked(question, tables, embed)
        found = [computed for matched in asked if (computed := _compute(matched))]
    except UnsureError:
        return None
    return found[0] if len({(said, tuple(row.text for row in rows)) for said, rows in found}) == 1 else None


def _find_asked(question: TableQuestion, tables: Sequence[Table], embed: Embed | None) -> list[Matched]:
    """What a question is to the tables that account for all its words: to those that it names, where it names some.

    Raises `UnsureError` where it is not sure which rows and columns one has.
    """
    asked = [matched for table in tables if (matched := match_words(question, table, embed))]
    asked = [one for one in asked if one.of_kind("name", "column", "value", "has", "lacks") or question.aim == "money"]
    words = split_question(question.rest)
    named = [matched for matched in asked if says_name(words, matched.table)]
    for matched in named or asked:
        is_named = any(column.kinds & ROLES.keys() or column.stems & question.stems for column in matched.table.columns)
        if matched.table.is_doubtful or not is_named:  # a first row that was taken for the header
            raise UnsureError("which rows and columns there are")
    return named or asked


def _show(direct: str, rows: Sequence[Row], language: str) -> WholeAnswer:
    """The result and the rows it rests on: a few of them, and how many more there are."""
    sentences = [Sentence(row.text, (row.passage.id,)) for row in rows[:MAX_ROWS]]
    if left := len(rows[MAX_ROWS:]):
        one, several = PHRASES[language]["more_rows"]
        sentences.append(Sentence((one if left == 1 else several).format(left), ()))
    passages = tuple(dict.fromkeys(row.passage for row in rows[:MAX_ROWS]))
    return WholeAnswer(Response(tuple(sentences), to_sentence(direct)), passages)


def _require(is_sure: object, what: str) -> None:
    if not is_sure:
        raise UnsureError(f"not sure: {what}")


def _only(columns: Sequence[Column]) -> Column:
    _require(len(columns) == 1, "which column is meant")
    return columns[0]


def _compute(matched: Matched) -> Computed | None:
    """What a table says, and the rows that it rests on; None where no row is asked for, or it is none of spending."""
    lasts = matched.question.measure == "length" and WORDS["has_been"] & set(matched.question.rest.casefold().split())
    if lasts and not any("length" in one.kinds for one in matched.table.columns):
        aim = "least" if matched.question.aim == "most" else "most"  # the longest since a date
        matched = replace(matched, question=replace(matched.question, aim=aim, measure="date"))
    rows, aim = _select_rows(matched), matched.question.aim
    if not rows or (aim == "money" and not (matched.embed or _is_about_spending(matched))):
        return None
    if aim in ("most", "least") and (column := _find_counted(matched)):
        direct, rows = _count_by(column, matched, rows)
    elif aim in ("most", "least"):
        direct, rows = _find_extreme(matched, rows)
    elif column := _find_added(matched, rows):
        direct = _add(column, matched, rows)
    else:
        direct = _count_rows(matched, rows)
    return direct, tuple(matched.table.rows[row] for row in rows)


def _select_rows(matched: Matched) -> list[int]:
    """The numbers of the rows that have all values, conditions and the period of a question."""
    table, is_continued = matched.table, matched.question.is_continued
    are_of_people = any("names of people" in column.kinds for column in table.columns)
    is_about_speaker = not WORDS["speaker"].isdisjoint(matched.question.rest.casefold().split())
    _require(not (is_about_speaker and are_of_people), "which of the people it asks for")
    rows, chosen = list(range(len(table.rows))), dict[Column, tuple[str, ...]]()
    said = [item for item in matched.items if item.kind != "neutral"]
    for item, before in zip(said, (None, *said), strict=False):
        if item.kind == "value":
            named = before.columns if before and before.kind == "column" else ()
            column = _only([one for one in item.columns if one in named] or item.columns)
            _require(not any(set(item.key) < set(key) for key in column.keys), "whether a longer value is meant")
            _require(column not in chosen or is_continued, "which of two values is meant")
            chosen[column] = item.key  # the last one, where the question goes on with another
        elif item.kind in ("has", "lacks"):
            rows = [row for row in rows if _holds(_only(item.columns).cells[row]) == (item.kind == "has")]
        elif item.kind == "column" and matched.says_state(item):
            rows = [row for row in rows if _holds(_only(item.columns).cells[row])]
        elif item.kind in ("above", "below"):
            named = [one for one in item.columns if one in (before.columns if before else ())] or item.columns
            column = _only(choose_column(matched.question.rest, named, matched.embed) if matched.embed else named)
            rows = [row for row in rows if item.holds(column.numbers[row])]
        elif item.kind == "part":
            rows = [row for row in rows if has_phrase(_only(item.columns).keys[row], item.key)]
    rows = [row for row in rows if all(column.keys[row] == key for column, key in chosen.items())]
    rows = _select_period(matched, rows)
    _require(len({table.rows[row].text for row in rows}) == len(rows), "whether equal rows are one")
    return rows


def _holds(cell: str) -> bool:
    """Whether a row has what a column says: "yes", or anything that is not "no" or "-"."""
    plain = cell.casefold().strip(" .")
    _require(plain in YES | NO or not _DOUBTFUL.search(plain), "whether a cell says that there is none")
    return bool(plain) and plain not in NO


def _select_period(matched: Matched, rows: list[int]) -> list[int]:
    """The rows of the period that is asked for, the last one where a question goes on. All must be of one year."""
    periods, column = [item.period for item in matched.items if item.period], matched.table.date_column
    if not periods:
        return rows
    _require(len(periods) == 1 or matched.question.is_continued, "which period is meant")
    period, dates = periods[-1], column.read_dates(rows) if column else []
    years = [int(year) for year in re.findall(r"\b(?:19|20)\d\d\b", matched.table.around)]
    if column is None and years and period == Date(period.year):
        return rows if period.year in years else []
    if period.year in years and not any(date.year for date in dates):
        period = period._replace(year=0)
    _require(dates and all(map(period.is_decided_by, dates)), "when all rows are from")
    fitting = [(row, date.year) for row, date in zip(rows, dates, strict=True) if period.holds(date)]
    _require(period.year or len({year for _, year in fitting}) < 2, "which year is meant")
    return [row for row, _ in fitting]


def _is_about_spending(matched: Matched) -> bool:
    """Whether the table is one of spending, or a question of what it cost names it."""
    names = {stem for stem in split_words(matched.table.name) if not stem.isdigit()}
    asked, head = matched.question.stems, matched.head
    is_of_spending = any(GROUP_OF.get(stem) == "spending" for stem in names) or not names.isdisjoint(asked)
    if is_of_spending and stem_of("cost") in asked and head and head.kind == "column":
        _require(_only(head.columns).are_distinct(), "which of several, as repairs of a bike")
    return is_of_spending


def _find_added(matched: Matched, rows: Sequence[int]) -> Column | None:
    """The column whose numbers are asked for; None where rows are counted or listed."""
    aim, columns, head = matched.question.aim, matched.table.columns, matched.head
    if aim in ("list", "times"):
        return None
    if aim != "count":
        named = [one for one in matched.named_columns if any(one.numbers[row] for row in rows)]
        return _only(named or ([] if aim == "amount" else _find_money(columns)))
    column = _only(head.columns) if head and head.kind == "column" else None
    if column and column.read_numbers(_keep_filled(matched, column, rows)):
        return column
    quantities = [one for one in columns if "quantities" in one.kinds]
    if not quantities or head is None or head.kind == "row":
        return None
    is_counted = head.kind == "value" or (head.kind == "name" and IN_ALL.search(matched.question.rest))
    _require(is_counted and not _name_unit(quantities[0], matched.table, rows), "whether rows or pieces are counted")
    return _only(quantities)


def _count_rows(matched: Matched, rows: Sequence[int]) -> str:
    """How many rows there are: of what the table is named, of a column, or of a value beside a column of names."""
    columns, head, phrases = matched.table.columns, matched.head, PHRASES[matched.question.language]
    named = [column for column in columns if split_words(column.name) == split_words("name")]
    if matched.question.aim != "times" and (head or not matched.of_kind("has", "lacks")):
        _require(head and head.kind in ("name", "row", "column", "value"), "what is counted")
        named += [_only(head.columns)] if head and head.kind == "column" else []
    if head and head.kind == "value":
        names = [column for column in columns if "names" in column.kinds]
        names += columns[:1] if any(one.kinds & ROLES.keys() for one in columns) else []
        is_other = any(column.are_distinct() for column in names)
        _require(is_other and not set(names) & set(head.columns), "whether rows are counted")
    _require(matched.embed or all(column.are_distinct(rows) for column in named), "whether each row is another")
    says = (*matched.of_kind("value", "part", "above", "below", "has", "lacks"), *([head] if head else []))
    told = {column for item in says for column in item.columns}
    silent = [one for one in matched.of_kind("column") if told.isdisjoint(one.columns) and not matched.says_state(one)]
    _require(matched.embed or not silent or matched.of_kind("has", "lacks"), "what is said of a column")
    total = len(matched.table.rows)
    if len(rows) == total:
        return str(phrases["all_rows"].format(total))
    labels = [_find_label(matched, row, None, rows) for row in rows]
    are_told = len(rows) <= MAX_NAMED and all(labels) and len(set(labels)) == len(labels)
    return str(phrases["some_rows"].format(len(rows), total)) + (f": {', '.join(labels)}" if are_told else "")


def _keep_filled(matched: Matched, column: Column, rows: Sequence[int]) -> list[int]:
    """The rows that have a number or date; all of them where none may lack one."""
    return [row for row in rows if column.cells[row] or not matched.embed]


def _add(column: Column, matched: Matched, rows: Sequence[int]) -> str:
    """The sum or mean of a column. A total in the table must say the same where all rows are added."""
    rows = _keep_filled(matched, column, rows)
    table, numbers, phrases = matched.table, column.read_numbers(rows), PHRASES[matched.question.language]
    _require(numbers and _have_same_unit(column, table, rows), "what all cells say")
    total, decimals = sum((one.value for one in numbers), Decimal(0)), max(one.decimals for one in numbers)
    unit = _name_unit(column, table, rows)
    if matched.question.aim == "mean":
        mean = _write_amount(f"{total / len(numbers):,.{max(2, decimals)}f}", unit, numbers[0])
        return str(phrases["mean_of"].format(len(numbers), mean))
    said = [one for row in table.totals for one in read_numbers([row.cells.get(column.name, "")]) if one]
    is_right = len(rows) < len(table.rows) or all(one.value == total for one in said)
    _require(is_right and _can_be_added(column, numbers, matched, rows), "whether the sum means anything")
    if not unit and "pieces" in column.kinds and column.name.isalpha() and "quantities" not in column.kinds:
        unit = column.name.lower()  # what is counted: "bottles"
    whole = _write_amount(f"{total:,.{decimals}f}", unit, numbers[0])
    if len(numbers) > MAX_ADDENDS:
        return str(phrases["sum_of"].format(len(numbers), whole))
    addends = " + ".join(f"{one.value:,.{one.decimals}f}" for one in numbers)
    return whole if len(numbers) == 1 else f"{addends} = {whole}"


def _have_same_unit(column: Column, table: Table, rows: Sequence[int]) -> bool:
    """Whether no other column says a unit, a currency or a period that differs between some rows."""
    others = [one for one in table.columns if one is not column and one.kinds & {"only units", "only periods"}]
    return all(one.is_constant(rows) for one in others)


def _can_be_added(column: Column, numbers: Sequence[Number], matched: Matched, rows: Sequence[int]) -> bool:
    """Whether the sum of a column means something: no rates, balances and readings, and nothing that tells rows apart.

    A price beside a quantity is that of one. Whether something is paid tells rows apart where it is asked for payments.
    """
    others = [one for one in matched.table.columns if one is not column]
    undated = [one for one in others if "dates" not in one.kinds]  # when it was paid is shown with it
    states = ROLES["kinds_of_row"] - (
        {stem_of("paid")} if matched.question.stems.isdisjoint(ROLES["paying"]) else set()
    )
    is_price = "money" in column.kinds and "total_money" not in column.kinds
    return not (
        "no_sum" in column.kinds
        or WORDS["rates"].intersection(numbers[0].shown_unit.casefold().split())
        or any(number.value < 0 for number in numbers)
        or (is_price and any(one.kinds & {"quantities", "" if matched.embed else "pieces"} for one in others))
        or any(one.stems & states and not _BY.search(one.name) and not one.is_constant(rows) for one in undated)
        or _may_be_reading(column, numbers[0], matched.table.date_column)
    )


def _may_be_reading(column: Column, number: Number, dated: Column | None) -> bool:
    """Whether a measure may be read off a meter: it only grows with time, or there are too few rows to tell."""
    if "amounts of money" in column.kinds or not (number.unit or column.units or column.stems & UNIT_OF.keys()):
        return False
    dates = dated.read_dates(column.filled) if dated else []
    values = [number.value for number in column.read_numbers(column.filled)]
    values = [values[row] for row in sorted(range(len(dates)), key=dates.__getitem__)] if dates else values
    return len(values) < 3 or values == sorted(set(values))


def _name_unit(column: Column, table: Table, rows: Sequence[int]) -> str:
    """The unit as it is shown: that of the cells, of a column of units, or in the column's name."""
    said = [one.cells[rows[0]] for one in table.columns if "only units" in one.kinds and one.is_constant(rows)]
    number = column.numbers[rows[0]]
    return (number.shown_unit if number else "") or (said if len(said) == 1 else [*column.units, ""])[0]


def _write_amount(number: str, unit: str, like: Number) -> str:
    """A number with its unit, on the side where another number has it."""
    return f"{unit}{number}" if like.is_before and len(unit) == 1 else f"{number} {unit}".strip()


def _find_counted(matched: Matched) -> Column | None:
    """The column of names of which one has the most rows: "who owns the most tools?"."""
    named = matched.named_columns if matched.embed and matched.question.measure == "" else []
    counts_rows = matched.of_kind("name", "row") or not any(any(one.numbers) for one in named)
    return named[0] if named and counts_rows and not (any(named[0].numbers) or named[0].are_distinct()) else None


def _count_by(column: Column, matched: Matched, rows: Sequence[int]) -> tuple[str, list[int]]:
    """Which value the most rows have, or the fewest, and these rows."""
    counts = Counter(column.cells[row] for row in rows if column.cells[row]).most_common()
    ordered = counts if matched.question.aim == "most" else counts[::-1]
    _require(len(ordered) > 1 and ordered[0][1] != ordered[1][1], "which of several")
    value, count = ordered[0]
    said = PHRASES[matched.question.language]["some_rows"].format(count, len(rows))
    return f"{value}: {said}", [row for row in rows if column.cells[row] == value]


def _find_extreme(matched: Matched, rows: Sequence[int]) -> tuple[str, list[int]]:
    """What the one row has that has the most or the least, and its number."""
    question, table, named = matched.question, matched.table, matched.named_columns
    column = _find_measured(matched, rows)
    rows = _keep_filled(matched, column, rows) if column not in named else [row for row in rows if column.cells[row]]
    numbers = column.read_numbers(rows) if _have_same_unit(column, table, rows) else []
    values: Sequence[Date] | Sequence[Decimal] = [number.value for number in numbers]
    if question.measure == "date":
        values = column.read_dates(rows)
        _require(values and values[0].year and len({tuple(map(bool, date)) for date in values}) == 1, "how old all are")
    are_distinct = matched.embed or all(one is column or one.are_distinct(rows) for one in named)
    _require(are_distinct, "whether each row is another")
    is_named = question.measure not in ("", "size") or matched.of_kind("name", "row") or set(named) - {column}
    order = sorted(range(len(values)), key=values.__getitem__, reverse=question.aim == "most")
    _require(is_named and len(order) > 1 and values[order[0]] != values[order[1]], "of what it is the most, or which")
    best = rows[order[0]]
    value, label = column.cells[best], _find_label(matched, best, column, rows)
    if question.measure != "date" and not numbers[0].shown_unit:
        value = _write_amount(value, _name_unit(column, table, rows), numbers[0])
    return (f"{label}: {value}" if label else value), [best]


def _find_measured(matched: Matched, rows: Sequence[int]) -> Column:
    """The column that rows are measured by: of the measure, or named by the question."""
    measure, columns, named = matched.question.measure, matched.table.columns, matched.named_columns
    if measure == "date":
        names, dated = ROLES["own_dates"] | ROLES["small"], [one for one in (matched.table.date_column,) if one]
        own = [one for one in dated if matched.embed or one.stems <= names]
        column = _only([one for one in named if "dates" in one.kinds] or own)
        _require("births" not in column.kinds or matched.question.aim == "least", "who is the newest")
        return column
    if measure not in ("", "size", "money") and (own := [one for one in columns if measure in one.kinds]):
        return _only(own)
    measured = [one for one in named if one.read_numbers(rows)]
    if not measured and (measure == "money" or (measure == "size" and _is_about_spending(matched))):
        measured = _find_money(columns)
    if matched.embed and len(measured) != 1:
        numeric = [one for one in measured or columns if one.read_numbers(_keep_filled(matched, one, rows))]
        measured = choose_column(f"{matched.question.said} {matched.question.rest}", numeric, matched.embed)
    return _only(measured)


def _find_money(columns: Sequence[Column]) -> list[Column]:
    """Those with amounts of money: of several the totals, not net and VAT."""
    money = [one for one in columns if "amounts of money" in one.kinds]
    return [one for one in money if "whole" in one.kinds] or money


def _find_label(matched: Matched, row: int, column: Column | None, rows: Sequence[int]) -> str:
    """The cell that names a row: of a column that is asked for, else of one of names, with words that are not given."""
    given = {item.key for item in matched.of_kind("value")}
    others = [one for one in matched.table.columns if one is not column and one.cells[row]]
    asked = [one for one in matched.named_columns if one in others and column]
    texts = [one for one in others if one.keys[row] not in given and not one.numbers[row] and not one.dates[row]]
    texts = sorted(texts, key=lambda one: ("names" not in one.kinds, not one.are_distinct(rows)))
    telling = [one for one in texts if "names" in one.kinds or one.are_distinct(rows)]
    dated = [one for one in others if one.dates[row]]
    return next((one.cells[row] for one in (*asked, *telling, *dated, *texts)), "")
