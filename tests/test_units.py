"""Units of passages: a table for each thing that must be told, and nothing lost whatever the text is."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.attribution import is_supported
from indexes.documents.reading import parse_document
from indexes.text.sentence_ends import find_sentence_starts
from indexes.text.units import find_units_to_quote, limits_what_stands_before, points_back, split_units
from schemas.records import Passage, Unit
from tests.conftest import EXAMPLES, read_cases, shared_file

CASES = read_cases("units")


def units_of(text: str, title: str = "") -> tuple[Unit, ...]:
    return split_units(Passage("p", text, title))


def told(text: str, title: str = "") -> list[tuple[str, str]]:
    return [(unit.kind, unit.text) for unit in units_of(text, title)]


def quoted(text: str, place: int) -> str:
    return " ".join(unit.text for unit in find_units_to_quote(units_of(text), place))


JUDGED: dict[str, Callable[[str], object]] = {  # tables of texts with what is told of them
    "sentences": lambda text: len(find_sentence_starts(text.split())),
    "items": lambda text: [unit.text for unit in units_of(text) if unit.kind == "item"],
    "points_back": points_back,
    "limits": limits_what_stands_before,
    "doubtful": lambda text: [unit.may_have_heading for unit in units_of(text)] == [True],
}
WHOLE = {  # tables of texts that are one unit of this kind, and what stands around them
    "whole": ("sentence", "{} That is so."),
    "short": ("sentence", "{}\nThe soup is made of lentils and takes about fifty minutes to cook."),
    "rows": ("row", "{}\nServes six."),
}


@pytest.mark.parametrize("table", JUDGED)
def test_what_is_told_of_a_text(table: str) -> None:
    assert [[text, JUDGED[table](text)] for text, _ in CASES[table]] == CASES[table]


@pytest.mark.parametrize("table", WHOLE)
def test_what_belongs_together_is_one_unit(table: str) -> None:
    kind, around = WHOLE[table]
    assert [told(around.format(text))[0] for text in CASES[table]] == [(kind, text) for text in CASES[table]]


@pytest.mark.parametrize(("text", "front", "sentence"), CASES["glued"])
def test_what_is_glued_to_a_sentence_is_split_off(text: str, front: list[str], sentence: str) -> None:
    *glued, last = units_of(text)
    assert [unit.text for unit in glued] == front
    assert not any(unit.is_statement for unit in glued)
    assert last.kind == "sentence"
    assert last.text.startswith(sentence)


def test_boilerplate_is_told() -> None:
    assert [text for text in CASES["boilerplate"] if {kind for kind, _ in told(text)} != {"boilerplate"}] == []


def test_lists_stay_lists() -> None:
    text = "You need:\n250 g flour;\n4 eggs;\na pinch of salt.\nWhisk everything together and let it rest."
    units = units_of(text)
    assert [unit.kind for unit in units] == ["sentence", "item", "item", "item", "sentence"]
    assert [unit.needs for unit in units] == [(), (0,), (0,), (0,), ()]
    assert quoted(text, 2) == "You need: 4 eggs;"
    assert quoted(text, 0) == "You need: 250 g flour;"


def test_headings_tell_what_is_under_them() -> None:
    text = "Descaling.\nDescale the kettle every six weeks where the water is hard.\nCare: The lid is rinsed."
    units = units_of(text, "Kettle: Descaling")
    assert [(unit.kind, unit.headings) for unit in units] == [
        ("heading", ("Kettle", "Descaling")),
        ("sentence", ("Kettle", "Descaling", "Descaling.")),
        ("heading", ("Kettle", "Descaling")),
        ("sentence", ("Kettle", "Descaling", "Care:")),
    ]


@pytest.mark.parametrize(("text", "place", "expected"), CASES["quoted"])
def test_nothing_is_quoted_away_from_what_it_needs(text: str, place: int, expected: str) -> None:
    found = quoted(text, place)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


def test_a_demonstrative_points_to_the_title_where_it_names_it() -> None:
    text = "These pancakes contain no wheat. This dish is cheap."
    assert [unit.points_back for unit in units_of(text, "Buckwheat pancakes")] == [False, True]


@given(
    st.lists(st.one_of(st.sampled_from(CASES["fragments"]), st.text(max_size=20)), max_size=30).map(" ".join),
    st.sampled_from(["", "Bread", "Side Effects: Food"]),
)
def test_nothing_is_lost_whatever_the_text(text: str, title: str) -> None:
    units = units_of(text, title)
    assert " ".join(unit.text for unit in units).split() == text.split()
    assert [unit.place for unit in units] == list(range(len(units)))
    for unit in units:
        assert all(0 <= place < len(units) and units[place].is_statement for place in unit.needs)
        assert all(found.is_statement for found in find_units_to_quote(units, unit.place))


@pytest.mark.parametrize("text", ["Title Case " * 20_000, "a" * 200_000, "." * 200_000 + "x", "1. A " * 40_000])
def test_a_long_text_is_split(text: str) -> None:
    """In proportion to its length; anything else would take minutes here."""
    assert units_of(text)


def read_own_documents() -> list[Passage]:
    files = [path for path in sorted((EXAMPLES / "documents").rglob("*")) if path.is_file()]
    return [passage for path in files for passage in parse_document(path, path.name, path.read_bytes()).passages]


def read_track_passages() -> list[Passage]:
    lines = shared_file("ikat", "2023_test_passages.jsonl").read_text(encoding="utf-8").splitlines()
    return [Passage(str(number), json.loads(line)["passage_text"]) for number, line in enumerate(lines)]


@pytest.mark.parametrize("read", [read_own_documents, read_track_passages])
def test_every_statement_is_supported_by_its_passage(read: Callable[[], list[Passage]]) -> None:
    unsupported = [
        text
        for passage in read()
        for unit in split_units(passage)
        if unit.is_statement
        for text in (unit.text, f"{unit.text.rstrip(' :;,-–—')}.")
        if (text == unit.text or unit.text[-1] not in ".!?") and not is_supported(text, passage.text)
    ]
    assert unsupported == []
