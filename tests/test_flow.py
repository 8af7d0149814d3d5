"""Read me first: a conversation of two turns, told with a scripted model over a real index.

The person has coeliac disease and asks about bread; then asks "How long does it keep?", which no search engine
understands on its own. The script says what a good model would say; everything else is real.
"""

from pathlib import Path

import pytest

from agent.flow import Tools, answer_topic
from agent.models.scripted import Script, ScriptedModel
from agent.turn.retrieval import Searcher
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.records import Call, Plan, Statement, Topic, Turn, TurnResult

PASSAGES = """\
{"id": "bread:1", "contents": "Rice bread is made without wheat. Rice flour holds no gluten at all."}
{"id": "bread:2", "contents": "Rice bread keeps for two days in a tin. Freezing rice bread keeps it fresh for a month."}
{"id": "bread:3", "contents": "Rye bread keeps for a week. Rye flour holds gluten, as wheat does."}
{"id": "music:1", "contents": "The trumpet keeps its tune for a long concert. It is made of brass."}
"""

PERSON = (Statement("1", "I play the trumpet."), Statement("2", "I have coeliac disease."))

CONVERSATION = Topic(
    "7",
    PERSON,
    (
        Turn("7_1", "Which bread can I eat?"),
        Turn("7_2", "How long does it keep?"),
    ),
)

SCRIPT = Script(
    ask={"hyde": ["Rice bread holds no gluten.", "It keeps for two days."]},
    score={
        "statements": [["coeliac"], []],  # the disease matters for which bread, not for how long it keeps
        "context": [["Rice bread", "rice bread"]],  # the first turn has nothing to refer to
    },
)


PLAN = Plan(k=10, context_passages=2, query=("context", "hyde", "previous"))  # every part that a query can have


@pytest.fixture
def calls() -> list[Call]:
    return []


@pytest.fixture
def turns(tmp_path: Path, calls: list[Call]) -> list[TurnResult]:
    (tmp_path / "passages.jsonl").write_text(PASSAGES)
    corpus = find_corpus([tmp_path / "passages.jsonl"])
    build_index(corpus, tmp_path / "index", skip_problems=False, progress=lambda: None)
    searcher = Searcher(open_retriever(PassageIndex(tmp_path / "index"), None), PLAN)
    tools = Tools(ScriptedModel(SCRIPT, calls.append), searcher.search, searcher.read, PLAN)
    return list(answer_topic(CONVERSATION, tools))


def test_the_turns_are_answered_for_this_person(turns: list[TurnResult]) -> None:
    """The second is understood from the first."""
    first, second = turns
    assert first.query.standalone == "Which bread can I eat?"
    assert [chosen.statement.id for chosen in first.selected_statements] == ["2"]
    assert first.hits[0].id == "bread:1"
    assert "Rice flour holds no gluten at all." in first.response.text
    assert "bread:1" in first.response.used
    assert second.query.utterance == "How long does it keep?"
    assert "rice bread" in second.query.standalone.lower()
    assert second.selected_statements == ()
    assert second.hits[0].id == "bread:2"
    assert "Rice bread keeps for two days in a tin." in second.response.text
    for turn in turns:
        texts = {passage.id: passage.text for passage in turn.passages}
        assert turn.response.sentences
        for sentence in turn.response.sentences:
            assert sentence.passage_ids
            assert all(sentence.text in texts[id] for id in sentence.passage_ids)


def test_the_prompts_hold_our_own_history_and_begin_alike(turns: list[TurnResult], calls: list[Call]) -> None:
    prompt = next(call.prompt for call in calls if call.step == "context")
    assert f"assistant: {turns[0].response.text}" in prompt
    assert prompt.index("Which bread can I eat?") < prompt.index("How long does it keep?")
    second = [call.prompt for call in calls if "How long does it keep?" in call.prompt]
    assert len(second) == 3  # hyde, context, statements
    shared = second[0].split("task:")[0]
    assert all(prompt.startswith(shared) for prompt in second)
