"""The benchmarks on other people's questions: what counts as the same sentence, and each on a few of them."""

import json
from itertools import islice
from pathlib import Path

import pytest

from benchmarks import clapnq, mtrag
from benchmarks.answerability import area_under_curve, share_told
from benchmarks.report import Asked
from tests.conftest import needs_embedder, shared_file

SENTENCES = ("It is a cat .", "Mr. Smith 's cat , which is black , sleeps .", "Dogs bark at the moon all night .")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Dogs bark at the moon all night.", {2}),
        ("Mr. Smith 's cat, which is black, sleeps.", {1}),
        ("which is black , sleeps .", {1}),  # a part of one
        ("Dogs bark at the moon all night. It is a cat.", {0, 2}),  # two in one
        ("Dogs sleep at home all day.", set()),
        ("...", set()),
    ],
)
def test_a_sentence_is_the_same_wherever_it_was_cut(text: str, expected: set[int]) -> None:
    assert clapnq.find_sentences([text], SENTENCES) == expected


def test_of_the_answerable_at_most_six_in_a_hundred_are_told() -> None:
    answerable = [number / 100 for number in range(100)]
    assert share_told(answerable, [0.05, 0.055, 0.5, 0.06]) == (0.5, 0.06)
    assert share_told([0.5] * 10, [0.5, 0.4]) == (0.5, 0.0)


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    assert area_under_curve([3.0, 2.0], [1.0, 2.5]) == 0.75
    assert area_under_curve([1.0], [1.0]) == 0.5


@needs_embedder
def test_clapnq_runs() -> None:
    answered, table = clapnq.run(Asked(shared_file("clapnq", "questions.jsonl"), every=100))
    assert len(answered) == 6
    assert all(one.quoted and one.ranked for one in answered)
    assert 0 < table["nDCG@3"] <= 1


@needs_embedder
def test_mtrag_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [json.loads(line) for line in shared_file("mtrag_un", "tasks_dev.jsonl").read_text().splitlines()]
    few = [
        task for kind in ("ANSWERABLE", "UNANSWERABLE") for task in islice((t for t in tasks if t["kind"] == kind), 3)
    ]
    gold = {id for task in few for id in task["gold"]}
    lines = shared_file("mtrag_un", "passages.jsonl").read_text().splitlines()
    passages = [line for line in lines if json.loads(line)["id"] in gold]
    (tmp_path / "passages.jsonl").write_text("\n".join(passages))
    (tmp_path / "tasks_dev.jsonl").write_text("\n".join(map(json.dumps, few)))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    answered, table = mtrag.run(Asked(tmp_path))
    assert len(answered) == len(few)
    assert table["nDCG@5"] > 0.5
    assert table["ROUGE-1"] > 0.1
    assert len(list(tmp_path.glob("convagent-mtrag-*"))) == 1
