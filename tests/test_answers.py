"""Answers: sentences chosen by meaning, the passages without an answer, and the measures by hand."""

from pathlib import Path

import pytest

from agent.answering import Outputs, Request, answer_file
from agent.aversions import ruled_out, speaks_of
from agent.console import turn_progress
from agent.flow import Tools
from agent.llm import Conversation, open_model
from agent.llm.scripted import Script, ScriptedModel
from agent.measures import Scores
from agent.measures.answers import Given, evaluate_answers, of_turn, rouge, supported
from agent.measures.judge import judged, open_judge
from agent.respond import respond
from agent.select import NOT_FOUND, Most, says_none, select
from agent.sentences import MAX_TOKENS, response_length, split_sentences, whitespace_words
from agent.sources import Origin, Texts
from agent.support import unsupported
from agent.tracks.runs import RunPassage, RunResponse, RunTurn
from indexes.passages import PassageIndex
from indexes.vectors import Embed, Embedder
from schemas.errors import InvalidInputError, MissingError, UsageError
from schemas.records import Chosen, Hit, Message, Passage, Plan, Query, Statement
from tests.conftest import EXAMPLES, needs_embedder, needs_model

BREAD = Passage(
    "bread:1",
    "Loaves from the oven of our village are famous. A tin keeps a rice loaf soft for two days. "
    "The baker opens at seven and closes at noon every day.",
)
MUSIC = Passage("music:1", "The trumpet is made of brass and has three valves. A beginner should practise every day.")


@pytest.fixture
def embed(minilm: Embedder) -> Embed:
    return minilm.embed


@pytest.mark.story
@needs_embedder
def test_the_nearest_sentence_needs_no_word_of_the_question(embed: Embed) -> None:
    asked = Query("How long does gluten-free bread stay fresh?")
    text = select(asked, (), [BREAD], embed, Most(tokens=24)).text
    assert "two days" in text
    assert select(asked, (), [BREAD], None, Most(tokens=24)).text != text  # words alone do not find it


@pytest.mark.story
@needs_embedder
def test_it_is_said_where_the_passages_are_about_something_else(embed: Embed) -> None:
    response = select(Query("How deep is the North Sea?"), (), [BREAD, MUSIC], embed, Most())
    assert response.sentences[0].text == NOT_FOUND
    assert response.sentences[0].passage_ids == ()
    assert response.used  # what comes nearest is quoted, and cited
    assert not select(Query("How many valves has a trumpet?"), (), [BREAD, MUSIC], embed, Most()).text.startswith(
        NOT_FOUND
    )


@pytest.mark.story
@needs_embedder
def test_a_further_answer_may_be_found_where_the_first_passages_have_none(embed: Embed) -> None:
    asked = Query("How many valves has a trumpet?")
    plan = Plan(shown=1, responses=2)
    tools = Tools(open_model("none"), lambda _query, _personal: (), lambda _hits: (), plan, embed)
    conversation = Conversation("", (Message("user", asked.utterance),))
    [found] = respond(asked, conversation, (), [BREAD, MUSIC], tools)
    assert found.used == (MUSIC.id,)
    [none] = respond(Query("How deep is the North Sea?"), conversation, (), [BREAD, MUSIC], tools)
    assert says_none(none)


def test_nobody_writes_without_a_model() -> None:
    tools = Tools(open_model("none"), lambda _query, _personal: (), lambda _hits: (), Plan(answer="write"))
    asked = Query("Who plays the trumpet?")
    [found] = respond(asked, Conversation("", (Message("user", asked.utterance),)), (), [MUSIC], tools)
    assert found.used == (MUSIC.id,)


def test_without_an_embedding_model_a_shared_word_is_near_enough() -> None:
    assert select(Query("Who plays the trumpet?"), (), [MUSIC], None, Most()).sentences[0].text != NOT_FOUND
    assert select(Query("How deep is the sea?"), (), [MUSIC], None, Most()).sentences[0].text == NOT_FOUND


@needs_embedder
@pytest.mark.parametrize("question", ["Which bread keeps?", "How deep is the North Sea?"])
@pytest.mark.parametrize("tokens", [12, 40, MAX_TOKENS])
def test_an_answer_keeps_to_its_length_and_to_its_passages(embed: Embed, question: str, tokens: int) -> None:
    long = Passage("long:1", " ".join(f"Sentence number {n} speaks of bread and of the sea." for n in range(60)))
    response = select(Query(question), (), [BREAD, MUSIC, long], embed, Most(tokens=tokens))
    assert response_length(response.text) <= max(tokens, response_length(NOT_FOUND))
    assert whitespace_words(response.text) <= Most().words + len(NOT_FOUND.split())
    texts = {passage.id: passage.text for passage in (BREAD, MUSIC, long)}
    for sentence in response.sentences:
        assert sentence.text == NOT_FOUND or all(
            not unsupported(sentence.text, texts[id]) for id in sentence.passage_ids
        )


@pytest.mark.parametrize(
    ("statement", "left_out", "kept"),
    [
        ("I'm allergic to peanuts.", "Roasted peanuts fill you for long.", "Bars without peanuts fill you, too."),
        ("I am vegetarian.", "A stew of beef warms you up.", "A stew of beans warms you up."),
        ("I’m lactose intolerant", "A cup of milk helps you sleep.", "A cup of lactose-free milk helps you sleep."),
        (
            "I hate long flights, and I don't drink alcohol.",
            "A drop of alcohol calms you.",
            "A short flight calms you.",
        ),
        ("I can't eat any kind of nuts.", "A handful of nuts fills you for long.", "A handful of rice fills you, too."),
        ("I am not vegan or vegetarian.", "", "A stew of beef warms you up."),
        ("We don't enjoy vegan dishes.", "Try the vegan dishes of the house.", "Try the beef of the house."),
    ],
)
def test_statements_decide_what_is_left_out(statement: str, left_out: str, kept: str) -> None:
    personal = (Chosen(Statement("1", statement), 1.0),)
    passage = Passage("food:1", f"{left_out} {kept} What else is there to say of it?")
    asked = Query("What fills you, warms you, calms you, helps you sleep, or is of the house?")
    text = select(asked, personal, [passage], None, Most()).text
    assert kept in text
    assert not left_out or left_out not in text


@pytest.mark.parametrize(
    "statement",
    [
        "I'm not allergic to peanuts.",
        "I am no longer allergic to peanuts.",
        "I love dairy products and peanuts.",
        "I used to be vegetarian.",
        "I don't have peanuts at home.",
    ],
)
def test_what_is_not_ruled_out(statement: str) -> None:
    personal = (Chosen(Statement("1", statement), 1.0),)
    assert not any(speaks_of(text, ruled_out(personal, "")) for text in ("Eat peanuts.", "Drink milk.", "Cook beef."))


def test_what_is_asked_about_is_not_left_out() -> None:
    personal = (Chosen(Statement("1", "I'm allergic to peanuts."), 1.0),)
    passage = Passage("food:1", "Peanuts are legumes and no nuts at all. Oats are a kind of grass.")
    assert "Peanuts" in select(Query("What are peanuts?"), personal, [passage], None, Most()).text


def test_measures_by_hand() -> None:
    """Five of six words are shared on both sides (not "for", not "tin"), and three of five pairs, in the same order."""
    found = rouge("Rice bread keeps for two days", "Tin: rice bread keeps two days")
    assert found == pytest.approx({"ROUGE-1": 5 / 6, "ROUGE-2": 3 / 5, "ROUGE-L": 5 / 6})


def test_what_is_supported_and_rightly_cited() -> None:
    assert supported(split_sentences(MUSIC.text)[0], [MUSIC]) == {
        "supported": 1,
        "wholly supported": 1,
        "citations right": 1,
    }
    half = supported("The trumpet is made of brass and has three valves. It is loud.", [MUSIC, BREAD])
    assert half == {"supported": 0.5, "wholly supported": 0, "citations right": 0.5}
    assert supported("It is loud.", []) == {"supported": 0, "wholly supported": 0}


def turn(text: str | None, *used: str) -> RunTurn:
    passages = tuple(RunPassage(id, 1.0) for id in used)
    return RunTurn("1_1", (RunResponse(1, text, passages, tuple(Hit(id, 1.0) for id in used)),))


def test_no_answer_is_no_good_answer_and_no_bad_citation() -> None:
    texts = Texts({MUSIC.id: MUSIC})
    said = of_turn(turn(f"{NOT_FOUND} {split_sentences(MUSIC.text)[0]}", MUSIC.id), "It has three valves.", texts)
    assert said["answered"] == 0
    assert said["supported"] == 1  # the opening is no claim
    assert of_turn(turn(""), "It has three valves.", texts) == {
        "ROUGE-1": 0.0,
        "ROUGE-2": 0.0,
        "ROUGE-L": 0.0,
        "answered": 0.0,
    }
    assert of_turn(None, "It has three valves.", texts)["answered"] == 0
    assert "ROUGE-1" not in of_turn(turn("Three.", MUSIC.id), "", texts)  # nothing to compare with


def test_answers_of_a_run_are_measured(example_index: PassageIndex, tmp_path: Path) -> None:
    run, topics = tmp_path / "run.json", EXAMPLES / "topics.json"
    outputs = Outputs.choose(topics, run, None, resume=False, overwrite=False)
    origin = Origin(example_index.directory, embedder="none")
    answer_file(Request(topics, origin, "none", Plan(k=10)), outputs, turn_progress)
    [scores] = evaluate_answers([run], topics, Given(index=example_index.directory))
    assert len(scores.turns) == 15
    assert scores.mean("supported") > 0.95
    assert scores.mean("ROUGE-1") > 0.1
    [from_files] = evaluate_answers([run], topics, Given((EXAMPLES / "passages.jsonl",)))
    assert from_files.turns == scores.turns
    with pytest.raises(MissingError, match="without texts"):
        evaluate_answers([run], topics, Given())
    other = tmp_path / "other.jsonl"
    other.write_text('{"id": "x:1", "text": "Nothing of it."}\n')
    with pytest.raises(InvalidInputError, match="cites passages without a text"):
        evaluate_answers([run], topics, Given((other,)))


def test_a_judge_is_asked_of_answers_alone() -> None:
    texts = Texts({MUSIC.id: MUSIC})
    judge = ScriptedModel(Script(ask={"judge": [{"verdict": "partly"}]}), lambda _call: None)
    assert of_turn(turn("It has three valves.", MUSIC.id), "", texts, judge)["judged"] == 0.5
    assert "judged" not in of_turn(turn(f"{NOT_FOUND} It has.", MUSIC.id), "", texts, judge)  # would ask once too often
    assert "judged" not in of_turn(turn("It has three valves."), "", texts, judge)  # cites nothing


@needs_model
def test_a_verdict_that_is_missing_is_none_and_no_bad_one() -> None:
    judge = open_judge("smollm2")
    assert judged(judge, "It has three valves.", [MUSIC]) in (0.0, 0.5, 1.0)
    endless = Passage("endless:1", "Brass keeps its tune. " * 3000)
    assert judged(judge, "It has three valves.", [endless]) is None
    scores = Scores("run", {"1_1": {"judged": 1.0}, "1_2": {}}, 0)
    assert scores.mean("judged") == 1.0
    assert len(scores.of("judged")) == 1
    with pytest.raises(UsageError, match="a judge has to be a model"):
        open_judge("none")
