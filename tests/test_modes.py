"""Every kind of run: manual, only-response, retrieval-only, several responses, and parts left out."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.runs.answer_topics import Outputs, RunReport, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.run import provide_labels
from agent.runs.trace import read_trace
from agent.runs.validation import CheckRequest, check_run
from agent.terminal.progress import turn_progress
from agent.tracks.oddities import Oddities
from agent.tracks.run_files import read_detected_run
from agent.tracks.topic_files import read_topics
from agent.turn.safety.personal_answer import Heeded, put_safety_first
from indexes.passage_index import PassageIndex
from indexes.text.response_length import response_length
from schemas.errors import UsageError
from schemas.records import Message, Parts, Plan, Response, Sentence, Statement
from tests.conftest import EXAMPLES, needs_model
from tests.test_topics import IKAT, IKAT_2025, QRECC, write

TOPICS = EXAMPLES / "topics.json"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.json"


def answer(run: Path, origin: EvidenceFiles, plan: Plan, topics: Path = TOPICS, **more: Any) -> RunReport:
    outputs = Outputs.choose(topics, run, None, resume=False, overwrite=False)
    return answer_file(RunRequest(topics, origin, more.pop("model", "none"), plan, **more), outputs, turn_progress)


def responses(run: Path) -> list[list[dict[str, Any]]]:
    return [turn["responses"] for turn in json.loads(run.read_text())["turns"]]


@pytest.mark.parametrize("edition", IKAT)
def test_a_manual_run_is_handed_what_people_wrote(edition: str, tmp_path: Path) -> None:
    topics = json.loads(json.dumps(IKAT[edition]))
    topics[0]["responses" if "responses" in topics[0] else "turns"][1]["resolved_utterance"] = (
        "How long does rice bread keep?"
    )
    spelled_out, given = provide_labels(read_topics(write(tmp_path / "topics.json", topics)))
    first, second = spelled_out.topics[0].turns
    assert given[first.id].human_rewrite == "Which bread can I eat with coeliac disease?"
    assert [chosen.statement.text for chosen in given[first.id].statements or ()] == ["I have coeliac disease."]
    assert given[second.id].statements == ()
    assert second.history == (
        Message("user", "Which bread can I eat with coeliac disease? I have coeliac disease."),
        Message("assistant", "Rice bread."),
    )


def test_a_manual_run_says_so_and_searches_the_human_rewrite(example_index: PassageIndex, run: Path) -> None:
    report = answer(run, EvidenceFiles(example_index.directory, embedder="none"), Plan(k=50), mode="manual")
    assert report.problems == ()
    assert json.loads(run.read_text())["run_type"] == "manual"
    labels = read_topics(TOPICS).labels
    for line in read_trace(report.trace).lines():
        known = labels[line.answered.turn_id]
        assert line.answered.query.standalone == known.human_rewrite
        assert [chosen.statement.id for chosen in line.answered.selected_statements] == list(known.statement_ids)
    metadata = yaml.safe_load(run.with_name("run.ir_metadata.yml").read_text())
    assert metadata["method"]["automatic"] is False
    assert "gold statements" in metadata["data"]["used of the topics"]


MODES = ("automatic", "manual", "only-response")
REWRITES = {"an empty rewrite": "", "no rewrite": None}
UNKNOWN = [f"clueweb22-en0000-00-0000{n}:1" for n in range(3)]


@pytest.mark.parametrize("edition", IKAT)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("rewrite", REWRITES)
def test_topics_without_rewrites_and_rankings_of_unknown_passages_make_valid_runs(
    edition: str, mode: Any, rewrite: str, example_index: PassageIndex, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In an only-response run the first turn has a ranking of which no text is known, and the second has none."""
    topics = json.loads(json.dumps(IKAT[edition]))
    asked = topics[0]["responses" if "responses" in topics[0] else "turns"]
    for turn in asked:
        turn.pop("resolved_utterance", None)
        if REWRITES[rewrite] is not None:
            turn["resolved_utterance"] = REWRITES[rewrite]
    file = write(run.with_name("topics.json"), topics)
    first, second, *_ = read_topics(file).turn_ids()
    origin = EvidenceFiles(example_index.directory, embedder="none")
    if mode == "only-response":
        ranking = write(
            run.with_name("ranking.trec"), "".join(f"{first} Q0 {id} 1 {9 - n} t\n" for n, id in enumerate(UNKNOWN))
        )
        origin = replace(origin, ranking=ranking, on_error="skip")
    report = answer(run, origin, Plan(k=20), file, mode=mode)
    assert report.problems == ()
    verdict = check_run(run, file, CheckRequest(edition=edition, collection="any"))
    assert verdict.problems == ()
    answered = [line.answered for line in read_trace(report.trace).lines()]
    assert all(line.response.text and not line.response.text.endswith(":") for line in answered)
    told = [record.message for record in caplog.records if "no human rewrite" in record.message]
    assert len(told) == (mode == "manual")
    if mode == "manual":
        utterances = [turn.get("utterance") or turn["user_utterance"] for turn in asked]
        assert [line.query.standalone for line in answered] == utterances
    if mode == "only-response":
        found = list(read_detected_run(run.read_bytes(), Oddities())[2])
        assert [[hit.id for hit in turn.responses[0].used] for turn in found][:2] == [UNKNOWN[:1], []]
        assert f"turn {second}: has no ranking" in caplog.text


def test_short_responses_are_never_empty(example_index: PassageIndex, run: Path) -> None:
    """Ten responses share 250 words: a warning longer than one's share is cut, not left out."""
    topics = json.loads(TOPICS.read_text())
    for topic in topics:
        topic["ptkb"] = {"1": "I am allergic to nuts, gluten, milk, eggs, fish, soy, celery and mustard."}
        for turn in topic["turns"]:
            turn["ptkb_provenance"] = []
    file = write(run.with_name("topics.json"), topics)
    origin = EvidenceFiles(example_index.directory, embedder="none")
    report = answer(run, origin, Plan(k=20, responses=10), file, edition="ikat-2025")
    assert report.problems == ()
    assert all(
        response.text.strip() for line in read_trace(report.trace).lines() for response in line.answered.responses
    )


def test_responses_are_fewer_where_warnings_need_the_room(example_index: PassageIndex, run: Path) -> None:
    """A warning of forty words does not fit into a tenth of 250: it is whole in one of fewer responses."""
    warning = (
        "Warning: this loaf is dangerous for people who are allergic to "
        + "seeds and grains of any kind, " * 5
        + "nuts."
    )
    lines = [
        {"id": f"loaf:{n}", "text": f"Loaf number {n} is a bread that you can bake tonight. {warning}"}
        for n in range(12)
    ]
    passages = write(run.with_name("passages.jsonl"), "".join(f"{json.dumps(line)}\n" for line in lines))
    ranking = write(run.with_name("r.trec"), "".join(f"9-1_1 Q0 loaf:{n} 1 {99 - n} t\n" for n in range(12)))
    turn = {"turn_id": 1, "user_utterance": "Which bread can I bake tonight?"}
    topics = [{"number": "9-1", "ptkb": ["I am allergic to walnuts.", "I have a nut allergy."], "responses": [turn]}]
    origin = EvidenceFiles(ranking=ranking, passages=(passages,), embedder="none")
    report = answer(run, origin, Plan(responses=10), write(run.with_name("topics.json"), topics))
    assert report.problems == ()
    [line] = read_trace(report.trace).lines()
    said = [response.text for response in line.answered.responses]
    assert any(text.count(warning) for text in said), said


def test_a_warning_that_is_longer_than_a_response_may_be_is_cut() -> None:
    warning = Sentence("Warning: " + "not suitable for people who are allergic to nuts, " * 9, ("a:1",))
    heeded = Heeded((), (warning,), (Statement("1", "I am allergic to nuts."),), conflict=False)
    cut = put_safety_first(Response((Sentence("Stir it.", ("a:1",)),)), heeded, tokens=20)
    assert cut.text.startswith("Warning: not suitable")
    assert cut.used == ("a:1",)
    assert response_length(cut.text) <= 20


@pytest.mark.parametrize("model", ["none", pytest.param("smollm2", marks=needs_model)])
def test_only_responses_cite_nothing_but_the_given_ranking(
    model: str, example_index: PassageIndex, run: Path, tmp_path: Path
) -> None:
    answer(tmp_path / "found.json", EvidenceFiles(example_index.directory, embedder="none"), Plan(k=4))
    given = [{p["id"] for p in found[0]["passage_provenance"]} for found in responses(tmp_path / "found.json")]
    topics = json.loads(TOPICS.read_text())
    few = write(tmp_path / "topics.json", topics if model == "none" else topics[:1])
    origin = EvidenceFiles(example_index.directory, embedder="none", ranking=tmp_path / "found.json", on_error="skip")
    report = answer(run, origin, Plan(), few, model=model)
    assert report.problems == ()
    assert json.loads(run.read_text())["run_type"] == "only_response"
    for [response], ids in zip(responses(run), given, strict=False):
        assert {passage["id"] for passage in response["passage_provenance"]} == ids
        assert any(passage["used"] for passage in response["passage_provenance"])
        assert response["text"]


def test_gold_passages_make_the_run_one_of_labels(example_index: PassageIndex, run: Path, tmp_path: Path) -> None:
    topics = json.loads(TOPICS.read_text())
    for topic in topics:
        topic["number"] = f"{topic['number']}-1"  # as 2023 numbers them, which has no type for such a run
    file = write(tmp_path / "topics.json", topics)
    report = answer(run, EvidenceFiles(example_index.directory, embedder="none", ranking=file), Plan(), file)
    assert report.problems == ()
    assert json.loads(run.read_text())["run_type"] == "manual"
    metadata = yaml.safe_load(run.with_name("run.ir_metadata.yml").read_text())
    assert metadata["method"]["run type"] == "only-response"
    assert "gold passages" in metadata["data"]["used of the topics"]


CONTRADICTIONS = [
    (EvidenceFiles(), "only-response", "needs a ranking"),
    (EvidenceFiles(ranking=TOPICS), "automatic", "takes no ranking"),
    (EvidenceFiles(passages=(TOPICS,)), None, "are the texts of a ranking"),
]


@pytest.mark.parametrize(("origin", "mode", "message"), CONTRADICTIONS)
def test_what_cannot_be_meant_is_refused(origin: EvidenceFiles, mode: Any, message: str, run: Path) -> None:
    with pytest.raises(UsageError, match=message):
        answer(run, origin, Plan(), mode=mode)


def test_a_run_that_only_searches_reads_nothing(example_index: PassageIndex, run: Path) -> None:
    report = answer(run, EvidenceFiles(example_index.directory, embedder="none"), Plan(k=50, parts=Parts(answer=False)))
    assert report.problems == ()
    assert json.loads(run.read_text())["eval_response"] is False
    for line in read_trace(report.trace).lines():
        assert line.answered.hits
        assert line.answered.passages == ()
        assert line.answered.responses == ()


def test_several_responses_are_ranked_short_and_from_different_passages(example_index: PassageIndex, run: Path) -> None:
    report = answer(run, EvidenceFiles(example_index.directory, embedder="none"), Plan(k=50, responses=3, words=200))
    assert report.problems == ()
    lengths = [[len(response["text"].split()) for response in found] for found in responses(run)]
    assert max(map(max, lengths)) <= 250  # iKAT 2024 limits each by itself
    assert max(map(sum, lengths)) > 250
    counts = [len(found) for found in responses(run)]
    assert (
        counts.count(3) >= len(counts) - 1
    )  # little of a collection on bread is fit for somebody with coeliac disease
    for found in responses(run):
        assert [response["rank"] for response in found] == [1, 2, 3][: len(found)]
        used = [{p["id"] for p in response["passage_provenance"] if p["used"]} for response in found]
        assert all(used)
        assert not any(one & other for one, other in pairwise(used))


def test_the_responses_of_2025_are_short_together(example_index: PassageIndex, run: Path, tmp_path: Path) -> None:
    topics = [
        {
            "number": f"{topic['number']}-1",
            "ptkb": list(topic["ptkb"].values()),
            "responses": [{"turn_id": t["turn_id"], "user_utterance": t["utterance"]} for t in topic["turns"]],
        }
        for topic in json.loads(TOPICS.read_text())
    ]
    file = write(tmp_path / "topics.json", topics)
    report = answer(run, EvidenceFiles(example_index.directory, embedder="none"), Plan(k=50, responses=3), file)
    assert report.problems == ()
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    assert sum(len(line["responses"]) > 1 for line in lines) >= len(lines) - 1  # a warning may need the room
    for line in lines:
        assert sum(len(response["text"].split()) for response in line["responses"]) <= 250


# What is left out, and which steps may still be seen in the trace
LEFT_OUT = [
    (Parts(), {"context", "search"}, ["Model_rewrite", "Model_passages", "Model_answer"]),
    (Parts(rewrite=False), {"search"}, ["Model_passages", "Model_answer"]),
    (Parts(answer=False), {"context", "search"}, ["Model_rewrite", "Model_passages"]),
    (Parts(passages=False), {"context", "search"}, ["Model_rewrite", "Model_answer"]),
    (Parts(passages=False, answer=False), {"context"}, ["Model_rewrite"]),
]


@pytest.mark.parametrize(("parts", "steps", "fields"), LEFT_OUT)
def test_what_is_left_out_is_not_done(
    parts: Parts, steps: set[str], fields: list[str], example_index: PassageIndex, run: Path, tmp_path: Path
) -> None:
    topics = write(tmp_path / "topics.json", QRECC)
    report = answer(run, EvidenceFiles(example_index.directory, embedder="none"), Plan(k=50, parts=parts), topics)
    assert report.problems == ()
    assert [list(row)[2:] for row in json.loads(run.read_text())] == [fields] * 2
    lines = list(read_trace(report.trace).lines())
    assert {call.step for line in lines for call in line.calls} - {"statements"} == steps
    if not parts.passages:
        assert all(len(line.answered.hits) <= 5 for line in lines)  # no deeper than the answer needs


@pytest.mark.parametrize(
    ("edition", "parts"),
    [("ikat-2023", Parts(answer=False)), ("ikat-2024", Parts(passages=False)), ("ikat-2025", Parts(answer=False))],
)
def test_what_an_edition_must_have_cannot_be_left_out(edition: str, parts: Parts, run: Path, tmp_path: Path) -> None:
    topics = write(tmp_path / "topics.json", IKAT[edition])
    with pytest.raises(UsageError, match="has no runs without"):
        answer(run, EvidenceFiles(), Plan(parts=parts), topics)
    assert list(tmp_path.iterdir()) == [topics]


def test_more_responses_than_an_edition_has_are_refused(run: Path, tmp_path: Path) -> None:
    for topics, most in ((QRECC, 1), (IKAT_2025, 10)):
        file = write(tmp_path / "topics.json", topics)
        with pytest.raises(UsageError, match=f"--responses {most + 1}: for .* at most {most} are written"):
            answer(run, EvidenceFiles(), Plan(responses=most + 1), file)
