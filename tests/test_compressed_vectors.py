"""Compressed vectors: rankings close to exact search, the same bytes each time, no nonsense where they are damaged."""

import hashlib
import json
import shutil
import sys
from collections.abc import Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.index_vectors import compress_index, embed_index
from indexes.passage_index import PassageIndex
from indexes.ranking.compressed_vectors import COMPRESSED_FILE, CompressedVectors
from indexes.ranking.hybrid import open_retriever, own_vectors
from indexes.ranking.vectors import Vectors
from indexes.sharding.sharded_index import open_index, verify_index
from schemas.errors import InvalidInputError, MissingError, UsageError
from tests.conftest import needs_embedder, no_progress
from tests.fuzz.byte_damage import damage_byte
from tests.processes import names, run, write_passages
from tests.test_embedder import Counted

pytestmark = pytest.mark.skipif(find_spec("faiss") is None, reason="faiss is not installed (extra faiss)")
PASSAGES, SIZE = 3000, 384
TREES = ("alder", "birch", "cedar", "elder", "maple", "rowan", "willow", "yew")
QUERIES = tuple(f"the {tree} of row {row} in plot {row * 7 % 89}" for row, tree in enumerate(TREES * 3))


class WordVectors(Counted):
    """An embedding model of a kind: each word has a direction, a text has their sum."""

    name, size = "words", SIZE
    digest = "words"

    def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.array([sum(map(point_somewhere, text.split())) for text in texts], dtype=np.float32)
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@cache
def point_somewhere(word: str) -> Vectors:
    seed = int.from_bytes(hashlib.md5(word.encode(), usedforsecurity=False).digest()[:4])
    return np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)


@pytest.fixture(scope="module")
def exact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index whose vectors are not compressed."""
    place = tmp_path_factory.mktemp("trees")
    lines = [
        {"id": f"p{n}", "text": f"The {TREES[n * n % 8]} number {n} stands in row {n % 97} of plot {n % 89}."}
        for n in range(PASSAGES)
    ]
    (place / "passages.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    corpus = find_corpus([place / "passages.jsonl"])
    build_index(corpus, place / "index")
    embed_index(place / "index", WordVectors().embedder, no_progress)
    return place / "index"


@pytest.fixture(scope="module")
def compressed(exact: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    copy = Path(shutil.copytree(exact, tmp_path_factory.mktemp("compressed") / "index"))
    compress_index(copy, no_progress)
    return copy


@pytest.fixture
def copy(compressed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(compressed, tmp_path / "index"))


def open_vectors(directory: Path) -> CompressedVectors:
    found = own_vectors(PassageIndex(directory), WordVectors().embedder)
    assert isinstance(found, CompressedVectors)
    return found


def share_found(found: Sequence[object], wanted: Sequence[object]) -> float:
    return len(set(found) & set(wanted)) / len(wanted)


def check_nearest(exact: Path, nearby: CompressedVectors, k: int) -> float:
    """The share of the nearest that are found, whose cosines must be right."""
    vectors, shares = PassageIndex(exact).vectors, []
    assert vectors is not None
    for query in WordVectors().embed(QUERIES):
        numbers = nearby.find_candidates(query, k)
        cosines = nearby.score(numbers, query)
        assert cosines == pytest.approx((vectors @ query)[numbers], abs=1e-6)
        wanted = np.argsort(-(vectors @ query))[:k]
        shares.append(share_found(numbers.tolist(), wanted.tolist()))
    return float(np.mean(shares))


def test_the_nearest_are_those_of_exact_search(exact: Path, compressed: Path) -> None:
    assert check_nearest(exact, open_vectors(compressed), 50) >= 0.95


def test_words_and_meaning_rank_as_in_exact_search(exact: Path, compressed: Path) -> None:
    """To the fourth decimal, wherever the nearest are found; and more than what has the words."""
    ours, theirs = (open_retriever(PassageIndex(each), WordVectors().embedder) for each in (compressed, exact))
    shares = []
    for query in QUERIES:
        words, meaning = [(query.split()[1], 1.0)], [(query, 1.0)]
        found, wanted = ours.find(words, meaning, 20), theirs.find(words, meaning, 20)
        shares.append(share_found([hit.id for hit in found], [hit.id for hit in wanted]))
        assert len(found) == 20
        assert found[0].score == pytest.approx(wanted[0].score, abs=2e-4)
    assert np.mean(shares) >= 0.95
    by_meaning = ours.find([("xyzzy", 1.0)], [("the willow number 12", 1.0)], 5)
    assert len(by_meaning) == 5


def test_those_of_shards_are_searched_as_one(exact: Path, tmp_path: Path) -> None:
    corpus = find_corpus([exact.parent / "passages.jsonl"])
    build_index(corpus, tmp_path / "index", 3)
    embed_index(tmp_path / "index", WordVectors().embedder, no_progress)
    compress_index(tmp_path / "index", no_progress)
    nearby = own_vectors(open_index(tmp_path / "index"), WordVectors().embedder)
    assert isinstance(nearby, CompressedVectors)
    assert check_nearest(exact, nearby, 50) >= 0.95


def test_damage_is_told(copy: Path, compressed: Path) -> None:
    for number in range(12):
        damage_byte(copy / COMPRESSED_FILE, number)
        with pytest.raises(InvalidInputError, match="index embed --compress"):
            open_vectors(copy)
        with pytest.raises(InvalidInputError, match="damaged compressed vectors"):
            verify_index(copy)
        (copy / COMPRESSED_FILE).unlink(missing_ok=True)
        shutil.copy(compressed / COMPRESSED_FILE, copy)
    assert verify_index(copy).compressed


def test_those_of_other_vectors_are_not_searched(copy: Path, tmp_path: Path) -> None:
    class Others(WordVectors):
        def embed(self, texts: Sequence[str]) -> Vectors:
            return -super().embed(texts)

    kept = shutil.copy(copy / COMPRESSED_FILE, tmp_path)
    embed_index(copy, Others().embedder, no_progress, anew=True)
    assert COMPRESSED_FILE not in names(copy)
    shutil.copy(kept, copy)
    assert PassageIndex(copy).compressed_vectors is None


def test_without_faiss_it_is_told_what_is_missing(compressed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(MissingError, match=r"convagent\[faiss\]"):
        open_vectors(compressed)
    verify_index(compressed)  # needs none


@needs_embedder
def test_the_command_line_compresses_and_searches(tmp_path: Path) -> None:
    corpus = write_passages(tmp_path / "passages.jsonl", "alder", 256)
    index = tmp_path / "index"
    assert run("index", "build", corpus, "-o", index, "--embedder", "none").returncode == 0
    done = run("index", "embed", index, "--compress")
    assert done.returncode == 0, done.stderr
    assert "256 passages embedded" in done.stderr
    assert "bytes a passage" in done.stderr
    assert "(IVF16,RaBitQ)" in run("index", "info", index).stdout
    assert "and those compressed are theirs" in run("index", "verify", index).stdout
    assert run("search", index, "an alder in row 12", "--json").stdout.count("\n") == 10


def test_few_passages_are_not_compressed(tmp_path: Path) -> None:
    corpus = find_corpus([write_passages(tmp_path / "passages.jsonl", "alder", 20)])
    build_index(corpus, tmp_path / "index")
    embed_index(tmp_path / "index", WordVectors().embedder, no_progress)
    with pytest.raises(UsageError, match="has 20 passages"):
        compress_index(tmp_path / "index", no_progress)
