"""Ids that were there before: found within a block, in an earlier one; in little memory."""

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from indexes.corpora.corpus import find_corpus
from indexes.index_builder import BLOCK_PASSAGES, SeenIds, build_index
from schemas.errors import InvalidInputError


def blocks(ids: list[str], size: int) -> Iterator[list[str]]:
    return (ids[start : start + size] for start in range(0, len(ids), size))


@pytest.mark.parametrize("size", [1, 5, 7, 64, 1000])
def test_an_id_seen_before_is_known_wherever_it_was(size: int) -> None:
    """An oracle: a set."""
    ids = [f"passage-{number}" for number in np.random.default_rng(0).integers(0, 40, 90)]
    seen_ids = SeenIds()
    found = [old for block in blocks(ids, size) for old in seen_ids.record_ids(block).tolist()]
    assert found == [id in ids[:place] for place, id in enumerate(ids)]


def test_empty_blocks_and_odd_ids_are_just_ids() -> None:
    seen_ids = SeenIds()
    assert seen_ids.record_ids([]).tolist() == []
    assert seen_ids.record_ids(["", "é", "\ud800"]).tolist() == [False, False, False]
    assert seen_ids.record_ids(["é", "", "e", "\ud800"]).tolist() == [True, True, False, True]


@pytest.mark.parametrize("place", [2, BLOCK_PASSAGES, BLOCK_PASSAGES + 1, 2 * BLOCK_PASSAGES + 5])
def test_a_build_names_the_line_of_a_duplicate_in_any_block(place: int, tmp_path: Path) -> None:
    lines = [f'{{"id": "p{n}", "text": "Rye."}}\n' for n in range(1, 2 * BLOCK_PASSAGES + 10)]
    lines[place - 1] = lines[0]
    path = tmp_path / "passages.jsonl"
    path.write_text("".join(lines))
    with pytest.raises(InvalidInputError, match=f"passages.jsonl:{place}: the id 'p1' was seen before"):
        build_index(find_corpus([path]), tmp_path / "index")
    built = build_index(find_corpus([path]), tmp_path / "index", skip_problems=True)
    assert (built.info.passages, built.info.skipped) == (len(lines) - 1, 1)
    assert [problem.where for problem in built.problems] == [f"{path}:{place}"]


def test_what_is_wrong_comes_before_what_cannot_be_read_after_it(tmp_path: Path) -> None:
    good, broken = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    good.write_text('{"id": "a", "text": "Rye."}\n{"id": "a", "text": "Oats."}\n')
    broken.write_bytes(b"no archive")
    with pytest.raises(InvalidInputError, match=r"a\.jsonl:2: the id 'a' was seen before"):
        build_index(find_corpus([good, broken]), tmp_path / "index")


def test_an_id_takes_eight_bytes() -> None:
    """And a few more while runs are merged."""
    tracemalloc.start()
    seen_ids = SeenIds()
    for block in range(64):
        seen_ids.record_ids([f"{block}-{n}" for n in range(4096)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 64 * 4096 * 40
