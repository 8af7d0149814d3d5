"""Comparisons, sums and differences: a sentence for each side, and a conclusion only where it is sure."""

from decimal import Decimal

import pytest

from agent.chat.session import PLAN
from agent.turn.conclusions.comparison import find_sides
from agent.turn.extractive_answer import LengthLimit, extract_answer
from agent.turn.spans.amounts_and_dates import read_amount, read_date, write_calculation
from indexes.ranking.vectors import Embedder
from schemas.records import Passage, Query, Response
from tests.conftest import needs_embedder


@pytest.mark.parametrize(
    ("question", "first", "second", "aim"),
    [
        ("Where was the room cheaper, at the Havblikk or at the Castagna?", "the Havblikk", "the Castagna", "least"),
        ("Which is cheaper, the night train or the ferry?", "the night train", "the ferry", "least"),
        ("Who is older, Ida or Tom?", "Ida", "Tom", "most"),
        ("Is the kayak or the canoe cheaper?", "the kayak", "the canoe", "least"),
        ("Which costs more, a kayak or a canoe?", "a kayak", "a canoe", "most"),
        ("Is the ferry cheaper than the night train?", "the ferry", "the night train", "least"),
        ("How much more expensive is the hotel than the hut?", "the hotel", "the hut", "difference"),
        ("What is the difference in price between the hut and the pension?", "the hut", "the pension", "difference"),
        ("How much do the train and the hotel cost together?", "the train", "the hotel", "sum"),
        ("Compare the granola and the risotto", "the granola", "the risotto", ""),
        ("How many days may I wait, with Havel and with Orient?", "Havel", "Orient", ""),
        ("Welches ist billiger, der Zug oder die Fähre?", "der Zug", "die Fähre", "least"),
    ],
)
def test_sides_are_told_from_the_question(question: str, first: str, second: str, aim: str) -> None:
    sides = find_sides(question)
    assert sides
    assert sides.names == (first, second)
    assert (sides.compared[0][1] if sides.compared else "") == aim


@pytest.mark.parametrize(
    "question",
    [
        "Is it open on Monday or Tuesday?",
        "What should I cook for dinner or lunch?",
        "How long does it keep?",
        "Or?",
        "",
    ],
)
def test_other_questions_have_no_sides(question: str) -> None:
    assert find_sides(question) is None


def test_the_two_are_those_of_an_earlier_question() -> None:
    earlier = ("How many days may I wait, with Havel and with Orient?", "And how do I report it?")
    sides = find_sides("Which of the two is cheaper?", earlier)
    assert sides
    assert sides.names == ("Havel", "Orient")
    assert find_sides("Which is cheaper?", earlier) is None


@pytest.mark.parametrize(
    ("text", "around", "value", "unit"),
    [
        ("94 EUR", "", "94", "EUR"),
        ("€94.50", "", "94.50", "EUR"),
        ("2,820 euros", "", "2820", "EUR"),
        ("12,50 Euro", "", "12.50", "EUR"),
        ("94 EUR per night", "", "94", "EUR per night"),
        ("118 EUR", "per night", "118", "EUR per night"),
        ("112.30 EUR", "Yearly premium", "112.30", "EUR per year"),
        ("three weeks", "", "30240", "minute"),
        ("two years", "", "24", "month"),
        ("1 kg", "", "1000", "gram"),
    ],
)
def test_amounts_are_read_with_their_units(text: str, around: str, value: str, unit: str) -> None:
    amount = read_amount(text, around)
    assert amount
    assert (amount.value, amount.unit) == (Decimal(value), unit)


@pytest.mark.parametrize(
    "text", ["about 94 EUR", "90 to 95 EUR", "1.500 EUR", "at most 20 EUR", "94", "EUR", "ten sheep"]
)
def test_what_is_not_sure_is_no_amount(text: str) -> None:
    assert read_amount(text) is None


def test_dates_grow_with_time() -> None:
    dates = [read_date(text) for text in ("14 March 2024", "2024-06-01", "3. Juli 2024", "1 Dec. 2024")]
    assert [date.value for date in dates if date] == [20240314, 20240601, 20240703, 20241201]
    assert read_date("in 1954")
    assert read_date("May") is None


def test_a_calculation_is_shown() -> None:
    amounts = [amount for text in ("94 EUR per night", "12.50 EUR a night") if (amount := read_amount(text))]
    assert write_calculation(amounts, "+", amounts[0].value + amounts[1].value) == "94 EUR + 12.50 EUR = 106.50 EUR"


TRAIN = Passage("train.txt:1", "The night train to Harnby costs 94 EUR. It leaves at 21:10.", "Night train")
FERRY = Passage("ferry.txt:1", "The ferry to Harnby costs 61 EUR. It takes nine hours.", "Ferry")
BUS = Passage("bus.txt:1", "The bus to Harnby costs about 60 EUR.", "Bus")
PLANE = Passage("plane.txt:1", "The plane to Harnby costs 50 EUR only if booked in May.", "Plane")
LAKE = Passage("lake.txt:1", "The lake near Harnby is deep.", "Lake")


def ask(embedder: Embedder, question: str, *passages: Passage) -> Response:
    return extract_answer(Query(question), (), passages, embedder.embed, LengthLimit(), PLAN.tuning)


@pytest.mark.story
@needs_embedder
@pytest.mark.parametrize(
    ("question", "direct"),
    [
        ("Which is cheaper, the night train or the ferry?", "The ferry."),
        ("Which is cheaper, the ferry or the night train?", "The ferry."),
        ("Which is more expensive, the night train or the ferry?", "The night train."),
        ("Is the night train cheaper than the ferry?", "No."),
        ("Is the ferry cheaper than the night train?", "Yes."),
        ("How much do the night train and the ferry cost together?", "94 EUR + 61 EUR = 155 EUR."),
        ("How much more expensive is the night train than the ferry?", "94 EUR − 61 EUR = 33 EUR."),
        ("Which is cheaper, the night train or the bus?", ""),
        ("Which is cheaper, the night train or the plane?", ""),
        ("Compare the night train and the ferry", ""),
    ],
)
def test_both_sides_are_quoted_and_only_what_is_sure_is_concluded(minilm: Embedder, question: str, direct: str) -> None:
    response = ask(minilm, question, TRAIN, FERRY, BUS, PLANE, LAKE)
    assert response.direct == direct
    assert len(response.used) == 2
    assert TRAIN.id in response.used


@needs_embedder
def test_nothing_is_concluded_of_a_side_that_is_not_there(minilm: Embedder) -> None:
    response = ask(minilm, "Which is cheaper, the night train or the balloon?", TRAIN, FERRY)
    assert response.direct == ""


@needs_embedder
def test_several_amounts_conclude_only_what_all_of_them_say(minilm: Embedder) -> None:
    beds = Passage("train.txt:1", "The night train costs 94 EUR with a bed. The night train costs 55 EUR with a seat.")
    assert ask(minilm, "Which is cheaper, the night train or the ferry?", beds, FERRY).direct == ""
    dear = Passage("train.txt:1", "The night train costs 94 EUR with a bed. The night train costs 75 EUR with a seat.")
    assert ask(minilm, "Which is cheaper, the night train or the ferry?", dear, FERRY).direct == "The ferry."
