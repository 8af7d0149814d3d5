"""Documents are cut as iKAT cuts them: windows of ten sentences."""

import json
from pathlib import Path

import pytest

from indexes.passage_index import PassageIndex
from indexes.text.sentences import SEGMENTATION, cut_into_windows
from schemas.records import Passage
from tests.test_topics import write
from tests.within import convagent

SENTENCES = [f"Sentence number {n} is here." for n in range(1, 24)]


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [(1, 1)]),
        (10, [(1, 10)]),
        (11, [(1, 10), (6, 11)]),
        (15, [(1, 10), (6, 15)]),
        (23, [(1, 10), (6, 15), (11, 20), (16, 23)]),
    ],
)
def test_documents_are_cut_as_the_track_cuts_them(count: int, expected: list[tuple[int, int]]) -> None:
    """Windows of ten sentences with a stride of five; the last one ends with the document."""
    cut = list(cut_into_windows(Passage("doc", " ".join(SENTENCES[:count]), "A title")))
    assert [passage.id for passage in cut] == [f"doc:{n}" for n in range(len(expected))]
    assert [passage.text for passage in cut] == [" ".join(SENTENCES[first - 1 : last]) for first, last in expected]
    assert {passage.title for passage in cut} == {"A title"}


def test_a_long_document_ends_after_ten_thousand_characters() -> None:
    assert sum(len(passage.text) for passage in cut_into_windows(Passage("doc", "This is it. " * 2000))) < 20_200


def test_an_index_says_how_documents_were_cut(tmp_path: Path) -> None:
    documents = write(tmp_path / "documents.jsonl", json.dumps({"id": "doc", "contents": " ".join(SENTENCES)}))
    built = convagent("index", "build", documents, "-o", tmp_path / "index", "--embedder", "none", "--segment")
    assert (built.returncode, SEGMENTATION in " ".join(built.stderr.split())) == (0, True), built.stderr
    info = PassageIndex(tmp_path / "index").info
    assert (info.segmentation, info.passages) == (SEGMENTATION, 4)
    assert SEGMENTATION in " ".join(convagent("index", "info", tmp_path / "index").stdout.split())
