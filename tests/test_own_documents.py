"""The benchmark of own documents: its questions can be answered from its documents, and its verdicts are fair."""

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from benchmarks.own import SETS
from benchmarks.own_grading import (
    Conversation,
    Half,
    Question,
    Verdict,
    grade,
    has,
    join_cut_sentences,
    plain,
    read_answer,
    read_conversations,
)
from indexes.documents.formats.images import is_ocr_installed
from indexes.documents.reading import parse_document
from indexes.text.sentences import split_sentences
from schemas.records import Response, Sentence
from tests.conftest import ROOT

CONVERSATIONS = [one for each in SETS for one in read_conversations(ROOT / each.questions)]
QUESTIONS = [question for conversation in CONVERSATIONS for question in conversation.turns]
ANSWERABLE = [question for question in QUESTIONS if question.kind not in ("not-there", "small-talk", "listing")]
HALVES: tuple[Half, Half] = ("open", "kept")
CONCLUDED = ("sum", "count", "difference")  # what no document says in so many words


def files(question: Question) -> list[str]:
    return [file for source in question.source for file in source.split("|")]


def list_places(file: str) -> list[Path]:
    """Where a document may be: below its folder, or, of several folders, below what they stand in."""
    folders = [(ROOT / folder, len(each.folders)) for each in SETS for folder in each.folders]
    return [(folder if together == 1 else folder.parent) / file for folder, together in folders]


@cache
def read_lines(file: str) -> tuple[str, ...]:
    """The lines of a document, as the program reads it."""
    path = next(path for path in list_places(file) if path.exists())
    passages = parse_document(path, file, path.read_bytes()).passages
    return tuple(line for passage in passages for line in passage.text.split("\n"))


def test_the_sets_have_150_107_80_and_30_questions_with_ids_of_their_own() -> None:
    assert len({question.id for question in QUESTIONS}) == len(QUESTIONS) == 150 + 107 + 80 + 30
    assert len({conversation.id for conversation in CONVERSATIONS}) == len(CONVERSATIONS)


def count_kinds(conversations: tuple[Conversation, ...]) -> Counter[str]:
    return Counter(question.kind for conversation in conversations for question in conversation.turns)


def test_both_halves_have_as_many_questions_of_each_kind() -> None:
    for questions in (ROOT / each.questions for each in SETS if each.name in ("household", "formats")):
        opened, kept = (count_kinds(read_conversations(questions, half)) for half in HALVES)
        assert opened.total() == kept.total()
        assert all(abs(opened[kind] - kept[kind]) <= 2 for kind in opened | kept)


@pytest.mark.parametrize("question", ANSWERABLE, ids=lambda question: question.id)
def test_the_source_has_what_an_answer_must_have(question: Question) -> None:
    if any(file.endswith(".png") or file.startswith("scans/") for file in files(question)) and not is_ocr_installed():
        pytest.skip("Tesseract is not installed")
    lines = [line for file in files(question) for line in read_lines(file)]
    text = plain(" ".join(lines))
    if question.asks in CONCLUDED:
        assert any(has(pattern, text) for pattern in question.partly)
        return
    wanted = {*question.first, *question.wanted, *question.warning}
    assert wanted
    assert [pattern for pattern in wanted if not has(pattern, text)] == []
    sentences = [plain(one) for line in lines for one in join_cut_sentences(split_sentences(line))]
    unwanted = (*question.wrong, *question.wrong_first, *question.excluded)
    fitting = [one for one in sentences if all(has(pattern, one) for pattern in question.first)]
    assert [one for one in fitting if not any(has(pattern, one) for pattern in unwanted)], "no sentence can be first"


def test_a_listing_names_documents_and_what_is_not_there_has_no_source() -> None:
    documents = ROOT / "benchmarks/own_documents/more_documents"
    names = [path.relative_to(documents).as_posix() for path in documents.rglob("*.*")]
    for question in QUESTIONS:
        if question.kind == "listing":
            patterns = (*question.wanted, *question.wrong)
            assert patterns
            assert [one for one in patterns if not any(has(one, name) for name in names)] == []
        if question.kind in ("not-there", "small-talk"):
            assert (question.source, bool(question.first)) == ((), question.kind == "small-talk"), question.id


BREAD = Question("1", "fact", "How long does it keep?", first=("nine days|9 days",), source=("bread.md",))
WARNED = Question("2", "personal", "Satay?", first=("peanut",), source=("satay.md",), warning=("dangerous",))
DINNER = Question("3", "personal", "Dinner?", first=("soup",), excluded=("satay", "peanut"), source=("soup.md",))
DOGS = Question("4", "yes-no", "A dog?", first=("permission",), source=("lease.txt",), answer="no")
PRICES = Question(
    "5", "fact", "Price?", first=("12 EUR",), wrong_first=("9 EUR",), anywhere=("12 EUR", "hour"), source=("new.md",)
)
BOTH = Question("6", "comparison", "Which?", first=("87",), anywhere=("87", "118"), source=("a.md", "b.md|c.md"))
NOWHERE = Question("7", "not-there", "Code?")
HELLO = Question("8", "small-talk", "hi", first=("hello",))
METERS = Question("9", "fact", "Wann?", first=(r"3\. Mai",), source=("brief.txt",))
LIST = Question("10", "fact", "What?", first=("apples", "pears"), source=("list.md",))
NONE = "I found no answer to this in the passages. What comes nearest:"


@pytest.mark.parametrize(
    ("question", "answer", "expected"),
    [
        (BREAD, [("It keeps for nine days.", "bread.md:3")], "first right"),
        (BREAD, [("**Nine days.**", ""), ("In a cloth it keeps for nine days.", "bread.md:3-9")], "first right"),
        (BREAD, [("**Nine days.** It keeps well in a cloth.", "bread.md:3")], "first right"),
        (BREAD, [("Bake it hot.", "bread.md:1"), ("It keeps for nine days.", "bread.md:3")], "right"),
        (BREAD, [("It keeps for nine days.", "jam.md:3")], "partly"),
        (BREAD, [("Jam keeps for a year.", "jam.md:3")], "wrong"),
        (BREAD, [(NONE, ""), ("It keeps for nine days.", "bread.md:3")], "right false"),
        (BREAD, [(NONE, ""), ("Jam keeps for a year.", "jam.md:3")], "false"),
        (BREAD, [], "false"),
        (BREAD, [("Jam.", "jam.md:1"), ("Also nearby:", ""), ("It keeps for nine days.", "bread.md:3")], "wrong"),
        (WARNED, [("Roast the peanuts.", "satay.md:2")], "wrong"),
        (WARNED, [("Peanuts: dangerous for you.", "satay.md:1"), ("Roast them.", "satay.md:2")], "first right"),
        (DINNER, [("Make the soup.", "soup.md:1")], "first right"),
        (DINNER, [("Make the soup.", "soup.md:1"), ("Satay is quick.", "satay.md:1")], "wrong"),
        (
            DINNER,
            [("You told me of your allergy, so I left out the satay.", ""), ("Make the soup.", "soup.md:1")],
            "first right",
        ),
        (DOGS, [("**No.** Only with written permission.", "lease.txt:6")], "first right"),
        (DOGS, [("**Yes.** Only with written permission.", "lease.txt:6")], "wrong"),
        (DOGS, [("No dogs without permission.", "lease.txt:6")], "first right"),
        (PRICES, [("It costs 9 EUR.", "old.md:1"), ("An hour costs 12 EUR.", "new.md:1")], "wrong"),
        (PRICES, [("It costs 12 EUR.", "new.md:1")], "partly"),
        (PRICES, [("It costs 12 EUR.", "new.md:1"), ("An hour was 9 EUR.", "old.md:1")], "first right"),
        (BOTH, [("A room was 87 EUR.", "a.md:1"), ("The other was 118 EUR.", "c.md:1")], "first right"),
        (BOTH, [("A room was 87 EUR, not 118.", "a.md:1")], "partly"),
        (NOWHERE, [(NONE, ""), ("The key hangs at the door.", "keys.txt:1")], "first right honest"),
        (NOWHERE, [("The documents do not say what the code is.", "")], "first right honest"),
        (NOWHERE, [("The key hangs at the door.", "keys.txt:1")], "wrong"),
        (HELLO, [("Hello! Ask me about your documents.", "")], "first right"),
        (HELLO, [("Hello Kitty is a cat.", "cat.txt:1")], "wrong"),
        (METERS, [("Wir kommen am 3. Mai um 8 Uhr.", "brief.txt:4")], "first right"),
        (METERS, [("Wir kommen am 3. Juni. Nicht am 3. Mai.", "brief.txt:4")], "right"),
        (LIST, [("You need:\n- apples\n- pears\nThen cook.", "list.md:1")], "first right"),
    ],
)
def test_verdicts(question: Question, answer: list[tuple[str, str]], expected: str) -> None:
    response = Response(tuple(Sentence(text, (id,) if id else ()) for text, id in answer))
    verdict: Verdict = grade(question, read_answer(response))
    names = ("first", "right", "partly", "wrong", "honest", "false")
    assert " ".join(name for name in names if getattr(verdict, name)) == expected
