"""What went wrong when a newcomer asked their own documents: each case stays right, on other processors too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.chat.session import Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.registry import open_embedder
from agent.turn.extractive_answer import says_not_found
from indexes.documents.document_index import open_documents
from indexes.index_vectors import cache_vectors
from schemas.records import Response
from tests.conftest import needs_embedder, no_progress, read_cases

DOCUMENTS = read_cases("first_sentences")["documents"]
Ask = Callable[..., Response]


@pytest.fixture(scope="module")
def assistants() -> dict[int, Assistant]:
    """An assistant for each processor that is simulated, opened by its first test."""
    return {}


@pytest.fixture
def ask(assistants: dict[int, Assistant], tmp_path: Path, jitter: int) -> Ask:
    """Asks questions one after the other, of a person who made some statements; gives the last answer."""
    if jitter not in assistants:
        folder, opened = tmp_path / "documents", open_embedder("minilm")
        assert opened is not None
        embedder = cache_vectors(opened)
        for name, text in DOCUMENTS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        index = open_documents(folder, tmp_path / "cache", embedder, no_progress).index
        assistants[jitter] = open_assistant(open_collection(str(folder), index, embedder), "none")

    def converse(*utterances: str, about: str = "") -> Response:
        session = Session(assistants[jitter], Store(None))
        if about:
            session.store.add_statement(about)
        return [session.ask(utterance) for utterance in utterances][-1].response

    return converse


pytestmark = [pytest.mark.story, needs_embedder]


def test_what_is_dangerous_is_no_dinner_and_its_warning_is_not_cut_out_of_it(ask: Ask) -> None:
    allergic = ask("What could I cook tonight?", about="I am allergic to peanuts.")
    assert "peanut butter" not in allergic.text
    assert "dangerous for people" in ask("How do I make the satay noodles?", about="I am allergic to peanuts.").text


FIRST = read_cases("first_sentences")["cases"]
NEVER = ("not agreed", "peanut", "jam", "Influenza", "I found no answer")  # in the answers to the first five


def test_the_sentence_that_answers_stands_first(ask: Ask) -> None:
    for number, (asked, first) in enumerate(FIRST):
        response = ask(asked)
        assert first in f"{response.direct} {response.sentences[0].text}", asked
        assert number >= len(NEVER) or NEVER[number] not in response.text, asked


@pytest.mark.xfail(strict=True, reason="the number of bottles in the one row is taken for that of rows")
def test_rows_are_told_from_what_they_count(ask: Ask) -> None:
    question, said = read_cases("first_sentences")["not_yet"]
    assert ask(question).direct == said


def test_noise_of_an_earlier_answer_does_not_come_back(ask: Ask) -> None:
    response = ask("When was the boiler installed?", "And what should I do when it shows F.22?")
    assert ("F.22" in response.sentences[0].text, "Influenza" in response.text) == (True, False)


def test_both_halves_of_a_question_are_answered(ask: Ask) -> None:
    assert "certified first" in ask("When does Heron get released, and why so late?").text
    response = ask("Was kostet die Heizungswartung?")  # stands in the sentence after what it is
    assert (says_not_found(response), "140 Euro" in response.text) == (False, True)


def test_what_is_said_of_another_thing_is_no_answer(ask: Ask) -> None:
    german = ("Wie teuer war das Dach?", "Wann kommt der Gärtner?")
    for asked in ("How big is the bathtub?", "How heavy is the canoe?", "Which colour is the boiler?", *german):
        assert says_not_found(ask(asked)), asked
