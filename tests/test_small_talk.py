"""Talk about the talk: what is recognised, what is replied, and that no later question is searched with it."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.chat.export import mark_citations
from agent.chat.session import Assistant, Session, open_assistant, to_history
from agent.chat.small_talk import recognise_small_talk, reply_to_small_talk
from agent.chat.store import ChatTurn, Store, TurnKind
from agent.terminal.progress import stage_progress
from indexes.documents.collection import MAX_LISTED, Collection
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from schemas.records import Hit, Passage, Query, Response, Sentence, Turn, TurnResult
from tests.conftest import ROOT

CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/cases/talk.json").read_text(encoding="utf-8"))
HUT = Passage("hut.md:1", "The hut costs 94 euros. It has a stove. Dogs are welcome. Bring wood.", "The hut")
TRAIN = Passage("train.md:1", "The night train leaves at nine.")


def make_turn(utterance: str, *sentences: Sentence, kind: TurnKind = "question") -> ChatTurn:
    hits = (Hit(HUT.id, 2.0), Hit(TRAIN.id, 1.0))
    return ChatTurn(
        utterance, TurnResult("1_1", Query(utterance), (), hits, (HUT, TRAIN), (Response(sentences),)), kind
    )


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


@pytest.mark.parametrize("words", ["bye bye ", "thanks again ", "ok great ", "hi all ", "no, sorry ", "i meant "])
def test_what_goes_on_and_on_is_read_at_once(words: str, collection: Collection) -> None:
    """None of the patterns has to try every way to cut it up."""
    for length in (110, 4000):
        assert recognise_small_talk(f"{(words * 500)[:length]}x!", BEFORE["an answer"], collection) is None


def reply(utterance: str, turns: Sequence[ChatTurn], collection: Collection) -> ChatTurn:
    talk = recognise_small_talk(utterance, turns, collection)
    assert talk, utterance
    return reply_to_small_talk(Turn("1_2", utterance), talk, turns, collection)


HEDGED = make_turn("Which hut?", Sentence("I found no answer:", ()), COSTS, LEAVES)
REPLIES: list[tuple[str, tuple[ChatTurn, ...], list[tuple[str, tuple[str, ...]]]]] = [
    ("what did I just ask?", BEFORE["an answer"], [("You asked: “How do we get to the hut?”", ())]),
    (
        "What have I asked so far?",
        (*BEFORE["an answer"], make_turn("thanks", kind="thanks"), HEDGED),
        [("You asked: “How do we get to the hut?”, “Which hut?”", ())],
    ),
    ("what was my first question?", (*BEFORE["an answer"], HEDGED), [("You asked: “How do we get to the hut?”", ())]),
    ("what did I ask?", (), [("You have not asked anything yet.", ())]),
    ("say that again", (), [("I have not answered anything yet.", ())]),
    ("say that again", (make_turn("Why?"),), [("I found nothing about your last question.", ())]),
    ("say that again", BEFORE["an answer"], [(COSTS.text, (HUT.id,)), (LEAVES.text, (TRAIN.id,))]),
    ("shorter", BEFORE["an answer"], [(COSTS.text, (HUT.id,))]),
    ("shorter", BEFORE["one source"], [("I cannot make it shorter:", ()), (COSTS.text, (HUT.id,))]),
    ("shorter", (HEDGED,), [("I found no answer:", ()), (COSTS.text, (HUT.id,))]),
    (
        "and the second?",
        BEFORE["an answer"],
        [("Source 2 of the last answer is train.md:1:", ()), (LEAVES.text, (TRAIN.id,))],
    ),
    ("the third source", BEFORE["an answer"], [("The last answer has 2 sources.", ())]),
    ("source 1", (), [("The last answer has no sources.", ())]),
    ("as a list", BEFORE["an answer"], [(COSTS.text, (HUT.id,)), (LEAVES.text, (TRAIN.id,))]),
    ("as a list", (HEDGED,), [(COSTS.text, (HUT.id,)), (LEAVES.text, (TRAIN.id,))]),
    ("as a list", (), [("I have not answered anything yet.", ())]),
    (
        "in German, please",
        BEFORE["an answer"],
        [("I cannot say it in German: I keep to the words of the documents, so that it can be checked.", ())],
    ),
    ("auf Deutsch", (), [("I have not answered anything yet.", ())]),
]


@pytest.mark.parametrize(("utterance", "turns", "sentences"), REPLIES)
def test_replies(
    utterance: str, turns: Sequence[ChatTurn], sentences: list[tuple[str, tuple[str, ...]]], collection: Collection
) -> None:
    answered = reply(utterance, turns, collection).answered
    assert [(sentence.text, sentence.passage_ids) for sentence in answered.response.sentences] == sentences
    assert set(answered.response.used) <= {passage.id for passage in answered.passages}
    assert (answered.turn_id, answered.query, answered.selected_statements) == ("1_2", Query(utterance), ())


def test_a_list_has_a_line_for_each_sentence(collection: Collection) -> None:
    turn = reply("as a list", BEFORE["an answer"], collection)
    assert mark_citations(turn) == f"- {COSTS.text} [1]\n- {LEAVES.text} [2]"
    assert mark_citations(BEFORE["an answer"][0]) == f"{COSTS.text} [1] {LEAVES.text} [2]"


def test_a_shortened_answer_stays_as_short(collection: Collection) -> None:
    turns = BEFORE["an answer"]
    for _ in range(3):
        turns = (*turns, reply("shorter", turns, collection))
    assert turns[-1].answered.response.text == f"I cannot make it shorter: {COSTS.text}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    home = tmp_path_factory.mktemp("documents")
    (home / "house").mkdir()
    (home / "house" / "heating.md").write_text("# Warm in winter\n\nThe boiler has 1.5 bar.\n")
    for number in range(MAX_LISTED):
        (home / f"note-{number:02}.txt").write_text("Bread keeps for nine days.\n")
    return Collection(str(home), open_documents(home, home / "cache", None, stage_progress).index)


DOCUMENTS = [
    ("which documents do you have?", "I have 31 documents: house/heating.md, note-00.txt, "),
    ("which documents do you have?", " note-28.txt, and 1 more."),
    ("which documents do you have about heating?", "1 of my 31 documents by path or title: house/heating.md."),
    ("Which documents do you have on warm winters?", "1 of my 31 documents by path or title: house/heating.md."),
    ("which documents do you have about bread?", "30 of my 31 documents by contents: note-"),
    ("which documents do you have about the boiler?", "1 of my 31 documents by contents: house/heating.md."),
    ("which documents do you have about boats?", "None of my 31 documents has “boats” in its path, title or contents."),
]


@pytest.mark.parametrize(("utterance", "told"), DOCUMENTS)
def test_documents_are_listed(utterance: str, told: str, folder: Collection) -> None:
    assert told in reply(utterance, (), folder).answered.response.text


def test_of_an_index_the_size_is_told(example_index: PassageIndex) -> None:
    collection = Collection(str(example_index.directory), example_index)
    told = reply("which documents do you have?", (), collection).answered.response.text
    assert told == f"I search the index index: {len(example_index)} passages."
    assert recognise_small_talk("which documents do you have about cats?", (), collection) is None  # so it is searched


@pytest.fixture(scope="module")
def assistant(example_index: PassageIndex) -> Assistant:
    return open_assistant("examples", example_index, "none", None)


PLANTS, FROST = "Which balcony plants are safe for cats?", "And which of them survive frost?"


def test_small_talk_is_kept_and_changes_no_later_question(assistant: Assistant, tmp_path: Path) -> None:
    plain, chatty = Session(assistant, Store(None)), Session(assistant, Store(tmp_path / "kept.sqlite"))
    for utterance in (PLANTS, FROST):
        plain.ask(utterance)
    said = ["hi", PLANTS, "great, thank you", "what did I just ask?", "shorter", FROST]
    for utterance in said:
        chatty.ask(utterance)
    kinds = ["greeting", "question", "thanks", "last question", "shorter", "question"]
    assert [turn.kind for turn in chatty.turns] == kinds
    assert chatty.turns[3].answered.response.text == f"You asked: “{PLANTS}”"
    first, last = chatty.turns[1].answered, chatty.turns[-1].answered
    assert chatty.turns[4].answered.response.used == first.response.used[:1]
    assert (last.query, last.hits) == (plain.turns[-1].answered.query, plain.turns[-1].answered.hits)
    assert all(not turn.answered.hits for turn in chatty.turns[:1] + chatty.turns[2:4])
    resumed = Session.resume(assistant, chatty.store, chatty.chat or 0)
    assert resumed.turns == chatty.turns
    assert to_history(resumed.turns, whole=True) == to_history(plain.turns, whole=True)


def test_a_correction_takes_the_place_of_the_question_before(assistant: Assistant) -> None:
    session = Session(assistant, Store(None))
    session.ask(PLANTS)
    session.ask("How often do they need water?")
    corrected = session.ask("No, I meant the ferns in winter.")
    assert corrected.query.utterance == "How often do they need water? the ferns in winter"
    assert corrected.query.earlier_utterances == (PLANTS,)
    assert session.turns[-1] == ChatTurn("No, I meant the ferns in winter.", corrected, "correction")
    asked = [message.text for message in to_history(session.turns, whole=True) if message.role == "user"]
    assert asked == [PLANTS, corrected.query.utterance]
    assert session.ask(FROST).query.earlier_utterances == tuple(asked)


def test_a_stored_turn_of_before_is_a_question(tmp_path: Path, assistant: Assistant) -> None:
    """Earlier versions kept only the fields of a `TurnResult`, and still do for questions."""
    store = Store(tmp_path / "kept.sqlite")
    session = Session(assistant, store)
    answered = session.ask(PLANTS)
    session.ask("thanks")
    with closing(sqlite3.connect(tmp_path / "kept.sqlite")) as database:
        question, thanks = (row for (row,) in database.execute("SELECT answered FROM turns ORDER BY number"))
    assert question == msgspec.json.encode(answered)
    assert msgspec.json.decode(thanks)["kind"] == "thanks"
    assert msgspec.json.decode(thanks, type=TurnResult) == session.turns[-1].answered
