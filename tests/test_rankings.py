"""A given ranking in every form that it comes in, and what is said where it does not fit."""

import gzip
import json
import logging
from pathlib import Path

import pytest

from agent.evaluation.scores import read_qrels
from agent.runs.evidence import Evidence, EvidenceFiles, open_evidence
from agent.runs.given_ranking import read_ranking
from agent.tracks.run_files import encode_run
from agent.tracks.topic_files import read_topics
from indexes.passage_index import PassageIndex
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Hit, Plan, RunInfo, Topics
from tests.conftest import EXAMPLES
from tests.fuzz.bench import call, settings
from tests.test_runs import answered
from tests.test_topics import EDITIONS, IKAT_2023, IKAT_2024, write

TREC = """\
# a comment
0_1 Q0 bread:2 2 4.25 theirs
0_1 Q0 bread:1 1 9.5 theirs
0_2	Q0	music:1	1	0.5	theirs
"""
CANDIDATES = """\
{"query": {"qid": "0_1", "text": "Which bread?"}, "candidates": [\
{"docid": "bread:2", "score": 4.25, "doc": {"segment": "Rice bread keeps."}}, \
{"docid": "bread:1", "score": 9.5, "doc": {"contents": "Rice bread holds no gluten.", "title": "Bread"}}]}

{"query": {"qid": "0_2"}, "candidates": [{"docid": "music:1", "score": 0.5, "doc": "A trumpet."}]}
"""
TURN = {"utterance": "How long does bread keep?", "resolved_utterance": "How long does bread keep?", "response": "Two."}
TWO_TURNS = [{**IKAT_2023[0], "turns": [{"turn_id": n, "response_provenance": [f"a:{n}"]} | TURN for n in (1, 2)]}]
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


@pytest.mark.parametrize("text", [TREC, CANDIDATES, TREC.replace("\n", "\r\n")])
def test_all_forms_say_the_same(text: str, tmp_path: Path) -> None:
    assert read_ranking(write(tmp_path / "ranking", text)).hits == HITS


@pytest.mark.parametrize("edition", EDITIONS)
def test_a_run_of_any_edition_is_a_ranking(edition: str, tmp_path: Path) -> None:
    turn_ids = {"ikat-2023": "9-1_1", "ikat-2025": "9-1_1"}
    turn_id = turn_ids.get(edition, "0_1")
    (tmp_path / "run").write_bytes(b"".join(encode_run(edition, [answered(turn_id)], RunInfo("r"))))
    ranking = read_ranking(tmp_path / "run")
    assert ranking.hits == {turn_id: (Hit("bread:1", 9.5), Hit("bread:2", 4.25), Hit("music:1", 0.125))}
    assert ("bread:1" in ranking.texts) == (edition == "ikat-2023")  # only that year gives texts


def test_the_topics_own_lists_are_a_ranking_of_labels(tmp_path: Path) -> None:
    ranking = read_ranking(write(tmp_path / "topics.json", EDITIONS["ikat-2025"]))
    assert ranking.hits == {"9-1_1": (Hit("bread:1", 1.0),)}
    assert ranking.labels


def test_equal_scores_are_ordered_as_trec_eval_orders_them(tmp_path: Path) -> None:
    """The greater id is first, whatever the ranks say, and scores that are one 32-bit float are equal."""
    ranking = read_ranking(write(tmp_path / "r", "1_1 Q0 a 1 2.00000001 t\n1_1 Q0 b 2 2.0 t\n1_1 Q0 c 3 3.0 t\n"))
    assert ranking.hits["1_1"] == (Hit("c", 3.0), Hit("b", 2.0), Hit("a", 1.9999))
    assert ranking.scores["1_1"] == {"a": 2.00000001, "b": 2.0, "c": 3.0}


BAD = [
    ("a line of five columns", "0_1 Q0 a 1 2.0\n", "line 1 is not `qid Q0 docid rank score tag`"),
    ("a score that is none", "0_1 Q0 a 1 high t\n", "line 1 is not"),
    ("a passage twice", "0_1 Q0 a 1 2.0 t\n0_1 Q0 a 2 1.0 t\n", "turn 0_1: a: stands 2 times"),
    ("a broken second line", CANDIDATES + "{broken\n", "line 4:"),
    ("a candidate without an id", '{"query": {"qid": "1"}, "candidates": [{"score": 1.0}]}', "line 1: "),
    ("a turn twice", CANDIDATES + CANDIDATES, "has turn 0_1 twice"),
    ("JSON of something else", '{"a": 1}', "is a run of no edition"),
    ("a broken run", '{"run_name": "x", "run_type": "magic", "turns": []}', "is no valid ikat-2023 run"),
    ("broken JSON", "[{", "is not JSON"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_ranking_is_refused_with_the_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError) as caught:
        read_ranking(write(tmp_path / "ranking", text))
    assert message in str(caught.value)
    assert "ranking" in str(caught.value)


QUERY = {"query": {"qid": "9-1_1", "text": "a"}, "candidates": [{"docid": "a:1", "score": 2.0, "doc": "Bread."}]}
OTHER = {"query": {"qid": "9-1_2"}, "candidates": [{"docid": "a:2", "doc": {"segment": "Rye."}}, {"docid": "a:1"}]}
SHORTHAND = {"query": "How long does bread keep?", "candidates": ["Bread keeps for two days."]}
READ = {"9-1_1": {"a:1": 2.0}, "9-1_2": {"a:2": 2.0, "a:1": 1.0}}
LINES = "9-1_1 Q0 a:1 1 2.0 t\n9-1_2 Q0 a:2 1 2.0 t\n9-1_2 Q0 a:1 2 1.0 t\n"
HYPHENS = "a turn id like `9-1-3` is read as `9-1_3` (2 times, first at turn 9-1-1)"
BY_ORDER = "`score` is absent: the order of the list counts (2 times, first at"
NO_RUN = "a ranking, without answers to check\n  `convagent eval search` measures it"
# what, its contents, what is said of it by every reader, and what by `validate`
FORMS: list[tuple[str, str, str, str]] = [
    ("a TREC run", LINES, "", "is a TREC run (qid Q0 docid rank score tag): " + NO_RUN),
    ("turn ids with hyphens alone", LINES.replace("_", "-"), HYPHENS, "is a TREC run"),
    ("more turns than there are", LINES + "7-1_1 Q0 a:1 1 2.0 t\n", "", "is a TREC run"),
    ("scores", json.dumps(READ), "", "is a file of scores ({qid: {docid: score}}): " + NO_RUN),
    ("scores on several lines", json.dumps(READ, indent=1), "", "is a file of scores"),
    ("scores as text", json.dumps(READ).replace("2.0", '"2.0"'), "is a text, read as a number (2 times", "of scores"),
    ("scores with hyphens alone", json.dumps(READ).replace("_", "-"), HYPHENS, "is a file of scores"),
    ("candidates in an array", json.dumps([QUERY, OTHER], indent=1), BY_ORDER, "of queries with candidates: " + NO_RUN),
    ("candidates on lines", f"{json.dumps(QUERY)}\n{json.dumps(OTHER)}\n", BY_ORDER, "queries with candidates"),
]


@pytest.mark.parametrize(("text", "said", "of_validate"), [row[1:] for row in FORMS], ids=[row[0] for row in FORMS])
def test_rankings_of_other_tools_are_read_by_every_command(
    text: str, said: str, of_validate: str, tmp_path: Path
) -> None:
    """Whatever the form, `answer`, `eval`, `convert` and `report` read the same; what is odd is said once."""
    ranking, topics = write(tmp_path / "given", text), write(tmp_path / "topics.json", TWO_TURNS)
    passages = write(
        tmp_path / "texts.jsonl", '{"id": "a:1", "contents": "Bread."}\n{"id": "a:2", "contents": "Rye."}\n'
    )
    offline = ("--passages", passages, "-m", "none", "--embedder", "none", "-o", tmp_path / "run.json")
    with settings():
        told = [
            call("answer", topics, "--ranking", ranking, *offline),
            call("eval", "search", ranking, "-t", topics, "--json"),
            call("convert", ranking, "-o", tmp_path / "out.trec"),
            call("report", ranking, "-t", topics, "-o", tmp_path / "out.html"),
        ]
        checked = call("validate", ranking, "-t", topics)
    assert [ended.code for ended in told] == [0, 0, 0, 0], told
    assert [ended.err.count(said) for ended in told if said] in ([], [1, 1, 1, 1])
    assert (told[0].err.count(f"{ranking}: 1 of 3 turns are none of these topics: 7-1_1") == 1) == ("7-1_1" in text)
    assert {id: read_ranking(tmp_path / "out.trec").scores[id] for id in READ} == READ
    assert {id: read_ranking(tmp_path / "run.json").scores[id] for id in READ} == READ
    assert json.loads(told[1].out)[0]["mean"]["RR"] == 1.0
    assert (checked.code, checked.err.count("given: is "), of_validate in checked.err) == (5, 1, True), checked.err
    assert not checked.out


NOT_OURS = [
    ("the shorthand", json.dumps(SHORTHAND), "line 1: is no query with the passages found for it"),
    ("the shorthand in an array", json.dumps([SHORTHAND]), "$[0]: is no query with the passages found for it"),
    ("no qid", json.dumps(SHORTHAND | {"query": {"text": "a"}}, indent=1), "$: is no query with the passages found"),
    ("other turns alone", "7-1_1 Q0 a:1 1 2.0 t\n", "it has '7-1_1', they have '9-1_1'"),
]


@pytest.mark.parametrize(("text", "message"), [row[1:] for row in NOT_OURS], ids=[row[0] for row in NOT_OURS])
def test_what_does_not_name_its_turns_is_refused_in_one_message(text: str, message: str, tmp_path: Path) -> None:
    ranking, topics = write(tmp_path / "given", text), write(tmp_path / "topics.json", TWO_TURNS)
    with settings():
        told = call("answer", topics, "--ranking", ranking, "-m", "none", "-o", tmp_path / "run.json")
    assert told.code == 5
    assert told.err.count("convagent: ") == 1
    assert message in told.err
    assert ("A query names its turn and its passages" in told.err) == ("query" in text)


def test_labels_may_have_turn_ids_with_hyphens_alone(tmp_path: Path) -> None:
    assert read_qrels(write(tmp_path / "qrels", "9-1-1 0 a:1 1\n9-1_2 0 a:1 1\n9-1-2 0 a:2 1\n")) == {
        "9-1_1": {"a:1": 1},
        "9-1_2": {"a:1": 1},
        "9-1-2": {"a:2": 1},  # as the file has 9-1_2, too
    }


def opened(origin: EvidenceFiles, topics: Topics, shown: int = 5) -> Evidence:
    return open_evidence(origin, topics, Plan(context_passages=shown))


def test_texts_come_from_files_or_from_an_index(
    topics: Topics, tmp_path: Path, example_index: PassageIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ranking = write(tmp_path / "ranking", TREC)
    packed = tmp_path / "passages.jsonl.gz"
    packed.write_bytes(gzip.compress(PASSAGES.encode()))
    sources = opened(EvidenceFiles(ranking=ranking, passages=(packed,)), topics)
    assert [passage.id for passage in sources.read(HITS["0_1"])] == ["bread:1", "bread:2"]
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
    origin = EvidenceFiles(ranking=ranking, passages=(passages,))
    expected = [
        "turn 0_2: has no ranking",
        "passages.jsonl:1: passage 'bread:1' has no text",
        "turn 0_1: passage no:1 (rank 1) is in none of the given texts",
        "turn 0_1: passage bread:1 (rank 2) is in none of the given texts",
    ]
    with pytest.raises(InvalidInputError) as caught:
        opened(origin, topics)
    assert "4 problems" in str(caught.value)
    for message in expected:
        assert message in str(caught.value)
    caplog.clear()
    with caplog.at_level(logging.INFO, logger="convagent"):
        sources = opened(EvidenceFiles(ranking=ranking, passages=(passages,), on_error="skip"), topics)
    assert caplog.text.count(f"{ranking}: 1 of 2 turns are none of these topics: 7_1") == 1
    assert all(message in caplog.text for message in expected)
    assert sources.read([Hit("bread:1", 1.0)]) == ()


def test_the_same_of_many_turns_is_said_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    topics = read_topics(EXAMPLES / "topics.json")
    ranking = write(tmp_path / "ranking", "0_1 Q0 bread:1 1 2.0 t\n")
    passages = write(tmp_path / "passages.jsonl", PASSAGES)
    opened(EvidenceFiles(ranking=ranking, passages=(passages,), on_error="skip"), topics)
    assert [record.message for record in caplog.records] == [
        "turn 0_2, turn 0_3, turn 0_4, turn 0_5, turn 1_1, and 9 more: has no ranking"
    ]


def test_what_is_not_read_may_be_unknown(topics: Topics, tmp_path: Path) -> None:
    ranking = write(tmp_path / "ranking", TREC + "0_1 Q0 deep:1 3 0.1 t\n")
    passages = write(tmp_path / "passages.jsonl", PASSAGES)
    sources = opened(EvidenceFiles(ranking=ranking, passages=(passages,)), topics, shown=2)
    assert sources.ranking is not None
    assert [hit.id for hit in sources.ranking.hits["0_1"]] == ["bread:1", "bread:2", "deep:1"]
