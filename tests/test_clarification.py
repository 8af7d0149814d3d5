"""Asking back: what is unclear, what it could mean, and how the reply completes the utterance."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from agent.chat.session import Session, open_assistant
from agent.chat.store import Store
from agent.flow import Tools, answer_topic
from agent.models.registry import open_model
from agent.turn.clarification import (
    ask_back,
    choose_reading,
    complete_utterance,
    find_readings,
    find_unclear_nouns,
    is_clarification,
)
from agent.turn.retrieval import Searcher
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from indexes.ranking.vectors import Embedder
from schemas.records import Hit, Message, Passage, Plan, Query, Response, Sentence, Topic, Turn, TurnResult
from schemas.tuning import ClarificationTuning
from tests.conftest import needs_embedder

QUESTION = "Do you mean “Heron Loan”, “Student Loan” or something else?"
ASKED = (Message("user", "What papers does the loan need?"), Message("assistant", QUESTION))
PASSAGES = (
    Passage(
        "heron.md:1", "The Heron Loan needs a payslip and a passport. A Heron Loan is paid in a week.", "Heron Bank"
    ),
    Passage("study.md:1", "A Student Loan needs a letter of the university.", "Money for students"),
    Passage("soup.md:1", "The soup needs two onions.", "Soup"),
)


UNCLEAR: list[tuple[str, str, list[str]]] = [
    ("What papers does the loan need?", "", ["loan"]),
    ("What papers does the loan need?", "You can get a loan there.", []),
    ("In which country is this language spoken?", "", ["language"]),
    ("What is the purpose of that NASA mission?", "", ["NASA mission"]),
    ("Who built the Eiffel Tower?", "", []),
    ("What is the colour of grass?", "", []),
    ("Is the water in our house clean?", "", []),
    ("How old is the world?", "", []),
    ("How do loans work?", "", []),
]


def test_what_is_unclear_and_what_it_may_mean() -> None:
    for utterance, history, expected in UNCLEAR:
        messages = (Message("user", "Hm?"), Message("assistant", history)) if history else ()
        assert find_unclear_nouns(utterance, messages) == expected, utterance
    found = find_readings("loan", "What does the loan need?", PASSAGES)
    assert [(reading.name, reading.passage_id) for reading in found] == [
        ("Heron Loan", "heron.md:1"),
        ("Student Loan", "study.md:1"),
    ]


def result_of(utterance: str, scores: Sequence[float], direct: str = "") -> TurnResult:
    hits = tuple(Hit(passage.id, score) for passage, score in zip(PASSAGES, scores, strict=True))
    answer = Response((Sentence("The soup needs two onions.", ("soup.md:1",)),), direct)
    return TurnResult("1", Query(utterance), (), hits, (), (answer,))


@pytest.mark.parametrize(
    ("utterance", "scores", "direct", "asks"),
    [
        ("What does the loan need?", (3.0, 2.8, 1.0), "", True),
        ("What does the loan need?", (3.0, 1.2, 1.0), "", False),  # one is far ahead
        ("What does the loan need?", (3.0, 2.8, 1.0), "A payslip.", False),  # it is answered
        ("What does the Heron Loan need?", (3.0, 2.8, 1.0), "", False),
        ("What does the soup need?", (3.0, 2.8, 1.0), "", False),
    ],
)
def test_one_asks_back_only_where_two_readings_are_level(
    utterance: str, scores: Sequence[float], direct: str, asks: bool
) -> None:
    result = result_of(utterance, scores, direct)
    found = ask_back(result, (), PASSAGES, ClarificationTuning())
    assert is_clarification(found.response.text) is asks
    if asks:
        assert found.response.text == QUESTION
        assert found.response.used == ("heron.md:1", "study.md:1") == tuple(passage.id for passage in found.passages)
    else:
        assert found == result


def test_one_asks_neither_twice_in_a_row_nor_of_nothing() -> None:
    result = result_of("What does the loan need?", (3.0, 2.8, 1.0))
    asked = (
        Message("user", "Where is the language spoken?"),
        Message("assistant", "Do you mean “A”, “B” or something else?"),
    )
    assert ask_back(result, asked, PASSAGES, ClarificationTuning()) == result
    assert ask_back(result, (), (), ClarificationTuning()) == result


REPLIES = {
    "the second": "Student Loan",
    "The first one, please.": "Heron Loan",
    "2": "Student Loan",
    "the last one": "Student Loan",
    "the Heron one": "Heron Loan",
    "I mean the student loan.": "Student Loan",
    "a car loan": "a car loan",
    "How long is the way to Rome?": "",
    "thanks": "",
}


def test_the_reply_chooses_a_reading_and_completes_the_utterance_before() -> None:
    assert {reply: choose_reading(reply, ["Heron Loan", "Student Loan"]) for reply in REPLIES} == REPLIES
    assert complete_utterance(ASKED, "the second") == ((), "What papers does the loan need? (Student Loan)")
    assert complete_utterance(ASKED, "something else") == ((), "What papers does the loan need?")
    assert complete_utterance(ASKED, "Who is the mayor of Rome?") == (ASKED, "Who is the mayor of Rome?")
    assert complete_utterance(ASKED[:1], "the second") == (ASKED[:1], "the second")


@pytest.fixture
def loans(tmp_path: Path, minilm: Embedder) -> PassageIndex:
    lines = (
        '{"id": "heron.md:1", "title": "Heron Loan", "contents": "Those who apply for a Heron Loan need a payslip."}',
        '{"id": "study.md:1", "title": "Student Loan", "contents": "Those who apply for a Student Loan need one."}',
        '{"id": "soup.md:1", "title": "Onion soup", "contents": "The soup is made of onions, butter and flour."}',
    )
    (tmp_path / "passages.jsonl").write_text("\n".join(lines))
    build_index(find_corpus([tmp_path]), tmp_path / "index", skip_problems=False, progress=lambda: None)
    return PassageIndex(tmp_path / "index")


@needs_embedder
def test_a_conversation(loans: PassageIndex, minilm: Embedder) -> None:
    session = Session(open_assistant("loans", loans, "none", minilm), Store(None))
    asked = session.ask("Which papers are required to apply for the loan?").response
    assert is_clarification(asked.text)
    second = asked.text.split("“")[2].split("”")[0]
    answered = session.ask("the second")
    assert answered.query.utterance == f"Which papers are required to apply for the loan? ({second})"
    wanted = {"Heron Loan": ("heron.md:1", "payslip"), "Student Loan": ("study.md:1", "need one")}[second]
    assert answered.response.used[:1] == wanted[:1]
    assert wanted[1] in answered.response.sentences[0].text
    assert not is_clarification(answered.response.text)
    assert session.turns[-1].kind == "question"


@needs_embedder
@pytest.mark.parametrize("clarify", [True, False])
def test_a_run_asks_back_only_where_it_is_told_to(loans: PassageIndex, minilm: Embedder, clarify: bool) -> None:
    plan = Plan(clarify=clarify)
    searcher = Searcher.over(open_retriever(loans, minilm, plan), plan)
    tools = Tools(open_model("none"), searcher.search, searcher.read, plan, minilm)
    turns = (Turn("1_1", "Which papers are required to apply for the loan?"), Turn("1_2", "the student one"))
    first, second = answer_topic(Topic("1", (), turns), tools)
    assert is_clarification(first.response.text) is clarify
    assert (second.query.utterance == f"{turns[0].utterance} (Student Loan)") is clarify
    assert all(set(result.response.used) <= {passage.id for passage in result.passages} for result in (first, second))
