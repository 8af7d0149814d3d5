"""Talk about the talk: what is recognised, what is replied, and that no later question is searched with it."""

import json
from typing import Any

import pytest

from agent.chat.collection import Collection
from agent.chat.small_talk import recognise_small_talk
from agent.chat.store import ChatTurn, TurnKind
from indexes.passage_index import PassageIndex
from schemas.records import Hit, Passage, Query, Response, Sentence, TurnResult
from tests.conftest import ROOT

CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/cases/talk.json").read_text(encoding="utf-8"))
HUT = Passage("hut.md:1", "The hut costs 94 euros. It has a stove. Dogs are welcome. Bring wood.", "The hut")
TRAIN = Passage("train.md:1", "The night train leaves at nine.")


def make_turn(utterance: str, *sentences: Sentence, kind: TurnKind = "question") -> ChatTurn:
    hits = (Hit(HUT.id, 2.0), Hit(TRAIN.id, 1.0))
    return ChatTurn(utterance, TurnResult("1_1", Query(utterance), (), hits, (HUT, TRAIN), (Response(sentences),)), kind)


COSTS = Sentence("The hut costs 94 euros.", (HUT.id,))
LEAVES = Sentence("The night train leaves at nine.", (TRAIN.id,))
BEFORE: dict[str, tuple[ChatTurn, ...]] = {
    "an answer": (make_turn("How do we get to the hut?", COSTS, LEAVES),),
    "nothing": (),
    "one source": (make_turn("How much is the hut?", COSTS),),
    "two boilers": (make_turn("Which boilers are there?", Sentence("There are two boilers.", (HUT.id,)), LEAVES),),
    "first step": (make_turn("What is the first step?", COSTS, LEAVES),),
}


@pytest.fixture(scope="module")
def collection(example_index: PassageIndex) -> Collection:
    return Collection("notes", example_index)


def find_kind(case: dict[str, Any], collection: Collection) -> str | None:
    talk = recognise_small_talk(case["say"], BEFORE[case.get("after", "an answer")], collection)
    return talk.kind if talk else None


def test_small_talk_is_told_from_questions(collection: Collection) -> None:
    """Precision and recall over all cases; a wrong kind counts against both."""
    found = [(case, find_kind(case, collection)) for case in CASES]
    right = sum(kind == case["kind"] for case, kind in found if kind)
    precision = right / sum(kind is not None for _, kind in found)
    recall = right / sum(case["kind"] is not None for case in CASES)
    wrong = [(case["say"], kind) for case, kind in found if kind != case["kind"]]
    print(f"{len(CASES)} utterances: precision {precision:.3f}, recall {recall:.3f}; wrong: {wrong}")
    assert precision >= 0.98, wrong
    assert recall >= 0.9, wrong
