"""What other people's tools write is read, said, judged as the official validator does, and mended.

Each row is a file of ours in a shape that the guidelines, the organisers' samples or published runs have.
"""

import json
import re
from collections.abc import Iterator
from ctypes import c_float
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.runs.given_ranking import read_ranking
from agent.tracks.files import detect_run, read_run, read_topics
from agent.tracks.lenient_reading import Oddities
from indexes.ranking.rankings import separate_scores
from tests.broken_runs import TABLES, changed, decoded, encoded, is_odd
from tests.conftest import shared_file
from tests.fuzz.bench import Ended, call, settings
from tests.test_runs import run_of
from tests.test_topics import EDITIONS, IKAT_2023, write

RANKINGS = (["bread:1", "music:1"], ["bread:2", "bread:1", "music:1"])
RANKED = [turn | {"sample_passage_ranking": ids} for turn, ids in zip(IKAT_2023[0]["turns"], RANKINGS, strict=True)]
GUIDELINES = [{**IKAT_2023[0], "number": "1-2", "turns": RANKED}]
TEXTS = """\
{"id": "bread:1", "contents": "Rice bread holds no gluten at all, which suits coeliacs."}
{"id": "bread:2", "contents": "Rice bread keeps for two days in a tin."}
{"id": "music:1", "contents": "A trumpet is made of brass and keeps its tune."}
"""


@pytest.fixture(autouse=True)
def _without_models() -> Iterator[None]:
    with settings():
        yield


OTHER_TURNS = ("0/turn_id", "0/Question")  # what is odd there makes another turn, or topics, of it
ODD = [
    (edition, *row)
    for edition, table in TABLES.items()
    for row in table
    if is_odd(row[3]) and row[1] not in OTHER_TURNS
]


def outcome(*arguments: object) -> Ended:
    ended = call(*arguments)
    assert not ended.crash, ended.crash
    return ended


def official_verdict(edition: str, said: str) -> int:
    """The exit code of `validate`: what the organisers' validators refuse (docs/data-model.md) is an error."""
    refused = {"ikat-2025": ("is absent",), "qrecc": ()}
    return 5 * any(words in said for words in refused.get(edition, ("unknown field", "is a number, read as a text")))


def write_changed(place: Path, edition: str, path: str = "run_name", value: Any = "our-run") -> tuple[Path, Path]:
    """Topics, and a run over them of which a place is changed."""
    topics = write(place / "topics.json", EDITIONS[edition])
    good = decoded(edition, run_of(read_topics(topics), edition))
    (place / "run").write_bytes(encoded(edition, changed(good, path, value)))
    return topics, place / "run"


@pytest.mark.parametrize("edition", TABLES)
def test_an_odd_run_is_read_said_and_judged(edition: str, tmp_path: Path) -> None:
    for of, _, path, value, said in ODD:
        if of == edition:
            check_odd_run(edition, path, value, said, tmp_path)


def check_odd_run(edition: str, path: str, value: Any, said: str, place: Path) -> None:
    topics, run = write_changed(place, edition, path, value)
    converted = outcome("export", run, "--format", "trec", "-o", place / "run.trec", "--overwrite")
    assert converted.code == 0, converted.err
    without_place = re.sub(r"^\S.*?: (?=`|the )", "", said)
    assert len([line for line in converted.err.splitlines() if without_place in line]) == 1, path
    if path not in ("0/references", "0/Model_passages"):
        ranked = next(iter(read_ranking(run).hits.values()))
        assert [hit.id for hit in ranked] == ["bread:1", "bread:2", "music:1"]
    ended = outcome("validate", run, "-t", topics, "--collection", "any")
    assert (ended.code, said in ended.out + ended.err) == (official_verdict(edition, said), True), ended
    assert outcome("validate", run, "-t", topics, "--collection", "any", "--strict").code == 5


def test_each_oddity_is_counted_and_placed(tmp_path: Path) -> None:
    """Where one passage lacks its score, the order of its list counts."""
    path = "turns/0/responses/0/passage_provenance"
    _, run = write_changed(
        tmp_path, "ikat-2024", path, lambda all: [{"id": p["id"], "note": 1} for p in all[:2]] + all[2:]
    )
    oddities = Oddities()
    first, second = read_run(run.read_bytes(), oddities)[2].values()
    place = "$.turns[0].responses[0].passage_provenance[0]"
    assert [str(problem) for problem in oddities.list_problems()] == [
        f"{place}: `score` is absent: the order of the list counts (2 times)",
        f"{place}: the unknown field `note` is left out (2 times)",
        f"{place}: `used` is absent: the passage counts as not used (2 times)",
    ]
    assert [passage.score for passage in first.responses[0].passages or ()] == [3.0, 2.0, 1.0]
    assert [passage.score for passage in second.responses[0].passages or ()] == [9.5, 4.25, 0.125]


# As guidelines print it


def printed(run: Any) -> str:
    """A run with the words of Python and commas after last items."""
    text = json.dumps(run, indent=1).replace("true", "True").replace("false", "False")
    return re.sub(r"(?<=[\"\d}\]e])\n(\s*[}\]])", r",\n\1", text)


def test_a_printed_run_is_read(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2024"])
    good = run_of(read_topics(topics), "ikat-2024")
    good = good.replace(b"holds no gluten", b'is True, false, or None, ]} \\" [x, ]')
    text = printed(json.loads(good)).replace("is True, False,", "is True, false,")
    assert text.count("True") > 2
    run = write(tmp_path / "run.json", text)
    ended = outcome("validate", run, "-t", topics, "--collection", "any")
    assert ended.code == 5
    assert "True, False and None are read as true, false and null (7 times)" in ended.out
    assert "a comma after the last item is left out" in ended.out
    lines = [
        line
        for line in outcome("export", run, "--format", "trec", "-o", tmp_path / "trec").err.splitlines()
        if "True" in line
    ]
    assert len(lines) == 1


@pytest.mark.parametrize("text", ["{'a': 1}", '{"run_name": __import__("os")}', '{"turns": [true, False', "True"])
def test_what_is_no_json_is_refused(text: str, tmp_path: Path) -> None:
    ended = outcome("export", write(tmp_path / "run.json", text), "--format", "trec", "-o", tmp_path / "run.trec")
    assert (ended.code, "is no run" in ended.err) == (5, True)


def test_odd_topics_are_read_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topic = {
        **IKAT_2023[0],
        "persona": "x",
        "turns": [{**turn, "turn_id": str(turn["turn_id"]), "note": 1} for turn in IKAT_2023[0]["turns"]],
    }
    topics = read_topics(write(tmp_path / "topics.json", [topic]))
    assert topics.turn_ids() == ["9-1_1", "9-1_2"]
    said = [record.getMessage().removeprefix(f"{tmp_path / 'topics.json'}: ") for record in caplog.records]
    assert said == [
        "$[0]: the unknown field `persona` is left out",
        "$[0].turns[0]: the unknown field `note` is left out (2 times)",
        "$[0].turns[0].turn_id: `turn_id` is a text, read as a number (2 times)",
    ]


# Which edition


@pytest.mark.parametrize(
    ("head", "statements", "edition"),
    [
        ({"eval_response": True}, [], "ikat-2024"),
        ({"run_type": "only_response"}, [], "ikat-2024"),
        ({}, [1], "ikat-2024"),
        ({}, ["1"], "ikat-2024"),
        ({}, [{"id": "1", "text": "I sing.", "score": 1.0}], "ikat-2023"),
        ({}, [], "ikat-2023"),
    ],
)
def test_runs_of_2023_and_2024_are_told_apart(head: Any, statements: Any, edition: str) -> None:
    turns = [{"turn_id": "1-2_1", "responses": [{"ptkb_provenance": []}]}]
    turns += [{"turn_id": "1-2_3", "responses": [{"ptkb_provenance": statements}]}]
    run = {"run_name": "r", "run_type": "automatic", **head, "turns": turns}
    assert detect_run(json.dumps(run).encode()) == edition


# The topics of 2024 as the guidelines print them


def test_guideline_topics_are_topics_and_a_ranking(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", GUIDELINES)
    found = read_topics(topics)
    assert (found.edition, found.turn_ids()) == ("ikat-2024", ["1-2_1", "1-2_2"])
    assert read_ranking(topics).hits["1-2_2"][0].id == "bread:2"
    assert not read_ranking(topics).labels
    passages = write(tmp_path / "passages.jsonl", TEXTS)
    run, other = tmp_path / "run.json", tmp_path / "other.json"
    without = ("--model", "none", "--embedder", "none", "--passages", passages)
    ended = outcome("answer", topics, "--mode", "only-response", *without, "-o", run)
    assert ended.code == 0, ended.err
    assert outcome("answer", topics, "--ranking", topics, *without, "-o", other).code == 0
    assert other.read_bytes() == run.read_bytes()
    written = json.loads(run.read_text())
    assert (written["run_type"], [turn["turn_id"] for turn in written["turns"]]) == ("only_response", found.turn_ids())
    check = ("-t", topics, "--collection", "any", "--ranking", topics)
    assert outcome("validate", run, *check, "--strict").code == 0
    assert outcome("export", run, "--format", "trec", "-o", tmp_path / "run.trec").code == 0
    assert outcome("eval", "search", run, "-t", topics).code == 0
    for id, said in (("rock:9", "rock:9 is not in the"), ("music:1", "are not in the order of the")):
        broken = changed(written, "turns/1/responses/0/passage_provenance/0/id", id)
        ended = outcome("validate", write(tmp_path / "broken.json", broken), *check)
        assert (ended.code, f"{said} given ranking" in ended.out) == (5, True)


def test_the_guidelines_own_topics() -> None:
    topics = shared_file("guidelines_2024", "example_topics.json")
    assert (read_topics(topics).edition, len(read_topics(topics).rankings)) == ("ikat-2024", 6)
    assert read_ranking(topics).hits["1-2_3"][0].id == "clueweb22-en0030-30-30030:0"


# What validate checks beside


def test_ids_are_those_of_the_collection_unless_any_is_asked_for(tmp_path: Path) -> None:
    topics, run = write_changed(tmp_path, "ikat-2024")
    said = "passages bread:1 is no id of the collection, nor are 2 others"
    loose, strict = (outcome("validate", run, "-t", topics, *more) for more in ((), ("--strict",)))
    assert (loose.code, said in loose.err, strict.code, said in strict.out) == (0, True, 5, True)
    assert said not in outcome("validate", run, "-t", topics, "--collection", "any").err


def test_passages_are_looked_up_in_an_index(tmp_path: Path) -> None:
    topics, run = write_changed(tmp_path, "ikat-2024")
    for lines, code in ((TEXTS, 0), (TEXTS.replace("bread:2", "bread:3"), 5)):
        passages, index = write(tmp_path / "passages.jsonl", lines), tmp_path / f"index{code}"
        assert outcome("index", "build", passages, "-o", index, "--embedder", "none").code == 0
        ended = outcome("validate", run, "-t", topics, "--index", index)
        assert (ended.code, "passages bread:2 is not in the index" in ended.out) == (code, bool(code))


@pytest.mark.parametrize("what", ["a turn is there twice", "no responses", "a text that the official fixer deletes"])
def test_what_the_official_script_of_2025_takes_is_a_warning(what: str, tmp_path: Path) -> None:
    [(where, value, said)] = [row[1:] for row in TABLES["ikat-2025"] if row[0] == what]
    topics, run = write_changed(tmp_path, "ikat-2025", where, value)
    check = ("validate", run, "-t", topics, "--collection", "any")
    loose, strict = outcome(*check), outcome(*check, "--strict")
    assert (loose.code, said in loose.err, strict.code, said in strict.out) == (0, True, 5, True), loose.err


@pytest.mark.parametrize(
    "scores", [[2.0, 2.0, 1.0], [20000.0001, 20000.0, 1.0], [1e30, 1e30, 1e30], [3e38, 1e300, 0.0], [-5e4, -5e4, -5e4]]
)
def test_scores_differ_as_32_bit_floats(scores: list[float]) -> None:
    seen = [c_float(hit.score).value for hit in separate_scores("abc", scores)]
    assert all(after < before for before, after in pairwise(seen))
