"""`convagent ask`: for scripts."""

import json

from typer.testing import CliRunner

from agent.chat.citations import UNSURE_NOTE
from cli import app
from schemas.records import UNSURE
from tests.conftest import EXAMPLES, needs_embedder

DOCUMENTS = str(EXAMPLES / "documents")
WORDS = ("-m", "none", "--embedder", "none")


def test_questions_are_one_conversation_and_each_answer_a_line_of_json() -> None:
    asked = ("How long may I keep the plum jam?", "And how many jars do I get?")
    result = CliRunner().invoke(app, ["ask", *asked, "--docs", DOCUMENTS, *WORDS, "--json"])
    assert result.exit_code == 0, result.output
    first, second = map(json.loads, result.stdout.splitlines())
    assert (first["question"], first["answered"]) == (asked[0], True)
    assert "two years" in first["sentences"][0]["text"]
    source = first["sources"][0]
    assert first["sentences"][0]["sources"] == [source["number"]] == [1]
    assert source["place"].startswith("recipes/plum-jam.txt:")
    assert "plum" in second["searched_for"]


@needs_embedder
def test_of_what_may_not_answer_it_says_so() -> None:
    asked = ("Who is responsible?", "How long may I keep the plum jam?")
    arguments = ["ask", *asked, "--docs", DOCUMENTS, "-m", "none", "--embedder", "minilm"]
    unsure, sure = map(json.loads, CliRunner().invoke(app, [*arguments, "--json"]).stdout.splitlines())
    assert unsure["chance"] < UNSURE < 0.9 < sure["chance"]
    assert (unsure["unsure"], sure["unsure"]) == (True, False)
    assert CliRunner().invoke(app, arguments).stdout.count(UNSURE_NOTE) == 1


def test_an_answer_is_printed_with_its_sources_and_none_is_told() -> None:
    only = ["--docs", DOCUMENTS, "--only", "recipes/", *WORDS]
    result = CliRunner().invoke(app, ["ask", "How long may I keep the plum jam?", *only])
    assert "two years in the cellar. [1]" in result.stdout
    assert "\n  [1] recipes/plum-jam.txt:" in result.stdout
    result = CliRunner().invoke(app, ["ask", "Xylophone zeppelin?", *only, "--json"])
    assert (result.exit_code, json.loads(result.stdout)["answered"]) == (0, False)
    assert json.loads(result.stdout)["chance"] is None
    result = CliRunner().invoke(app, ["ask", "Why?", "--docs", "nowhere"])
    assert result.exit_code != 0
