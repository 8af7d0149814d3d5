"""What other people's tools write is read, said, judged as the official validator does, and mended.

Each row is a file of ours in a shape that the guidelines, the organisers' samples or published runs have.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.evaluation.scores import read_run_file
from agent.runs.given_ranking import read_ranking
from agent.tracks.oddities import Oddities
from agent.tracks.run_files import detect_run, read_detected_run
from agent.tracks.run_records import as_32_bits, separate_32_bit_scores
from agent.tracks.topic_files import read_topics
from tests.broken_runs import DELETE, changed, decoded, encoded
from tests.conftest import shared_file
from tests.fuzz.bench import Ended, call, settings
from tests.test_runs import run_of
from tests.test_topics import EDITIONS, IKAT_2023, write

GUIDELINES: list[dict[str, Any]] = [
    {
        "number": "1-2",
        "title": "Bread",
        "ptkb": {"1": "I have coeliac disease.", "2": "I play the trumpet."},
        "turns": [
            {
                "turn_id": 1,
                "utterance": "Which bread can I eat?",
                "response": "Rice bread.",
                "ptkb_provenance": [1],
                "response_provenance": ["bread:1"],
                "sample_passage_ranking": ["bread:1", "music:1"],
            },
            {
                "turn_id": 2,
                "utterance": "How long does it keep?",
                "resolved_utterance": "How long does rice bread keep?",
                "sample_passage_ranking": ["bread:2", "bread:1", "music:1"],
            },
        ],
    }
]
TEXTS = """\
{"id": "bread:1", "contents": "Rice bread holds no gluten at all, which suits coeliacs."}
{"id": "bread:2", "contents": "Rice bread keeps for two days in a tin."}
{"id": "music:1", "contents": "A trumpet is made of brass and keeps its tune."}
"""


@pytest.fixture(autouse=True)
def _without_models() -> Iterator[None]:
    with settings():
        yield


def every(*path: str, **fields: Any) -> Callable[[Any], Any]:
    """Sets fields of the objects at a path of names in a list of turns, or deletes them."""

    def change(turns: Any) -> Any:
        found = turns
        for name in path:
            found = [item for one in found for item in (one[name] if isinstance(one[name], list) else [one[name]])]
        for item in found:
            item |= fields
            for name in [name for name, value in fields.items() if value is DELETE]:
                del item[name]
        return turns

    return change


def texts_of_ids(turns: Any) -> Any:
    for response in (response for turn in turns for response in turn["responses"]):
        response["ptkb_provenance"] = [str(id) for id in response["ptkb_provenance"]]
    return turns


PASSAGES = ("responses", "passage_provenance")
STATEMENTS = ("responses", "ptkb_provenance")
# what, the edition, where, the change, what is said, the exit code of validate (the official validator's verdict)
ROWS: list[tuple[str, str, str, Any, str, int]] = [
    ("no score", "ikat-2024", "turns", every(*PASSAGES, score=DELETE), "`score` is absent: the order", 0),
    ("no eval_response", "ikat-2024", "eval_response", DELETE, "`eval_response` is absent: the responses count", 0),
    ("passages with a text", "ikat-2024", "turns", every(*PASSAGES, text="Bread."), "the field `text` is left out", 0),
    ("a score of null", "ikat-2024", "turns", every(*PASSAGES, score=None), "`score` is absent: the order", 0),
    ("statements of null", "ikat-2023", "turns/1/responses/0/ptkb_provenance", None, "`ptkb_provenance` is absent", 0),
    ("no rank", "ikat-2024", "turns", every("responses", rank=DELETE), "`rank` is absent: the order", 0),
    ("statement ids as text", "ikat-2024", "turns", texts_of_ids, "`ptkb_provenance` is a text, read as a number", 0),
    ("ranks as text", "ikat-2024", "turns", every("responses", rank="1"), "`rank` is a text, read as a number", 0),
    ("a field of a passage", "ikat-2024", "turns", every(*PASSAGES, note=1), "the unknown field `note` is left out", 5),
    ("a field of a response", "ikat-2024", "turns", every("responses", model="x"), "the unknown field `model`", 5),
    ("a field of a turn", "ikat-2024", "turns", every(seconds=1.5), "the unknown field `seconds` is left out", 5),
    ("a field of the run", "ikat-2024", "team", "us", "the unknown field `team` is left out", 5),
    ("no score in 2023", "ikat-2023", "turns", every(*PASSAGES, score=DELETE), "`score` is absent: the order", 0),
    ("ids as numbers", "ikat-2023", "turns", every(*STATEMENTS, id=1), "`id` is a number", 5),
    ("a field of a statement", "ikat-2023", "turns", every(*STATEMENTS, x=1), "the unknown field `x` is left out", 5),
    ("rank in 2025", "ikat-2025", "", every("responses", rank=1), "the unknown field `rank` is left out", 0),
    ("a field of a line", "ikat-2025", "", every(model="x"), "the unknown field `model` is left out", 0),
    ("of the metadata", "ikat-2025", "", every("metadata", type="x"), "the unknown field `type` is left out", 0),
    ("a team of a number", "ikat-2025", "", every("metadata", team_id=7), "`team_id` is a number, read as a text", 0),
    ("numbers as text", "qrecc", "", every(Conversation_no="1"), "`Conversation_no` is a text, read as a number", 0),
    ("a field of a row", "qrecc", "", every(Model="x"), "the unknown field `Model` is left out", 0),
]


def outcome(*arguments: object) -> Ended:
    ended = call(*arguments)
    assert not ended.crash, ended.crash
    return ended


@pytest.mark.parametrize(("edition", "path", "value", "said", "code"), [r[1:] for r in ROWS], ids=[r[0] for r in ROWS])
def test_an_odd_run_is_read_said_judged_and_mended(
    edition: str, path: str, value: Any, said: str, code: int, tmp_path: Path
) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS[edition])
    good = run_of(read_topics(topics), edition)
    (tmp_path / "good").write_bytes(good)
    run = tmp_path / "run"
    run.write_bytes(encoded(edition, changed(decoded(edition, good), path, value)))
    expected, found = read_run_file(tmp_path / "good"), read_run_file(run)
    assert [[p.id for p in turn.responses[0].passages or ()] for turn in found[1]] == [
        [p.id for p in turn.responses[0].passages or ()] for turn in expected[1]
    ]
    assert [hit.id for hit in read_ranking(run).hits[expected[1][0].turn_id]] == ["bread:1", "bread:2", "music:1"]

    converted = outcome("convert", run, "-o", tmp_path / "run.trec")
    assert converted.code == 0, converted.err
    assert len([line for line in converted.err.splitlines() if said in line]) == 1
    measured = outcome(
        "eval", "search", run, "--qrels", write(tmp_path / "q", "9-1_1 0 bread:1 1\n0_1 0 bread:1 1\n1_1 0 bread:1 1")
    )
    assert measured.code == 0, measured.err

    check = ("validate", run, "-t", topics, "--collection", "any")
    ended = outcome(*check)
    assert ended.code == code, ended.out + ended.err
    assert said in (ended.out if code else ended.err)
    assert outcome(*check, "--strict").code == 5


def test_each_oddity_is_counted_and_placed(tmp_path: Path) -> None:
    topics = read_topics(write(tmp_path / "topics.json", EDITIONS["ikat-2024"]))
    run = changed(decoded("ikat-2024", run_of(topics, "ikat-2024")), "turns", every(*PASSAGES, note=1, score=DELETE))
    oddities = Oddities()
    for _ in read_detected_run(encoded("ikat-2024", run), oddities)[2]:
        pass
    first = "$.turns[0].responses[0].passage_provenance[0]"
    assert [str(oddity) for oddity in oddities] == [
        f"`score` is absent: the order of the list counts (6 times, first at {first})",
        f"the unknown field `note` is left out (6 times, first at {first})",
    ]


def test_where_one_passage_lacks_its_score_the_order_of_its_list_counts(tmp_path: Path) -> None:
    topics = read_topics(write(tmp_path / "topics.json", EDITIONS["ikat-2024"]))
    path = "turns/0/responses/0/passage_provenance/1/score"
    run = write(tmp_path / "run", changed(decoded("ikat-2024", run_of(topics, "ikat-2024")), path, DELETE))
    first, second = read_run_file(run)[1]
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
    lines = [line for line in outcome("convert", run, "-o", tmp_path / "trec").err.splitlines() if "True" in line]
    assert len(lines) == 1


def test_lines_are_printed_too(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2025"])
    lines = run_of(read_topics(topics), "ikat-2025").splitlines()
    odd = [line.replace(b'"turn_id"', b'"final":True,"turn_id"').replace(b"]}]}", b"]},]}") for line in lines]
    (tmp_path / "run.jsonl").write_bytes(b"\n".join(odd))
    edition, turns = read_run_file(tmp_path / "run.jsonl")
    assert (edition, len(turns)) == ("ikat-2025", 2)


@pytest.mark.parametrize("text", ["{'a': 1}", '{"run_name": __import__("os")}', '{"turns": [true, False', "True"])
def test_what_is_no_json_for_all_that_is_refused(text: str, tmp_path: Path) -> None:
    ended = outcome("convert", write(tmp_path / "run.json", text), "-o", tmp_path / "run.trec")
    assert ended.code == 5
    assert "is no run" in ended.err


def test_odd_topics_are_read_and_said(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topic = {
        **IKAT_2023[0],
        "persona": "x",
        "turns": [{**turn, "turn_id": str(turn["turn_id"]), "note": 1} for turn in IKAT_2023[0]["turns"]],
    }
    topics = read_topics(write(tmp_path / "topics.json", printed([topic])))
    assert topics.turn_ids() == ["9-1_1", "9-1_2"]
    said = [record.getMessage().removeprefix(f"{tmp_path / 'topics.json'}: ") for record in caplog.records]
    assert said[0].startswith("a comma after the last item is left out")
    assert said[1:] == [
        "the unknown field `persona` is left out (once, at $[0])",
        "the unknown field `note` is left out (2 times, first at $[0].turns[0])",
        "`turn_id` is a text, read as a number (2 times, first at $[0].turns[0].turn_id)",
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
    assert outcome("convert", run, "-o", tmp_path / "run.trec").code == 0
    assert outcome("eval", "ptkb", run, "-t", topics).code == 0
    assert outcome("eval", "search", run, "-t", topics).code == 0
    for path, value, said in (
        ("id", "rock:9", "rock:9 is not in the given ranking"),
        ("id", "music:1", "are not in the order of the given ranking"),
    ):
        broken = changed(written, f"turns/1/responses/0/passage_provenance/0/{path}", value)
        ended = outcome("validate", write(tmp_path / "broken.json", broken), *check)
        assert ended.code == 5
        assert said in ended.out


def test_an_only_response_run_without_any_ranking_says_so(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2024"])
    ended = outcome("answer", topics, "--mode", "only-response", "-m", "none", "-o", tmp_path / "run.json")
    assert ended.code == 2
    assert "needs a ranking" in ended.err


def test_the_guidelines_own_files(tmp_path: Path) -> None:
    topics = shared_file("guidelines_2024", "example_topics.json")
    assert (read_topics(topics).edition, len(read_topics(topics).rankings)) == ("ikat-2024", 6)
    assert read_ranking(topics).hits["1-2_3"][0].id == "clueweb22-en0030-30-30030:0"
    for kind in ("automatic", "manual", "only_response"):
        run = shared_file("guidelines_2024", f"sample_{kind}.as_printed.txt")
        assert outcome("convert", run, "-o", tmp_path / f"{kind}.trec").code == 0
        assert outcome("eval", "ptkb", run, "-t", topics).code == 0
        assert read_run_file(run)[0] == "ikat-2024"
        missing = [f"turn {id}: is missing from the run" for id in read_topics(topics).turn_ids()[:5]]
        assert set(missing) <= set(outcome("validate", run, "-t", topics).out.splitlines())


# What validate checks beside


def test_ids_are_those_of_the_collection_unless_any_is_asked_for(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2024"])
    (tmp_path / "run.json").write_bytes(run_of(read_topics(topics), "ikat-2024"))
    check = ("validate", tmp_path / "run.json", "-t", topics)
    said = "passages bread:1 is no id of the collection, nor are 2 others"
    ended = outcome(*check)
    assert (ended.code, said in ended.err) == (0, True)
    ended = outcome(*check, "--strict")
    assert (ended.code, said in ended.out) == (5, True)
    assert said not in outcome(*check, "--collection", "any").err


def test_passages_are_looked_up_in_an_index(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2024"])
    (tmp_path / "run.json").write_bytes(run_of(read_topics(topics), "ikat-2024"))
    for lines, code in ((TEXTS, 0), (TEXTS.replace("bread:2", "bread:3"), 5)):
        passages = write(tmp_path / "passages.jsonl", lines)
        assert (
            outcome("index", "build", passages, "-o", tmp_path / "index", "--embedder", "none", "--overwrite").code == 0
        )
        ended = outcome("validate", tmp_path / "run.json", "-t", topics, "--index", tmp_path / "index")
        assert ended.code == code
        assert ("passages bread:2 is not in the index" in ended.out) == bool(code)


TAKEN_BY_2025: list[tuple[str, str, Any, str]] = [
    # what the official script of 2025 takes: where, its value there, what is said
    ("a turn twice", "", lambda lines: [*lines, lines[0]], "is there already"),
    ("no responses", "0/responses", [], "text is empty"),
    ("too long, which it trims", "0/responses/0/text", "Rice bread. " * 126, "the official fixer deletes 1 of 1"),
]


@pytest.mark.parametrize(
    ("where", "value", "said"), [row[1:] for row in TAKEN_BY_2025], ids=[r[0] for r in TAKEN_BY_2025]
)
def test_what_the_official_script_of_2025_takes_is_a_warning(where: str, value: Any, said: str, tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2025"])
    good = decoded("ikat-2025", run_of(read_topics(topics), "ikat-2025"))
    (tmp_path / "run.jsonl").write_bytes(encoded("ikat-2025", changed(good, where, value)))
    check = ("validate", tmp_path / "run.jsonl", "-t", topics, "--collection", "any")
    ended = outcome(*check)
    assert (ended.code, said in ended.err) == (0, True), ended.out + ended.err
    ended = outcome(*check, "--strict")
    assert (ended.code, said in ended.out) == (5, True), ended.out + ended.err
    if where:  # which of two rankings of a turn would be meant?
        assert outcome("convert", tmp_path / "run.jsonl", "-o", tmp_path / "run.trec").code == 0


def test_all_used_and_all_chosen_are_warnings_even_where_it_is_strict(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2024"])
    run = changed(decoded("ikat-2024", run_of(read_topics(topics), "ikat-2024")), "turns", every(*PASSAGES, used=True))
    run = write(tmp_path / "run.json", changed(run, "turns/0/responses/0/ptkb_provenance", [1, 2]))
    ended = outcome("validate", run, "-t", topics, "--collection", "any", "--strict")
    assert ended.code == 0
    assert "turn 0_1 $.turns[0].responses[0]: passages are all used (3)" in ended.err
    assert "turn 0_1 $.turns[0].responses[0]: ptkb_provenance lists the whole PTKB (2 statements)" in ended.err


@pytest.mark.parametrize(
    "scores", [[2.0, 2.0, 1.0], [20000.0001, 20000.0, 1.0], [1e30, 1e30, 1e30], [3e38, 1e300, 0.0], [-5e4, -5e4, -5e4]]
)
def test_scores_differ_as_32_bit_floats(scores: list[float]) -> None:
    hits = separate_32_bit_scores((str(n), score) for n, score in enumerate(scores))
    seen = [as_32_bits(hit.score) for hit in hits]
    assert all(after < before for before, after in pairwise(seen))


def test_a_name_with_spaces_is_refused(tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", EDITIONS["ikat-2024"])
    run = changed(decoded("ikat-2024", run_of(read_topics(topics), "ikat-2024")), "run_name", "our run")
    check = ("-t", topics, "--collection", "any", "--strict")
    assert outcome("validate", write(tmp_path / "run.json", run), *check).code == 5
    ended = outcome("answer", topics, "-m", "none", "--run-name", "our run", "-o", tmp_path / "new.json")
    assert (ended.code, "a run's name has no spaces" in ended.err) == (2, True)
