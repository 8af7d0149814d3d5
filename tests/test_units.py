"""Units of passages: a table for each thing that must be told, and nothing lost whatever the text is."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.turn.attribution import why_unsupported
from benchmarks.answer_form import is_glued
from indexes.documents.reading import parse_document
from indexes.text.sentence_ends import find_sentence_starts
from indexes.text.units import find_units_to_quote, limits_what_stands_before, points_back, split_units
from schemas.records import Passage, Unit
from tests.conftest import EXAMPLES, shared_file

FRAGMENTS = [
    "\n", "\n\n", "Side Effects The most", "z. B.", "No. 5", "1.", "2. Stretch", "; name: x;", "»", "[6]", "…", "•",
    "What Is Gluten? Gluten is", "Home » Food", "By Jane Doe", "3. Mai", "Only with permission.", "Read more:",
    "面包可以保存九天。", ":", "don’t.",
]  # fmt: skip


def units_of(text: str, title: str = "") -> tuple[Unit, ...]:
    return split_units(Passage("p", text, title))


def told(text: str, title: str = "") -> list[tuple[str, str]]:
    return [(unit.kind, unit.text) for unit in units_of(text, title)]


def quoted(text: str, place: int) -> str:
    return " ".join(unit.text for unit in find_units_to_quote(units_of(text), place))


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Wir kommen am 3. Mai an. Der Zug ist pünktlich.", 2),
        ("Obst, z. B. Äpfel, hält lange. Brot nicht.", 2),
        ("Es kostet ca. 30 Euro. Nach Abs. 2 zahlt Dr. Huber, d. h. der Mieter.", 2),
        ("Mehl, Salz usw. Die Hefe kommt zuletzt.", 2),
        ("Eat fruit, e.g. Boskoop apples, i.e. Northern ones. Peel them.", 2),
        ("It was founded by J. R. Smith and E. Tarvainen in 1903. Later it moved.", 2),
        ("The letter is dated 19 May 2025. It weighs 3.5 g and shows F.22. See www.example.org/a.b for more.", 3),
        ("Take vitamin C. Oranges have it.", 2),
        ("We meet at 5 p.m. The room is open at 4 p.m. on Mondays.", 2),
        ("She said “yes.” He left. (It was late.) The end.", 4),
        ("It can cause harm.[3] Later studies agree.1 None was large.", 3),
    ],
)
def test_sentences_end_where_they_end(text: str, sentences: int) -> None:
    assert len(find_sentence_starts(text.split())) == sentences


@pytest.mark.parametrize(
    ("text", "front", "sentence"),
    [
        ("Side Effects The most common side effects are nausea.", ["Side Effects"], "The most common side effects are"),
        ("What Is Gluten? Gluten is a protein.", ["What Is Gluten?"], "Gluten is a protein."),
        ("High Emotional Demands In addition to work, we rest.", ["High Emotional Demands"], "In addition to work,"),
        ("Black garlic Black garlic is aged garlic.", ["Black garlic"], "Black garlic is aged garlic."),
        ("5. Content Marketing Content marketing is great.", ["5. Content Marketing"], "Content marketing is great."),
        ("#6. Honor When it comes to phones, it wins.", ["#6. Honor"], "When it comes to phones, it wins."),
        ("THE BENEFITS OF STEAMING Steaming keeps vitamins.", ["THE BENEFITS OF STEAMING"], "Steaming keeps vitamins."),
        ("Local variations[edit] The lasagne of Naples is rich.", ["Local variations[edit]"], "The lasagne of Naples"),
        (
            "Best Vegan Protein Sources Home » Nutrition » Protein By Jane Doe Updated 3 March 2021 "
            "If you are vegan, eat beans.",
            [
                "Best Vegan Protein Sources",
                "Home » Nutrition » Protein",
                "By Jane Doe Updated 3 March 2021",
            ],
            "If you are vegan, eat beans.",
        ),
        (
            "Comparison of Bionic A14 vs Snapdragon 888 Nasrin Shareef May 16, 2021 0 1,612 "
            "In this world of competition, everything moves.",
            ["Comparison of Bionic A14 vs Snapdragon 888 Nasrin Shareef May 16, 2021 0 1,612"],
            "In this world of competition, everything moves.",
        ),
        ("Share on Facebook Tweet The soup is hot.", ["Share on Facebook Tweet"], "The soup is hot."),
        ("Advertisement The soup is hot.", ["Advertisement"], "The soup is hot."),
    ],
)
def test_what_is_glued_to_a_sentence_is_split_off(text: str, front: list[str], sentence: str) -> None:
    *glued, last = units_of(text)
    assert [unit.text for unit in glued] == front
    assert not any(unit.is_statement for unit in glued)
    assert last.kind == "sentence"
    assert last.text.startswith(sentence)


@pytest.mark.parametrize(
    "text",
    [
        "The National Institute for Health and Care Excellence recommends a low dose.",
        "Johnson and Johnson said no.",
        "Ernst & Young LLP was founded in 1989.",
        "The House of Lords, House of Commons and the King are Parliament.",
        "Vitamin A is fat-soluble.",
        "Members of The Beatles sang.",
        "By July 2020 the price had doubled.",
        "By Jane Austen's time novels were common.",
        "Mr Halvorsen, the sweep, comes twice.",
        "Der Bäcker Huber hat sonntags geöffnet.",
        "McMaster University – Hamilton has a library that McMaster University runs.",
        "Print your name in capitals.",
        "Contents insurance covers theft.",
        "Electricity meter: hall cupboard, number 4471 0923.",
        "Warning: dangerous for people who are allergic to peanuts.",
    ],
)
def test_no_word_of_a_sentence_is_cut_off(text: str) -> None:
    assert told(f"{text} That is so.")[0] == ("sentence", text)


@pytest.mark.parametrize(
    "text",
    ["Contains celery.", "Nine days.", "Yes.", "94 EUR."],
)
@pytest.mark.parametrize("rest", ["", "\nThe soup is made of lentils and takes about fifty minutes to cook."])
def test_short_sentences_count(text: str, rest: str) -> None:
    assert told(text + rest)[0] == ("sentence", text)


@pytest.mark.parametrize(
    "text",
    [
        "3 March 2021.",
        "© 2024 Example Ltd. All rights reserved.",
        "This site uses cookies to improve your experience.",
        "Wir verwenden Cookies, um Inhalte zu personalisieren.",
        "Read more: Ten recipes for the winter",
        "Share on Facebook Tweet",
        "Sign up for our newsletter and never miss a recipe.",
        "Skip to content",
        "Page 3 of 7",
        "23 min read",
        "* * *",
    ],
)
def test_boilerplate_is_told(text: str) -> None:
    assert {kind for kind, _ in told(text)} == {"boilerplate"}


def test_lists_stay_lists() -> None:
    text = "You need:\n250 g flour;\n4 eggs;\na pinch of salt.\nWhisk everything together and let it rest."
    units = units_of(text)
    assert [unit.kind for unit in units] == ["sentence", "item", "item", "item", "sentence"]
    assert [unit.needs for unit in units] == [(), (0,), (0,), (0,), ()]
    assert quoted(text, 2) == "You need: 4 eggs;"
    assert quoted(text, 0) == "You need: 250 g flour;"


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("1. Warm up. 2. Stretch.", ["1. Warm up.", "2. Stretch."]),
        ("1. Warm up 2. Stretch 3. Cool down", ["1. Warm up", "2. Stretch", "3. Cool down"]),
        ("Three steps: 1) Warm up. 2) Stretch. 3) Rest.", ["1) Warm up.", "2) Stretch.", "3) Rest."]),
        ("• “Ryan” won once. • “Emma” won twice.", ["• “Ryan” won once.", "• “Emma” won twice."]),
        ("- flour\n- eggs\n- salt", ["- flour", "- eggs", "- salt"]),
        ("See Table 1. We then saw Table 2. Both agree.", []),
        ("Am 1. Mai und am 2. Juni ist zu.", []),
        ("The boiler has 2. It needs 3.", []),
    ],
)
def test_items_of_a_line_are_told(text: str, items: list[str]) -> None:
    assert [unit.text for unit in units_of(text) if unit.kind == "item"] == items


@pytest.mark.parametrize(
    "text",
    [
        "ingredient: carrots; amount: 3; note: in small cubes.",
        "name: Dr. Lena Osei; role: dentist; note: closed on Fridays; entrance in the yard.",
        'garden: Slope; soil["tested by"]: Laboratory; water.pump: Aquaria 40.',
        "tags: baking, sourdough.",
    ],
)
def test_rows_of_tables_are_whole(text: str) -> None:
    assert told(f"Serves six.\n{text}") == [("sentence", "Serves six."), ("row", text)]


def test_headings_tell_what_is_under_them() -> None:
    text = "Descaling.\nDescale the kettle every six weeks where the water is hard.\nCare: The lid is rinsed."
    units = units_of(text, "Kettle: Descaling")
    assert [(unit.kind, unit.headings) for unit in units] == [
        ("heading", ("Kettle", "Descaling")),
        ("sentence", ("Kettle", "Descaling", "Descaling.")),
        ("heading", ("Kettle", "Descaling")),
        ("sentence", ("Kettle", "Descaling", "Care:")),
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He or she will be able to go.", True),
        ("Do this twice.", True),
        ("If it smells of ammonia, mix in cardboard.", True),
        ("In that case, call Rosa.", True),
        ("Its lens weighs 3.4 tons.", True),
        ("As mentioned above, it is so.", True),
        ("For example, eat beans.", True),
        ("Das gilt auch sonntags.", True),
        ("Sie ist rot.", True),
        ("It is important to eat.", False),
        ("When it comes to food, taste counts.", False),
        ("Those who eat beans live longer.", False),
        ("Second-hand cars are cheap.", False),
        ("This article is about bread.", False),
        ("Sie können den Vertrag kündigen.", False),
        ("Es gibt Brot.", False),
    ],
)
def test_what_points_back_is_told(text: str, expected: bool) -> None:
    assert points_back(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Only with written permission.", True),
        ("Unless the fee was paid.", True),
        ("It was not agreed in this contract.", True),
        ("Dies gilt nicht für Hunde.", True),
        ("No dogs.", False),
        ("Only beech and ash are burnt.", False),
        ("Unless the fee was paid, dogs stay outside.", False),
    ],
)
def test_conditions_and_exceptions_are_told(text: str, expected: bool) -> None:
    assert limits_what_stands_before(text) == expected


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("Dogs are allowed. Only with written permission.", 0, "Dogs are allowed. Only with written permission."),
        ("Dogs are allowed. Only with written permission.", 1, "Dogs are allowed. Only with written permission."),
        ("Floods are insured. It was not agreed in this contract.", 0, "Floods are insured. It was not agreed in this"),
        ("The soup is hot. It is red. It is cheap.", 2, "The soup is hot. It is red. It is cheap."),
        ("It is red. The soup is hot.", 0, ""),
        ("Only with written permission. The soup is hot.", 0, ""),
        ("To top up the boiler:\nOpen the black valve.", 0, "To top up the boiler: Open the black valve."),
        ("The soup is hot. Side Effects It is red.", 2, ""),
    ],
)
def test_nothing_is_quoted_away_from_what_it_needs(text: str, place: int, expected: str) -> None:
    found = quoted(text, place)
    assert found.startswith(expected)
    assert bool(found) == bool(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Keep a Stress Journal Jot down the things that worry you.", True),
        ("Avocado Avocado is a fruit with fiber.", True),
        ("Recipes | Bread keeps for nine days.", True),
        ("Bread keeps for nine days.", False),
        ("The National Institute for Health recommends a low dose.", False),
    ],
)
def test_a_doubtful_front_is_left_and_marked(text: str, expected: bool) -> None:
    assert [(unit.kind, unit.may_have_heading) for unit in units_of(text)] == [("sentence", expected)]


def test_a_demonstrative_points_to_the_title_where_it_names_it() -> None:
    text = "These pancakes contain no wheat. This dish is cheap."
    assert [unit.points_back for unit in units_of(text, "Buckwheat pancakes")] == [False, True]


@given(
    st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=20)), max_size=30).map(" ".join),
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


def test_few_statements_have_a_heading_at_their_front() -> None:
    """By the benchmark's own patterns; of spaCy's sentences .027 have one."""
    units = [unit for passage in read_track_passages() for unit in split_units(passage) if unit.is_statement]
    glued = [unit for unit in units if is_glued(unit.text)]
    assert len(glued) / len(units) < 0.015
    assert sum(not unit.may_have_heading for unit in glued) / len(units) < 0.005


@pytest.mark.parametrize("read", [read_own_documents, read_track_passages])
def test_every_statement_is_supported_by_its_passage(read: Callable[[], list[Passage]]) -> None:
    unsupported = [
        text
        for passage in read()
        for unit in split_units(passage)
        if unit.is_statement
        for text in (unit.text, f"{unit.text.rstrip(' :;,-–—')}.")
        if (text == unit.text or unit.text[-1] not in ".!?") and why_unsupported(text, passage.text)
    ]
    assert unsupported == []
