"""The benchmark of own documents: its questions can be answered from its documents, and its verdicts are fair."""

from functools import cache

import msgspec
import pytest

from benchmarks.own import SETS
from benchmarks.own_grading import (
    Question,
    Verdict,
    grade,
    has,
    join_cut_sentences,
    plain,
    read_answer,
    read_conversations,
)
from indexes.documents.formats.pages import is_ocr_installed
from indexes.documents.reading import parse_document
from indexes.text.sentences import split_sentences
from schemas.records import Response, Sentence
from tests.conftest import ROOT, read_cases

CONVERSATIONS = [one for each in SETS for one in read_conversations(ROOT / each.questions)]
QUESTIONS = [question for conversation in CONVERSATIONS for question in conversation.turns]
ANSWERABLE = [question for question in QUESTIONS if question.kind not in ("not-there", "small-talk", "listing")]
CONCLUDED = ("sum", "count", "difference")  # what no document says in so many words


def files(question: Question) -> list[str]:
    return [file for source in question.source for file in source.split("|")]


@cache
def read_lines(file: str) -> tuple[str, ...]:
    """The lines of a document, as the program reads it: below its folder, or, of several, below what they stand in."""
    folders = [(ROOT / name).parent if each.folders[1:] else ROOT / name for each in SETS for name in each.folders]
    path = next(folder / file for folder in folders if (folder / file).exists())
    passages = parse_document(path, file, path.read_bytes()).passages
    return tuple(line for passage in passages for line in passage.text.split("\n"))


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


CASES = read_cases("verdicts")


@pytest.mark.parametrize(("question", "answer", "expected"), CASES["verdicts"])
def test_verdicts(question: str, answer: list[tuple[str, str]], expected: str) -> None:
    response = Response(tuple(Sentence(text, (id,) if id else ()) for text, id in answer))
    verdict: Verdict = grade(msgspec.convert(CASES["questions"][question], Question), read_answer(response))
    names = ("first", "right", "partly", "wrong", "honest", "false")
    assert " ".join(name for name in names if getattr(verdict, name)) == expected
