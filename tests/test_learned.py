"""What the bundled models were taught: the query encoder, the rewriter, and files of theirs that are not sound."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from agent.models import learned
from agent.models.bundled import ADAPTERS, CHOOSER, REWRITER, find_bundled_gguf
from agent.models.embedding.minilm import WEIGHTS, find_weights
from agent.models.embedding.query_encoder import open_query_encoder
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.models.registry import open_embedder, open_model
from agent.turn.extractive_answer import extract_answer
from agent.turn.query_rewriting import (
    NoCall,
    SearchCall,
    call_search,
    complete_rewrite,
    compose_conversation,
    is_faithful,
    is_negated,
    rewrite_query,
)
from indexes.ranking.vectors import Embedder
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Message, Passage, Plan, Query
from tests.conftest import needs_embedder, needs_model

BREAD = (
    Message("user", "How do I bake rye bread?"),
    Message("assistant", "Mix rye flour, water and salt with the sourdough, and let it rest overnight."),
)
KEEPS = Conversation("Answer.", (*BREAD, Message("user", "How long does it keep?")))


def read(minilm: Embedder, utterance: str, *earlier: str, reply: str = "") -> tuple[np.ndarray, dict[str, float]]:
    assert minilm.encode_turn is not None
    query = Query(utterance, previous_reply=reply, earlier_utterances=earlier)
    found = minilm.encode_turn(compose_conversation(query))
    return found.vector, dict(found.words)


@needs_embedder
def test_a_turn_lies_where_the_question_that_stands_alone_does(minilm: Embedder) -> None:
    meant, other = minilm.embed(["How long does rye bread keep?", "How long does a passport keep its validity?"])
    vector, _ = read(minilm, "How long does it keep?", "How do I bake rye bread?", reply=BREAD[1].text)
    assert vector @ meant > vector @ other + 0.2
    assert vector @ meant > minilm.embed(["How long does it keep?"])[0] @ meant + 0.2
    assert np.linalg.norm(vector) == pytest.approx(1.0)


@needs_embedder
def test_the_words_that_are_referred_to_are_told_from_others(minilm: Embedder) -> None:
    _, words = read(minilm, "How long does it keep?", "How do I bake rye bread?", reply=BREAD[1].text)
    assert min(words["rye"], words["bread?"]) > 0.5 > max(words["salt"], words["overnight."])
    _, words = read(minilm, "Who won the football world cup in 1990?", "How do I bake rye bread?", reply=BREAD[1].text)
    assert max(words["rye"], words["bread?"]) < 0.5


@needs_embedder
def test_a_question_lies_nearer_to_what_answers_it_than_as_a_passage(minilm: Embedder) -> None:
    asked = ["Who do I ring when the heating packs up?"]
    near, far = minilm.embed(["Emergency number: 0555 230 114 (weekends).", "In summer the heating is off."])
    (plain,), (taught,) = minilm.embed(asked), minilm.embedding_questions(True)(asked)
    assert taught @ (near - far) > plain @ (near - far) + 0.05


@needs_model
def test_the_rewriter_makes_a_question_stand_alone_and_changes_nothing_else() -> None:
    task, small = Task("judge", "What is this about?", "It is about"), open_model("smollm2")
    before = small.score(KEEPS, task, ["rye bread", "trains"])
    rewrite = rewrite_query(KEEPS, small, Plan(query=("rewrite",))).rewrite.lower()
    assert ("rye bread" in rewrite, "keep" in rewrite) == (True, True)
    assert small.score(KEEPS, task, ["rye bread", "trains"]) == before
    small.close()


@needs_model
@needs_embedder
def test_weights_of_a_package_are_refused_when_they_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "weights_of_somebody" / "model"
    package.mkdir(parents=True)
    sources = [find_bundled_gguf(), *(find_weights().with_name(name) for name in WEIGHTS.digests)]
    copies = [package.parent / sources[0].name, *(package / name for name in WEIGHTS.digests)]
    for source, copy in zip(sources, copies, strict=True):
        copy.write_bytes(source.read_bytes())
    spec = SimpleNamespace(submodule_search_locations=[str(package.parent)])
    monkeypatch.setattr("agent.models.bundled.find_spec", lambda _package: spec)
    find_bundled_gguf()
    find_weights()
    for path in reversed(copies):  # the last one is looked at last
        whole = path.read_bytes()
        path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))  # of the same size
        with pytest.raises(InvalidInputError, match="SHA-256 differs") as caught:
            open_model("smollm2") if path.suffix == ".gguf" else open_embedder(None)
        assert caught.value.where == str(path)
        path.write_bytes(whole)


@needs_model
@needs_embedder
def test_bad_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    weights, damaged = find_weights(), tmp_path / "damaged.safetensors"
    damaged.write_bytes(learned.QUERY_ENCODER.read_bytes()[:5000])
    monkeypatch.setattr("agent.models.embedding.query_encoder.QUERY_ENCODER", damaged)
    monkeypatch.setattr("agent.models.embedding.query_encoder.QUESTION_ENCODER", damaged)
    assert (embedder := open_embedder("minilm"))
    assert (embedder.embedding_questions(True)(["Why?"]) == embedder.embed(["Why?"])).all()
    assert caplog.text.count("Questions are embedded as passages are") == 1
    with pytest.raises(InvalidInputError, match="is damaged"):
        open_query_encoder(weights, 1)
    damaged.unlink()
    with pytest.raises(MissingError, match="is not there"):
        open_query_encoder(weights, 1)


@needs_model
@pytest.mark.parametrize("name", ADAPTERS)
def test_without_an_adapter_that_is_damaged_the_rest_goes_on(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = tmp_path / "damaged.gguf"
    damaged.write_bytes(ADAPTERS[name].read_bytes()[:5000])
    monkeypatch.setitem(ADAPTERS, name, damaged)
    model = open_model("smollm2")
    assert set(model.adapters) == set(ADAPTERS) - {name}
    assert caplog.text.count("cannot load this adapter") == 1
    assert (rewrite_query(KEEPS, model, Plan(query=("rewrite",))).rewrite == "") == (name == REWRITER)
    assert any(model.compare("How long does rye bread keep?", ["Nine days.", "It is baked."])) == (name != CHOOSER)


PASSAGE = (
    "Rye bread is baked from rye flour, water and salt. In a cloth it keeps for nine days. The shop opens at eight."
)


@needs_embedder
def test_the_reader_finds_the_answer_and_tells_where_there_is_none(minilm: Embedder) -> None:
    assert minilm.read is not None
    long = "The shop sells flour, yeast and cheese. " * 60 + PASSAGE
    windows = minilm.read("How long does rye bread keep?", long, True)
    assert len(windows) > 2
    found = max(windows, key=lambda window: float(window.starts.max()) - window.nothing)
    first, last = (found.pieces[int(side.argmax())] for side in (found.starts, found.ends))
    assert long[first[0] : last[1]] == "nine days"
    assert found.starts.max() + found.ends.max() > found.nothing + 5
    assert windows[-1].pieces[-1][1] == len(long)
    assert tuple(minilm.read("How long?", "", True)) == ()
    [other] = minilm.read("Who wrote Faust?", PASSAGE, True)
    assert other.starts.max() + other.ends.max() < other.nothing


@needs_embedder
def test_a_reader_that_cannot_be_opened_is_said_once_and_the_rest_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    damaged = tmp_path / "reader.safetensors"
    damaged.write_bytes(learned.READER.read_bytes()[:5000])
    for path in (damaged, tmp_path / "absent.safetensors"):
        caplog.clear()
        monkeypatch.setattr("agent.models.embedding.reader.READER", path)
        embedder = open_embedder("minilm")
        assert embedder is not None
        assert embedder.read is not None
        assert [tuple(embedder.read(asked, PASSAGE, True)) for asked in ("What?", "Who?")] == [(), ()]
        asked = Query("How long does rye bread keep?"), (), [Passage("bread:1", PASSAGE)]
        damaged_reader, none = (
            extract_answer(*asked, each, Plan()) for each in (embedder, replace(embedder, read=None))
        )
        assert damaged_reader == none
        assert "nine days" in none.text
        [said] = [record.message for record in caplog.records if "reader" in record.message]
        assert str(path) in said


REWRITES = [
    ("How long does it keep?", "How long does rye bread keep?", True),
    ("Is it not too salty?", "Is rye bread too salty?", False),
    ("What about 3 loaves?", "How do I bake rye bread?", False),
    ("What about 3 loaves?", "How do I bake 3 loaves of rye bread?", True),
    ("Would Anna like it?", "Would she like rye bread?", False),
    ("Where is it from?", "Where is the Riga recipe of rye bread from in 1874?", False),
]


def test_a_rewrite_that_asks_something_else_is_told() -> None:
    for utterance, rewrite, faithful in REWRITES:
        messages = (*BREAD, Message("user", utterance))
        assert (rewrite, is_faithful(rewrite, messages)) == (rewrite, faithful)


def test_what_a_rewrite_drops_is_kept() -> None:
    messages = (*BREAD, Message("user", "It was too salty. How long does it keep?"))
    completed = complete_rewrite("How long does rye bread keep?", messages)
    assert completed == "It was too salty. How long does rye bread keep?"
    keeps = (*BREAD, Message("user", "How long does it keep for a week?"))
    assert not complete_rewrite("How do I bake rye bread?", keeps)
    flour = (*BREAD, Message("user", "And spelt?"))
    assert complete_rewrite("How do I bake spelt bread?", flour)
    assert not complete_rewrite("How do I bake rye bread?", flour)


def test_a_contraction_denies_and_a_number_does_not() -> None:
    denied = ("What isn't baked?", "What is baked?", "Never bake it.", "Does No. 3 bake?", "No, the bread.")
    assert [is_negated(text) for text in denied] == [True, False, True, False, False]


@needs_model
def test_where_nothing_is_asked_nothing_is_called(smollm2: LanguageModel) -> None:
    assert isinstance(call_search((*BREAD, Message("user", "Thanks a lot!")), smollm2), NoCall)
    assert isinstance(call_search(KEEPS.messages, smollm2), SearchCall)
