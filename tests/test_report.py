"""Reports of runs: what they measure, what they say is missing, and that what is in them stays text and small."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from agent.evaluation.answers import PassageSource, evaluate_answers
from agent.evaluation.conversation import group_by_depth
from agent.evaluation.ptkb import evaluate_ptkb
from agent.evaluation.report.chart import draw_bars, format_change, format_number, format_p, format_tick
from agent.evaluation.report.comparison import Comparison, compare_runs, find_kinds, measure_material
from agent.evaluation.report.page import (
    LEAST_CHARACTERS,
    MOST_CHARACTERS,
    choose_length,
    name_anchors,
    render_report,
    write_report,
)
from agent.evaluation.report.reading import (
    ErrorCollection,
    LabelFiles,
    Material,
    OpenedRun,
    ReportRequest,
    RunFiles,
    name_runs,
    open_material,
    pair_files,
)
from agent.evaluation.report.turn_view import Words, mark_new_words, view_turn_of
from agent.evaluation.search import evaluate_search
from agent.runs.export import convert_run
from agent.runs.trace import TraceLine
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from agent.tracks.topic_files import read_topics
from schemas.errors import InvalidInputError, MissingError
from schemas.records import (
    Call,
    Message,
    Passage,
    Query,
    Response,
    Sentence,
    Statement,
    Topic,
    Topics,
    Turn,
    TurnLabels,
    TurnResult,
)
from tests import within
from tests.conftest import EXAMPLES
from tests.test_topics import write

TOPICS = EXAMPLES / "topics.json"


@pytest.fixture
def runs(example_runs: Path) -> tuple[Path, Path]:
    return example_runs / "automatic.json", example_runs / "manual.json"


@pytest.fixture
def request_of(runs: tuple[Path, Path], tmp_path: Path) -> ReportRequest:
    return ReportRequest(pair_files(runs), TOPICS, tmp_path / "report.html", texts=PassageSource((PASSAGES,)))


PASSAGES = EXAMPLES / "passages.jsonl"


def compare(request: ReportRequest) -> dict[str, Comparison]:
    """The comparisons of a report by their measures."""
    material = open_material(request, ErrorCollection())
    leading, others = compare_runs(measure_material(material), material)
    return {each.measure: each for each in (*leading, *others)}


def test_the_measures_are_those_of_eval(request_of: ReportRequest, runs: tuple[Path, Path]) -> None:
    found = compare(request_of)
    search = evaluate_search(runs, None, TOPICS)
    answers = evaluate_answers(runs, TOPICS, PassageSource((PASSAGES,)))
    for measure, scores in {"nDCG@5": search, "R@100": search, "ROUGE-1": answers, "supported": answers}.items():
        assert list(found[measure].values) == [each.by_turn(measure) for each in scores]
    [statements] = evaluate_ptkb(runs[:1], None, TOPICS)
    assert found["F1"].values[0] == statements.by_turn("F1")


def test_statements_that_were_given_are_not_measured(request_of: ReportRequest) -> None:
    assert compare(request_of)["F1"].cells[1] is None
    write_report(request_of)
    assert "was given the right ones" in request_of.output.read_text()


def test_labels_of_files_come_before_those_of_the_topics(request_of: ReportRequest, tmp_path: Path) -> None:
    first = "0_1 0 bread-01:1 2\n0_1 0 bread-07:1 1\n9_9 0 x 1\n"
    labels = LabelFiles(write(tmp_path / "qrels", first), write(tmp_path / "ptkb", "0_1 0 3 1\n0_1 0 1 0\n"), 2)
    found = compare(replace(request_of, labels=labels))
    assert set(found["nDCG@5"].values[0]) == set(found["F1"].values[0]) == {"0_1"}
    assert "R(rel=2)@100" in found
    view = view_turn_of(open_material(replace(request_of, labels=labels), ErrorCollection()), "0_1")
    assert [passage.id for passage in view.relevant] == ["bread-01:1"]
    assert {row.statement.id: row.marks[0] for row in view.statements}["3"] in ("right", "missed")


def test_pairs_are_corrected_together(request_of: ReportRequest, runs: tuple[Path, Path]) -> None:
    """A third run that is the first again differs from it nowhere; the other two pairs are one difference twice."""
    three = compare(replace(request_of, runs=pair_files([*runs, runs[0]])))["nDCG@5"]
    two = compare(request_of)["nDCG@5"]
    pairs = three.differences
    assert pairs[0, 2].p == 1.0
    assert pairs[0, 2].by.mean == pairs[0, 2].wins == pairs[0, 2].losses == 0
    assert pairs[0, 1].p == pairs[1, 2].p == pytest.approx(min(1.0, 3 * two.differences[0, 1].p))
    assert pairs[0, 1].by.mean == pytest.approx(-pairs[1, 2].by.mean)
    assert pairs[0, 1].by == two.differences[0, 1].by
    assert (pairs[0, 1].wins, pairs[0, 1].losses) == (pairs[1, 2].losses, pairs[1, 2].wins)


def test_rankings_alone_and_a_trace_as_a_run(
    request_of: ReportRequest, runs: tuple[Path, Path], tmp_path: Path
) -> None:
    convert_run(runs[1], trec := tmp_path / "manual.trec", overwrite=False)
    files = RunFiles(runs[0].with_name("automatic.trace.jsonl")), RunFiles(trec, name="theirs")
    mixed, both = compare(replace(request_of, runs=files)), compare(request_of)
    assert mixed["nDCG@5"].values == both["nDCG@5"].values
    assert mixed["F1"].values[0] == both["F1"].values[0]
    assert mixed["ROUGE-1"].cells[1] is None
    assert name_runs([*files, RunFiles(trec, name="theirs")]) == ["automatic", "theirs (1)", "theirs (2)"]


def test_without_labels_runs_are_read_side_by_side(request_of: ReportRequest, tmp_path: Path) -> None:
    topics = json.loads(TOPICS.read_text())
    for turn in (turn for topic in topics for turn in topic["turns"]):
        turn |= {"ptkb_provenance": [], "response_provenance": [], "response": "", "resolved_utterance": ""}
    blind = write(tmp_path / "blind.json", json.dumps(topics))
    page = write_report(replace(request_of, topics=blind)).read_text()
    said = " ".join(page.split())
    assert "Not measured: search (no --qrels, and the topics name no passages of their own); statements (" in said
    assert 'id="where"' not in page
    assert page.count('<details class="turn"') == 15
    material = open_material(replace(request_of, topics=blind), ErrorCollection())
    assert all(run.sentences for run in view_turn_of(material, "1_3").runs)


def test_everything_wrong_is_said_at_once(request_of: ReportRequest, runs: tuple[Path, Path], tmp_path: Path) -> None:
    labels = LabelFiles(write(tmp_path / "qrels", "77_1 0 a 1\n"), tmp_path / "none.qrels")
    write(request_of.output, "kept")
    files = RunFiles(runs[0], trace=runs[1].with_name("manual.trace.jsonl")), RunFiles(tmp_path / "none.json")
    with pytest.raises(InvalidInputError) as caught:
        write_report(replace(request_of, runs=files, labels=labels))
    said = str(caught.value)
    for words in ("report.html: exists already", "of another run: it has another answer at turn", "none.json: no such"):
        assert words in said
    assert "qrels: has no turn of the topics: it has '77_1', the topics have '0_1'" in said
    assert "none.qrels: no such file" in said
    assert request_of.output.read_text() == "kept"
    with pytest.raises(MissingError, match=r"none\.json: no such file"):
        write_report(replace(request_of, runs=files[1:], overwrite=True))


def test_the_command_line(runs: tuple[Path, Path], tmp_path: Path) -> None:
    given: list[str | Path] = ["report", *runs, "-t", TOPICS, "-o", "two.html"]
    refused = within.convagent(*given, "--name", "one", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--name is given 1 time for 2 runs" in refused.stderr
    written = within.convagent(*given, "--name", "ours", "--name", "by hand", cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert "two.html: written" in written.stderr
    assert "<title>ours and by hand on topics.json" in (tmp_path / "two.html").read_text()
    first = (tmp_path / "two.html").read_bytes()
    within.convagent(*given, "--name", "ours", "--name", "by hand", "--overwrite", cwd=tmp_path)
    assert (tmp_path / "two.html").read_bytes() == first


def test_what_is_shown_stays_text(request_of: ReportRequest, tmp_path: Path) -> None:
    attack = "</script><script>alert(1)</script><!--<img src=x onerror=alert(1)>' \" & \u2028"
    topics = json.loads(TOPICS.read_text())
    topics[0]["turns"][0] |= {"utterance": attack, "resolved_utterance": attack, "response": attack}
    topics[0]["ptkb"]["3"] = attack
    run = json.loads(request_of.runs[0].run.read_text())
    run["turns"][0]["responses"][0]["text"] = attack
    ranked = run["turns"][0]["responses"][0]["passage_provenance"]
    texts = write(tmp_path / "texts.jsonl", json.dumps({"id": ranked[0]["id"], "contents": attack}))
    files = RunFiles(write(tmp_path / "run.json", json.dumps(run)), name=attack)
    request = replace(request_of, runs=(files,), topics=write(tmp_path / "t.json", json.dumps(topics)))
    page = write_report(replace(request, texts=PassageSource((texts,)))).read_text()
    assert page.count("<script") == page.count("</script>") == 2
    assert not re.search(r"<img|<!--", page)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)
    assert data
    assert attack.split()[0] in json.loads(data[1])["passages"][0][2]


def test_nuggets_are_measured_and_shown(request_of: ReportRequest, runs: tuple[Path, Path], tmp_path: Path) -> None:
    nuggets = [
        {"text": "Buckwheat has no gluten", "importance": "vital", "assignment": "support"},
        {"text": "Tapioca binds", "importance": "okay", "assignment": "partial_support"},
        {"text": "Mills handle wheat", "importance": "vital", "assignment": "not_support"},
    ]
    line = {"query": "Which flour?", "qid": "0_1", "answer_text": "Buckwheat.", "response_length": 1, "run_id": "a"}
    file = write(tmp_path / "a.nuggets.jsonl", json.dumps(line | {"nuggets": nuggets}) + "\n")
    request = replace(request_of, runs=(RunFiles(runs[0], nuggets=file), RunFiles(runs[1])))
    found = compare(request)
    assert found["strict vital"].values[0] == {"0_1": 0.5}
    assert found["all"].values[0] == {"0_1": 0.5}
    assert found["strict vital"].cells[1] is None
    page = write_report(request).read_text()
    assert [page.count(mark) for mark in ("✓ covered", "◐ partly", "○ missed</td>")][:2] == [1, 1]


def test_sentences_are_linked_without_a_trace(request_of: ReportRequest, tmp_path: Path) -> None:
    """To the cited passages that hold them: for excerpts these are the ones that the trace has."""
    copy = write(tmp_path / "copy.json", request_of.runs[0].run.read_text())
    material = open_material(replace(request_of, runs=(request_of.runs[0], RunFiles(copy))), ErrorCollection())
    traced, bare = view_turn_of(material, "0_1").runs
    assert bare.seconds is None
    assert traced.seconds is not None
    assert {id for sentence in bare.sentences for id in sentence.passage_ids} == set(traced.citations)


def test_kinds_and_depths() -> None:
    topics = read_topics(TOPICS)
    kinds = find_kinds(topics, {"0_1": {"3": 1, "1": 0}, "0_2": {"1": 0}})
    assert kinds["0_1"] == ("first", "needs a statement")
    assert kinds["0_2"] == ("follow-up",)
    assert kinds["0_3"] == ("topic switch",)  # "Something else: I have half a packet of dried yeast left over."
    assert {name: len(turns) for name, turns in group_by_depth(topics).items()} == {"1": 3, "2": 3, "3": 3, "4–5": 6}


def test_a_rewrite_shows_what_it_adds() -> None:
    pieces = mark_new_words("Is the Deutsches Museum open then?", "Is it open then?")
    assert pieces == (Words("Is ", False), Words("the Deutsches Museum ", True), Words("open then?", False))
    assert mark_new_words("", "Is it open?") == ()


def test_numbers_are_written_as_in_papers() -> None:
    values = 0.5944, 1.0, 0.0, -0.016, -0.0001, 83.14, None
    assert [format_number(value) for value in values] == [".594", "1.00", ".000", "−.016", ".000", "83.1", "–"]
    assert (format_change(0.1), format_change(-0.1)) == ("+.100", "−.100")
    assert (format_p(0.0004), format_p(0.012), format_p(1.0)) == ("< .001", "= .012", "= 1.00")
    assert [format_tick(value, signed=True) for value in (-0.05, 0.0, 0.2)] == ["−.05", "0", "+.2"]


def test_a_bar_for_each_turn_from_the_greatest_win_to_the_greatest_loss() -> None:
    anchors = {"a": "turn-a", "b": "turn-b", "c": "turn-c"}
    chart = draw_bars({"a": -0.5, "b": 0.0, "c": 1.0}, anchors, "<x>", (1, 0))
    bars = re.findall(r'aria-label="(.) (.*?)"><rect class="(.*?)" .*? y="(.*?)" .*? height="(.*?)"', chart)
    assert bars == [
        ("c", "+1.00", "run-1", "4.0", "81.0"),
        ("b", "+.000", "tie", "85.0", "1.5"),
        ("a", "−.500", "run-0", "85.0", "40.5"),
    ]
    assert re.findall(r'text-anchor="end">(.*?)<', chart) == ["−1", "−.5", "0", "+.5", "+1"]
    assert "&lt;x&gt;" in chart


def test_anchors_are_ids_where_they_can_be() -> None:
    assert name_anchors(["9-1_3", "a b_1"]) == {"9-1_3": "turn-9-1_3", "a b_1": "turn.2"}


def test_texts_are_cut_to_what_fits() -> None:
    assert choose_length([100, 2000]) == 0
    half = MOST_CHARACTERS // 2
    assert choose_length([half, half + 1000]) == half
    assert choose_length([5000] * 10_000) == LEAST_CHARACTERS


SENTENCE = "Buckwheat flour holds no gluten and bakes well with psyllium husk in an electric oven."


def make_large_material() -> Material:
    """218 turns of ordinary length with their labels, and three runs of ten passages a turn, each of 1,600 letters."""
    turns = [Turn(f"{topic}-1_{number}", SENTENCE) for topic in range(1, 18) for number in range(1, 14)][:218]
    topics: dict[str, list[Turn]] = {}
    for turn in turns:
        history = (Message("assistant", SENTENCE * 10),)
        topics.setdefault(turn.id.partition("_")[0], []).append(replace(turn, history=history))
    ptkb = tuple(Statement(str(n), f"I bake bread on day {n} of every week.") for n in range(1, 11))
    ids = [f"clueweb22-en0000-00-{n:05}:3" for n in range(2180)]
    labels = {turn.id: TurnLabels(SENTENCE, SENTENCE * 10, ("2",), (ids[n],)) for n, turn in enumerate(turns)}
    known = Topics("ikat-2023", tuple(Topic(id, ptkb, tuple(found)) for id, found in topics.items()), labels)
    relevant = {turn.id: {ids[place * 10]: 1} for place, turn in enumerate(turns)}
    runs = tuple(_make_run(f"run{number}", turns, ids[number * 3 :] + ids[: number * 3]) for number in range(3))
    texts = {id: Passage(id, f"{id} {'Rice bread keeps. ' * 90}") for id in ids}
    return Material(known, runs, relevant, {turn.id: {"2": 1} for turn in turns}, 1, texts)


def _make_run(name: str, turns: list[Turn], ids: list[str]) -> OpenedRun:
    ranked = {turn.id: tuple(ids[place * 10 : place * 10 + 10]) for place, turn in enumerate(turns)}
    responses = {
        id: RunResponse(1, SENTENCE * 6, tuple(RunPassage(passage, 1 / n) for n, passage in enumerate(found, start=1)))
        for id, found in ranked.items()
    }
    calls = tuple(Call(step, "ask", "", tokens_read=300, seconds=0.5) for step in ("statements", "search", "write"))
    traced = {
        id: TraceLine(
            TurnResult(
                id,
                Query("", SENTENCE),
                (),
                (),
                (),
                (Response(tuple(Sentence(SENTENCE, (each,)) for each in found[:6])),),
            ),
            calls,
            1.5,
        )
        for id, found in ranked.items()
    }
    answered = {id: RunTurn(id, (response,)) for id, response in responses.items()}
    return OpenedRun(name, "ikat-2023", answered, ranked, traced, {})


def test_218_turns_of_three_runs_stay_below_5_mb() -> None:
    page = render_report(make_large_material(), "topics.json")
    assert page.count('<details class="turn"') == 218
    assert len(page.encode()) < 5_000_000
    assert re.search(r"Texts of passages are cut to [\d,]+ characters", page)
    assert len(json.loads(page.split('id="data">')[1].split("</script>")[0])["passages"]) == 2180
