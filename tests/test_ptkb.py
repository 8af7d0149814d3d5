"""Which statements are chosen: the expected F1 against all that may be true, the rule by hand, and real models."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.models.protocol import Conversation, LanguageModel
from agent.models.registry import open_model
from agent.tracks.registry import load_edition
from agent.turn.statement_selection import select_by_expected_f1, select_statements, speaks_of_oneself
from indexes.ranking.vectors import Embedder
from schemas.records import Message, Plan, Query, Statement
from schemas.tuning import StatementTuning
from tests.conftest import needs_embedder, needs_model

PERSON = tuple(
    Statement(str(n), text)
    for n, text in enumerate(
        ["I play the trumpet in a brass band.", "I have coeliac disease.", "I live in Oslo.", "My car is red."], start=1
    )
)
ASKED = "Which bread can I eat without gluten?"


def expected_f1(likely: list[float], chosen: set[int]) -> float:
    """By going through every way in which the statements may matter."""
    total = 0.0
    for truth in product([False, True], repeat=len(likely)):
        chance = float(np.prod([p if true else 1 - p for p, true in zip(likely, truth, strict=True)]))
        relevant = {n for n, true in enumerate(truth) if true}
        both = len(chosen & relevant)
        total += chance * 2 * both / (len(chosen) + len(relevant))
    return float(total)


@given(st.lists(st.floats(0.01, 0.99), min_size=1, max_size=5))
def test_no_other_set_has_a_higher_expected_f1(likely: list[float]) -> None:
    best = expected_f1(likely, set(select_by_expected_f1(likely)))
    for bits in product([False, True], repeat=len(likely)):
        if any(bits):
            assert expected_f1(likely, {n for n, chosen in enumerate(bits) if chosen}) <= best + 1e-9


def test_the_likeliest_come_first_and_are_few_where_the_best_is_sure() -> None:
    assert select_by_expected_f1([0.1, 0.9, 0.8]) == [1, 2]
    assert select_by_expected_f1([0.9] * 20) == list(range(StatementTuning().max_statements))
    assert select_by_expected_f1([]) == []
    assert select_by_expected_f1([0.5, 0.1], min_probability=0.6) == []
    assert select_by_expected_f1([0.7, 0.1], min_probability=0.6) == [0]
    assert load_edition("ikat-2023").statement_threshold == 0.0
    assert load_edition("ikat-2025").statement_threshold == Plan().min_probability > 0.25


def chosen(
    model: LanguageModel, embedder: Embedder | None, utterance: str = ASKED, *, min_probability: float = 0.0
) -> list[str]:
    """What is chosen of `PERSON`, best first."""
    embed = embedder.embed if embedder else None
    plan = Plan(min_probability=min_probability)
    conversation = Conversation("You are a helpful assistant.", (Message("user", utterance),))
    return [
        found.statement.id for found in select_statements(conversation, Query(utterance), PERSON, model, embed, plan)
    ]


@pytest.mark.story
@pytest.mark.parametrize("embedding", [None, pytest.param("minilm", marks=needs_embedder)])
@pytest.mark.parametrize("language", [None, pytest.param("smollm2", marks=needs_model)])
def test_what_matters_is_found_with_every_kind_of_evidence(
    language: str | None, embedding: str | None, request: pytest.FixtureRequest
) -> None:
    model = request.getfixturevalue(language) if language else open_model("none")
    embedder = request.getfixturevalue(embedding) if embedding else None
    assert chosen(model, embedder, "Which trumpet suits a brass band?")[0] == "1"
    if embedder:  # that coeliac disease and gluten have to do with each other
        assert chosen(model, embedder, ASKED)[0] == "2"


@pytest.mark.story
@needs_model
@needs_embedder
def test_nothing_is_chosen_where_nothing_is_sure(smollm2: LanguageModel, minilm: Embedder) -> None:
    assert chosen(smollm2, minilm, "What is seven times eight?", min_probability=Plan().min_probability) == []


@pytest.mark.story
@needs_embedder
def test_statements_matter_where_the_person_asks_for_themselves(minilm: Embedder) -> None:
    least = Plan().min_probability
    for_oneself = "Which bread without gluten is best for me?"
    assert chosen(open_model("none"), minilm, for_oneself, min_probability=least)[0] == "2"
    assert chosen(open_model("none"), minilm, "How is bread without gluten baked?", min_probability=least) == []


SPEAKS = {
    "Which of these is suitable for me?": True,
    "What about my uncle?": True,
    "Am I eligible?": True,
    "Ist das für mich geeignet?": True,
    "What is the difference between the two?": False,
    "I heard Android phones are better.": False,
    "Tell me more about the myth.": False,
}


def test_a_turn_speaks_of_the_person() -> None:
    assert {utterance: speaks_of_oneself(utterance) for utterance in SPEAKS} == SPEAKS
