"""RCD-2020: what the measures of spans and of passages say, by hand."""

import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from agent.tasks.rcd.measures import Scene, evaluate_passages, evaluate_spans, measure_span, read_equivalence
from cli import app
from schemas.errors import InvalidInputError
from tests.test_rcd import TOP, TOPICS
from tests.test_topics import write


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    return write(tmp_path / "topics.xml", TOPICS)


BLEU = [
    # reference, span, precisions of 3-, 4- and 5-grams, brevity penalty
    ("abcde", "abcdefg", (3 / 5, 2 / 4, 1 / 3), 1.0),
    ("abcdefg", "abcde", (1.0, 1.0, 1.0), math.exp(1 - 7 / 5)),
    ("aaaaa", "aaaaaaa", (3 / 5, 2 / 4, 1 / 3), 1.0),  # an n-gram counts as often as the reference has it
    ("rye bread", "the rye bread", (7 / 11, 6 / 10, 5 / 9), 1.0),
]


@pytest.mark.parametrize(("reference", "span", "precisions", "brevity"), BLEU)
def test_bleu_by_hand_and_by_nltk(
    reference: str, span: str, precisions: tuple[float, float, float], brevity: float
) -> None:
    """Lengths 3, 4 and 5 weigh 3/12, 4/12 and 5/12."""
    from nltk.translate.bleu_score import sentence_bleu  # type: ignore[import-untyped]

    found = measure_span(reference, span)["BLEU"]
    three, four, five = precisions
    assert found == pytest.approx(brevity * three ** (3 / 12) * four ** (4 / 12) * five ** (5 / 12))
    assert found == pytest.approx(sentence_bleu([list(reference)], list(span), weights=(0, 0, 3 / 12, 4 / 12, 5 / 12)))


@pytest.mark.parametrize(
    ("reference", "span", "bleu", "jaccard"),
    [
        ("Fifth Amendment.", "fifth amendment", 1.0, 1.0),  # neither case nor punctuation around words counts
        ("pi", "Pi!", 1.0, 1.0),  # a length that neither has is left out
        ("pi", "pie", 0.0, 0.0),
        ("rye bread", "", 0.0, 0.0),
        ("rye bread", "...", 0.0, 0.0),
        ("rye bread", "oats", 0.0, 0.0),
        ("rye bread", "bread, rye bread", None, 1.0),  # words count once
        ("the rye bread", "rye", 0.0, 1 / 3),
        ("a loaf of rye", "loaf of bread", None, 2 / 5),
    ],
)
def test_span_measures_by_hand(reference: str, span: str, bleu: float | None, jaccard: float) -> None:
    found = measure_span(reference, span)
    assert found["Jaccard"] == pytest.approx(jaccard)
    assert bleu is None or found["BLEU"] == bleu


def test_groups_are_judged_as_one(topics: Path, tmp_path: Path) -> None:
    """In a group it does not matter to which topic a span was given; a missing one is missing in it."""
    files = [
        write(tmp_path / "swapped", "1\trye bread\n2\tMarie Curie\n3\tLindenau\n"),
        write(tmp_path / "one", "2\trye bread\n3\tto\n"),
    ]
    swapped, one = evaluate_spans(files, topics)
    assert swapped.by_turn("Jaccard") == {"1+2": 1.0, "3": 1.0}
    assert swapped.turns["1+2"]["BLEU"] < 1
    assert one.by_turn("Jaccard") == {"1+2": 2 / 4, "3": 0.0}
    assert (swapped.missing, one.missing) == (0, 1)
    assert one.mean("Jaccard") == 0.25


def test_spans_cannot_be_judged_without_references(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="no reference span: topic 1"):
        evaluate_spans([], write(tmp_path / "topics.xml", TOP))


QRELS = "1\tQ0\t10-0\t1\r\n1\tQ0\t10-1\t0\r\n2\tQ0\t11-3\t2\r\n3\tQ0\t12-0\t0\r\n"
RUN = """\
1 Q0 11-3 1 3.0 ours
1 Q0 10-1 2 2.0 ours
1 Q0 10-0 3 1.0 ours
3 Q0 12-0 1 1.0 ours
"""


def test_passage_measures_by_hand(topics: Path, tmp_path: Path) -> None:
    """Alone, topic 1 has one relevant passage, in the third place; with topic 2, of its group, the first one, too.

    Topic 2 is not in the run, and topic 3 has nothing relevant.
    """
    run, qrels = write(tmp_path / "run.trec", RUN), write(tmp_path / "qrels", QRELS)
    [alone] = evaluate_passages([run], qrels, None)
    assert alone.turns == {"1": {"AP": 1 / 3, "P@5": 0.2, "RR": 1 / 3}, "2": {}}
    assert alone.missing == 1
    [grouped] = evaluate_passages([run], qrels, topics)
    assert grouped.turns == {"1": {"AP": pytest.approx((1 + 2 / 3) / 2), "P@5": 0.4, "RR": 1.0}}


SHARED_QRELS = "1 0 a 1\n2 0 b 1\n8 0 c 2\n9 0 d 1\n3 0 e 0\n77 0 x 1\n"  # the topics file has 1, 2 and 3 alone
SHARED_RUN = """\
1 Q0 a 1 3.0 t
1 Q0 x 2 2.0 t
1 Q0 c 3 1.0 t
2 Q0 x 1 3.0 t
3 Q0 x 1 2.0 t
3 Q0 d 2 1.0 t
50 Q0 x 1 1.0 t
"""
# Relevant are a, b and c for the first scene: (1 + 2/3) / 3 by the ranking of 1, 0 by that of 2. For the other it is d.
SCENES_MEANS = [
    ("1 2 8\n3 9\n", True, {"1": 5 / 9, "3": 1 / 2}, 0),
    ("2 1 8\n3 9\n", True, {"2": 0.0, "3": 1 / 2}, 0),
    ("8 1 2\n3 9\n", True, {"1": 5 / 9, "3": 1 / 2}, 0),  # 8 is no topic here
    ("1 2 8\n3 9\n", False, {"1": 5 / 9, "3": 1 / 2}, 1),  # 77, which the run lacks, does not count
    ("8 1 2\n3 9\n", False, {"3": 1 / 2}, 2),
]


@pytest.mark.parametrize(("scenes", "with_topics", "precisions", "missing"), SCENES_MEANS)
def test_the_first_topic_stands_for_its_scene_as_by_the_organisers_script(
    scenes: str, with_topics: bool, precisions: dict[str, float], missing: int, topics: Path, tmp_path: Path
) -> None:
    """The labels of all topics of a scene count, also of those that the topics file lacks."""
    run, qrels = write(tmp_path / "run.trec", SHARED_RUN), write(tmp_path / "qrels", SHARED_QRELS)
    listed = write(tmp_path / "scenes", scenes)
    [found] = evaluate_passages([run], qrels, topics if with_topics else None, listed)
    assert found.by_turn("AP") == pytest.approx(precisions)
    assert found.missing == missing
    assert found.mean("AP") == pytest.approx(sum(precisions.values()) / len(precisions))


@pytest.mark.parametrize(
    ("lines", "scenes"),
    [
        ("27 28\n36,37,43\n", (("27", "28"), ("36", "37", "43"))),
        ("# scenes\n\n  3 , 1\n2\t4\r\n", (("3", "1"), ("2", "4"))),
        ("36 37\n1\n37 43\n", (("36", "37", "43"), ("1",))),  # lines with a number in common
        ("1 2\n3 4\n4 1\n", (("3", "4", "1", "2"),)),
        ("2 1\n1 2\n", (("2", "1"),)),
    ],
)
def test_the_file_of_scenes(lines: str, scenes: tuple[Scene, ...], tmp_path: Path) -> None:
    assert read_equivalence(write(tmp_path / "scenes", lines)) == scenes


def test_spans_of_one_scene_are_judged_as_one(topics: Path, tmp_path: Path) -> None:
    """By the file 1 and 3 share a scene, and 1 and 2, whose dialogues have the same text, do not."""
    spans = write(tmp_path / "spans", "1\tLindenau\n2\trye bread\n3\tMarie Curie\n")
    [alone] = evaluate_spans([spans], topics)
    [joined] = evaluate_spans([spans], topics, write(tmp_path / "scenes", "1 3\n"))
    assert alone.by_turn("Jaccard") == {"1+2": 2 / 5, "3": 0.0}
    assert joined.by_turn("Jaccard") == {"1+3": 1.0, "2": 1.0}


def test_scenes_of_other_topics_are_refused_or_counted(
    topics: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spans = write(tmp_path / "spans", "1\trye bread\n")
    for lines, message in (("# none\n", "holds no topic number"), ("77 78\n", "has none of these topics: it has '77'")):
        with pytest.raises(InvalidInputError, match=message):
            evaluate_spans([spans], topics, write(tmp_path / "scenes", lines))
    evaluate_spans([spans], topics, write(tmp_path / "scenes", "1 3\n77 78\n"))
    assert "2 of 4 topics are none of these: 77" in caplog.text


def test_labels_and_runs_of_other_topics_alone_are_refused(
    topics: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Some that are none of these are counted, once a file."""
    files = {"run.trec": SHARED_RUN, "qrels": SHARED_QRELS, "other": "9 0 a 1\n8 0 a 1\n", "none": "1 0 a 0\n"}
    files |= {"other.trec": "7 Q0 a 1 1.0 x\n"}
    at = {name: str(write(tmp_path / name, content)) for name, content in files.items()}
    for run, qrels, message in (
        ("run.trec", "other", "other: has none of these topics: it has '8'"),
        ("other.trec", "qrels", "other.trec: has none of these topics: it has '7'"),
        ("run.trec", "none", "none: holds no relevant passage"),
    ):
        told = CliRunner().invoke(app, ["eval", "rcd-passages", at[run], "--qrels", at[qrels], "-t", str(topics)])
        assert (told.exit_code, message in told.stderr) == (5, True), told.stderr
    caplog.clear()
    evaluate_passages([tmp_path / "run.trec"], tmp_path / "qrels", topics)
    assert [record.message.removeprefix(f"{tmp_path}/") for record in caplog.records] == [
        "qrels: 3 of 6 topics are none of these: 77",
        "run.trec: 1 of 4 topics are none of these: 50",
    ]
