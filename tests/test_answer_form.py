"""The measures of answers' form: what dangles and what is glued, in tables, and in a run and its trace."""

from pathlib import Path

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


DANGLING = (
    "He or she will be able to go.; However, soup is hot.; But if you are ill, stay.; For example, beans are green.; "
    "**This makes it tolerable.**; In that case, call Rosa.; Dabei ist Vorsicht geboten."
)
FREE = (
    "It is important to eat.; In addition to salt, add pepper.; Heron gets released in May.; Thesis work takes a year."
)
GLUED = (
    "Side Effects The most common side effects are nausea.; Home » Nutrition » Protein Beans have protein.; "
    "Steaming Steaming is healthy.; Nutritional Yeast Nutritional yeast is vegan.; By MacRumors Staff on April 15, "
    "2020 The phone is thin.; [ 6 ] It bore only a slight resemblance.; 5. Funding There never seems to be enough.; "
    "Updated 3 March 2021 Eat beans.; Watch on Today we make soup."
)
WHOLE = (
    "The National Institute for Health recommends a low dose.; Home is where the heart is.; By July 2020 the price had "
    "doubled.; BMW and Mercedes-Benz build cars.; It takes fifty minutes."
)


def test_what_points_back_and_what_is_glued() -> None:
    for holds, yes, no in ((points_back, DANGLING, FREE), (is_glued, GLUED, WHOLE)):
        assert [text for text in yes.split("; ") if not holds(text)] == []
        assert [text for text in no.split("; ") if holds(text)] == []


def test_what_stands_beside_what_it_points_to_does_not_dangle() -> None:
    hot, red, cheap, green = "The soup is hot.", "It is red.", "It was cheap.", "Beans are green."
    for sentences, places in (((red,), [0]), ((hot, red, cheap), []), ((hot, cheap), [1]), ((green, red), [1])):
        answer = Answer(sentences, (SOURCE,))
        assert [place for place in range(len(sentences)) if dangles(answer, place)] == places
    assert dangles(Answer((hot, red), ()), 1)  # without its source


def test_the_measures_by_hand() -> None:
    answers = [
        Answer(("It is red.", "Beans are green."), (SOURCE,)),
        Answer(("Side Effects The most common one is heat.", "It was cheap."), (SOURCE,)),
        Answer((), ()),
    ]
    assert measure_form(answers) == Form(2, 4, 0.5, 0.5, 0.5, 0.25)
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
