"""Runs out: written from answered turns, read back, and checked. Tables of mutations show that each rule bites.

Every table is tried on a run over two small conversations and, where they are at hand, on runs over the tracks' own
topics, one for each type of run that the edition knows.
"""

import copy
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from agent.answering import Outputs, Request, answer_file
from agent.console import turn_progress
from agent.sources import Origin
from agent.tracks import TRACKS, read_topics, shape_problems
from agent.tracks.published import published
from agent.tracks.run_files import make_run, read_run, run_problems, write_run
from agent.tracks.runs import run_turns
from indexes.passages import PassageIndex
from schemas.records import (
    Answered,
    Chosen,
    Hit,
    Mode,
    Parts,
    Passage,
    Plan,
    Query,
    Response,
    RunInfo,
    Sentence,
    Statement,
    Topics,
)
from tests.conftest import shared_file
from tests.test_topics import EDITIONS, write

RICE = Response((Sentence("Rice bread holds no gluten.", ("bread:1",)),))
TIN = Response((Sentence("It keeps in a tin.", ("bread:2",)), Sentence("Rice bread keeps.", ("bread:2",))))


def answered(turn_id: str, responses: tuple[Response, ...] = (RICE,)) -> Answered:
    coeliac = Statement("1", "I have coeliac disease.")
    return Answered(
        turn_id,
        Query("Which bread can I eat?"),
        personal=() if turn_id.startswith("1_") else (Chosen(coeliac, 0.5),),
        hits=(Hit("bread:1", 9.5), Hit("bread:2", 4.25), Hit("music:1", 0.125)),
        passages=(Passage("bread:1", "Rice bread holds no gluten."), Passage("bread:2", "Rice bread keeps.")),
        responses=responses,
    )


@pytest.fixture
def topics(tmp_path: Path, edition: str) -> Topics:
    return read_topics(write(tmp_path / "topics.json", EDITIONS[edition]))


OURS = RunInfo("our-run")


def run_of(topics: Topics, edition: str, info: RunInfo = OURS) -> bytes:
    return b"".join(make_run(edition, map(answered, topics.turn_ids()), info))


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
    data = b"".join(make_run(edition, turns, info))
    read_info, read = read_run(edition, data)
    read_turns = list(read)
    assert run_problems(data, topics, edition) == []
    assert b"".join(write_run(edition, read_turns, read_turns[0].info or read_info)) == data
    said = read_turns[0]
    expected = next(run_turns(turns, info))
    assert said.turn_id == expected.turn_id
    assert [response.text for response in said.responses] == [response.text for response in expected.responses]
    assert [hit.id for hit in said.responses[0].used] == (
        [] if edition == "qrecc" or not info.parts.answer else ["bread:1"]
    )
    if edition != "qrecc":
        assert (said.info or read_info) == info


def test_what_each_edition_says_of_a_turn(tmp_path: Path) -> None:
    topics = {name: read_topics(write(tmp_path / f"{name}.json", EDITIONS[name])) for name in EDITIONS}
    run_2023, run_2024, rows = (json.loads(run_of(topics[name], name)) for name in ("ikat-2023", "ikat-2024", "qrecc"))
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
    assert rows[0] == {
        "Conversation_no": 1,
        "Turn_no": 1,
        "Model_rewrite": "Which bread can I eat?",
        "Model_passages": {"bread:1": 9.5, "bread:2": 4.25, "music:1": 0.125},
        "Model_answer": "Rice bread holds no gluten.",
    }


@pytest.mark.parametrize("edition", ["qrecc"])
def test_what_is_left_out_of_a_row_is_not_there(topics: Topics, edition: str) -> None:
    rows = json.loads(run_of(topics, edition, RunInfo("", parts=Parts(rewrite=False, answer=False))))
    assert [list(row) for row in rows] == [["Conversation_no", "Turn_no", "Model_passages"]] * 2


# Mutations

DELETE = object()
NEW = "clueweb22-en0000-00-00000:1"  # a passage that no run lists
MANY = " ".join(["word"] * 251)
Change = tuple[str, str, Any, str]  # what, where (a path), the new value or a function of the old, what must be said


def rank(id: str, **fields: Any) -> Callable[[list[Any]], list[Any]]:
    """Append a passage to a list of them."""
    return lambda passages: [*passages, {**passages[-1], "id": id, "used": False, "score": -99.0, **fields}]


def equal_scores(passages: list[Any]) -> list[Any]:
    return [passages[0], {**passages[1], "score": passages[0]["score"]}, *passages[2:]]


def none_used(passages: list[Any]) -> list[Any]:
    return [{**passage, "used": False} for passage in passages]


def thousand(passages: list[Any]) -> list[Any]:
    return [{**passages[0], "id": f"clueweb22-en0000-00-00000:{n}", "score": -float(n)} for n in range(1001)]


RESPONSE = "turns/0/responses/0"
PASSAGES = f"{RESPONSE}/passage_provenance"
STATEMENTS = f"{RESPONSE}/ptkb_provenance"
BOTH: list[Change] = [
    ("a turn is missing", "turns/1", DELETE, "is missing from the run"),
    ("a turn is extra", "turns/1/turn_id", "77_1", "turn 77_1 $.turns[1]: is not a turn of these topics"),
    ("a turn is there twice", "turns", lambda turns: [*turns, turns[0]], "is there already"),
    ("a turn without an id", "turns/0/turn_id", DELETE, "'turn_id' is a required property"),
    ("a turn with an empty id", "turns/0/turn_id", "", "$.turns[0].turn_id"),
    ("a turn of another kind", "turns/0", [], "$.turns[0]: [] is not of type 'object'"),
    ("an unknown field of a turn", "turns/0/score", 1, "'score' was unexpected"),
    ("no turns", "turns", DELETE, "'turns' is a required property"),
    ("no responses", "turns/0/responses", [], "$.turns[0].responses"),
    ("a rank is 0", f"{RESPONSE}/rank", 0, "$.turns[0].responses[0].rank"),
    ("ranks begin at 2", f"{RESPONSE}/rank", 2, "ranks are [2]"),
    ("two first responses", "turns/0/responses", lambda found: found * 2, "ranks are [1, 1], expected 1 to 2"),
    ("the text is empty", f"{RESPONSE}/text", " ", "text is empty"),
    ("the text is missing", f"{RESPONSE}/text", DELETE, "'text' is a required property"),
    ("the text is too long", f"{RESPONSE}/text", MANY, "text has 251 words"),
    ("many tokens, few words", f"{RESPONSE}/text", "a,b," * 63, "text has 252 tokens by spaCy"),
    ("no passages", PASSAGES, [], "passages are none"),
    ("a passage twice", PASSAGES, lambda found: rank(found[0]["id"])(found), " 2 times"),
    ("equal scores", PASSAGES, equal_scores, ", not below "),
    ("a rising score", PASSAGES, rank(NEW, score=99999.0), "scores 99999.0, not below"),
    ("an id that is none of the collection", PASSAGES, rank("wiki:1"), "passages wiki:1 is no id of the collection"),
    ("an empty passage id", PASSAGES, rank(""), ".id: "),
    ("too many passages", PASSAGES, thousand, "passage_provenance"),
    ("nothing is used", PASSAGES, none_used, "has no passage marked used"),
    ("used is missing", f"{PASSAGES}/0/used", DELETE, "'used' is a required property"),
    ("used is a word", f"{PASSAGES}/0/used", "yes", "'yes' is not of type 'boolean'"),
    ("a score is text", f"{PASSAGES}/0/score", "9", "'9' is not of type 'number'"),
    ("no run name", "run_name", "", "$.run_name: is empty"),
    ("an unknown run type", "run_type", "magic", "'magic' is not one of"),
    ("an unknown field", "team", "x", "'team' was unexpected"),
]
OF_2024: list[Change] = [
    *BOTH,
    ("a turn id is no turn id", "turns/0/turn_id", "first", "$.turns[0].turn_id"),
    ("statement 0", STATEMENTS, [0], "id 0 is not in the topic's PTKB"),
    ("a statement twice", STATEMENTS, lambda ids: [ids[0], ids[0]], "lists a statement twice"),
    ("statements as texts", STATEMENTS, ["x"], "is not of type 'integer'"),
    ("no eval_response", "eval_response", DELETE, "'eval_response' is a required property"),
    ("the run type of 2025", "run_type", "generation-only", "'generation-only' is not one of"),
]
OF_2023: list[Change] = [
    *BOTH,
    ("statement 99", f"{STATEMENTS}/0/id", "99", "id 99 is not in the topic's PTKB"),
    ("a statement's text is another's", f"{STATEMENTS}/0/text", "I am Napoleon.", "is no statement of the topic's"),
    ("a statement twice", STATEMENTS, lambda found: [found[0], found[0]], "lists a statement twice"),
    ("a statement without a score", f"{STATEMENTS}/0/score", DELETE, "'score' is a required property"),
    (
        "statements out of order",
        STATEMENTS,
        lambda found: [{**found[0], "score": 0.0}, {**found[0], "id": "2", "score": 1.0}],
        "is not ordered by score",
    ),
    ("the run type of 2024", "run_type", "only_response", "'only_response' is not one of"),
    ("the field of 2024", "eval_response", True, "'eval_response' was unexpected"),
]
LINE = "0/responses/0"
OF_2025: list[Change] = [
    ("a turn is missing", "1", DELETE, "is missing from the run"),
    ("a turn is extra", "1/turn_id", "77-7_1", "turn 77-7_1 line 2 $: is not a turn of these topics"),
    ("a turn is there twice", "", lambda lines: [*lines, lines[0]], "is there already"),
    ("a line that is no object", "0", 5, "line 1 $: 5 is not of type 'object'"),
    ("no turn id", "0/turn_id", DELETE, "'turn_id' is a required property"),
    ("a turn id that is a number", "0/turn_id", 9, "line 1 $.turn_id: 9 is not of type 'string'"),
    ("no metadata", "0/metadata", DELETE, "'metadata' is a required property"),
    ("no team", "0/metadata/team_id", DELETE, "'team_id' is a required property"),
    ("an empty run id", "0/metadata/run_id", "", "$.metadata.run_id: is empty"),
    ("no run type", "0/metadata/run_type", DELETE, "'run_type' is a required property"),
    ("the run type of 2024", "0/metadata/run_type", "only_response", "'only_response' is not one of"),
    ("another run's line", "1/metadata/run_id", "theirs", "metadata differ from those of line 1"),
    ("a line of another type", "1/metadata/team_id", "them", "metadata differ from those of line 1"),
    ("references as a list", "0/references", ["a:1"], "['a:1'] is not of type 'object'"),
    ("no references", "0/references", {}, "passages are none"),
    ("references are missing", "0/references", DELETE, "'references' is a required property"),
    (
        "a score is text",
        "0/references",
        lambda found: {**found, NEW: "9"},
        "is not of type 'number'",
    ),
    ("equal scores", "0/references", lambda found: dict.fromkeys(found, 1.0), "scores 1.0, not below"),
    ("a rising score", "0/references", lambda found: {**found, NEW: 99999.0}, "not below"),
    ("too many references", "0/references", lambda _: {f"a:{n}": -n for n in range(1001)}, "line 1 $.references"),
    (
        "an id that is none of the collection",
        "0/references",
        lambda found: {**found, "wiki:1": -99.0},
        "wiki:1 is no id",
    ),
    ("no responses", "0/responses", [], "line 1 $.responses"),
    ("the text is empty", f"{LINE}/text", "", "text is empty"),
    ("the text is missing", f"{LINE}/text", DELETE, "'text' is a required property"),
    ("a text that the official fixer deletes", f"{LINE}/text", MANY, "the official fixer deletes 1 of 1"),
    (
        "responses that are too long together",
        "0/responses",
        lambda found: [{**found[0], "text": " ".join(["word"] * 130)}] * 2,
        "the responses have 260 words together: the official fixer deletes 1 of 2",
    ),
    ("no citations field", f"{LINE}/citations", DELETE, "'citations' is a required property"),
    ("citations as a list", f"{LINE}/citations", ["a:1"], "['a:1'] is not of type 'object'"),
    ("nothing is cited", f"{LINE}/citations", {}, "has no passage marked used, or cited"),
    ("a citation that is not listed", f"{LINE}/citations", {"rock:9": 1.0}, "rock:9 is not among the references"),
    ("no statements field", f"{LINE}/ptkb_provenance", DELETE, "'ptkb_provenance' is a required property"),
    ("a statement of somebody else", f"{LINE}/ptkb_provenance", ["I am Napoleon."], "is no statement of the topic's"),
    ("a statement twice", f"{LINE}/ptkb_provenance", lambda texts: [texts[0], texts[0]], "lists a statement twice"),
    ("statements as ids", f"{LINE}/ptkb_provenance", [1], "1 is not of type 'string'"),
    ("an unknown field", f"{LINE}/rank", 1, "'rank' was unexpected"),
]
OF_QRECC: list[Change] = [
    ("a turn is missing", "1", DELETE, "is missing from the run"),
    ("a turn is extra", "1/Turn_no", 77, "_77 $[1]: is not a turn of these topics"),
    ("another conversation", "1/Conversation_no", 777, "turn 777_"),
    ("a turn is there twice", "", lambda rows: [*rows, rows[0]], "is there already"),
    ("no rows", "", [], "is missing from the run"),
    ("an object instead of rows", "", {"turns": []}, "is not of type 'array'"),
    ("a row that is no object", "0", "row", "$[0]: 'row' is not of type 'object'"),
    ("a row that is null", "0", None, "$[0]: None is not of type 'object'"),
    ("no conversation", "0/Conversation_no", DELETE, "'Conversation_no' is a required property"),
    ("no turn", "0/Turn_no", DELETE, "'Turn_no' is a required property"),
    ("a conversation as text", "0/Conversation_no", "1", "$[0].Conversation_no: '1' is not of type 'integer'"),
    ("a turn as text", "0/Turn_no", "1", "$[0].Turn_no: '1' is not of type 'integer'"),
    ("half a turn", "0/Turn_no", 1.5, "$[0].Turn_no: 1.5 is not of type 'integer'"),
    ("turn 0", "0/Turn_no", 0, "$[0].Turn_no: 0 is less than the minimum of 1"),
    ("conversation -1", "0/Conversation_no", -1, "$[0].Conversation_no: -1 is less than the minimum of 0"),
    ("a rewrite that is a number", "0/Model_rewrite", 5, "$[0].Model_rewrite: 5 is not of type 'string'"),
    ("a rewrite that is null", "0/Model_rewrite", None, "$[0].Model_rewrite: None is not of type 'string'"),
    ("an answer that is a list", "0/Model_answer", ["a"], "$[0].Model_answer: ['a'] is not of type 'string'"),
    ("an answer that is null", "0/Model_answer", None, "$[0].Model_answer: None is not of type 'string'"),
    ("passages as a list", "0/Model_passages", ["a:1"], "$[0].Model_passages: ['a:1'] is not of type 'object'"),
    ("passages that are null", "0/Model_passages", None, "$[0].Model_passages: None is not of type 'object'"),
    ("a score as text", "0/Model_passages", {"a:1": "9"}, "is not of type 'number'"),
    ("a score that is null", "0/Model_passages", {"a:1": None}, "is not of type 'number'"),
    ("an empty passage id", "0/Model_passages", {"": 1.0}, "$[0].Model_passages"),
    ("equal scores", "0/Model_passages", {"a:1": 1.0, "a:2": 1.0}, "a:2 scores 1.0, not below a:1"),
    ("a rising score", "0/Model_passages", {"a:1": 1.0, "a:2": 2.0}, "a:2 scores 2.0, not below a:1"),
    ("an id that is none of the collection", "0/Model_passages", {"wiki:1": 1.0}, "wiki:1 is no id of the collection"),
    ("the question in the run", "0/Question", "Why?", "'Question' was unexpected"),
    ("a label in the run", "0/Truth_answer", "", "'Truth_answer' was unexpected"),
]
TABLES: dict[str, list[Change]] = {
    "ikat-2023": OF_2023,
    "ikat-2024": OF_2024,
    "ikat-2025": OF_2025,
    "qrecc": OF_QRECC,
}
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


def changed(document: Any, path: str, value: Any) -> Any:
    """The document with what is at the path replaced, or deleted."""
    whole = {"": copy.deepcopy(document)}
    *steps, last = ["", *path.split("/")] if path else [""]
    target: Any = whole
    for step in steps:
        target = target[int(step) if isinstance(target, list) else step]
    key = int(last) if isinstance(target, list) else last
    if value is DELETE:
        del target[key]
    else:
        target[key] = value(target[key]) if callable(value) else value
    return whole[""]


def decoded(edition: str, data: bytes) -> Any:
    return [json.loads(line) for line in data.splitlines()] if edition == "ikat-2025" else json.loads(data)


def encoded(edition: str, run: Any) -> bytes:
    if edition == "ikat-2025" and isinstance(run, list):
        return "\n".join(map(json.dumps, run)).encode()
    return json.dumps(run).encode()


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
    check = partial(run_problems, topics=topics, edition=edition, collection="clueweb22")
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
    origin = Origin(public_bed.directory, embedder="none")
    for made in ("automatic", mode) if mode == "only-response" else (mode,):
        outputs = Outputs.choose(topics_file, tmp_path / f"{made}.json", None, resume=False, overwrite=False)
        report = answer_file(Request(topics_file, origin, "none", Plan(k=20), made), outputs, turn_progress)
        assert report.problems == ()
        origin = Origin(public_bed.directory, ranking=outputs.run, embedder="none")
    assert_refused(edition, decoded(edition, outputs.run.read_bytes()), read_topics(topics_file))


@pytest.mark.parametrize("edition", ["ikat-2025"])
def test_every_bad_line_is_named(topics: Topics, edition: str) -> None:
    problems = run_problems(b'{"turn_id": "9-1_1"}\n{broken\n', topics)
    places = {problem.where.split(" $")[0] for problem in problems if "missing from" not in problem.what}
    assert places == {"turn 9-1_1 line 1", "line 2"}


@pytest.mark.parametrize("edition", EDITIONS)
@pytest.mark.parametrize("data", [b"", b"{", b"[1", b'{"run_name": "\xff"}', b"\xff"])
def test_what_is_no_json_says_so(data: bytes, topics: Topics, edition: str) -> None:
    assert run_problems(data, topics)


@pytest.mark.parametrize("edition", ["ikat-2024"])
def test_a_run_that_is_not_judged_may_say_nothing(topics: Topics, edition: str) -> None:
    data = run_of(topics, edition, RunInfo("r", parts=Parts(answer=False)))
    run = json.loads(data)
    assert run["eval_response"] is False
    assert {turn["responses"][0]["text"] for turn in run["turns"]} == {""}
    assert run_problems(data, topics) == []


# The published schemas


@pytest.mark.parametrize("edition", EDITIONS)
def test_the_published_schema_accepts_what_we_write(edition: str, topics: Topics) -> None:
    module = TRACKS[edition]
    data = run_of(topics, edition)
    documents = data.splitlines() if module.ENDING == ".jsonl" else [data]
    assert [problem for document in documents for problem in shape_problems(json.loads(document), module.Run)] == []
    assert shape_problems(EDITIONS[edition], module.TopicsFile) == []


def test_the_published_schemas_are_those_of_the_types() -> None:
    for path, text in published().items():
        assert path.read_bytes() == text, f"{path.name} is out of date: make schemas"


def test_every_schema_has_a_title_a_description_and_an_example_that_it_accepts() -> None:
    for text in published().values():
        schema = json.loads(text)
        assert schema["title"]
        assert schema["description"].endswith(".")
        [example] = schema["examples"]
        module = TRACKS[schema["title"].split()[0]]
        shape = module.TopicsFile if schema["title"].endswith("topics") else module.Run
        assert shape_problems(example, shape) == []
