"""Touché, task 1: a directory as TIRA gives it becomes a run; what counts, what is refused, the measure."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.evaluation.scores import evaluate_search
from agent.runs.given_ranking import read_ranking
from agent.tasks.touche import ToucheTask, rank_topics, read_questions, write_run
from cli import app
from indexes.corpora.corpus import find_arguments
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.text.analysis import extract_stems
from indexes.text.languages import weight_stems
from schemas.errors import ConvagentError, InvalidInputError, MissingError, UsageError
from schemas.records import Passage
from tests.conftest import EXAMPLES

FIXTURE = EXAMPLES / "touche"
RELEVANT, WRITTEN = FIXTURE / "relevance.qrels", FIXTURE / "quality.qrels"
TOPICS = "<topics><topic><number>1</number><title>Should zoos be closed?</title></topic></topics>"
TEXT = "Zoos keep animals in cages that are far too small for them, and no ticket that a visitor buys makes up for it."


def bar(_arguments: object) -> nullcontext[Callable[[], None]]:
    """No progress is shown."""
    return nullcontext(lambda: None)


def argument(id: str, conclusion: str = "Zoos should be closed", text: str = TEXT) -> dict[str, Any]:
    return {"id": id, "conclusion": conclusion, "premises": [{"text": text, "stance": "PRO"}], "context": {}}


def given(directory: Path, *arguments: Any, topics: str = TOPICS) -> Path:
    """An input directory with these arguments."""
    directory.mkdir(exist_ok=True)
    (directory / "topics.xml").write_text(topics)
    (directory / "debateorg.json").write_text(json.dumps({"arguments": arguments}))
    return directory


def topics(*each: str) -> str:
    return f"<topics>{''.join(f'<topic>{topic}</topic>' for topic in each)}</topics>"


ONE = "<number>1</number><title>Why?</title>"


def run(task: ToucheTask, output: Path) -> list[list[str]]:
    """The columns of the run's lines."""
    write_run(task, output, bar, overwrite=False)
    return [line.split(" ") for line in (output / "run.txt").read_text().splitlines()]


# The run


def test_the_example_becomes_the_same_run_of_trec_lines_each_time(tmp_path: Path) -> None:
    lines = run(ToucheTask(FIXTURE, name="our run"), tmp_path / "out")
    assert all((len(line), line[1], line[5]) == (6, "Q0", "our_run") for line in lines)
    assert list(dict.fromkeys(line[0] for line in lines)) == ["1", "2", "3", "51", "52", "53"]
    for number in ("1", "53"):
        ranks = [int(line[3]) for line in lines if line[0] == number]
        scores = [float(line[4]) for line in lines if line[0] == number]
        assert ranks == list(range(1, len(ranks) + 1))
        assert all(before > after for before, after in pairwise(scores))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run.txt"], "the index is gone"
    assert run(ToucheTask(FIXTURE, name="our run"), tmp_path / "again") == lines


def test_a_run_holds_at_most_k_arguments_a_topic_and_never_more_than_a_thousand(tmp_path: Path) -> None:
    many = given(tmp_path / "in", *(argument(f"a-{n}") for n in range(1100)))
    lines = run(ToucheTask(many), tmp_path / "out")
    assert len(lines) == 1000
    scores = [float(line[4]) for line in lines]
    assert all(before > after for before, after in pairwise(scores)), "though all are equally good"
    assert lines[0][2] == "a-0", "ties go by the order of the files"
    assert len(run(ToucheTask(many, k=7), tmp_path / "seven")) == 7


def test_an_automatic_run_sees_the_titles_alone_and_one_file_is_as_good_as_one_a_portal(tmp_path: Path) -> None:
    parts = [row for path in sorted(FIXTURE.glob("*.json")) for row in json.loads(path.read_text())["arguments"]]
    tags, times = re.subn(r"<(description|narrative)>.*</\1>", r"<\1>Cats.</\1>", (FIXTURE / "topics.xml").read_text())
    assert times == 6
    whole = given(tmp_path / "in", *parts, topics=tags)
    assert run(ToucheTask(whole), tmp_path / "whole") == run(ToucheTask(FIXTURE), tmp_path / "parts")


# What counts in the ranking


def test_a_run_is_ranked_by_query_likelihood_over_conclusion_and_premises(tmp_path: Path) -> None:
    """log((tf + mu p) / (length + mu)) for each word of the query, less log p; mu 2000, as the organisers' baseline."""
    questions = read_questions(FIXTURE / "topics.xml")
    made = rank_topics(questions, find_arguments(FIXTURE), ToucheTask(FIXTURE), tmp_path / "index", bar)
    index = PassageIndex(tmp_path / "index")
    times = Counter(stem for text in index.read_texts(range(len(index))) for stem in extract_stems(text))

    def likelihood(words: list[str], weights: Mapping[str, float]) -> float:
        known = [(word, weight, times[word] / times.total()) for word, weight in weights.items() if times[word]]
        return sum(
            weight * (math.log((words.count(word) + 2000 * p) / (len(words) + 2000)) - math.log(p))
            for word, weight, p in known
        )

    for number, title in questions.items():
        hits = made.hits[number]
        texts = map(build_searchable_text, index.read([hit.id for hit in hits]))
        expected = [likelihood(extract_stems(text), weight_stems([(title, 1.0)])) for text in texts]
        assert [hit.score for hit in hits] == pytest.approx(expected, abs=2e-3)  # equal scores are set apart


# What is refused

BAD_TOPICS = [
    ("no topic", "<topics></topics>", "there is no <topic>"),
    ("no title", topics("<number>1</number>"), "topic 1 has no title"),
    ("no number", topics(ONE, "<title>Why?</title>"), "topic 2 has no number"),
    (
        "white space in a number",
        topics("<number>1 a</number><title>Why?</title>"),
        "has white space in its number '1 a'",
    ),
    ("a number twice", topics(ONE, ONE, ONE), "the number 1: stands 3 times"),
    ("all of it", topics(ONE, ONE, "<title>Why?</title>"), "topic 3 has no number\n  the number 1: stands 2 times"),
]


def test_bad_topics_are_refused_before_any_work(tmp_path: Path) -> None:
    for _, xml, message in BAD_TOPICS:
        with pytest.raises(InvalidInputError) as caught:
            run(ToucheTask(given(tmp_path / "in", argument("a"), topics=xml)), tmp_path / "out")
        assert message in str(caught.value)
        assert not (tmp_path / "out").exists()


GOOD = json.dumps(argument("a"))


def between(bad: Any) -> str:
    """A file with this between two good arguments."""
    return json.dumps({"arguments": [argument("a"), bad, argument("b")]})


BAD_FILES = [
    ("an id seen before", between(argument("a")), "debateorg.json:2: the id 'a' was seen before"),
    ("no id", between({"premises": []}), "argument 2 is not in the format of args.me: Object missing required field"),
    ("white space in the id", between(argument("x y")), "argument 2 has an id that a run cannot name: 'x y'"),
    ("no text", between(argument("x") | {"premises": [{"stance": "PRO"}]}), "argument x has no premise"),
    ("premises of another kind", between(argument("x") | {"premises": "Zoos"}), "Expected `array`, got `str` - at"),
    ("no object", between("Zoos"), "Expected `object`, got `str`"),
    ("cut off", f'{{"arguments": [{GOOD}, {{"id": "b", "concl', "debateorg.json:2: broken JSON"),
    ("no list", '{"statements": []}', "debateorg.json:0: holds no list `arguments`, or an empty one"),
    ("empty", "", "debateorg.json:1: broken JSON"),
]


def test_an_argument_may_quote_a_number_that_no_parser_takes(tmp_path: Path) -> None:
    given(tmp_path, argument("a") | {"conclusion": f"Pi is 3.{'1415926535' * 500}"})
    assert [type(found) for _, _, found in find_arguments(tmp_path)] == [Passage]


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in BAD_FILES], ids=[row[0] for row in BAD_FILES])
def test_a_bad_argument_or_file_stops_or_is_skipped_and_told(data: str, message: str, tmp_path: Path) -> None:
    directory = given(tmp_path / "in")
    (directory / "debateorg.json").write_text(data)
    (directory / "idebate.json").write_text(json.dumps({"arguments": [argument("c")]}))
    with pytest.raises(InvalidInputError) as caught:
        run(ToucheTask(directory), tmp_path / "out")
    assert message in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == [], "a failed run leaves nothing behind"

    ranked = write_run(ToucheTask(directory, skip_problems=True), tmp_path / "out", bar, overwrite=False)
    assert ranked.hits["1"][-1].id == "c", "the other files are read"
    assert (ranked.hits["1"][0].id == "a") == (GOOD in data), "and so is what is good in this one"
    assert [message in str(problem) for problem in ranked.built.problems] == [True]


def test_what_is_missing_or_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    bare = tmp_path / "bare"
    bare.mkdir()
    (bare / "topics.xml").write_text(TOPICS)
    no_topics = given(tmp_path / "no-topics", argument("a"))
    (no_topics / "topics.xml").unlink()
    cases: list[tuple[Path, str, type[ConvagentError], str]] = [
        (tmp_path / "nowhere", "out", MissingError, "nowhere: no such directory"),
        (no_topics, "out", MissingError, r"topics\.xml: no such file"),
        (bare, "out", InvalidInputError, r"bare: holds no \.json file of a debate portal"),
        (FIXTURE, "file", UsageError, "file: is no directory"),
    ]
    for directory, output, error, message in cases:
        with pytest.raises(error, match=message):
            run(ToucheTask(directory), tmp_path / output)
    assert not (tmp_path / "out").exists()


def test_a_run_that_is_there_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run.txt").write_text("ours\n")
    with pytest.raises(UsageError, match=r"run\.txt: exists already"):
        run(ToucheTask(FIXTURE), tmp_path)
    broken = given(tmp_path / "in", argument("a"), argument("a"))
    with pytest.raises(InvalidInputError, match="seen before"):
        write_run(ToucheTask(broken), tmp_path, bar, overwrite=True)
    assert (tmp_path / "run.txt").read_text() == "ours\n"
    write_run(ToucheTask(FIXTURE), tmp_path, bar, overwrite=True)
    assert set(read_ranking(tmp_path / "run.txt").hits) == {"1", "2", "3", "51", "52", "53"}


# The measure

LABELS = "1 0 best 3\n1 0 good 1.0\n1 0 spam -2.0\n1 0 off 0\n2 0 a 0\n2 0 b -2\n3 0 a 2\n"
RUN = """\
1 Q0 spam 1 5.0 ours
1 Q0 best 2 4.0 ours
1 Q0 new 3 3.0 ours
1 Q0 good 4 2.0 ours
2 Q0 a 1 1.0 ours
"""


def test_ndcg_by_hand(tmp_path: Path) -> None:
    """What is no argument gains nothing and costs nothing but its place. 2 has nothing good, 3 is not in the run: 0."""
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "qrels").write_text(LABELS)  # some with a fraction, as they were published
    [scores] = evaluate_search([tmp_path / "run"], tmp_path / "qrels", None)
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    assert scores.by_turn("nDCG@5") == {
        "1": pytest.approx((3 / math.log2(3) + 1 / math.log2(5)) / ideal),
        "2": 0,
        "3": 0,
    }
    assert scores.missing == 1


# The command


def test_the_commands_as_a_person_gives_them(tmp_path: Path) -> None:
    call = CliRunner().invoke
    made = call(app, ["touche", "--input", str(FIXTURE), "-o", str(tmp_path), "-k", "10", "--run-name", "ours"])
    assert made.exit_code == 0, made.output
    assert "54 passages" in made.stderr
    assert "6 topics, 60 lines" in made.stderr
    for labels, least in ((RELEVANT, 0.65), (WRITTEN, 0.5)):
        told = call(app, ["eval", "search", str(tmp_path / "run.txt"), "--qrels", str(labels), "--json"])
        [scores] = json.loads(told.stdout)
        assert scores["mean"]["nDCG@5"] > least


def test_a_topic_for_which_nothing_is_found_is_told(tmp_path: Path) -> None:
    odd = given(tmp_path / "in", argument("a"), topics=topics(ONE.replace("Why", "Xyzzy"), ONE.replace("1", "2")))
    said = CliRunner().invoke(app, ["touche", "--input", str(odd), "-o", str(tmp_path / "out")])
    assert "topic 1: nothing found, it is not in the run" in said.stderr
