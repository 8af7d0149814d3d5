"""The embedding model, its vectors of an index, and finding by words and meaning together."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from agent.models.registry import open_embedder
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.index_vectors import embed_index
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever, own_vectors
from indexes.ranking.vectors import Embedder, Vectors, keep_vectors
from indexes.storage.cache import Cache
from schemas.errors import InvalidInputError, UsageError
from schemas.tuning import RetrievalTuning
from tests.conftest import needs_embedder, shared_file

WORDS = ("bread", "fern", "trumpet")


class Counted:
    """An embedder of three words, to see what is asked of it: a text's vector is which of them it holds, if any."""

    name, digest, size = "counted", "0" * 64, 4

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.embedder = Embedder(self.name, self.digest, self.size, 99, self.embed, lambda text: len(text.split()))

    def embed(self, texts: Sequence[str]) -> Vectors:
        self.asked.extend(texts)
        rows = [[*(float(word in text.lower()) for word in WORDS), 0.01] for text in texts]
        vectors = np.array(rows, dtype=np.float32)
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


@pytest.fixture
def index(tmp_path: Path) -> PassageIndex:
    """Five passages; the words "it keeps" are in the first two and the last."""
    lines = [
        ("1", "It keeps for two days in a tin."),
        ("2", "It keeps its tune, as any trumpet does."),
        ("3", "Rice bread is made without wheat."),
        ("4", "Ferns want water."),
        ("5", "A tin keeps bread fresh."),
    ]
    passages = tmp_path / "passages.jsonl"
    passages.write_text("\n".join(json.dumps({"id": id, "contents": text}) for id, text in lines))
    build_index(find_corpus([passages]), tmp_path / "index")
    return PassageIndex(tmp_path / "index")


@contextmanager
def no_progress(_stage: str, _total: int) -> Iterator[Callable[[int], None]]:
    yield lambda _done: None


@needs_embedder
def test_vectors_agree_with_the_reference(minilm: Embedder) -> None:
    reference = shared_file("minilm_reference.json")
    known = json.loads(reference.read_text())
    expected = np.array(known["vectors"], dtype=np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    cosines = (minilm.embed(known["texts"]) * expected).sum(axis=1)
    assert cosines.min() >= 0.999
    alone = np.concatenate([minilm.embed([text]) for text in known["texts"]])
    assert (alone == minilm.embed(known["texts"])).all()  # to the bit, in whatever company


def test_what_is_no_embedding_model_is_refused_and_without_one_words_find(index: PassageIndex, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"unknown embedding model 'bert' \(available: minilm"):
        open_embedder("bert")
    (tmp_path / "text.gguf").write_text("Hello")
    with pytest.raises(InvalidInputError, match="is no GGUF"):
        open_embedder(str(tmp_path / "text.gguf"))
    assert open_embedder("none") is None
    found = open_retriever(index, None).find([("it keeps", 1.0)], [("bread", 1.0)], 10)
    assert {hit.id for hit in found} == {"1", "2", "5"}


def test_all_passages_have_a_meaning_where_the_index_has_vectors(index: PassageIndex) -> None:
    embedder = Counted().embedder
    embed_index(index.directory, embedder, no_progress)
    found = open_retriever(PassageIndex(index.directory), embedder).find([("it keeps", 1.0)], [("bread", 1.0)], 10)
    assert [hit.id for hit in found[:2]] == ["5", "3"]  # the words and the meaning; the meaning alone
    assert len(found) == 5
    assert all(before.score > after.score for before, after in pairwise(found))
    assert found[0].score == pytest.approx(RetrievalTuning().cosine_weight + 1, abs=0.3)


def test_only_what_the_words_find_is_reranked_where_it_has_none(index: PassageIndex, tmp_path: Path) -> None:
    counted = Counted()
    retriever = open_retriever(index, keep_vectors(counted.embedder, Cache(tmp_path / "vectors.sqlite")))
    first = retriever.find([("it keeps", 1.0)], [("bread", 1.0)], 2)
    assert first[0].id == "5"
    asked = len(counted.asked)
    assert retriever.find([("it keeps", 1.0)], [("bread", 1.0)], 2) == first
    assert len(counted.asked) == asked  # everything was kept
    rows = sqlite3.connect(tmp_path / "vectors.sqlite").execute("SELECT count(*) FROM kept").fetchone()
    assert rows == (4,)  # the query and the three passages that hold one of its words


@needs_embedder
def test_a_small_index_is_embedded_and_a_large_one_is_not(index: PassageIndex, minilm: Embedder) -> None:
    assert embed_index(index.directory, minilm, no_progress, most=4) == 0
    assert not index.vector_infos
    assert embed_index(index.directory, minilm, no_progress, most=5) == 5
    embedded = PassageIndex(index.directory)
    vectors = own_vectors(embedded, minilm)
    assert isinstance(vectors, np.ndarray)
    assert vectors.shape == (5, 384)
    retriever = open_retriever(embedded, minilm)
    assert retriever.find([("xyzzy", 1.0)], [("brass instrument", 1.0)], 1)[0].id == "2"
    assert own_vectors(embedded, Counted().embedder) is None  # they are another model's


def test_damaged_vectors_are_told(index: PassageIndex) -> None:
    (index.directory / "vectors.json").write_text('{"model": "m", "digest": "", "size": 3, "passages": 5}')
    (index.directory / "vectors.f16").write_bytes(b"\0" * 8)
    with pytest.raises(InvalidInputError, match="damaged vectors"):
        _ = PassageIndex(index.directory).vectors
    (index.directory / "vectors.json").write_text("{")
    with pytest.raises(InvalidInputError, match="damaged vectors"):
        _ = PassageIndex(index.directory).vector_infos
    embed_index(index.directory, Counted().embedder, no_progress)  # as the remedy has it
    assert PassageIndex(index.directory).vectors is not None
