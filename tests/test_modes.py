"""Every kind of run: manual, only-response, retrieval-only, several responses, and parts left out."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.runs.answer_topics import Outputs, RunReport, RunRequest, answer_file, provide_labels
from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import read_trace
from agent.runs.validation import check_run
from agent.terminal.progress import turn_progress
from agent.tracks.files import read_run, read_topics
from agent.tracks.lenient_reading import Oddities
from indexes.passage_index import PassageIndex
from schemas.errors import UsageError
from schemas.records import Message, Parts, Plan, TurnResult
from tests.conftest import EXAMPLES, needs_model
from tests.test_topics import IKAT, IKAT_2025, QRECC, write

TOPICS = EXAMPLES / "topics.json"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tmp_path / "run.json"


@pytest.fixture
def searched(example_index: PassageIndex) -> EvidenceFiles:
    return EvidenceFiles(example_index.directory, embedder="none")


def answer(run: Path, origin: EvidenceFiles, plan: Plan, topics: Path = TOPICS, **more: Any) -> RunReport:
    outputs = Outputs.choose(topics, run, None, resume=False, overwrite=False)
    return answer_file(RunRequest(topics, origin, more.pop("model", "none"), plan, **more), outputs, turn_progress)


def answered(report: RunReport) -> list[TurnResult]:
    """The turns of a run that breaks no rule."""
    assert report.problems == ()
    return [line.answered for line in read_trace(report.trace).lines()]


def responses(run: Path) -> list[list[dict[str, Any]]]:
    return [turn["responses"] for turn in json.loads(run.read_text())["turns"]]


def name_turns(topic: dict[str, Any]) -> list[dict[str, Any]]:
    turns: list[dict[str, Any]] = topic["responses" if "responses" in topic else "turns"]
    return turns


@pytest.mark.parametrize("edition", IKAT)
def test_a_manual_run_is_handed_what_people_wrote(edition: str, tmp_path: Path) -> None:
    topics = json.loads(json.dumps(IKAT[edition]))
    name_turns(topics[0])[1]["resolved_utterance"] = "How long does rice bread keep?"
    spelled_out, given = provide_labels(read_topics(write(tmp_path / "topics.json", topics)))
    first, second = spelled_out.topics[0].turns
    assert given[first.id].human_rewrite == "Which bread can I eat with coeliac disease?"
    assert [chosen.statement.text for chosen in given[first.id].statements or ()] == ["I have coeliac disease."]
    assert given[second.id].statements == ()
    assert second.history == (
        Message("user", "Which bread can I eat with coeliac disease? I have coeliac disease."),
        Message("assistant", "Rice bread."),
    )


def test_a_manual_run_says_so_and_searches_the_human_rewrite(example_runs: Path) -> None:
    assert json.loads((example_runs / "manual.json").read_text())["run_type"] == "manual"
    labels = read_topics(TOPICS).labels
    for line in read_trace(example_runs / "manual.trace.jsonl").lines():
        known = labels[line.answered.turn_id]
        assert line.answered.query.standalone == known.human_rewrite
        assert [chosen.statement.id for chosen in line.answered.selected_statements] == list(known.statement_ids)


UNKNOWN = [f"clueweb22-en0000-00-0000{n}:1" for n in range(3)]


@pytest.mark.parametrize("edition", IKAT)
@pytest.mark.parametrize("mode", ["automatic", "manual", "only-response"])
def test_topics_without_rewrites_and_rankings_of_unknown_passages_make_valid_runs(
    edition: str, mode: Any, searched: EvidenceFiles, run: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """In an only-response run the first turn has a ranking of which no text is known, and the second has none."""
    topics = json.loads(json.dumps(IKAT[edition]))
    asked = name_turns(topics[0])
    asked[0]["resolved_utterance"] = ""
    asked[1].pop("resolved_utterance", None)
    file = write(run.with_name("topics.json"), topics)
    first, second = read_topics(file).turn_ids()
    if mode == "only-response":
        lines = "".join(f"{first} Q0 {id} 1 {9 - n} t\n" for n, id in enumerate(UNKNOWN))
        searched = replace(searched, ranking=write(run.with_name("ranking.trec"), lines), on_error="skip")
    turns = answered(answer(run, searched, Plan(k=20), file, mode=mode))
    assert check_run(run, file, edition, "any").problems == ()
    assert all(turn.response.text and not turn.response.text.endswith(":") for turn in turns)
    assert caplog.text.count("no human rewrite") == (mode == "manual")
    if mode == "manual":
        utterances = [turn.get("utterance") or turn["user_utterance"] for turn in asked]
        assert [turn.query.standalone for turn in turns] == utterances
    if mode == "only-response":
        found = list(read_run(run.read_bytes(), Oddities())[2].values())
        assert [[hit.id for hit in turn.responses[0].used] for turn in found] == [UNKNOWN[:1], []]
        assert f"turn {second}: has no ranking" in caplog.text


def test_short_responses_are_never_empty(searched: EvidenceFiles, run: Path) -> None:
    """Ten responses share 250 words: a warning longer than one's share is cut, not left out."""
    topics = json.loads(TOPICS.read_text())
    for topic in topics:
        topic["ptkb"] = {"1": "I am allergic to nuts, gluten, milk, eggs, fish, soy, celery and mustard."}
        for turn in topic["turns"]:
            turn["ptkb_provenance"] = []
    file = write(run.with_name("topics.json"), topics)
    turns = answered(answer(run, searched, Plan(k=20, responses=10), file, edition="ikat-2025"))
    assert all(response.text.strip() for turn in turns for response in turn.responses)


def test_responses_are_fewer_where_warnings_need_the_room(run: Path) -> None:
    """A warning of forty words does not fit into a tenth of 250: it is whole in one of fewer responses."""
    kinds = "seeds and grains of any kind, " * 5
    warning = f"Warning: this loaf is dangerous for people who are allergic to {kinds}nuts."
    texts = [f"Loaf number {n} is a bread that you can bake tonight. {warning}" for n in range(12)]
    lines = [json.dumps({"id": f"loaf:{n}", "text": text}) for n, text in enumerate(texts)]
    passages = write(run.with_name("passages.jsonl"), "\n".join(lines))
    ranking = write(run.with_name("r.trec"), "".join(f"9-1_1 Q0 loaf:{n} 1 {99 - n} t\n" for n in range(12)))
    turn = {"turn_id": 1, "user_utterance": "Which bread can I bake tonight?"}
    topics = [{"number": "9-1", "ptkb": ["I am allergic to walnuts.", "I have a nut allergy."], "responses": [turn]}]
    origin = EvidenceFiles(ranking=ranking, passages=(passages,), embedder="none")
    [found] = answered(answer(run, origin, Plan(responses=10), write(run.with_name("topics.json"), topics)))
    assert any(response.text.count(warning) for response in found.responses)


@pytest.mark.parametrize("model", ["none", pytest.param("smollm2", marks=needs_model)])
def test_only_responses_cite_nothing_but_the_given_ranking(model: str, searched: EvidenceFiles, run: Path) -> None:
    found = run.with_name("found.json")
    answer(found, searched, Plan(k=4))
    given = [{p["id"] for p in found[0]["passage_provenance"]} for found in responses(found)]
    topics = json.loads(TOPICS.read_text())
    few = write(run.with_name("topics.json"), topics if model == "none" else topics[:1])
    assert answered(answer(run, replace(searched, ranking=found, on_error="skip"), Plan(), few, model=model))
    assert json.loads(run.read_text())["run_type"] == "only_response"
    for [response], ids in zip(responses(run), given, strict=False):
        assert {passage["id"] for passage in response["passage_provenance"]} == ids
        assert any(passage["used"] for passage in response["passage_provenance"])
        assert response["text"]


def test_gold_passages_make_the_run_one_of_labels(searched: EvidenceFiles, run: Path) -> None:
    """In the form of 2023, which has no type for such a run."""
    topics = [topic | {"number": f"{topic['number']}-1"} for topic in json.loads(TOPICS.read_text())]
    file = write(run.with_name("topics.json"), topics)
    assert answered(answer(run, replace(searched, ranking=file), Plan(), file))
    assert json.loads(run.read_text())["run_type"] == "manual"


REFUSED: list[tuple[Any, Plan, dict[str, Any], str]] = [
    (TOPICS, Plan(), {"mode": "only-response"}, "needs a ranking"),
    (TOPICS, Plan(), {"mode": "automatic", "origin": EvidenceFiles(ranking=TOPICS)}, "takes no ranking"),
    (TOPICS, Plan(), {"origin": EvidenceFiles(passages=(TOPICS,))}, "are the texts of a ranking"),
    (TOPICS, Plan(), {"run_name": "our run"}, "a run's name has no spaces"),
    (IKAT["ikat-2023"], Plan(parts=Parts(answer=False)), {}, "has no runs without answer"),
    (IKAT["ikat-2024"], Plan(parts=Parts(passages=False)), {}, "has no runs without passages"),
    (IKAT["ikat-2025"], Plan(parts=Parts(answer=False)), {}, "has no runs without answer"),
    (QRECC, Plan(responses=2), {}, "--responses 2: for .* at most 1 are written"),
    (IKAT_2025, Plan(responses=11), {}, "--responses 11: for .* at most 10 are written"),
    (TOPICS, Plan(), {"model": "scripted:any.json", "jobs": 2}, "a script is played from the top"),
    (TOPICS, Plan(), {"model": "scripted:any.json", "on": "ray"}, "a script is played from the top"),
]


def test_what_cannot_be_meant_is_refused_before_any_work(run: Path, searched: EvidenceFiles) -> None:
    for topics, plan, more, message in REFUSED:
        file = topics if isinstance(topics, Path) else write(run.with_name("topics.json"), topics)
        given: dict[str, Any] = {"origin": searched, "plan": plan, "topics": file}
        with pytest.raises(UsageError, match=message):
            answer(run, **given | more)
        assert not list(run.parent.glob("run*"))


def test_a_run_that_only_searches_reads_nothing(searched: EvidenceFiles, run: Path) -> None:
    turns = answered(answer(run, searched, Plan(k=50, parts=Parts(answer=False))))
    assert json.loads(run.read_text())["eval_response"] is False
    assert all(turn.hits for turn in turns)
    assert not any(turn.passages or turn.responses for turn in turns)


def test_several_responses_are_ranked_and_from_different_passages(searched: EvidenceFiles, run: Path) -> None:
    """Little of a collection on bread is fit for somebody with coeliac disease. iKAT 2024 limits each by itself."""
    assert answered(answer(run, searched, Plan(k=50, responses=3, words=200)))
    lengths = [[len(response["text"].split()) for response in found] for found in responses(run)]
    assert max(map(max, lengths)) <= 250 < max(map(sum, lengths))
    assert sum(len(found) == 3 for found in responses(run)) >= len(lengths) - 1
    for found in responses(run):
        assert [response["rank"] for response in found] == [1, 2, 3][: len(found)]
        used = [{p["id"] for p in response["passage_provenance"] if p["used"]} for response in found]
        assert all(used)
        assert not any(one & other for one, other in pairwise(used))


def test_the_responses_of_2025_are_short_together(searched: EvidenceFiles, run: Path) -> None:
    answer(run, searched, Plan(k=50, responses=3), edition="ikat-2025")
    lines = [json.loads(line) for line in run.read_text().splitlines()]
    assert sum(len(line["responses"]) > 1 for line in lines) >= len(lines) - 1  # a warning may need the room
    assert all(sum(len(response["text"].split()) for response in line["responses"]) <= 250 for line in lines)


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
    parts: Parts, steps: set[str], fields: list[str], searched: EvidenceFiles, run: Path
) -> None:
    topics = write(run.with_name("topics.json"), QRECC)
    report = answer(run, searched, Plan(k=50, parts=parts), topics)
    assert [list(row)[2:] for row in json.loads(run.read_text())] == [fields] * 2
    lines = list(read_trace(report.trace).lines())
    assert {call.step for line in lines for call in line.calls} - {"statements"} == steps
    if not parts.passages:
        assert all(len(turn.hits) <= 5 for turn in answered(report))  # no deeper than the answer needs
