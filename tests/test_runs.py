"""Runs out: written from answered turns, read back, and checked. A table of mutations shows that each rule bites."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agent.tracks import TRACKS, make_run, read_topics, run_problems, shape_problems
from agent.tracks.published import published
from schemas.records import Answered, Chosen, Hit, Passage, Query, Response, RunInfo, Sentence, Statement, Topics
from tests.test_topics import EDITIONS, write

RunDict = dict[str, Any]


def answered(turn_id: str) -> Answered:
    return Answered(
        turn_id,
        Query("Which bread can I eat?"),
        personal=(Chosen(Statement("1", "I have coeliac disease."), 0.5),),
        hits=(Hit("bread:1", 9.5), Hit("bread:2", 4.25), Hit("music:1", 0.125)),
        passages=(Passage("bread:1", "Rice bread holds no gluten."), Passage("bread:2", "Rice bread keeps.")),
        response=Response((Sentence("Rice bread holds no gluten.", ("bread:1",)),)),
    )


@pytest.fixture
def topics(tmp_path: Path, edition: str) -> Topics:
    return read_topics(write(tmp_path / "topics.json", EDITIONS[edition]))


def run_of(topics: Topics, edition: str) -> bytes:
    return make_run(edition, [answered(turn_id) for turn_id in topics.turn_ids()], RunInfo("our-run"))


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_run_is_valid_and_reads_back(edition: str, topics: Topics) -> None:
    data = run_of(topics, edition)
    module = TRACKS[edition]
    assert run_problems(data, topics) == []
    encode = msgspec.json.Encoder().encode_lines if module.ENDING == ".jsonl" else msgspec.json.encode
    assert encode(module.read_run(data)) == data


def test_what_each_edition_says_of_a_turn(tmp_path: Path) -> None:
    topics = {name: read_topics(write(tmp_path / f"{name}.json", EDITIONS[name])) for name in EDITIONS}
    run_2023, run_2024 = (json.loads(run_of(topics[f"ikat-{year}"], f"ikat-{year}")) for year in (2023, 2024))
    line_2025 = json.loads(run_of(topics["ikat-2025"], "ikat-2025").splitlines()[0])

    assert run_2023["turns"][0]["turn_id"] == "9-1_1"
    assert run_2023["turns"][0]["responses"][0]["ptkb_provenance"] == [
        {"id": "1", "text": "I have coeliac disease.", "score": 0.5}
    ]
    assert run_2023["turns"][0]["responses"][0]["passage_provenance"][0] == {
        "id": "bread:1",
        "score": 9.5,
        "used": True,
        "text": "Rice bread holds no gluten.",
    }
    assert (run_2024["turns"][0]["turn_id"], run_2024["eval_response"]) == ("0_1", True)
    assert run_2024["turns"][0]["responses"][0]["ptkb_provenance"] == [1]
    assert run_2024["turns"][0]["responses"][0]["passage_provenance"] == [
        {"id": "bread:1", "score": 9.5, "used": True},
        {"id": "bread:2", "score": 4.25, "used": False},
        {"id": "music:1", "score": 0.125, "used": False},
    ]
    assert line_2025 == {
        "metadata": {"team_id": "convagent", "run_id": "our-run", "run_type": "automatic"},
        "turn_id": "9-1_1",
        "references": {"bread:1": 9.5, "bread:2": 4.25, "music:1": 0.125},
        "responses": [
            {
                "text": "Rice bread holds no gluten.",
                "citations": {"bread:1": 9.5},
                "ptkb_provenance": ["I have coeliac disease."],
            }
        ],
    }


def first(run: RunDict) -> RunDict:
    response: RunDict = run["turns"][0]["responses"][0]
    return response


def put(target: Any, key: Any, value: Any) -> None:
    target[key] = value


MANY = " ".join(["word"] * 251)
MUTATIONS: list[tuple[str, Callable[[RunDict], Any], str]] = [
    # what is done to a valid 2024 run, and what must be said of it
    ("a turn is missing", lambda run: run["turns"].pop(), "turn 0_2: is missing from the run"),
    ("a turn is extra", lambda run: put(run["turns"][1], "turn_id", "0_7"), "turn 0_7 $.turns[1]: is not a turn"),
    ("a turn is there twice", lambda run: put(run["turns"][1], "turn_id", "0_1"), "turn 0_1 $.turns[0]: stands 2"),
    ("a turn id is no turn id", lambda run: put(run["turns"][0], "turn_id", "first"), "$.turns[0].turn_id"),
    ("a rank is 0", lambda run: put(first(run), "rank", 0), "$.turns[0].responses[0].rank"),
    ("ranks begin at 2", lambda run: put(first(run), "rank", 2), "ranks are [2]"),
    ("the text is empty", lambda run: put(first(run), "text", " "), "text is empty"),
    ("the text is too long", lambda run: put(first(run), "text", MANY), "text has 251 words"),
    ("many tokens, few words", lambda run: put(first(run), "text", "a,b," * 63), "text has 252 tokens by spaCy"),
    ("no passages", lambda run: put(first(run), "passage_provenance", []), "passages are none"),
    (
        "a passage twice",
        lambda run: put(first(run)["passage_provenance"][1], "id", "bread:1"),
        "passages list bread:1 2 times",
    ),
    (
        "equal scores",
        lambda run: put(first(run)["passage_provenance"][1], "score", 9.5),
        "bread:2 scores 9.5, not below bread:1",
    ),
    (
        "nothing is used",
        lambda run: put(first(run)["passage_provenance"][0], "used", False),
        "has no passage marked used",
    ),
    (
        "used is missing",
        lambda run: first(run)["passage_provenance"][0].pop("used"),
        "'used' is a required property",
    ),
    ("a score is text", lambda run: put(first(run)["passage_provenance"][0], "score", "9"), "is not of type 'number'"),
    ("statement 0", lambda run: put(first(run), "ptkb_provenance", [0]), "id 0 is not in the topic's PTKB"),
    ("a statement twice", lambda run: put(first(run), "ptkb_provenance", [1, 1]), "lists a statement twice"),
    ("statements as texts", lambda run: put(first(run), "ptkb_provenance", ["x"]), "is not of type 'integer'"),
    ("an unknown run type", lambda run: put(run, "run_type", "magic"), "'magic' is not one of"),
    ("no run name", lambda run: put(run, "run_name", ""), "$.run_name: is empty"),
    ("no eval_response", lambda run: run.pop("eval_response"), "'eval_response' is a required property"),
    ("an unknown field", lambda run: put(run, "team", "x"), "'team' was unexpected"),
    ("no responses", lambda run: put(run["turns"][0], "responses", []), "$.turns[0].responses"),
    (
        "too many passages",
        lambda run: put(
            first(run),
            "passage_provenance",
            [{"id": f"p:{n}", "score": -n, "used": n == 0} for n in range(1001)],
        ),
        "$.turns[0].responses[0].passage_provenance",
    ),
]


@pytest.mark.parametrize(("change", "message"), [row[1:] for row in MUTATIONS], ids=[row[0] for row in MUTATIONS])
@pytest.mark.parametrize("edition", ["ikat-2024"])
def test_a_broken_run_is_refused_with_the_reason(
    change: Callable[[RunDict], Any], message: str, topics: Topics, edition: str
) -> None:
    run = json.loads(run_of(topics, edition))
    change(run)
    problems = [str(problem) for problem in run_problems(json.dumps(run).encode(), topics)]
    assert any(message in problem for problem in problems), problems


@pytest.mark.parametrize("edition", ["ikat-2025"])
def test_the_rules_that_only_2025_can_break(topics: Topics, edition: str) -> None:
    lines = [json.loads(line) for line in run_of(topics, edition).splitlines()]
    lines[0]["responses"][0]["citations"] = {"rock:9": 1.0}
    lines[1]["responses"][0]["ptkb_provenance"] = ["I am somebody else."]
    problems = [str(p) for p in run_problems("\n".join(map(json.dumps, lines)).encode(), topics)]
    assert problems == [
        "turn 9-1_1 line 1 $.responses[0]: citations rock:9 is not among the references",
        "turn 9-1_2 line 2 $.responses[0]: ptkb_provenance 'I am somebody else.' is no statement of the topic's PTKB",
    ]


@pytest.mark.parametrize("edition", ["ikat-2025"])
def test_every_bad_line_is_named(topics: Topics, edition: str) -> None:
    problems = run_problems(b'{"turn_id": "9-1_1"}\n{broken\n', topics)
    assert {problem.where.split(" $")[0] for problem in problems} == {"turn 9-1_1 line 1", "line 2"}


@pytest.mark.parametrize("edition", ["ikat-2023"])
def test_the_rules_that_only_2023_can_break(topics: Topics, edition: str) -> None:
    run = json.loads(run_of(topics, edition))
    first(run)["ptkb_provenance"][0]["text"] = "I have no disease."
    run["turns"][1]["responses"][0]["ptkb_provenance"].append({"id": "2", "text": "I play the trumpet.", "score": 7.0})
    problems = [str(problem) for problem in run_problems(json.dumps(run).encode(), topics)]
    assert problems == [
        "turn 9-1_1 $.turns[0].responses[0]: ptkb_provenance 'I have no disease.' is no statement of the topic's PTKB",
        "turn 9-1_2 $.turns[1].responses[0]: ptkb_provenance is not ordered by score",
    ]


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_published_schema_accepts_what_we_write(edition: str, topics: Topics) -> None:
    module = TRACKS[edition]
    data = run_of(topics, edition)
    documents = data.splitlines() if module.ENDING == ".jsonl" else [data]
    shape = module.RunLine if module.ENDING == ".jsonl" else module.Run
    assert [problem for document in documents for problem in shape_problems(json.loads(document), shape)] == []
    assert shape_problems(EDITIONS[edition], module.TopicsFile) == []


def test_the_published_schemas_are_those_of_the_types() -> None:
    for path, text in published().items():
        assert path.read_bytes() == text, f"{path.name} is out of date: make schemas"
