"""Which statements are chosen: the expected F1 against all that may be true, the rule by hand, and real models."""

from itertools import product
from math import exp

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.flow import Tools
from agent.llm import LLM, Conversation, open_model
from agent.ptkb import AT_MOST, RULES, Rule, best_set, choose_statements, features, weigh
from agent.tracks import usual_sureness
from indexes.vectors import Embedder
from schemas.records import Message, Plan, Query, Statement
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
    best = expected_f1(likely, set(best_set(likely)))
    for bits in product([False, True], repeat=len(likely)):
        if any(bits):
            assert expected_f1(likely, {n for n, chosen in enumerate(bits) if chosen}) <= best + 1e-9


def test_the_likeliest_come_first_and_are_few() -> None:
    assert best_set([0.1, 0.9, 0.8]) == [1, 2]
    assert best_set([0.9] * 20) == list(range(AT_MOST))
    assert best_set([]) == []


def test_none_is_chosen_where_the_best_is_not_sure() -> None:
    assert best_set([0.5, 0.1], sure=0.6) == []
    assert best_set([0.7, 0.1], sure=0.6) == [0]
    assert usual_sureness("ikat-2023") == 0.0
    assert usual_sureness("ikat-2025") == Plan().sure > 0.5


def test_a_rule_by_hand() -> None:
    evidence = np.asarray([[0.2, 0.5], [0.1, 0.9]])
    assert features(evidence).tolist() == pytest.approx(np.asarray([[0.2, 0.5, 0.0, -0.4], [0.1, 0.9, -0.1, 0.0]]))
    rule = Rule(-1.0, (1.0, 2.0, 3.0, 4.0))
    odds = [-1 + 0.2 + 1.0 + 0.0 - 1.6, -1 + 0.1 + 1.8 - 0.3 + 0.0]
    assert rule.likely(evidence) == pytest.approx([1 / (1 + exp(-value)) for value in odds])


@pytest.mark.parametrize(("model", "embedding"), RULES)
def test_more_evidence_is_never_worth_less(model: bool, embedding: bool) -> None:
    rule = RULES[model, embedding]
    assert len(rule.weights) == (4 if embedding else 2)
    assert all(weight >= 0 for weight in rule.weights)
    assert rule.constant < 0  # a statement that nothing speaks for does not matter


def chosen(model: LLM, embedder: Embedder | None, utterance: str = ASKED, *, sure: float = 0.0) -> list[str]:
    """What is chosen of `PERSON`, best first."""
    embed = embedder.embed if embedder else None
    tools = Tools(model, lambda _query, _personal: (), lambda _hits: (), Plan(sure=sure), embed)
    conversation = Conversation("You are a helpful assistant.", (Message("user", utterance),))
    return [found.statement.id for found in choose_statements(conversation, Query(utterance), PERSON, tools)]


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
def test_nothing_is_chosen_where_nothing_is_sure(smollm2: LLM, minilm: Embedder) -> None:
    assert chosen(smollm2, minilm, "What is seven times eight?", sure=Plan().sure) == []


def test_without_statements_no_model_is_asked() -> None:
    tools = Tools(open_model("none"), lambda _query, _personal: (), lambda _hits: ())
    assert choose_statements(Conversation("", (Message("user", "Hello"),)), Query("Hello"), (), tools) == ()


@pytest.mark.story
@needs_embedder
def test_the_rewrite_counts_like_the_utterance(minilm: Embedder) -> None:
    """`How long does it keep?` is about nothing; with what it stands for it is about bread."""
    told = Conversation("", (Message("user", "How long does it keep?"),))
    ptkb = (Statement("1", "I bake bread every week."), Statement("2", "My car is red."))
    plain, rewritten = (
        weigh(told, Query("How long does it keep?", rewrite), ptkb, open_model("none"), minilm.embed)[:, 1]
        for rewrite in ("", "How long does rye bread keep?")
    )
    assert rewritten[0] > plain[0]
    assert rewritten[0] - rewritten[1] > plain[0] - plain[1]
