"""Answers: sentences chosen by meaning, the passages without an answer, and the measures by hand."""

from functools import partial
from pathlib import Path

import pytest

from agent.evaluation.answers import evaluate_answers, measure_turn, rouge_f1, supported_share
from agent.models.registry import open_model
from agent.runs.evidence import PassageTexts
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn
from agent.turn.extractive_answer import extract_answer, says_not_found
from agent.turn.interface_sentences import NOT_FOUND
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.responses import generate_responses
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Hit, Passage, Plan, Query
from tests.conftest import EXAMPLES, needs_embedder

BREAD = Passage(
    "bread:1",
    "Loaves from the oven of our village are famous. A tin keeps a rice loaf soft for two days. "
    "The baker opens at seven and closes at noon every day.",
)
MUSIC = Passage("music:1", "The trumpet is made of brass and has three valves. A beginner should practise every day.")


@pytest.mark.parametrize("text", ["Home | Recipes | Bread | " * 40, "RYE BREAD", "Which bread? Which flour? "])
def test_a_passage_without_a_statement_is_quoted_by_its_beginning(text: str) -> None:
    """A run needs a text and a passage that it is from, whatever was found."""
    response = extract_answer(Query("Which bread keeps?"), (), [Passage("menu:1", text)], None, Plan())
    assert response.used == ("menu:1",)
    assert response.sentences[-1].text in " ".join(text.split())


@pytest.mark.story
@needs_embedder
def test_the_nearest_sentence_needs_no_word_of_the_question(minilm: Embedder) -> None:
    asked = Query("How long does gluten-free bread stay fresh?")
    text = extract_answer(asked, (), [BREAD], minilm, Plan(response_tokens=24)).text
    assert "two days" in text
    assert extract_answer(asked, (), [BREAD], None, Plan(response_tokens=24)).text != text  # words alone do not find it


@pytest.mark.story
@needs_embedder
def test_it_is_said_where_the_passages_are_about_something_else(minilm: Embedder) -> None:
    response = extract_answer(Query("How deep is the North Sea?"), (), [BREAD, MUSIC], minilm, Plan())
    assert response.sentences[0].text == NOT_FOUND
    assert response.sentences[0].passage_ids == ()
    assert response.used  # what comes nearest is quoted, and cited
    assert not extract_answer(
        Query("How many valves has a trumpet?"), (), [BREAD, MUSIC], minilm, Plan()
    ).text.startswith(NOT_FOUND)


@pytest.mark.story
@needs_embedder
def test_a_further_answer_may_be_found_where_the_first_passages_have_none(minilm: Embedder) -> None:
    asked = Query("How many valves has a trumpet?")
    plan = Plan(context_passages=1, responses=2)
    step = partial(generate_responses, writer=Writer(open_model("none")), embedder=minilm, plan=plan)
    [found] = step(asked, (), [BREAD, MUSIC])
    assert found.used == (MUSIC.id,)
    [none] = step(Query("How deep is the North Sea?"), (), [BREAD, MUSIC])
    assert says_not_found(none)


def test_measures_by_hand() -> None:
    """Five of six words are shared on both sides (not "for", not "tin"), and three of five pairs, in the same order."""
    found = rouge_f1("Rice bread keeps for two days", "Tin: rice bread keeps two days")
    assert found == pytest.approx({"ROUGE-1": 5 / 6, "ROUGE-2": 3 / 5, "ROUGE-L": 5 / 6})


def test_what_is_supported_and_rightly_cited() -> None:
    assert supported_share(split_sentences(MUSIC.text)[0], [MUSIC]) == {
        "supported": 1,
        "wholly supported": 1,
        "citations right": 1,
    }
    half = supported_share("The trumpet is made of brass and has three valves. It is loud.", [MUSIC, BREAD])
    assert half == {"supported": 0.5, "wholly supported": 0, "citations right": 0.5}
    assert supported_share("It is loud.", []) == {"supported": 0, "wholly supported": 0}


def turn(text: str | None, *used: str) -> RunTurn:
    passages = tuple(RunPassage(id, 1.0) for id in used)
    return RunTurn("1_1", (RunResponse(1, text, passages, tuple(Hit(id, 1.0) for id in used)),))


def test_no_answer_is_no_good_answer_and_no_bad_citation() -> None:
    texts = PassageTexts({MUSIC.id: MUSIC})
    said = measure_turn(turn(f"{NOT_FOUND} {split_sentences(MUSIC.text)[0]}", MUSIC.id), "It has three valves.", texts)
    assert said["answered"] == 0
    assert said["supported"] == 1  # the opening is no claim
    assert measure_turn(turn(""), "It has three valves.", texts) == {
        "ROUGE-1": 0.0,
        "ROUGE-2": 0.0,
        "ROUGE-L": 0.0,
        "answered": 0.0,
    }
    assert measure_turn(None, "It has three valves.", texts)["answered"] == 0
    assert "ROUGE-1" not in measure_turn(turn("Three.", MUSIC.id), "", texts)  # nothing to compare with


def test_answers_of_a_run_are_measured(example_index: PassageIndex, example_runs: Path, tmp_path: Path) -> None:
    run, topics = example_runs / "automatic.json", EXAMPLES / "topics.json"
    [scores] = evaluate_answers([run], topics, index=example_index.directory)
    assert len(scores.turns) == 15
    assert scores.mean("supported") > 0.95
    assert scores.mean("ROUGE-1") > 0.1
    [from_files] = evaluate_answers([run], topics, (EXAMPLES / "passages.jsonl",))
    assert from_files.turns == scores.turns
    with pytest.raises(MissingError, match="without a text"):
        evaluate_answers([run], topics)
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "x:1", "text": "Nothing of it."}\n')
    with pytest.raises(InvalidInputError, match="cites passages without a text"):
        evaluate_answers([run], topics, (other,))
