"""ClapNQ's questions: what counts as the same sentence, what is told to have no answer, and a few of them answered."""

from benchmarks import clapnq
from benchmarks.answerability import area_under_curve, share_told
from tests.conftest import needs_embedder, shared_file


def test_of_the_answerable_at_most_six_in_a_hundred_are_told() -> None:
    answerable = [number / 100 for number in range(100)]
    assert share_told(answerable, [0.05, 0.055, 0.5, 0.06]) == (0.5, 0.06)
    assert share_told([0.5] * 10, [0.5, 0.4]) == (0.5, 0.0)


def test_the_area_is_the_share_of_pairs_in_order() -> None:
    assert area_under_curve([3.0, 2.0], [1.0, 2.5]) == 0.75
    assert area_under_curve([1.0], [1.0]) == 0.5


@needs_embedder
def test_clapnq_runs() -> None:
    answered, table = clapnq.run(clapnq.Asked(shared_file("clapnq", "questions.jsonl"), every=100))
    assert len(answered) == 6
    assert all(one.quoted and one.ranked for one in answered)
    assert 0 < table["nDCG@3"] <= 1
