"""What the small model makes of the sentences that answer, and the check of it."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import pytest

from agent.models.bundled import WRITER
from agent.models.protocol import Conversation, ignore_call
from agent.models.scripted import Script, ScriptedModel
from agent.turn.writing.checked_answer import Writer
from agent.turn.writing.paraphrase import is_meant
from agent.turn.writing.responses import generate_responses
from agent.turn.writing.sources import Source, compose_writer_prompt, read_written
from benchmarks.paraphrases import measure, read_pairs
from schemas.records import Message, Passage, Plan, Query, Response, Sentence
from tests.conftest import needs_model

BREAD = Passage("bread:1", "Rice bread keeps for two days in a tin. It is made without wheat.", "Breads")
ASKED = "How long does rice bread keep?"
TALK = Conversation("", (Message("user", ASKED),))
WRITE = Plan(answer="write")
QUOTED = "Rice bread keeps for two days in a tin."


@dataclass(slots=True)
class Taught(ScriptedModel):
    adapters: Collection[str] = (WRITER,)


def answer(reply: str, shown: list[Response] | None = None, plan: Plan = WRITE, *, quotes: bool = False) -> Response:
    llm: Any = Taught(Script(ask={"write": [reply]}), ignore_call)
    writer = Writer(llm, None if shown is None else shown.append, quotes=quotes)
    [response] = generate_responses(Query(ASKED), (), [BREAD], writer, None, plan)
    return response


def test_what_is_read() -> None:
    sources = [Source("Breads", QUOTED), Source("", "It is made without wheat.")]
    assert compose_writer_prompt(ASKED, ["I bake at home."], sources, 2) == (
        f"Q: {ASKED}\nMe: I bake at home.\n[1] Breads » {QUOTED}\n[2] It is made without wheat.\n"
        "Answer in 2 sentences made of these, each with its numbers."
    )


def test_sentences_are_read_as_soon_as_they_have_their_numbers() -> None:
    text = "It keeps. [1][3] It costs 4.50 euros [2]. And"
    assert read_written(text) == [("It keeps.", (1, 3)), ("It costs 4.50 euros", (2,))]


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        ("In a tin, rice bread keeps two days. [1]", "In a tin, rice bread keeps two days."),
        ("Rice bread keeps for nine days in a tin. [1]", QUOTED),
        ("Rice bread keeps for two days. [1]", "Rice bread keeps for two days."),
        ("Rice bread does not keep for two days in a tin. [1]", QUOTED),
        ("Rice bread keeps for two days in a tin. [7]", QUOTED),
        ("Rice bread keeps for two days", QUOTED),
        ("", QUOTED),
    ],
)
def test_what_is_not_meant_gives_way_to_what_is_said(reply: str, said: str) -> None:
    shown: list[Response] = []
    response = answer(reply, shown)
    assert response.sentences[0] == Sentence(said, ("bread:1",))
    assert not shown or shown[-1].sentences == response.sentences


def test_where_quoting_is_wanted_nothing_is_written() -> None:
    written = "In a tin, rice bread keeps two days. [1]"
    assert answer(written, plan=Plan()).sentences[0].text == QUOTED
    assert answer(written, quotes=True).sentences[0].text == QUOTED


def test_pairs_of_sentences_and_what_they_were_made_of() -> None:
    meant, misstated = measure(read_pairs())
    assert (meant >= 0.77, misstated <= 0.03) == (True, True), (meant, misstated)


@needs_model
def test_the_bundled_model_writes_what_is_meant(smollm2: Any) -> None:
    calls: list[Any] = []
    smollm2.listen = calls.append
    passage = Passage("lease:1", "Rent: 410 EUR a month, due on the 3rd. Deposit: two months.", "Lease of the hut")
    query = Query("What is the rent of the hut?")
    [response] = generate_responses(query, (), [passage], Writer(smollm2), None, WRITE)
    assert calls[-1].step == "write"
    assert calls[-1].tokens_written > 5
    assert "410" in response.text
    assert all(
        sentence.text in passage.text or is_meant(sentence.text, [passage.text], passage.title, query.utterance)
        for sentence in response.sentences
    )
