"""What a run may not see, it is not handed: changing every label leaves an automatic run identical."""

import json
from pathlib import Path

import pytest

from agent.answering import Outputs, Request, answer_file
from agent.console import turn_progress
from indexes.passages import PassageIndex
from tests.conftest import EXAMPLES, needs_model


def relabelled(topics: list[dict]) -> list[dict]:  # type: ignore[type-arg]
    """Every label replaced by nonsense: title, human rewrite, gold statements and passages, and the last reply."""
    for topic in topics:
        topic["title"] = "Trombones"
        for turn in topic["turns"]:
            turn["resolved_utterance"] = "What is a trombone?"
            turn["ptkb_provenance"] = [2, 7]
            turn["response_provenance"] = ["other-01:1"]
        topic["turns"][-1]["response"] = "A trombone."
    return topics


@pytest.mark.parametrize("model", ["none", pytest.param("smollm2", marks=needs_model)])
def test_an_automatic_run_never_sees_a_label(model: str, example_index: PassageIndex, tmp_path: Path) -> None:
    topics = json.loads((EXAMPLES / "topics.json").read_text())
    topics = topics if model == "none" else [{**topics[0], "turns": topics[0]["turns"][:2]}]
    runs = []
    for name, content in (("given", topics), ("relabelled", relabelled(json.loads(json.dumps(topics))))):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(content))
        run = tmp_path / f"{name}.run.json"
        outputs = Outputs.choose(path, run, None, resume=False, overwrite=False)
        answer_file(Request(path, example_index.directory, model, None, "run", k=100, shown=5), outputs, turn_progress)
        runs.append(run.read_bytes())
    assert runs[0] == runs[1]
