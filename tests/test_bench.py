"""The benchmarks over tiny beds made from the examples: its tables, its commands, what it goes on with."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from benchmarks.__main__ import app as benchmarks_app
from cli import app
from tests.conftest import EXAMPLES

TURNS = 2  # of each conversation
SYSTEM = "no model, words only"
LEASE = "The lease ends in June.\n\nDogs are not allowed in the flat.\n"


def invoke(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def bench(*arguments: object) -> Any:
    return CliRunner().invoke(benchmarks_app, [str(argument) for argument in arguments])


def read_conversations() -> list[Any]:
    """Three conversations of the examples, the beginning of each."""
    topics = json.loads((EXAMPLES / "topics.json").read_text())[:3]
    return [topic | {"turns": topic["turns"][:TURNS]} for topic in topics]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in the layout that the benchmarks want."""
    folder = tmp_path_factory.mktemp("data")
    write_ikat(folder / "ikat")
    write_mtrag(folder / "mtrag_un")
    write_own(folder)
    return folder


def write_ikat(folder: Path) -> None:
    folder.mkdir()
    topics = read_conversations()
    (folder / "2023_dev_topics.json").write_text(json.dumps(topics))
    lines = read_gold_passages(topics)
    for name, part in (("train", lines[::2]), ("test", lines[1::2])):
        (folder / f"2023_{name}_passages.jsonl").write_text("".join(part))
    labels = [
        f"{topic['number']}_{turn['turn_id']} 0 {statement} 1\n"
        for topic in topics
        for turn in topic["turns"]
        for statement in turn["ptkb_provenance"]
    ]
    assert labels
    for name in ("nist", "org"):
        (folder / f"ptkb_rel_{name}.dev.qrels").write_text("".join(labels))


def read_gold_passages(topics: list[Any]) -> list[str]:
    gold = {id for topic in topics for turn in topic["turns"] for id in turn["response_provenance"]}
    lines = (EXAMPLES / "passages.jsonl").read_text().splitlines(keepends=True)
    return [line for line in lines if json.loads(line)["id"] in gold]


def write_mtrag(folder: Path) -> None:
    folder.mkdir()
    topics = read_conversations()
    (folder / "passages.jsonl").write_text("".join(read_gold_passages(topics)))
    kinds = ("ANSWERABLE", "UNANSWERABLE", "UNDERSPECIFIED")
    tasks = [make_task(topic["turns"], kind) for topic, kind in zip(topics, kinds, strict=True)]
    (folder / "tasks_dev.jsonl").write_text("".join(f"{json.dumps(task)}\n" for task in tasks))


def make_task(turns: list[Any], kind: str) -> dict[str, Any]:
    first, last = turns
    messages = [("user", first["utterance"]), ("assistant", first["response"]), ("user", last["utterance"])]
    return {
        "id": kind,
        "kind": kind,
        "messages": [{"role": role, "content": content} for role, content in messages],
        "target": last["response"],
        "gold": last["response_provenance"] if kind == "ANSWERABLE" else [],
    }


def write_own(folder: Path) -> None:
    home = folder / "benchmarks" / "own_documents"
    for documents in (
        home / "documents",
        home / "more_documents",
        *(folder / "examples" / n for n in ("documents", "scans")),
    ):
        documents.mkdir(parents=True)
        (documents / "lease.txt").write_text(LEASE)
    for name in ("questions", "further_questions", "more_questions", "newest_questions"):
        asked = [
            {"id": "1", "kind": "fact", "ask": "When does the lease end?", "first": ["June"]},
            {"id": "2", "kind": "fact", "ask": "Are dogs allowed?", "first": ["not allowed"]},
        ]
        conversations = [{"id": str(n), "half": "open", "about": [], "turns": [turn]} for n, turn in enumerate(asked)]
        (home / f"{name}.json").write_text(json.dumps({"note": "", "conversations": conversations}))


@pytest.fixture(scope="module")
def ikat(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a finished benchmark."""
    folder = tmp_path_factory.mktemp("made") / "bench"
    done = bench("ikat", "--data", data, "-m", "none", "--only", SYSTEM, "-o", folder)
    assert done.exit_code == 0, done.output
    assert done.stdout == (folder / "results.md").read_text()
    return folder


def read_tables(folder: Path) -> dict[str, dict[str, dict[str, float]]]:
    """Figures by table, row and column."""
    tables = json.loads((folder / "results.json").read_text())["tables"]
    return {
        table["name"]: {
            row["system"]: dict(zip(table["columns"], row["figures"], strict=True)) for row in table["rows"]
        }
        for table in tables
    }


@pytest.mark.parametrize(("name", "files"), [("ikat", 5), ("mtrag", 2), ("own", 8)])
def test_all_missing_files_are_named_with_their_origin(name: str, files: int, tmp_path: Path) -> None:
    refused = bench(name, "--data", tmp_path, "-m", "none", "-o", tmp_path / "out")
    assert refused.exit_code == 4
    assert f"{files} files of {files} not there" in refused.stderr
    assert refused.stderr.count("    from ") == files
    assert not (tmp_path / "out").exists()


def test_figures_are_those_of_the_command_beside_them(
    ikat: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command makes the same run, and `eval search` with the labels of the benchmark the same figure."""
    tables = read_tables(ikat)
    assert list(tables) == ["search", "statements", "answers", "given"]
    assert 0 < tables["statements"][SYSTEM]["NIST F1"] <= 1
    assert 0 < tables["given"][SYSTEM]["ROUGE-1"] <= 1
    assert (ikat / "report.html").exists()
    rows = json.loads((ikat / "results.json").read_text())["tables"][0]["rows"]
    command = rows[0]["command"].split()
    assert command[:2] == ["convagent", "answer"]
    monkeypatch.chdir(ikat)
    made = invoke(*command[1:-1], tmp_path / "run.json")
    assert made.exit_code == 0, made.output
    assert (tmp_path / "run.json").read_bytes() == (ikat / command[-1]).read_bytes()
    measured = invoke("eval", "search", tmp_path / "run.json", "--qrels", ikat / "gold.qrels", "--json")
    assert tables["search"][SYSTEM]["nDCG@5"] == json.loads(measured.stdout)[0]["mean"]["nDCG@5"]


def test_a_benchmark_goes_on_where_it_was_killed(data: Path, ikat: Path) -> None:
    [trace] = ikat.glob("no-model-words-only.run.trace.jsonl")
    results, whole = (ikat / "results.json").read_bytes(), trace.read_bytes()
    kept, lost = whole.splitlines(keepends=True)[:3], whole.splitlines(keepends=True)[3]
    trace.write_bytes(b"".join(kept) + lost[:40])
    refused = bench("ikat", "--data", data, "-m", "none", "--only", SYSTEM, "-o", ikat)
    assert refused.exit_code == 2
    assert "--resume" in refused.stderr
    done = bench("ikat", "--data", data, "-m", "none", "--only", SYSTEM, "-o", ikat, "--resume")
    assert done.exit_code == 0, done.output
    assert trace.read_bytes().startswith(b"".join(kept))
    assert (ikat / "results.json").read_bytes() == results


def test_mtrag_has_figures_for_each_kind(data: Path, tmp_path: Path) -> None:
    done = bench("mtrag", "--data", data, "-m", "none", "--only", SYSTEM, "-o", tmp_path / "bench")
    assert done.exit_code == 0, done.output
    tables = read_tables(tmp_path / "bench")
    assert tables["search"][SYSTEM]["nDCG@5"] > 0
    assert tables["given"][SYSTEM]["ROUGE-1"] > 0
    kinds = tables["kinds"]
    assert [kinds[f"{SYSTEM}: {kind}ABLE"]["conversations"] for kind in ("ANSWER", "UNANSWER")] == [1, 1]
    assert kinds[f"{SYSTEM}: UNANSWERABLE"]["nDCG@5"] is None
    assert set(tables["unanswerable"][SYSTEM]) == {"told", "wrongly"}  # without an embedding model there is no score


def test_own_documents_have_figures_for_each_set(data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bench"
    done = bench("own", "--data", data, "-m", "none", "--only", SYSTEM, "-o", folder)
    assert done.exit_code == 0, done.output
    figures = read_tables(folder)["sets"][f"{SYSTEM}: household"]
    assert (figures["questions"], figures["right"]) == (2, 1.0)
