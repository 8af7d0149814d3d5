"""Ids that were there before: found within a block, in an earlier one, in memory and on disk; in bounded memory."""

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


@pytest.mark.parametrize("filter_bits", [6, 29], ids=["a full filter", "an empty filter"])
@pytest.mark.parametrize(("size", "run"), [(1, 1), (5, 7), (7, 7), (64, 7), (1000, 7), (7, 1 << 20)])
def test_an_id_seen_before_is_known_wherever_it_was(size: int, run: int, filter_bits: int, tmp_path: Path) -> None:
    """An oracle: a set. A filter of 64 places is full at once, so that everything has to be looked for."""
    numbers = np.random.default_rng(0).integers(0, 40, 90)
    ids = [f"passage-{number}" for number in numbers]
    met: set[str] = set()
    expected = []
    for id in ids:
        expected.append(id in met)
        met.add(id)
    with SeenIds(tmp_path / "seen", run=run, filter_bits=filter_bits) as seen_ids:
        found = [old for block in blocks(ids, size) for old in seen_ids.record_ids(block).tolist()]
    assert found == expected
    assert list(tmp_path.iterdir()) == []


def test_empty_blocks_and_odd_ids_are_just_ids(tmp_path: Path) -> None:
    with SeenIds(tmp_path / "seen", run=2) as seen_ids:
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
        build_index(find_corpus([path]), tmp_path / "index", skip_problems=False, progress=lambda: None)
    built = build_index(find_corpus([path]), tmp_path / "index", skip_problems=True, progress=lambda: None)
    assert (built.info.passages, built.info.skipped) == (len(lines) - 1, 1)
    assert [problem.where for problem in built.problems] == [f"{path}:{place}"]
    assert not list((tmp_path / "index").glob("ids.seen"))


def test_what_is_wrong_comes_before_what_cannot_be_read_after_it(tmp_path: Path) -> None:
    good, broken = tmp_path / "a.jsonl", tmp_path / "b.jsonl.gz"
    good.write_text('{"id": "a", "text": "Rye."}\n{"id": "a", "text": "Oats."}\n')
    broken.write_bytes(b"no archive")
    with pytest.raises(InvalidInputError, match=r"a\.jsonl:2: the id 'a' was seen before"):
        build_index(find_corpus([good, broken]), tmp_path / "index", skip_problems=False, progress=lambda: None)


def test_memory_does_not_grow_with_the_corpus(tmp_path: Path) -> None:
    """Ten times the passages, the same memory. Without the filter, whose size is fixed."""
    peaks = []
    for count in (1, 8):
        tracemalloc.start()
        with SeenIds(tmp_path / "seen", run=4096, filter_bits=20) as seen_ids:
            for block in range(count):
                seen_ids.record_ids([f"{block}-{n}" for n in range(4096)])
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0], peaks
