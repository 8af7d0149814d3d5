"""Runs out: written from answered turns, read back, and checked. Tables of mutations show that each rule bites.

Every table is tried on a run over two small conversations and, where they are at hand, on runs over the tracks' own
topics, one for each type of run that the edition knows.
"""

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.terminal.progress import turn_progress
from agent.tracks.files import encode_run, read_run, read_topics, run_problems
from agent.tracks.lenient_reading import Oddities, shape_problems
from agent.tracks.registry import load_edition
from agent.tracks.rules import Checks
from agent.tracks.run_records import to_run_turns
from indexes.passage_index import PassageIndex
from schemas.records import (
    Hit,
    Mode,
    Parts,
    Passage,
    Plan,
    Query,
    Response,
    RunInfo,
    ScoredStatement,
    Sentence,
    Statement,
    Topics,
    TurnResult,
)
from tests.broken_runs import LINE, RESPONSE, TABLES, changed, decoded, encoded
from tests.conftest import shared_file
from tests.make_schemas import make_schemas
from tests.test_topics import EDITIONS, write

RICE = Response((Sentence("Rice bread holds no gluten.", ("bread:1",)),))
TIN = Response((Sentence("It keeps in a tin.", ("bread:2",)), Sentence("Rice bread keeps.", ("bread:2",))))


def answered(turn_id: str, responses: tuple[Response, ...] = (RICE,)) -> TurnResult:
    coeliac = Statement("1", "I have coeliac disease.")
    return TurnResult(
        turn_id,
        Query("Which bread can I eat?"),
        selected_statements=() if turn_id.startswith("1_") else (ScoredStatement(coeliac, 0.5),),
        hits=(Hit("bread:1", 9.5), Hit("bread:2", 4.25), Hit("music:1", 0.125)),
        passages=(Passage("bread:1", "Rice bread holds no gluten."), Passage("bread:2", "Rice bread keeps.")),
        responses=responses,
    )


@pytest.fixture
def topics(tmp_path: Path, edition: str) -> Topics:
    return read_topics(write(tmp_path / "topics.json", EDITIONS[edition]))


OURS = RunInfo("our-run")


def run_of(topics: Topics, edition: str, info: RunInfo = OURS) -> bytes:
    return b"".join(encode_run(edition, map(answered, topics.turn_ids()), info))


# What is written is read again


def infos() -> Iterator[tuple[str, RunInfo]]:
    """Every edition with every kind of run that it knows."""
    kinds: dict[str, list[RunInfo]] = {
        "ikat-2023": [RunInfo("r"), RunInfo("r", "manual", labels=True)],
        "ikat-2024": [RunInfo("r", mode) for mode in ("automatic", "manual", "only-response")],
        "ikat-2025": [RunInfo("r", mode, "us") for mode in ("automatic", "manual", "only-response")],
        "qrecc": [RunInfo("", parts=Parts(*(bool(n & bit) for bit in (1, 2, 4)))) for n in range(8)],
    }
    kinds["ikat-2024"] += [RunInfo("r", parts=Parts(answer=False))]
    yield from ((edition, info) for edition, found in kinds.items() for info in found)


@pytest.mark.parametrize(("edition", "info"), list(infos()))
def test_what_is_written_reads_back_the_same(edition: str, info: RunInfo, topics: Topics) -> None:
    several = 1 if edition == "qrecc" else 2
    turns = [answered(turn_id, (RICE, TIN)[:several]) for turn_id in topics.turn_ids()]
    data = b"".join(encode_run(edition, turns, info))
    detected, read_info, read = read_run(data, Oddities())
    read_turns = list(read.values())
    assert (detected, run_problems(data, topics, edition)) == (edition, [])
    said = read_turns[0]
    expected = next(to_run_turns(turns, info))
    assert said.turn_id == expected.turn_id
    assert [response.text for response in said.responses] == [response.text for response in expected.responses]
    assert [hit.id for hit in said.responses[0].used] == (
        [] if edition == "qrecc" or not info.parts.answer else ["bread:1"]
    )
    if edition != "qrecc":
        assert (said.info or read_info) == info


# What is broken is refused

TYPES: dict[str, list[Mode]] = {
    "ikat-2023": ["automatic", "manual"],
    "ikat-2024": ["automatic", "manual", "only-response"],
    "ikat-2025": ["automatic", "manual", "only-response"],
    "qrecc": ["automatic"],
}
each_type = pytest.mark.parametrize(
    ("edition", "mode"), [(edition, mode) for edition in TYPES for mode in TYPES[edition]]
)
TRACK_FILES = {
    "ikat-2023": ("ikat", "2023_dev_topics.json"),
    "ikat-2024": ("ikat", "2024_test_topics.blind.json"),
    "ikat-2025": ("ikat", "2025_test_topics.blind.json"),
    "qrecc": ("qrecc", "questions.json"),
}


def with_statement(edition: str, run: Any, topics: Topics) -> Any:
    """A statement of the person's in the first response, so that it can be broken."""
    if edition == "qrecc":
        return run
    first = topics.topics[0].ptkb[0]
    said: Any = {"id": first.id, "text": first.text, "score": 0.5}
    said = {"ikat-2023": said, "ikat-2024": int(first.id), "ikat-2025": first.text}[edition]
    return changed(run, f"{LINE if edition == 'ikat-2025' else RESPONSE}/ptkb_provenance", [said])


def assert_refused(edition: str, run: Any, topics: Topics) -> None:
    """Every row of the table, each with its message."""
    assert len(TABLES[edition]) >= 25
    run = with_statement(edition, run, topics)
    check = partial(run_problems, topics=topics, edition=edition, checks=Checks("clueweb22", strict=True))
    assert check(encoded(edition, run)) == []
    for what, path, value, message in TABLES[edition]:
        problems = [str(problem) for problem in check(encoded(edition, changed(run, path, value)))]
        assert any(message in problem for problem in problems), (what, problems)


@each_type
def test_a_broken_run_is_refused_with_the_reason(edition: str, mode: Mode, topics: Topics) -> None:
    data = run_of(topics, edition, RunInfo("our-run", mode, labels=mode == "manual"))
    for old, new in (("bread:1", "35-25-01897:1"), ("bread:2", "04-30-08099:2"), ("music:1", "38-84-16253:4")):
        data = data.replace(old.encode(), b"clueweb22-en00" + new.encode())
    assert_refused(edition, decoded(edition, data), topics)


def beginnings(topics: list[Any]) -> list[Any]:
    """Each topic with its first three turns."""
    turns = {"turns", "responses"}
    return [{name: value[:3] if name in turns else value for name, value in topic.items()} for topic in topics]


@each_type
def test_a_run_over_the_tracks_own_topics(edition: str, mode: Mode, public_bed: PassageIndex, tmp_path: Path) -> None:
    """The beginnings of two of the track's conversations answered in each way; valid, and refused when broken."""
    given = json.loads(shared_file(*TRACK_FILES[edition]).read_text())
    cut = [row for row in given if row["Conversation_no"] <= 2] if edition == "qrecc" else beginnings(given[:2])
    topics_file = write(tmp_path / "topics.json", cut)
    origin = EvidenceFiles(public_bed.directory, embedder="none")
    for made in ("automatic", mode) if mode == "only-response" else (mode,):
        outputs = Outputs.choose(topics_file, tmp_path / f"{made}.json", None, resume=False, overwrite=False)
        report = answer_file(RunRequest(topics_file, origin, "none", Plan(k=20), made), outputs, turn_progress)
        assert report.problems == ()
        origin = EvidenceFiles(public_bed.directory, ranking=outputs.run, embedder="none")
    assert_refused(edition, decoded(edition, outputs.run.read_bytes()), read_topics(topics_file))


@pytest.mark.parametrize("edition", ["ikat-2025"])
def test_every_bad_line_is_named(topics: Topics, edition: str) -> None:
    problems = run_problems(b'{"turn_id": "9-1_1"}\n{broken\n', topics)
    places = {problem.where.split(" $")[0] for problem in problems if "missing from" not in problem.what}
    assert places == {"turn 9-1_1 line 1", "line 2"}


@pytest.mark.parametrize("edition", EDITIONS)
def test_what_is_no_json_says_so(topics: Topics, edition: str) -> None:
    for data in (b"", b"{", b"[1", b'{"run_name": "\xff"}', b"\xff"):
        assert run_problems(data, topics)


# The published schemas


def test_the_published_schemas_are_those_of_the_types() -> None:
    for path, text in make_schemas().items():
        assert path.read_bytes() == text, f"{path.name} is out of date: make schemas"


def test_every_schema_has_a_title_a_description_and_an_example_that_it_accepts() -> None:
    for text in make_schemas().values():
        schema = json.loads(text)
        assert schema["title"]
        assert schema["description"].endswith(".")
        [example] = schema["examples"]
        edition, kind = schema["title"].split()
        form = load_edition(edition)
        assert shape_problems(example, form.topics_shape if kind == "topics" else form.run_shape) == []
