"""The measures of answers' form: what dangles and what is glued, in tables, and in a run and its trace."""

from pathlib import Path

import pytest

from agent.runs.answer_topics import Outputs, RunRequest, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.terminal.progress import turn_progress
from benchmarks.answer_form import (
    Answer,
    Form,
    cut_sentences,
    dangles,
    is_glued,
    measure_form,
    points_back,
    read_answers,
)
from indexes.passage_index import PassageIndex
from schemas.records import Plan
from tests.conftest import EXAMPLES

SOURCE = "The soup is hot. Serving [2] It is red. It was cheap. Beans are green."


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("He or she will be able to go.", True),
        ("However, soup is hot.", True),
        ("But if you are ill, stay.", True),
        ("For example, beans are green.", True),
        ("**This makes it tolerable.**", True),
        ("In that case, call Rosa.", True),
        ("Dabei ist Vorsicht geboten.", True),
        ("It is important to eat.", False),
        ("In addition to salt, add pepper.", False),
        ("Heron gets released in May.", False),
        ("Thesis work takes a year.", False),
    ],
)
def test_what_points_back(sentence: str, expected: bool) -> None:
    assert points_back(sentence) == expected


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Side Effects The most common side effects are nausea.", True),
        ("Home » Nutrition » Protein Beans have protein.", True),
        ("Steaming Steaming is healthy.", True),
        ("Nutritional Yeast Nutritional yeast is vegan.", True),
        ("By MacRumors Staff on April 15, 2020 The phone is thin.", True),
        ("[ 6 ] It bore only a slight resemblance.", True),
        ("5. Funding There never seems to be enough.", True),
        ("Updated 3 March 2021 Eat beans.", True),
        ("Watch on Today we make soup.", True),
        ("The National Institute for Health recommends a low dose.", False),
        ("Home is where the heart is.", False),
        ("By July 2020 the price had doubled.", False),
        ("BMW and Mercedes-Benz build cars.", False),
        ("It takes fifty minutes.", False),
    ],
)
def test_what_is_glued(sentence: str, expected: bool) -> None:
    assert is_glued(sentence) == expected


@pytest.mark.parametrize(
    ("sentences", "expected"),
    [
        (("It is red.",), [True]),
        (("The soup is hot.", "It is red."), [False, False]),
        (("The soup is hot.", "It is red.", "It was cheap."), [False, False, False]),
        (("The soup is hot.", "It was cheap."), [False, True]),
        (("Beans are green.", "It is red."), [False, True]),
    ],
)
def test_what_stands_beside_what_it_points_to_does_not_dangle(sentences: tuple[str, ...], expected: list[bool]) -> None:
    answer = Answer(sentences, (SOURCE,))
    assert [dangles(answer, place) for place in range(len(sentences))] == expected


def test_without_its_source_whatever_points_back_dangles() -> None:
    assert dangles(Answer(("The soup is hot.", "It is red."), ()), 1)


def test_the_measures_by_hand() -> None:
    answers = [
        Answer(("It is red.", "Beans are green."), (SOURCE,)),
        Answer(("Side Effects The most common one is heat.", "It was cheap."), (SOURCE,)),
        Answer((), ()),
    ]
    assert measure_form(answers) == Form(2, 4, 0.5, 0.5, 0.5, 0.25)


def test_sentences_of_an_answer() -> None:
    text = "It was made by Dr. Smith in No. 5. The soup is hot. “Beans” are green."
    assert cut_sentences(text) == ["It was made by Dr. Smith in No. 5. The soup is hot.", "“Beans” are green."]


def test_a_run_and_its_trace_say_the_same(example_index: PassageIndex, tmp_path: Path) -> None:
    run, trace = tmp_path / "r.json", tmp_path / "r.trace.jsonl"
    origin = EvidenceFiles(example_index.directory, embedder="none")
    topics = EXAMPLES / "topics.json"
    outputs = Outputs.choose(topics, run, trace, resume=False, overwrite=False)
    answer_file(RunRequest(topics, origin, "none", Plan(k=10)), outputs, turn_progress)
    ids = example_index.get_ids(range(len(example_index)))
    texts = {passage.id: passage.text for passage in example_index.read(ids)}
    from_run, from_trace = (measure_form(read_answers(path, texts)) for path in (run, trace))
    assert from_run.answers == from_trace.answers == 15
    assert from_run.dangling_openings == from_trace.dangling_openings
