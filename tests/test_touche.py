"""Touché, task 1: a directory as TIRA gives it becomes a run; what counts, what is refused, the measure."""

import json
import math
import re
import tracemalloc
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.evaluation.scores import p_value
from agent.runs.given_ranking import read_ranking
from agent.tasks.touche.measures import QUALITY, RELEVANCE, evaluate_touche, measure_touche
from agent.tasks.touche.query_likelihood import CollectionStatistics, Dirichlet, StatisticsCounter
from agent.tasks.touche.ranking import (
    MU,
    SHORT,
    Ranker,
    RankingOptions,
    argument_quality,
    boost_fields,
    brevity_penalty,
    decency_score,
    length_score,
    spelling_score,
    structure_score,
)
from agent.tasks.touche.ranking import QUALITY as WRITING
from agent.tasks.touche.run import ToucheReport, ToucheTask, make_queries, rank_topics, write_run
from agent.tasks.touche.topics import ControversialQuestion, read_questions
from cli import app
from indexes.corpora.args_me import find_arguments
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.text.analysis import extract_stems, weight_stems
from schemas.errors import InvalidInputError
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


def test_the_example_becomes_a_run_of_trec_lines(tmp_path: Path) -> None:
    lines = run(ToucheTask(FIXTURE, name="our run"), tmp_path / "out")
    assert all((len(line), line[1], line[5]) == (6, "Q0", "our_run") for line in lines)
    assert list(dict.fromkeys(line[0] for line in lines)) == ["1", "2", "3", "51", "52", "53"]
    for number in ("1", "53"):
        ranks = [int(line[3]) for line in lines if line[0] == number]
        scores = [float(line[4]) for line in lines if line[0] == number]
        assert ranks == list(range(1, len(ranks) + 1))
        assert all(before > after for before, after in pairwise(scores))
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["run.txt"], "the index is gone"


def test_two_runs_are_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        run(ToucheTask(FIXTURE), tmp_path / name)
    assert (tmp_path / "one" / "run.txt").read_bytes() == (tmp_path / "two" / "run.txt").read_bytes()


def test_a_run_holds_at_most_k_arguments_a_topic_and_never_more_than_a_thousand(tmp_path: Path) -> None:
    many = given(tmp_path / "in", *(argument(f"a-{n}") for n in range(1100)))
    lines = run(ToucheTask(many), tmp_path / "out")
    assert len(lines) == 1000
    scores = [float(line[4]) for line in lines]
    assert all(before > after for before, after in pairwise(scores)), "though all are equally good"
    assert lines[0][2] == "a-0", "ties go by the order of the files"
    assert len(run(ToucheTask(many, k=7), tmp_path / "seven")) == 7


ALTERED = [
    ("other descriptions", r"<description>.*</description>", "<description>Cats and homework.</description>"),
    ("no descriptions", r"<description>.*</description>\n", ""),
    ("other narratives", r"<narrative>.*</narrative>", "<narrative>Police uniforms and zoos.</narrative>"),
    ("no narratives", r"<narrative>.*</narrative>\n", ""),
]


@pytest.mark.parametrize(("pattern", "text"), [row[1:] for row in ALTERED], ids=[row[0] for row in ALTERED])
def test_an_automatic_run_sees_the_titles_alone(pattern: str, text: str, tmp_path: Path) -> None:
    run(ToucheTask(FIXTURE), tmp_path / "out")
    altered = tmp_path / "in"
    altered.mkdir()
    for file in FIXTURE.glob("*.json"):
        (altered / file.name).write_bytes(file.read_bytes())
    topics, times = re.subn(pattern, text, (FIXTURE / "topics.xml").read_text())
    assert times == 3
    (altered / "topics.xml").write_text(topics)
    run(ToucheTask(altered), tmp_path / "again")
    assert (tmp_path / "again" / "run.txt").read_bytes() == (tmp_path / "out" / "run.txt").read_bytes()


def test_one_file_or_one_a_portal_is_the_same_run(tmp_path: Path) -> None:
    parts = [row for path in sorted(FIXTURE.glob("*.json")) for row in json.loads(path.read_text())["arguments"]]
    whole = given(tmp_path / "in", topics=(FIXTURE / "topics.xml").read_text())
    (whole / "debateorg.json").rename(whole / "args-me.json")
    (whole / "args-me.json").write_text(json.dumps({"arguments": parts}))
    assert run(ToucheTask(whole), tmp_path / "whole") == run(ToucheTask(FIXTURE), tmp_path / "parts")


def test_a_model_may_add_words(tmp_path: Path) -> None:
    """The cages are in the answer and not in the question."""
    script = tmp_path / "script.json"
    script.write_text(json.dumps({"ask": {"hyde": ["They live in cages."]}}))
    asked = make_queries([ControversialQuestion("1", "Are zoos wrong?")], f"scripted:{script}")
    assert asked["1"] == [("Are zoos wrong?", 1.0), ("They live in cages.", 0.3)]
    assert make_queries([ControversialQuestion("1", "Are zoos wrong?")], None)["1"] == [("Are zoos wrong?", 1.0)]


def test_the_files_are_read_as_a_stream(tmp_path: Path) -> None:
    """30 MB of arguments: in memory are one of them, and the few that are read again for a topic."""

    def many(count: int) -> Path:
        directory = given(tmp_path / str(count))
        with (directory / "debateorg.json").open("w") as file:
            file.write('{"arguments": [')
            for n in range(count):
                row = argument(f"a-{n}", text=f"Word{n} {TEXT}") | {"context": {"sourceText": TEXT * 100}}
                file.write(("," if n else "") + json.dumps(row))
            file.write("]}")
        return directory

    def peak(directory: Path) -> int:
        task, asked = ToucheTask(directory, k=5), make_queries([ControversialQuestion("1", "Does word7 help?")], None)
        tracemalloc.start()
        found = rank_topics(asked, find_arguments(directory), task, directory / "index", bar).hits
        used = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert found["1"][0].id == "a-7"
        return used

    small, large = many(300), many(3000)
    assert (large / "debateorg.json").stat().st_size > 30_000_000
    peak(small)  # what is imported and cached once
    assert peak(large) < peak(many(301)) + 2_000_000


# What counts in the ranking


def test_counting_while_building_is_counting_the_index(tmp_path: Path) -> None:
    """Of the words of the question alone, and not of what is left out."""
    bad = given(tmp_path / "in", argument("a"), argument("a", text="Zoos, zoos, zoos."), argument("b"))
    counting = StatisticsCounter({"zoo"})
    arguments = find_arguments(bad)
    build_index(
        arguments,
        tmp_path / "index",
        skip_problems=True,
        progress=lambda: None,
        on_passage=lambda passage: counting.add_text(build_searchable_text(passage)),
    )
    counted, whole = counting.statistics, CollectionStatistics.count(PassageIndex(tmp_path / "index").iterate_texts())
    assert (counted.passages, counted.words) == (whole.passages, whole.words)
    assert (counted.times, counted.passages_with) == ({"zoo": 4}, {"zoo": 2})
    assert (whole.times["zoo"], whole.passages_with["zoo"]) == (4, 2)


def test_a_conclusions_words_count_more() -> None:
    found = Passage("a", "They live in cages.", "Zoos are cruel")
    assert boost_fields(found, 1) == extract_stems(build_searchable_text(found))
    assert boost_fields(found, 3).count("zoo") == 3
    assert boost_fields(found, 3).count("cage") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [("", 1.0), ("I agree with my opponent.", 1 - 5 / 25), ("word " * 25, 0.0), ("word " * 300, 0.0)],
)
def test_how_short_is_too_short(text: str, expected: float) -> None:
    assert brevity_penalty(text) == pytest.approx(expected)


LONG = f"{TEXT} {TEXT}"


def test_a_score_by_hand(tmp_path: Path) -> None:
    """The likelihood of two words, less what shortness costs, and what the writing adds: in nats a word."""
    directory = given(tmp_path / "in", argument("a", "Zoos", "I agree."), argument("b", "Cages", LONG))
    build_index(find_arguments(directory), tmp_path / "index", skip_problems=False, progress=lambda: None)
    index = PassageIndex(tmp_path / "index")
    known = CollectionStatistics.count(index.iterate_texts())

    def likelihood(words: list[str]) -> float:
        return Dirichlet(known, MU)({"zoo": 1.0, "cage": 1.0}, words)

    short, long = ["zoo", "i", "agre"], extract_stems(f"Cages {LONG}")
    for ways, expected in (
        (
            RankingOptions(short=True, quality=True),
            {
                "a": -2 * SHORT * 23 / 25 + 2 * WRITING * argument_quality("I agree."),
                "b": 2 * WRITING * argument_quality(LONG),
            },
        ),
        (RankingOptions(short=True), {"a": -2 * SHORT * 23 / 25, "b": 0.0}),
        (RankingOptions(), {"a": 0.0, "b": 0.0}),
    ):
        found = {hit.id: hit.score for hit in Ranker(index, known, ways).rank([("zoos in cages", 1.0)], 10)}
        assert found["a"] == pytest.approx(likelihood(short) + expected["a"], abs=1e-4)
        assert found["b"] == pytest.approx(likelihood(long) + expected["b"], abs=1e-4)


GOOD = "A uniform is worn for a year. It can be handed down to a younger child, and saves money."
QUALITIES: list[tuple[Callable[[str], float], str, float]] = [
    (length_score, "word " * 75, 0.5),
    (length_score, "word " * 1000, 1.0),
    (structure_score, GOOD, 1.0),
    (structure_score, "A uniform is worn for a year. it saves money and time", 0.5),
    (structure_score, "no", 0.0),
    (structure_score, "", 0.0),
    (decency_score, GOOD, 1.0),
    (decency_score, "That is bullshit.", 1 - 1 / 3),
    (decency_score, "WRONG!!! It is SOOOO wrong, damn it.", 0.0),
    (spelling_score, GOOD, 1.0),
    (spelling_score, "Uniforms are definately worn by pupils at schools here.", 1 - 5 * 1 / 8),
    (spelling_score, "Przewalski", 1.0),
    (argument_quality, "", (0 + 0 + 1 + 1) / 4),
]


@pytest.mark.parametrize(("part", "text", "expected"), QUALITIES)
def test_the_parts_of_quality_by_hand(part: Callable[[str], float], text: str, expected: float) -> None:
    assert part(text) == pytest.approx(expected)


def ranking(ways: RankingOptions, place: Path) -> ToucheReport:
    asked = make_queries(read_questions(FIXTURE / "topics.xml"), None)
    return rank_topics(asked, find_arguments(FIXTURE), ToucheTask(FIXTURE, ways), place, bar)


ALL = RankingOptions(conclusion=True, short=True, quality=True)


def test_the_default_is_query_likelihood_over_the_whole_text(tmp_path: Path) -> None:
    """The organisers' baseline: Dirichlet smoothing with mu 2000, the conclusion's words like all others."""
    made = ranking(RankingOptions(), tmp_path / "index")
    index = PassageIndex(tmp_path / "index")
    score = Dirichlet(CollectionStatistics.count(index.iterate_texts()), 2000.0)
    for question in read_questions(FIXTURE / "topics.xml"):
        hits = made.hits[question.number]
        texts = map(build_searchable_text, index.read([hit.id for hit in hits]))
        weights = weight_stems([(question.title, 1.0)])
        expected = [score(weights, extract_stems(text)) for text in texts]
        assert [hit.score for hit in hits] == pytest.approx(expected, abs=2e-3)  # equal scores are set apart


@pytest.mark.parametrize("part", ["likelihood", "conclusion", "short", "quality"])
def test_every_part_can_be_switched_and_then_counts(part: str, tmp_path: Path) -> None:
    default, other = (
        ranking(RankingOptions(), tmp_path / "default"),
        ranking(replace(RankingOptions(), **{part: part != "likelihood"}), tmp_path / "part"),
    )
    assert default.hits != other.hits
    assert {hit.id for hit in default.hits["1"]} == {hit.id for hit in other.hits["1"]}


@pytest.mark.parametrize("part", ["conclusion", "short", "quality"])
def test_every_part_has_its_flag(part: str, tmp_path: Path) -> None:
    made = CliRunner().invoke(app, ["touche", "--input", str(FIXTURE), "-o", str(tmp_path / "out"), f"--{part}"])
    assert made.exit_code == 0, made.output
    expected = ranking(replace(RankingOptions(), **{part: True}), tmp_path / "index").hits
    assert read_ranking(tmp_path / "out" / "run.txt").hits == expected


def test_what_is_no_argument_ranks_below_what_is_one(tmp_path: Path) -> None:
    """'I agree with my opponent' holds every word of the question in its conclusion, and is first by BM25."""
    judged = {line.split()[2]: int(line.split()[3]) for line in RELEVANT.read_text().splitlines()}

    def worthless(ways: RankingOptions, place: Path) -> int:
        return sum(judged[hit.id] == -2 for hits in ranking(ways, place).hits.values() for hit in hits[:3])

    assert worthless(RankingOptions(likelihood=False), tmp_path / "words") > 6
    assert worthless(ALL, tmp_path / "all") == 0


# The measure

LABELS = "1 0 best 3\n1 0 good 1\n1 0 spam -2\n1 0 off 0\n2 0 a 0\n2 0 b -2\n3 0 a 2\n"
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
    (tmp_path / "qrels").write_text(LABELS)
    [scores] = evaluate_touche([tmp_path / "run"], tmp_path / "qrels", None)
    ideal = 3 / math.log2(2) + 1 / math.log2(3)
    assert scores.turns["1"] == {RELEVANCE: pytest.approx((3 / math.log2(3) + 1 / math.log2(5)) / ideal)}
    assert scores.turns["2"] == scores.turns["3"] == {RELEVANCE: 0.0}
    assert set(scores.turns) == {"1", "2", "3"}
    assert scores.missing == 1


def test_labels_with_a_fraction_are_read(tmp_path: Path) -> None:
    """As they were published: `4.0`, `-2.0`."""
    (tmp_path / "run").write_text(RUN)
    (tmp_path / "whole").write_text(LABELS)
    (tmp_path / "fraction").write_text(re.sub(r"(-?\d)$", r"\1.0", LABELS, flags=re.MULTILINE))
    assert "spam -2.0\n" in (tmp_path / "fraction").read_text()
    [whole], [fraction] = (evaluate_touche([tmp_path / "run"], tmp_path / n, None) for n in ("whole", "fraction"))
    assert fraction.turns == whole.turns


def test_both_measures_and_a_comparison(tmp_path: Path) -> None:
    runs = []
    for name, ways in (("words", RankingOptions(likelihood=False)), ("all", ALL)):
        run(ToucheTask(FIXTURE, ways), tmp_path / name)
        runs.append(tmp_path / name / "run.txt")
    words, all_parts = evaluate_touche(runs, RELEVANT, WRITTEN)
    assert set(all_parts.turns["1"]) == {RELEVANCE, QUALITY}
    for measure in (RELEVANCE, QUALITY):
        assert all_parts.mean(measure) > words.mean(measure) + 0.2
        assert p_value(words, all_parts, measure) < 0.05


def test_a_ranking_is_measured_as_its_file_is(tmp_path: Path) -> None:
    ranked = {"1": {"best": 2.0, "good": 1.0}}
    labels = {RELEVANCE: {"1": {"best": 3, "good": 1}}, QUALITY: {"1": {"good": 1}}}
    assert measure_touche("ours", ranked, labels).turns["1"] == {
        RELEVANCE: 1.0,
        QUALITY: pytest.approx(1 / math.log2(3)),
    }


def test_labels_without_anything_good_are_refused(tmp_path: Path) -> None:
    (tmp_path / "qrels").write_text("1 0 a -2\n1 0 b 0\n")
    with pytest.raises(InvalidInputError, match="holds no label above 0"):
        evaluate_touche([], tmp_path / "qrels", None)


# The command


def test_the_commands_as_a_person_gives_them(tmp_path: Path) -> None:
    call = CliRunner().invoke
    made = call(app, ["touche", "--input", str(FIXTURE), "-o", str(tmp_path), "-k", "10", "--run-name", "ours"])
    assert made.exit_code == 0, made.output
    assert "54 passages" in made.stderr
    assert "6 topics, 60 lines" in made.stderr
    told = call(
        app,
        [
            "eval",
            "touche",
            str(tmp_path / "run.txt"),
            "--qrels",
            str(RELEVANT),
            "--quality-qrels",
            str(WRITTEN),
            "--json",
        ],
    )
    [scores] = json.loads(told.stdout)
    assert scores["mean"][RELEVANCE] > 0.65
    assert scores["mean"][QUALITY] > 0.5
    again = call(app, ["touche", "--input", str(FIXTURE), "-o", str(tmp_path)])
    assert (again.exit_code, "exists already" in again.stderr) == (2, True)


def test_a_topic_for_which_nothing_is_found_is_told(tmp_path: Path) -> None:
    odd = given(tmp_path / "in", argument("a"), topics=topics(ONE.replace("Why", "Xyzzy"), ONE.replace("1", "2")))
    said = CliRunner().invoke(app, ["touche", "--input", str(odd), "-o", str(tmp_path / "out")])
    assert "topic 1: nothing found, it is not in the run" in said.stderr
