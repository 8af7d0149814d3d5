"""Some hundreds of broken files; `make soak` tries twenty thousand."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.fuzz.cases import attempt, planted
from tests.fuzz.mutators import BYTE_WAYS, LINE_WAYS, restructured, retagged
from tests.fuzz.seeds import Seeds

BLOCK, BLOCKS = 50, 6


@pytest.fixture(scope="module")
def seeds() -> Iterator[Seeds]:
    with planted() as found:
        yield found


@pytest.mark.parametrize("first", range(0, BLOCK * BLOCKS, BLOCK))
def test_a_broken_file_ends_in_an_error_or_a_whole_result(first: int, seeds: Seeds) -> None:
    outcomes = {number: attempt(number, seeds) for number in range(first, first + BLOCK)}
    assert {number: outcome.findings for number, outcome in outcomes.items() if outcome.findings} == {}
    assert any(0 in outcome.codes for outcome in outcomes.values())
    assert any(5 in outcome.codes for outcome in outcomes.values())


@settings(max_examples=50, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 2**32))
def test_any_bytes_can_be_broken_and_the_same_seed_breaks_them_the_same(data: bytes, seed: int) -> None:
    for way in {*BYTE_WAYS, *LINE_WAYS, restructured, retagged}:
        assert way(Random(seed), data) == way(Random(seed), data)  # noqa: S311
