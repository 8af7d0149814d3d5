"""A given ranking in every form that it comes in, and what is said where it does not fit."""

import gzip
import json
import logging
from pathlib import Path

import pytest

from agent.runs.evidence import Evidence, EvidenceFiles, open_evidence
from agent.runs.given_ranking import read_ranking
from agent.tracks.files import encode_run, read_topics
from indexes.passage_index import PassageIndex
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Hit, Plan, RunInfo, Topics
from tests import within
from tests.conftest import EXAMPLES
from tests.test_runs import answered
from tests.test_topics import EDITIONS, IKAT_2024, write

TREC = """\
# a comment
0_1 Q0 bread:2 2 4.25 theirs
0_1 Q0 bread:1 1 9.5 theirs
0_2	Q0	music:1	1	0.5	theirs
"""
HITS = {"0_1": (Hit("bread:1", 9.5), Hit("bread:2", 4.25)), "0_2": (Hit("music:1", 0.5),)}
PASSAGES = """\
{"id": "bread:1", "contents": "Rice bread holds no gluten at all, which suits coeliacs."}
{"id": "bread:2", "contents": "Rice bread keeps for two days in a tin."}
{"id": "music:1", "contents": "A trumpet is made of brass and keeps its tune."}
{"id": "other:1", "contents": "Something else."}
"""


@pytest.fixture
def topics(tmp_path: Path) -> Topics:
    return read_topics(write(tmp_path / "topics.json", IKAT_2024))


def test_a_trec_run_is_read_in_the_order_of_trec_eval(tmp_path: Path) -> None:
    """Of scores that are one 32-bit float the greater id is first, whatever the ranks say."""
    for text in (TREC, TREC.replace("\n", "\r\n")):
        assert read_ranking(write(tmp_path / "ranking", text)).hits == HITS
    ranking = read_ranking(write(tmp_path / "r", "1_1 Q0 a 1 2.00000001 t\n1_1 Q0 b 2 2.0 t\n1_1 Q0 c 3 3.0 t\n"))
    assert ranking.hits["1_1"] == (Hit("c", 3.0), Hit("b", 2.0), Hit("a", 1.9999))
    assert ranking.scores["1_1"] == {"a": 2.00000001, "b": 2.0, "c": 3.0}


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_run_of_any_edition_is_a_ranking(edition: str, tmp_path: Path) -> None:
    turn_id = {"ikat-2023": "9-1_1", "ikat-2025": "9-1_1"}.get(edition, "0_1")
    (tmp_path / "run").write_bytes(b"".join(encode_run(edition, [answered(turn_id)], RunInfo("r"))))
    ranking = read_ranking(tmp_path / "run")
    assert ranking.hits == {turn_id: (Hit("bread:1", 9.5), Hit("bread:2", 4.25), Hit("music:1", 0.125))}
    assert ("bread:1" in ranking.texts) == (edition == "ikat-2023")  # only that year gives texts


def test_the_topics_own_lists_are_a_ranking_of_labels(tmp_path: Path) -> None:
    ranking = read_ranking(write(tmp_path / "topics.json", EDITIONS["ikat-2025"]))
    assert (ranking.hits, ranking.labels) == ({"9-1_1": (Hit("bread:1", 1.0),)}, True)


BAD = [
    ("a line of five columns", "0_1 Q0 a 1 2.0\n", "line 1 is not `qid Q0 docid rank score tag`"),
    ("a score that is none", "0_1 Q0 a 1 high t\n", "line 1 is not"),
    ("a passage twice", "0_1 Q0 a 1 2.0 t\n0_1 Q0 a 2 1.0 t\n", "turn 0_1: a: stands 2 times"),
    ("JSON of something else", '{"a": 1}', "is a run of no edition"),
    ("a broken run", '{"run_name": "x", "run_type": "magic", "turns": []}', "is no valid ikat-2023 run"),
    (
        "a turn twice",
        json.dumps([{"Conversation_no": 1, "Turn_no": 1, "Model_passages": {}}] * 2),
        "turn 1_1: stands 2 times",
    ),
    ("broken JSON", "[{", "is not JSON"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_ranking_is_refused_with_the_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_ranking(write(tmp_path / "ranking", text))
    assert message in str(caught.value)
    assert "ranking" in str(caught.value)


def test_every_command_reads_a_ranking_but_validate(topics: Topics, tmp_path: Path) -> None:
    """`answer`, `eval`, `export` and `report` read the same; what is odd is said once."""
    write(tmp_path / "given", TREC + "7-1_1 Q0 bread:1 1 2.0 t\n")
    write(tmp_path / "foreign", "7-1_1 Q0 bread:1 1 2.0 t\n")
    write(tmp_path / "texts.jsonl", PASSAGES)
    offline = ("--passages", "texts.jsonl", "-m", "none", "--embedder", "none")
    commands = [
        ("answer", "topics.json", "--ranking", "given", *offline, "-o", "run.json"),
        ("eval", "search", "given", "-t", "topics.json", "--json"),
        ("export", "given", "--format", "trec", "-o", "out.trec"),
        ("report", "given", "-t", "topics.json", "-o", "out.html"),
        ("validate", "given", "-t", "topics.json"),
        ("answer", "topics.json", "--ranking", "foreign", *offline, "-o", "other.json"),
    ]
    told = [within.convagent(*command, cwd=tmp_path) for command in commands]
    assert [ended.returncode for ended in told] == [0, 0, 0, 0, 5, 5], told
    assert told[0].stderr.count("given: 1 of 3 turns are none of these topics: 7-1_1") == 1
    assert json.loads(told[1].stdout)[0]["mean"]["RR"] == 1.0
    for written in ("out.trec", "run.json"):
        assert {id: hits for id, hits in read_ranking(tmp_path / written).hits.items() if id in HITS} == HITS
    assert "given: is a TREC run (qid Q0 docid rank score tag): a ranking, without answers to check" in told[4].stderr
    assert "it has '7-1_1', they have '0_1'" in told[5].stderr


def opened(origin: EvidenceFiles, topics: Topics, shown: int = 5) -> Evidence:
    return open_evidence(origin, topics, Plan(context_passages=shown))


def test_texts_come_from_files_or_from_an_index(
    topics: Topics, tmp_path: Path, example_index: PassageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What no answer is made from may be unknown."""
    monkeypatch.chdir(tmp_path)
    ranking = write(tmp_path / "ranking", TREC + "0_1 Q0 deep:1 3 0.1 t\n")
    packed = tmp_path / "passages.jsonl.gz"
    packed.write_bytes(gzip.compress(PASSAGES.encode()))
    sources = opened(EvidenceFiles(ranking=ranking, passages=(packed,)), topics, shown=2)
    assert [passage.id for passage in sources.read(HITS["0_1"])] == ["bread:1", "bread:2"]
    assert sources.ranking is not None
    assert [hit.id for hit in sources.ranking.hits["0_1"]] == ["bread:1", "bread:2", "deep:1"]
    with pytest.raises(MissingError, match="comes without texts"):
        opened(EvidenceFiles(ranking=ranking), topics)
    ids = [hit.id for hit in example_index.search([("bread", 1.0)], 2)]
    found = write(tmp_path / "found", f"0_1 Q0 {ids[0]} 1 2.0 t\n0_2 Q0 {ids[1]} 1 1.0 t\n")
    sources = opened(EvidenceFiles(example_index.directory, ranking=found), topics)
    assert sources.read([Hit(ids[0], 2.0)])[0].text


def test_all_that_is_missing_is_said_at_once(topics: Topics, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ranking = write(tmp_path / "ranking", "0_1 Q0 no:1 1 2.0 t\n0_1 Q0 bread:1 2 1.0 t\n7_1 Q0 bread:1 1 1.0 t\n")
    broken = '{"id": "bread:1", "contents": " "}\n{"id": "ok:1", "contents": "Fine."}\n'
    passages = write(tmp_path / "passages.jsonl", broken)
    expected = [
        "turn 0_2: has no ranking",
        "passages.jsonl:1: passage 'bread:1' has no text",
        "turn 0_1: passage no:1 (rank 1) is in none of the given texts",
        "turn 0_1: passage bread:1 (rank 2) is in none of the given texts",
    ]
    with pytest.raises(InvalidInputError, match="4 problems") as caught:
        opened(EvidenceFiles(ranking=ranking, passages=(passages,)), topics)
    assert all(message in str(caught.value) for message in expected)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="convagent"):
        sources = opened(EvidenceFiles(ranking=ranking, passages=(passages,), on_error="skip"), topics)
        assert sources.read([Hit("bread:1", 1.0)]) == ()
        many = read_topics(EXAMPLES / "topics.json")
        opened(EvidenceFiles(ranking=ranking, passages=(passages,), on_error="skip"), many)
    assert caplog.text.count(f"{ranking}: 1 of 2 turns are none of these topics: 7_1") == 2
    assert all(message in caplog.text for message in expected)
    assert "turn 0_5: has no ranking" in caplog.text
