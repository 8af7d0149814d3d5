"""Summaries of whole documents, and which documents a question is about."""

from pathlib import Path

import pytest

from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.small_talk import suggest_follow_ups
from agent.chat.store import Store
from agent.models.protocol import ignore_call
from agent.models.scripted import Script, ScriptedModel
from agent.turn.clarification import choose_name, complete_utterance
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.drafts import find_request, write_draft
from indexes.documents.document_index import open_documents
from indexes.ranking.vectors import Embedder
from schemas.records import Message, Plan, Query, Response
from tests.conftest import needs_embedder, no_progress, read_cases

CASES = read_cases("whole_documents")
FILES, NOTES, LETTERS = CASES["files"], CASES["notes"], CASES["letters"]


def open_session(tmp_path: Path, files: dict[str, str], embedder: Embedder | None = None) -> Session:
    folder = tmp_path / "docs"
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    index = open_documents(folder, tmp_path, embedder, no_progress).index
    return Session(open_assistant(open_collection(str(folder), index, embedder), "none"), Store(None))


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return open_session(tmp_path, FILES)


def ask(session: Session, question: str) -> Response:
    return session.ask(question).response


@pytest.mark.parametrize("question", ["Summarise the lease", "Can you give me a short summary of lease.md, please?"])
def test_a_summary_has_a_sentence_of_each_section_in_their_order(session: Session, question: str) -> None:
    answered = session.ask(question)
    response, said = answered.response, answered.response.text
    places = [said.index(word) for word in ("410 EUR", "three months", "90 EUR", "Dogs")]
    assert places == sorted(places)
    assert "Nobody likes" not in said
    assert {id.partition(":")[0] for id in response.used} == {"lease.md"}
    assert all(sentence.passage_ids for sentence in response.sentences)
    quoted = {passage.id: " ".join(passage.text.split()) for passage in answered.passages}
    assert all(sentence.text in quoted[sentence.passage_ids[0]] for sentence in response.sentences)


def test_a_table_is_summarised_by_its_columns_and_first_rows(session: Session) -> None:
    response = ask(session, "summarise costs.csv")
    assert response.sentences[0].text == "costs.csv is a table of 4 rows: day, what, amount."
    assert response.used == ("costs.csv:2", "costs.csv:3", "costs.csv:4")


@pytest.mark.parametrize(
    ("question", "says"),
    [
        ("Summarise the notes about the boat", "lies in the harbour"),  # by contents, as nothing is called so
        ("Summarise the letter on the shed key", "behind the door"),
        ("Summarise the shed", "behind the door"),
        ("Sum up the notes about a boot, please", "Die Boote liegen"),  # which is German, and so are its stems
    ],
)
def test_what_is_summarised_has_all_words_of_what_was_said(question: str, says: str, tmp_path: Path) -> None:
    response = ask(open_session(tmp_path, NOTES), question)
    assert says in response.text
    assert len({id.partition(":")[0] for id in response.used}) == 1


def test_it_is_asked_which_of_several_is_to_be_summarised(session: Session) -> None:
    question = "Do you mean “letters/2024.txt”, “letters/2025.txt” or something else?"
    assert ask(session, "Summarise the letters").text == question
    assert "The stove was repaired in March." in ask(session, "the first one").text
    assert ask(session, "Summarise the letter to Ida").text == question
    assert "We came home at nine." in ask(session, "2025").text


REPLIES = {
    "the second": "2025/lease.txt",
    "The first one, please.": "2024/lease.txt",
    "2": "2025/lease.txt",
    "the last one": "2025/lease.txt",
    "I mean the 2025 lease.": "2025/lease.txt",
    "the lease": "",
    "How long does the 2024 lease run?": "",
    "something else": "",
    "thanks": "",
}


def test_the_reply_chooses_a_document_and_completes_the_utterance_before() -> None:
    assert {reply: choose_name(reply, ["2024/lease.txt", "2025/lease.txt"]) for reply in REPLIES} == REPLIES
    question = "Do you mean “2024/lease.txt”, “2025/lease.txt” or something else?"
    asked = (Message("user", "Summarise the lease"), Message("assistant", question))
    assert complete_utterance(asked, "the second") == ((), "Summarise the lease (2025/lease.txt)")
    for history, utterance in ((asked, "Who is the mayor of Rome?"), (asked[:1], "the second")):
        assert complete_utterance(history, utterance) == (history, utterance)


def test_it_is_said_where_there_is_nothing_to_summarise(session: Session) -> None:
    said = ask(session, "Summarise the tax return").text
    assert said.startswith("I have no document that is called “the tax return” or speaks of all of that")
    for question in ("What are the main points of the tax return?", "Summarise it", "Summarise the mails"):
        assert "I have no document" not in ask(session, question).text


def test_a_summary_has_as_many_sentences_as_are_asked_for(session: Session) -> None:
    assert len(ask(session, "Summarise the lease in two sentences").sentences) == 2
    assert len(ask(session, "What does the lease say?").sentences) > 2


@needs_embedder
def test_a_document_is_known_by_what_its_name_means(minilm: Embedder, tmp_path: Path) -> None:
    session = open_session(tmp_path, FILES, minilm)
    assert "410 EUR" in ask(session, "Summarise the rental contract").text
    assert "no document" in ask(session, "Summarise the marriage certificate").text


@needs_embedder
@pytest.mark.parametrize(("question", "says", "says_not"), CASES["known"])
def test_a_document_is_known_by_its_kind_sender_or_section(
    question: str, says: str, says_not: str, minilm: Embedder, tmp_path: Path
) -> None:
    said = ask(open_session(tmp_path, LETTERS, minilm), question).text
    assert (says in said, says_not in said) == (True, False), said


def test_what_else_a_document_says_is_offered(tmp_path: Path) -> None:
    session = open_session(tmp_path, LETTERS)
    session.ask("When does the bond come back?")
    session.ask("Thank you")
    offered = [suggest_follow_ups(turn, session.assistant.collection) for turn in session.turns]
    assert offered == [("Summarise “Booking” (hall.md)",), ()]


@pytest.mark.parametrize(("request_", "of"), CASES["requests"])
def test_requests_to_write_are_no_questions(request_: str, of: str | None) -> None:
    assert find_request(request_) == of


def test_what_a_model_writes_on_request_is_held_against_the_documents(tmp_path: Path) -> None:
    asked = "Draft a reply to the heating mail"
    session = open_session(tmp_path, LETTERS)
    assert "cannot translate or write" in ask(session, asked).text
    reply = "Dear Mr Kessler, Thursday 23 January suits me. Mrs Ott will open the door at 8, not at 11."
    llm = ScriptedModel(Script(ask={"write": [reply]}), ignore_call, writes_answers=True)
    index = session.assistant.collection.index
    (mail,) = (passage for passage in index.read(index.get_ids(range(len(index)))) if passage.document == "heating.eml")
    response = write_draft(Query(asked), (mail,), Writer(llm, leads=False), Plan())
    assert [sentence.text for sentence in response.sentences][-2] == "Not in the documents: Ott, 11."
    assert response.used == (mail.id,)
