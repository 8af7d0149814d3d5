"""Runs in the forms of other tools: written, read again, and accepted by those tools' own loaders."""

import json
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from agent.exchange.answer_files import read_any_run
from agent.exchange.candidates import Candidates, decode_candidates, find_queries
from agent.runs.export import FOR_OTHER_TOOLS
from agent.runs.given_ranking import read_ranking
from agent.runs.trace import read_trace
from agent.tracks.oddities import Oddities
from agent.tracks.run_records import RunPassage
from cli import app
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, Query, Response, RunInfo, Sentence, TurnResult
from tests.conftest import EXAMPLES

SENTENCES = (
    Sentence("Rice bread keeps for two days.", ("bread:2", "bread:1")),
    Sentence("Freeze it, and it keeps a month.", ("bread:2",)),
    Sentence("I found nothing about rye.", ()),
)
PASSAGES = (
    Passage("bread:1", "Rice bread keeps.", "Bread"),
    Passage("bread:2", "It can be frozen.", url="a:b"),
    Passage("rye:1", "Rye."),
)
HITS = Hit("bread:1", 9.5), Hit("bread:2", 0.1), Hit("rye:1", 0.05)
ASKED = Query("How long?", "How long does rice bread keep?")
ANSWER = TurnResult("9-1_1", ASKED, (), HITS, PASSAGES, (Response(SENTENCES),))
# What other people's tools write.
THEIRS = {
    "autojudge, ids with scores": (
        '{"metadata": {"team_id": "us", "run_id": "theirs", "request_id": 7, "task": "english"}, '
        '"responses": [{"text": "Two days.", "citations": {"bread:1": 0.5, "bread:2": 2}}]}',
        ("7", "Two days.", ["bread:2", "bread:1"]),
    ),
    "autojudge, places": (
        '{"metadata": {"team_id": "us", "run_id": "theirs", "narrative_id": "7", "narrative": null}, '
        '"references": ["bread:1", "bread:2"], "answer": [{"text": "Two days.", "citations": [1]}]}',
        ("7", "Two days.", ["bread:2"]),
    ),
    "ragnarok": (
        '{"topic_id": 7, "topic": "bread", "references": ["bread:1", "bread:2"], "response_length": 9, '
        '"answer": [{"text": "Two", "citations": [1, 0]}, {"text": "days.", "citations": []}]}',
        ("7", "Two days.", ["bread:2", "bread:1"]),
    ),
    "ragnarok, ids": (
        '{"topic_id": "7", "topic": "bread", "references": ["b"], "answer": [{"text": "Two.", "citations": ["c"]}]}',
        ("7", "Two.", ["c"]),
    ),
    "ragnarok, an array": (
        '[{"topic_id": "7", "topic": "bread", "references": ["b"], "answer": [{"text": "Two days."}]}]',
        ("7", "Two days.", []),
    ),
}
needs = {
    name: pytest.mark.skipif(find_spec(module) is None, reason=f"{package} is not installed")
    for name, module, package in (
        ("autojudge", "autojudge_base", "autojudge-base"),
        ("ragnarok", "ragnarok", "pyragnarok"),
        ("nuggetizer", "nuggetizer", "nuggetizer"),
    )
}


@pytest.fixture
def trace(example_runs: Path) -> Path:
    return example_runs / "automatic.trace.jsonl"


def export(trace: Path, form: str, out: Path) -> Path:
    result = CliRunner().invoke(app, ["export", str(trace), "--format", form, "-o", str(out), "--run-name", "ours"])
    assert result.exit_code == 0, result.output
    return out


@pytest.mark.parametrize("form", ["autojudge", "ragnarok"])
def test_an_answer_is_read_as_it_was_written(form: str) -> None:
    oddities = Oddities()
    written = FOR_OTHER_TOOLS[form](ANSWER, RunInfo("ours", "manual", "us"))
    found, _, turns = read_any_run(written, oddities)
    [turn] = turns
    [response] = turn.responses
    assert (found, turn.turn_id, response.text) == (form, "9-1_1", " ".join(said.text for said in SENTENCES))
    assert response.passages == (RunPassage("bread:1", 1), RunPassage("bread:2", 1 / 2), RunPassage("rye:1", 1 / 3))
    assert [hit.id for hit in response.used] == ["bread:2", "bread:1"]
    assert turn.info == (RunInfo("ours", "manual", "us") if form == "autojudge" else RunInfo("ours"))
    assert list(oddities) == []


def test_candidates_are_read_as_they_were_written() -> None:
    oddities = Oddities()
    queries = find_queries(FOR_OTHER_TOOLS["nuggetizer"](ANSWER, RunInfo("ours")), oddities)
    expected = Candidates("9-1_1", "How long does rice bread keep?", HITS, PASSAGES)
    assert list(decode_candidates(queries or (), oddities)) == [expected]
    assert list(oddities) == []


@pytest.mark.parametrize("name", THEIRS)
def test_what_other_tools_write_is_read_as_a_run(name: str) -> None:
    text, (turn_id, said, cited) = THEIRS[name]
    form, _, turns = read_any_run(text.encode(), Oddities())
    [turn] = turns
    [response] = turn.responses
    assert name.startswith(form)
    assert (turn.turn_id, response.text, [hit.id for hit in response.used]) == (turn_id, said, cited)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (THEIRS["ragnarok"][0].replace("[1, 0]", "[2]"), r"line 1 \$.answer\[0\]|cites 2"),
        (THEIRS["ragnarok"][0].replace("[1, 0]", "[-1]"), "cites -1"),
        (THEIRS["autojudge, ids with scores"][0].replace("0.5", '"much"'), "are no citations"),
        (THEIRS["autojudge, ids with scores"][0].replace("7", '""'), "names no topic"),
        (THEIRS["ragnarok"][0].replace('"bread",', "5,", 1), "is no valid ragnarok file"),
    ],
)
def test_what_cannot_be_meant_is_an_error(text: str, what: str) -> None:
    with pytest.raises(InvalidInputError, match=what):
        list(read_any_run(text.encode(), Oddities())[2])


@pytest.mark.parametrize("form", ["autojudge", "ragnarok"])
def test_an_exported_run_is_read_where_runs_are(form: str, trace: Path, tmp_path: Path) -> None:
    """Its answers are measured as the run's own are, and its references are a ranking."""
    runner = CliRunner()
    out = export(trace, form, tmp_path / "answers.jsonl")
    arguments = ["-t", str(EXAMPLES / "topics.json"), "--passages", str(EXAMPLES / "passages.jsonl"), "--json"]
    ours, theirs = (
        json.loads(runner.invoke(app, ["eval", "answers", str(run), *arguments]).stdout)[0]["mean"]
        for run in (trace.with_name("automatic.json"), out)
    )
    assert ours == pytest.approx(theirs)
    trec = tmp_path / "references.trec"
    assert runner.invoke(app, ["convert", str(out), "-o", str(trec)]).exit_code == 0
    answered = [line.answered for line in read_trace(trace).lines()]
    expected = {turn.turn_id: [passage.id for passage in turn.passages] for turn in answered}
    assert {turn_id: list(ids) for turn_id, ids in read_ranking(trec).scores.items()} == expected


def in_python(code: str, *arguments: Path) -> Any:
    """What a process of its own prints: other tools fetch data and change settings where they are imported."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


# Where it is imported, autojudge-base fetches lists of words with which our files have nothing to do.
AUTOJUDGE = """
import json, sys, nltk, nltk.corpus
from pathlib import Path
nltk.data.find = nltk.download = lambda *_, **__: None
nltk.corpus.stopwords = type("NoWords", (), {"words": lambda _self, _language: []})()
"""


@needs["autojudge"]
def test_auto_judge_takes_an_exported_run(trace: Path, tmp_path: Path) -> None:
    """Its own loader, and all checks of a track that has no collection of its own."""
    code = (
        AUTOJUDGE
        + """
from autojudge_base.report import load_report
from autojudge_base.report_verification import ReportVerification
reports = load_report(Path(sys.argv[1]))
checked = ReportVerification(reports, "kiddie", strict=True).all()
print(json.dumps([
    [str(finding) for finding in checked.findings],
    [[r.metadata.run_id, r.metadata.topic_id, r.metadata.narrative, r.get_report_text(),
      [s.citations for s in r.get_sentences_with_citations()]] for r in reports],
]))
"""
    )
    findings, reports = in_python(code, export(trace, "autojudge", tmp_path / "answers.jsonl"))
    assert findings == []
    answered = [line.answered for line in read_trace(trace).lines()]
    assert reports == [
        [
            "ours",
            turn.turn_id,
            turn.query.standalone,
            turn.response.text,
            [list(sentence.passage_ids) for sentence in turn.response.sentences],
        ]
        for turn in answered
    ]


@needs["ragnarok"]
@pytest.mark.parametrize(
    ("form", "load", "expected"),
    [
        (
            "ragnarok",
            "[[r.query.qid, r.query.text, ' '.join(s.text for s in r.answer), "
            "list(dict.fromkeys(r.references[n] for s in r.answer for n in s.citations))] "
            "for r in data.read_results_from_file(sys.argv[1])]",
            lambda turn: [turn.turn_id, turn.query.standalone, turn.response.text, list(turn.response.used)],
        ),
        (
            "nuggetizer",
            "[[r.query.qid, r.query.text, [[c.docid, c.doc['segment']] for c in r.candidates]] "
            "for r in data.read_requests_from_file(sys.argv[1])]",
            lambda turn: [turn.turn_id, turn.query.standalone, [[p.id, p.text] for p in turn.passages]],
        ),
    ],
)
def test_ragnarok_takes_an_exported_run(
    form: str, load: str, expected: Callable[[Any], Any], trace: Path, tmp_path: Path
) -> None:
    """By its own loaders; the second is also the form of the passages that the Nuggetizer makes nuggets from."""
    out = export(trace, form, tmp_path / "answers.jsonl")
    found = in_python(f"import json, sys\nfrom ragnarok import data\nprint(json.dumps({load}))", out)
    assert found == [expected(line.answered) for line in read_trace(trace).lines()]
