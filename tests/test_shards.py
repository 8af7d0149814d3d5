"""An index in shards: each ranks by its own statistics, hits are merged by score, and what is amiss names the shard."""

import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from indexes.corpora.corpus import Corpus, find_corpus
from indexes.index_builder import Parts, build_index
from indexes.index_vectors import embed_index
from indexes.passage_index import Index
from indexes.ranking.vectors import Vectors
from indexes.sharding.sharded_index import open_index, verify_index
from schemas.errors import InvalidInputError, MissingError, UsageError
from schemas.records import Passage
from tests.conftest import EXAMPLES, no_progress, read_cases
from tests.processes import run, signalled
from tests.test_embedder import Counted
from tests.within import convagent


class ListedCorpus(Corpus):
    """Passages that are in no file."""

    def __init__(self, texts: Sequence[str], ids: Sequence[str] = ()) -> None:
        super().__init__((Path("listed"),), 0)
        self.passages = [Passage(id, text) for id, text in zip(ids or map(str, range(len(texts))), texts, strict=True)]

    def __iter__(self) -> Iterator[tuple[Path, int, Passage | str]]:
        for line, passage in enumerate(self.passages, start=1):
            yield Path("listed"), line, passage


def build(corpus: Corpus, out: Path, parts: Parts, *, skip: bool = False) -> Index:
    built = build_index(corpus, out, parts, skip_problems=skip)
    index = open_index(out if not isinstance(parts, tuple) else out / "shard-{}-of-{}".format(*parts))
    assert len(index) == built.info.passages
    return index


# What, texts, query, k, only these rows, numbers in the order wanted. Two shards get the even and the odd numbers: rye,
# and texts of each length, as many in the one as in the other.
MERGED = read_cases("shards")["merged"]


@pytest.mark.parametrize(
    ("texts", "query", "k", "rows", "wanted"), [row[1:] for row in MERGED], ids=[row[0] for row in MERGED]
)
def test_merging(
    texts: list[str], query: str, k: int, rows: list[int] | None, wanted: list[int], tmp_path: Path
) -> None:
    index = build(ListedCorpus(texts), tmp_path / "index", 2)
    searched = None if rows is None else np.isin(np.arange(len(texts)), rows)
    ranked = index.rank(index.weigh([(query, 1.0)]), k, searched)
    assert [number for number, _ in ranked] == wanted
    scores = [score for _, score in ranked]
    assert scores == sorted(scores, reverse=True)
    hits = index.to_hits(ranked)
    assert [hit.id for hit in hits] == list(map(str, wanted))
    assert all(after.score < before.score for before, after in pairwise(hits))


@pytest.fixture(scope="module")
def single(tmp_path_factory: pytest.TempPathFactory) -> Index:
    """The examples, as a single index."""
    return build(find_corpus([EXAMPLES / "passages.jsonl"]), tmp_path_factory.mktemp("single") / "index", None)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples in four shards, of which each was built by itself."""
    directory = tmp_path_factory.mktemp("shards") / "index"
    for number in (3, 1, 4, 2):
        with pytest.raises(MissingError):
            open_index(directory)
        build(find_corpus([EXAMPLES / "passages.jsonl"]), directory, (number, 4))
    return directory


@pytest.fixture
def index(built: Path, tmp_path: Path) -> Path:
    """A copy of the four shards, to be harmed."""
    shutil.copytree(built, tmp_path / "index")
    return tmp_path / "index"


def test_passages_are_those_of_the_single_index(single: Index, built: Path) -> None:
    index, numbers = open_index(built), [71, 0, 3, 3, 8]
    assert index.info.contents == single.info.contents
    assert index.read(index.get_ids(numbers)) == single.read(single.get_ids(numbers))
    assert index.read_texts(range(72)) == single.read_texts(range(72))
    with pytest.raises(MissingError, match="holds no passage nowhere"):
        index.read(["nowhere"])


def test_vectors_have_their_places(single: Index, index: Path) -> None:
    assert open_index(index).vectors is None
    for directory in open_index(index).part_directories:
        assert open_index(index).vectors is None, "not all shards have some"
        embed_index(directory, LengthEmbedder().embedder, no_progress)
    vectors = open_index(index).vectors
    expected = LengthEmbedder().embed(single.read_texts(range(len(single))))
    assert vectors is not None
    assert np.array_equal(vectors, expected.astype(np.float16).astype(np.float32))
    assert verify_index(index).vectors == len(single)


class LengthEmbedder(Counted):
    """A vector says how long a text is."""

    name, digest, size = "lengths", "1", 2

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([(len(text) % 1000, 1) for text in texts], dtype=np.float32)


def test_an_id_is_used_once_in_all_shards(tmp_path: Path) -> None:
    corpus = ListedCorpus(["one", "two", "three", "four"], ["a", "b", "a", "c"])
    with pytest.raises(InvalidInputError, match="the id 'a' was seen before"):
        build(corpus, tmp_path / "one", (2, 2))
    with pytest.raises(InvalidInputError, match="holds 3 passages, too few for 4 shards"):
        build(corpus, tmp_path / "four", 4, skip=True)
    index = build(corpus, tmp_path / "index", 2, skip=True)
    assert (index.get_ids(range(3)), index.info.skipped) == (["a", "b", "c"], 1)
    for out, parts in ((tmp_path / "index", (1, 3)), (index.part_directories[0], (1, 2))):
        with pytest.raises(UsageError, match="holds another index"):
            build(corpus, out, parts, skip=True)


def replace_shard(index: Path, make: Callable[[Path], object] = lambda _third: None) -> None:
    shutil.rmtree(index / "shard-3-of-4")
    make(index / "shard-3-of-4")


HARM: list[tuple[Callable[[Path], object], str]] = [
    # what is done to the shards of an index, and what opening it says of that shard
    (replace_shard, "this shard of the index is not there"),
    (lambda index: (index / "shard-3-of-4" / "ids.txt").write_bytes(b""), "is a damaged"),
    (
        lambda index: replace_shard(index, lambda _: build(ListedCorpus(["Rye."] * 72), index, (3, 4))),
        "does not belong to shard 1/4",
    ),
    (
        lambda index: replace_shard(index, lambda third: shutil.copytree(index / "shard-4-of-4", third)),
        "is shard 4/4",
    ),
    (
        lambda index: replace_shard(index, lambda third: build(ListedCorpus(["Rye."]), third, None)),
        "is no shard",
    ),
]


@pytest.mark.parametrize(("harm", "message"), HARM)
def test_harm_is_told_with_its_place(harm: Callable[[Path], None], message: str, index: Path) -> None:
    harm(index)
    with pytest.raises((InvalidInputError, MissingError), match=message) as caught:
        open_index(index)
    assert caught.value.where.endswith("shard-3-of-4")
    assert caught.value.remedy


def test_shards_of_two_numbers_are_told(index: Path) -> None:
    (index / "shard-1-of-9").mkdir()
    with pytest.raises(InvalidInputError, match="in 4 and in 9 parts"):
        open_index(index)


def test_the_command_line_takes_shards(tmp_path: Path) -> None:
    passages, index = EXAMPLES / "passages.jsonl", tmp_path / "index"
    assert convagent("index", "build", passages, "--shards", "2", "--shard", "1/2", "-o", index).returncode == 2
    assert convagent("index", "build", passages, "--shards", "2", "-o", index, "--embedder", "none").returncode == 0
    assert "passages  72" in convagent("index", "info", index).stdout
    found = convagent("search", index, "rye bread", "--json", "--embedder", "none")
    assert (found.returncode, "rye" in found.stdout.lower()) == (0, True), found.stderr


def test_a_build_that_is_killed_leaves_what_was_there(tmp_path: Path) -> None:
    passages, out = EXAMPLES / "passages.jsonl", tmp_path / "index"
    build(find_corpus([passages]), out, 2)
    weights = open_index(out).weigh([("rye bread", 1.0)])
    expected = open_index(out).rank(weights, 10)
    command = ("index", "build", passages, "--shards", "2", "-o", out, "--embedder", "none", "--overwrite")
    assert signalled(20, "SIGKILL", tmp_path, *command).returncode == -signal.SIGKILL
    assert open_index(out).rank(weights, 10) == expected
    assert run(*command).returncode == 0
    assert open_index(out).rank(weights, 10) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
