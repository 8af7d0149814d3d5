"""Touché, task 1: topics, arguments and files that are refused, or skipped and listed."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.runs.given_ranking import read_ranking
from agent.tasks.touche.run import ToucheTask, write_run
from agent.tasks.touche.topics import read_questions
from schemas.errors import ConvagentError, InvalidInputError, MissingError, UsageError
from tests.test_touche import FIXTURE, ONE, TOPICS, argument, bar, given, run, topics

BAD_TOPICS = [
    ("broken XML", "<topics><topic>", "topics.xml: is no XML that can be read"),
    (
        "an entity",
        '<!DOCTYPE a [<!ENTITY b "c">]><topics>&b;</topics>',
        "is no XML that can be read (EntitiesForbidden",
    ),
    ("an empty file", "", "is no XML that can be read"),
    ("no topic", "<topics></topics>", "there is no <topic>"),
    ("no title", topics("<number>1</number>"), "topic 1 has no title"),
    ("an empty title", topics(ONE, "<number>2</number><title> </title>"), "topic 2 has no title"),
    ("no number", topics(ONE, "<title>Why?</title>"), "topic 2 has no number"),
    (
        "white space in a number",
        topics("<number>1 a</number><title>Why?</title>"),
        "has white space in its number '1 a'",
    ),
    ("a number twice", topics(ONE, ONE, ONE), "the number 1: stands 3 times"),
]


@pytest.mark.parametrize(("xml", "message"), [row[1:] for row in BAD_TOPICS], ids=[row[0] for row in BAD_TOPICS])
def test_bad_topics_are_refused_before_any_work(xml: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        run(ToucheTask(given(tmp_path / "in", argument("a"), topics=xml)), tmp_path / "out")
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_all_that_is_wrong_with_topics_is_listed(tmp_path: Path) -> None:
    (tmp_path / "topics.xml").write_text(topics(ONE, ONE, "<title>Why?</title>", "<number>4</number>"))
    with pytest.raises(InvalidInputError) as caught:
        read_questions(tmp_path / "topics.xml")
    for message in ("topic 3 has no number", "topic 4 has no title", "the number 1: stands 2 times"):
        assert message in str(caught.value)


BAD_ARGUMENTS: list[tuple[str, Any, str]] = [
    # what, an argument between two good ones, what must be said
    ("an id seen before", argument("a"), "debateorg.json:2: the id 'a' was seen before"),
    ("no id", {"premises": []}, "argument 2 is not in the format of args.me: Object missing required field `id`"),
    ("white space in the id", argument("x y"), "argument 2 has an id that a run cannot name: 'x y'"),
    ("no premises", argument("x") | {"premises": []}, "argument x has no premise"),
    ("premises left out", {"id": "x", "conclusion": "Zoos"}, "argument x has no premise"),
    ("empty text", argument("x", text=" \n"), "argument x has no premise"),
    ("a premise without text", argument("x") | {"premises": [{"stance": "PRO"}]}, "argument x has no premise"),
    ("premises of another kind", argument("x") | {"premises": "Zoos"}, "Expected `array`, got `str` - at `$.premises`"),
    ("no object", "Zoos", "Expected `object`, got `str`"),
]


@pytest.mark.parametrize(("bad", "message"), [row[1:] for row in BAD_ARGUMENTS], ids=[row[0] for row in BAD_ARGUMENTS])
def test_a_bad_argument_stops_or_is_skipped_and_told(bad: Any, message: str, tmp_path: Path) -> None:
    directory = given(tmp_path / "in", argument("a"), bad, argument("b"))
    with pytest.raises(InvalidInputError) as caught:
        run(ToucheTask(directory), tmp_path / "out")
    assert message in str(caught.value)
    assert "debateorg.json:2" in str(caught.value)
    assert list((tmp_path / "out").iterdir()) == [], "a failed run leaves nothing behind"

    ranked = write_run(ToucheTask(directory, skip_problems=True), tmp_path / "out", bar, overwrite=False)
    assert [hit.id for hit in ranked.hits["1"]] == ["a", "b"]
    assert [message in str(problem) for problem in ranked.built.problems] == [True]


BAD_FILES = [
    ("cut off", '{"arguments": [GOOD, {"id": "b", "concl', "debateorg.json:2: broken JSON (premature EOF)"),
    ("garbled", '{"arguments": [GOOD, oops]}', "debateorg.json:2: broken JSON (invalid char in json text)"),
    ("not UTF-8", b'{"arguments": [GOOD, {"id": "\xff"}]}', "broken JSON (invalid bytes in UTF8 string)"),
    ("something behind", '{"arguments": [GOOD]} more', "broken JSON (trailing garbage)"),
    ("no list", '{"statements": []}', "debateorg.json:0: holds no list `arguments`, or an empty one"),
    ("an array", "[GOOD]", "holds no list `arguments`"),
    ("empty", "", "debateorg.json:1: broken JSON (premature EOF)"),
]


@pytest.mark.parametrize(("data", "message"), [row[1:] for row in BAD_FILES], ids=[row[0] for row in BAD_FILES])
def test_a_broken_file_stops_or_its_rest_is_skipped_and_told(data: str | bytes, message: str, tmp_path: Path) -> None:
    directory = given(tmp_path / "in")
    whole = data if isinstance(data, bytes) else data.encode()
    (directory / "debateorg.json").write_bytes(whole.replace(b"GOOD", json.dumps(argument("a")).encode()))
    with pytest.raises(InvalidInputError) as caught:
        run(ToucheTask(directory), tmp_path / "out")
    assert message in str(caught.value)

    (directory / "idebate.json").write_text(json.dumps({"arguments": [argument("c")]}))
    ranked = write_run(ToucheTask(directory, skip_problems=True), tmp_path / "out", bar, overwrite=False)
    assert ranked.hits["1"][-1].id == "c", "the other files are read"
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
