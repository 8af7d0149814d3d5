"""Small talk: what is recognised, what is replied, and that no later question is searched with it."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.chat.session import Assistant, Session, to_history
from agent.chat.small_talk import NOTED, reply_to_small_talk
from agent.chat.store import Store
from agent.terminal.progress import stage_progress
from agent.turn.interface_sentences import SENTENCES
from indexes.documents.collection import MAX_LISTED, Collection
from indexes.documents.document_index import open_documents
from schemas.records import Turn
from tests.conftest import ROOT

CASES: list[dict[str, Any]] = json.loads((ROOT / "tests/cases/talk.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Collection:
    home = tmp_path_factory.mktemp("documents")
    (home / "house").mkdir()
    (home / "house" / "heating.md").write_text("# Warm in winter\n\nThe boiler has 1.5 bar.\n")
    for number in range(MAX_LISTED):
        (home / f"note-{number:02}.txt").write_text("Bread keeps for nine days.\n")
    return Collection(str(home), open_documents(home, home / "cache", None, stage_progress).index)


def find_kind(utterance: str, collection: Collection) -> str | None:
    talk = reply_to_small_talk(Turn("1_2", utterance), collection)
    return talk.kind if talk else None


def test_small_talk_is_told_from_questions(folder: Collection) -> None:
    """Precision and recall over all cases; a wrong kind counts against both."""
    found = [(case, find_kind(case["say"], folder)) for case in CASES]
    right = sum(kind == case["kind"] for case, kind in found if kind)
    precision = right / sum(kind is not None for _, kind in found)
    recall = right / sum(case["kind"] is not None for case in CASES)
    wrong = [(case["say"], kind) for case, kind in found if kind != case["kind"]]
    print(f"{len(CASES)} utterances: precision {precision:.3f}, recall {recall:.3f}; wrong: {wrong}")
    assert precision >= 0.98, wrong
    assert recall >= 0.8, wrong


def test_what_goes_on_and_on_is_read_at_once(folder: Collection) -> None:
    """None of the patterns has to try every way to cut it up."""
    for words in ("bye bye ", "thanks again ", "ok great ", "hi all ", "only only ", "mails from from "):
        for length in (110, 4000):
            assert find_kind(f"{(words * 500)[:length]}x!", folder) is None


def reply(utterance: str, collection: Collection) -> str:
    talk = reply_to_small_talk(Turn("1_2", utterance), collection)
    assert talk, utterance
    answered = talk.answered
    assert (answered.response.used, answered.hits) == ((), ())
    return answered.response.text


def test_replies_are_in_the_language_of_the_greeting(folder: Collection) -> None:
    for utterance, said in (
        ("Danke!", SENTENCES["de"].welcome),
        ("Merci beaucoup", SENTENCES["fr"].welcome),
        ("¡Muchas gracias!", SENTENCES["es"].welcome),
        ("Bom dia", " ".join(SENTENCES["pt"].hello)),
        ("Thanks", SENTENCES["en"].welcome),
        ("ok, got it", " ".join(SENTENCES["en"].agreed)),
        ("Auf Wiedersehen", SENTENCES["de"].goodbye),
    ):
        assert reply(utterance, folder) == said


def test_a_remark_is_heeded_and_what_asks_is_answered(folder: Collection) -> None:
    assert reply("I am allergic to nuts.", folder) == reply("I'm vegan", folder) == NOTED
    for asked in (
        "I am allergic to nuts. Which cake?",
        "I'm vegan what can I bake",
        "I avoid the motorway.",
        "My bike",
    ):
        assert find_kind(asked, folder) is None


def test_documents_are_listed(folder: Collection) -> None:
    for utterance, told in (
        ("which documents do you have?", "I have 31 documents: house/heating.md, note-00.txt, "),
        ("which documents do you have?", " note-28.txt, and 1 more."),
        ("which documents do you have about heating?", "Documents about “heating”: house/heating.md (changed on "),
        ("Which documents do you have on warm winters?", "Documents about “warm winters”: house/heating.md ("),
        ("Welche Dokumente hast du über bread?", "Dokumente about “bread”: note-29.txt ("),
        ("list the documents about the boiler", "Documents about “boiler”: house/heating.md ("),
        ("do you have files about boats?", "I have no files about “boats”."),
        ("Which PDFs do you have?", "I have no PDFs."),
        ("Which notes do you have about boilers?", "Notes about “boilers”: house/heating.md (changed on "),
    ):
        assert told in reply(utterance, folder), utterance


def test_small_talk_is_kept_and_changes_no_later_question(assistant: Assistant, tmp_path: Path) -> None:
    plants, frost = "Which balcony plants are safe for cats?", "And which of them survive frost?"
    plain, chatty = Session(assistant, Store(None)), Session(assistant, Store(tmp_path / "kept.sqlite"))
    for utterance in (plants, frost):
        plain.ask(utterance)
    for utterance in ("hi", plants, "great, thank you", frost):
        chatty.ask(utterance)
    assert [turn.kind for turn in chatty.turns] == ["greeting", "question", "thanks", "question"]
    last, same = chatty.turns[-1].answered, plain.turns[-1].answered
    assert (last.query, last.hits) == (same.query, same.hits)
    resumed = Session.resume(assistant, chatty.store, chatty.chat or 0)
    assert resumed.turns == chatty.turns
    assert to_history(resumed.turns, whole=True) == to_history(plain.turns, whole=True)
