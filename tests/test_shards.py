"""An index in shards ranks, scores, ties and reads exactly as a single index of the same passages does."""

import io
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psutil
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from agent.models.embedding.index_vectors import embed_index
from indexes.corpora.corpus import Corpus, find_corpus
from indexes.index_builder import build_index
from indexes.index_verification import verify_index
from indexes.open_index import open_index
from indexes.passage_index import PassageIndex
from indexes.ranking.bm25 import WeighedTerms
from indexes.ranking.exact_ranking import Numbers, Scores
from indexes.ranking.vectors import Vectors
from indexes.sharding import shard_transport
from indexes.sharding.shard import read_question, read_reply, write_question, write_reply
from indexes.sharding.shard_builder import build_shard, build_sharded_index
from indexes.sharding.shard_files import ShardPlace
from indexes.sharding.shard_transport import ShardProcesses, ShardsInProcess
from indexes.sharding.sharded_index import ShardedIndex
from indexes.sharding.statistics import merge_statistics
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError
from schemas.records import Passage
from tests.conftest import EXAMPLES, examples
from tests.processes import run, signalled
from tests.test_index_integrity import NoProgress

COUNTS = (1, 2, 4, 8)
WORDS = [
    "bread",
    "rye",
    "oats",
    "barley",
    "baking",
    "loaf",
    "crust",
    "oven",
    "brot",
    "roggen",
    "ofen",
    "pain",
    "four",
    "seigle",
    "the",
    "of",
    "und",
    "le",
    "running",
    "runs",
]


def in_process(directories: Sequence[Path], _passages: int) -> ShardsInProcess:
    return ShardsInProcess(directories)


def in_processes(directories: Sequence[Path], _passages: int) -> ShardProcesses:
    return ShardProcesses(directories)


def build_both(
    corpus: Callable[[], Corpus], directory: Path, counts: Sequence[int]
) -> tuple[PassageIndex, list[ShardedIndex]]:
    """A single index, and the same in shards."""
    build_index(corpus(), directory / "single", skip_problems=True, progress=lambda: None)
    for count in counts:
        build_sharded_index(corpus(), directory / f"{count}", count, skip_problems=True, progress=lambda: None)
    return PassageIndex(directory / "single"), [ShardedIndex(directory / f"{count}", in_process) for count in counts]


class ListedCorpus(Corpus):
    """Passages that are in no file."""

    def __init__(self, passages: Sequence[Passage]) -> None:
        super().__init__((Path("listed"),), 0, languages=tuple({passage.language for passage in passages}))
        self.passages = passages

    def __iter__(self) -> Iterator[tuple[Path, int, Passage | str]]:
        for line, passage in enumerate(self.passages, start=1):
            yield Path("listed"), line, passage if passage.text else "no text"


texts = st.lists(st.sampled_from(WORDS), max_size=60).map(" ".join)
languages = st.sampled_from(["en", "de", "fr"])


@st.composite
def collections(draw: st.DrawFn) -> list[Passage]:
    """Passages of which some are alike, some have no text, some share an id, and some are long."""
    several = draw(st.booleans())
    some = draw(st.lists(st.tuples(texts, languages if several else st.just("en")), min_size=8, max_size=40))
    repeated = [draw(st.sampled_from(some)) for _ in range(draw(st.integers(0, 150)))]
    passages = [Passage(f"p{n}", text, language=language) for n, (text, language) in enumerate([*some, *repeated])]
    anchors = [Passage(f"a{n}", f"bread {n}") for n in range(8)]  # so that no shard is empty
    return [*passages, *passages[: draw(st.integers(0, 2))], *anchors]


queries = st.lists(st.tuples(texts, st.sampled_from([1.0, 0.5, 0.3, 2.0, 0.0])), min_size=1, max_size=3)


@examples(12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    passages=collections(),
    count=st.sampled_from(COUNTS),
    asked=st.lists(st.tuples(queries, st.sampled_from([1, 3, 10, 1000])), min_size=1, max_size=5),
)
def test_any_collection_is_ranked_alike(
    passages: list[Passage],
    count: int,
    asked: list[tuple[list[tuple[str, float]], int]],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    directory = tmp_path_factory.mktemp("collection")
    single, (index,) = build_both(lambda: ListedCorpus(passages), directory, [count])
    for query, k in asked:
        weights = single.weigh(query)
        assert index.rank(weights, k) == single.rank(weights, k)
        assert index.search(query, k) == single.search(query, k)
    shutil.rmtree(directory)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[PassageIndex, list[ShardedIndex]]:
    """The examples, as a single index and in shards."""
    return build_both(lambda: find_corpus([EXAMPLES / "passages.jsonl"]), tmp_path_factory.mktemp("shards"), COUNTS)


def test_random_queries_over_the_examples_are_ranked_alike(built: tuple[PassageIndex, list[ShardedIndex]]) -> None:
    single, sharded = built
    words = sorted({word for text in single.iterate_texts() for word in text.split()})
    rng = np.random.default_rng(25)
    for query in range(2000):
        weights = single.weigh([(" ".join(rng.choice(words, rng.integers(1, 13))), rng.choice([1.0, 0.4]))])
        k = int(rng.choice([1, 5, 10, 100]))
        assert sharded[query % len(COUNTS)].rank(weights, k) == single.rank(weights, k)


def test_passages_and_numbers_are_those_of_the_single_index(built: tuple[PassageIndex, list[ShardedIndex]]) -> None:
    single, sharded = built
    numbers = [71, 0, 3, 3, 8]
    for index in sharded:
        assert index.info.contents == single.info.contents
        assert index.get_ids(numbers) == single.get_ids(numbers)
        assert index.read(index.get_ids(numbers)) == single.read(single.get_ids(numbers))
        assert list(index.iterate_texts()) == list(single.iterate_texts())
        assert single.get_id(5) in index
        assert "nowhere" not in index
        with pytest.raises(MissingError, match="holds no passage nowhere"):
            index.read(["nowhere"])


def test_only_the_rows_that_are_asked_for_are_ranked(built: tuple[PassageIndex, list[ShardedIndex]]) -> None:
    single, sharded = built
    rows = np.arange(len(single)) % 3 == 0
    weights = single.weigh([("rye bread tomatoes trains", 1.0)])
    expected = single.rank(weights, 10, rows)
    assert {number % 3 for number, _ in expected} == {0}
    assert all(index.rank(weights, 10, rows) == expected for index in sharded)


def test_vectors_have_their_places(built: tuple[PassageIndex, list[ShardedIndex]], tmp_path: Path) -> None:
    single, sharded = built
    copy = tmp_path / "index"
    shutil.copytree(sharded[2].directory, copy)
    assert ShardedIndex(copy, in_process).vectors is None
    for directory in ShardedIndex(copy, in_process).part_directories:
        assert ShardedIndex(copy, in_process).vectors is None, "not all shards have some"
        embed_index(directory, LengthEmbedder(), lambda *_: NoProgress())
    vectors = ShardedIndex(copy, in_process).vectors
    expected = LengthEmbedder().embed(list(single.iterate_texts()))
    assert vectors is not None
    assert np.array_equal(vectors, expected.astype(np.float16).astype(np.float32))
    assert verify_index(copy).vectors == len(single)


class LengthEmbedder:
    """A vector says how long a text is."""

    name, digest, size, max_tokens, encode_turn = "lengths", "1", 2, 512, None

    def count_tokens(self, text: str) -> int:
        return len(text)

    def embed(self, texts: Sequence[str]) -> Vectors:
        return np.array([(len(text) % 1000, 1) for text in texts], dtype=np.float32)


def test_shards_of_several_machines_become_one_index(
    built: tuple[PassageIndex, list[ShardedIndex]], tmp_path: Path
) -> None:
    single, _ = built
    corpus = find_corpus([EXAMPLES / "passages.jsonl"])
    for number in (2, 1):
        with pytest.raises(MissingError):
            open_index(tmp_path / "index")
        build_shard(corpus, tmp_path / "index", ShardPlace(number, 2), skip_problems=False, progress=lambda: None)
    with pytest.raises(MissingError, match="has shards that are no index yet"):
        open_index(tmp_path / "index")
    merge_statistics(tmp_path / "index")
    weights = single.weigh([("how long does rye bread keep", 1.0)])
    assert open_index(tmp_path / "index").rank(weights, 72) == single.rank(weights, 72)


def test_an_id_is_used_once_in_all_shards(tmp_path: Path) -> None:
    passages = [Passage("a", "one"), Passage("b", "two"), Passage("a", "three"), Passage("c", "four")]
    place, out = ShardPlace(2, 2), tmp_path / "index"
    with pytest.raises(InvalidInputError, match="the id 'a' was seen before"):
        build_shard(ListedCorpus(passages), out, place, skip_problems=False, progress=lambda: None)
    with pytest.raises(InvalidInputError, match="holds 3 passages, too few for 4 shards"):
        build_sharded_index(ListedCorpus(passages), tmp_path / "four", 4, skip_problems=True, progress=lambda: None)
    single, (index,) = build_both(lambda: ListedCorpus(passages), tmp_path, [2])
    assert index.get_ids(range(3)) == single.get_ids(range(3)) == ["a", "b", "c"]
    assert index.info.skipped == 1


@pytest.fixture
def index(built: tuple[PassageIndex, list[ShardedIndex]], tmp_path: Path) -> Path:
    """A copy of four shards, to be harmed."""
    shutil.copytree(built[1][2].directory, tmp_path / "index")
    return tmp_path / "index"


def remove_shard(index: Path) -> None:
    shutil.rmtree(index / "shard-3-of-4")


def cut_file(index: Path) -> None:
    (index / "shard-3-of-4" / "ids.txt").write_bytes(b"")


def change_info(index: Path) -> None:
    path = index / "convagent-index.json"
    path.write_text(re.sub(r'("words": )(\d+)', r"\g<1>1\2", path.read_text(), count=1))


def build_again(index: Path) -> None:
    remove_shard(index)
    passages = [Passage(f"p{n}", "Rye.") for n in range(72)]
    build_shard(ListedCorpus(passages), index, ShardPlace(3, 4), skip_problems=False, progress=lambda: None)


HARM: list[tuple[Callable[[Path], None], type[ConvagentError], str, str]] = [
    (remove_shard, MissingError, "shard-3-of-4", "this shard of the index is not there"),
    (cut_file, InvalidInputError, "shard-3-of-4", "is a damaged index"),
    (build_again, InvalidInputError, "shard-3-of-4", "not the one whose statistics were merged"),
    (change_info, InvalidInputError, "index", "has a damaged description of its shards"),
]


@pytest.mark.parametrize("connect", [in_process, in_processes])
@pytest.mark.parametrize(("harm", "error", "where", "message"), HARM)
def test_harm_is_told_with_its_place(
    harm: Callable[[Path], None], error: type[ConvagentError], where: str, message: str, connect: Any, index: Path
) -> None:
    harm(index)
    with pytest.raises(error, match=message) as caught:
        open_index(index, connect)
    assert caught.value.where.endswith(where)
    assert caught.value.remedy


MIXTURES = [
    # what is done to the shards of an index, what merging says
    ("a shard is missing", remove_shard, "has not all shards: 3/4 is not there"),
    ("a shard of another collection", build_again, "does not belong to shard 1/4"),
    ("a damaged shard", cut_file, "is a damaged index"),
    ("a shard by another's name", lambda index: swap(index), "is shard 4/4"),
    ("shards of another number", lambda index: (index / "shard-1-of-9").mkdir(), "in 4 and in 9 parts"),
    ("no shards", lambda index: remove_all(index), "has no shards"),
]


def remove_all(index: Path) -> None:
    for path in index.glob("shard-*"):
        shutil.rmtree(path)


def swap(index: Path) -> None:
    remove_shard(index)
    shutil.copytree(index / "shard-4-of-4", index / "shard-3-of-4")


@pytest.mark.parametrize(("mix", "message"), [row[1:] for row in MIXTURES], ids=[row[0] for row in MIXTURES])
def test_only_shards_that_belong_together_are_merged(mix: Callable[[Path], None], message: str, index: Path) -> None:
    before = (index / "convagent-index.json").read_bytes()
    mix(index)
    with pytest.raises(ConvagentError, match=message):
        merge_statistics(index)
    assert (index / "convagent-index.json").read_bytes() == before


def test_a_process_that_was_killed_is_started_again(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    opened = ShardedIndex(index, in_processes)
    weights = opened.weigh([("rye bread", 1.0)])
    expected = opened.rank(weights, 10)
    children = [child for child in psutil.Process().children() if str(index) in " ".join(child.cmdline())]
    assert len(children) == 4
    os.kill(children[2].pid, signal.SIGKILL)
    assert opened.rank(weights, 10) == expected
    assert "is started again" in caplog.text
    opened.close()
    assert not psutil.wait_procs(children, timeout=10)[1]


def test_a_process_that_ends_each_time_is_an_error(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = ShardProcesses([index / "shard-1-of-4", index / "shard-2-of-4"])
    monkeypatch.setattr(shard_transport, "WORKER", "tests.dying_shard")
    with pytest.raises(RunError, match="ended 2 times") as caught:
        opened.ask("digest", {1: ()})
    assert caught.value.where.endswith("shard-2-of-4")
    monkeypatch.undo()
    assert opened.ask("get_ids", {0: ([0],), 1: ([0],)}) == {0: ["bread-01:1"], 1: ["bread-01:2"]}
    opened.close()


def test_what_a_shard_raises_comes_as_it_is(index: Path) -> None:
    opened = ShardProcesses([index / "shard-1-of-4", index / "shard-9-of-4"])
    with pytest.raises(MissingError, match="this shard of the index is not there") as caught:
        opened.ask("digest", {0: (), 1: ()})
    assert "Copy it there" in caught.value.remedy
    with pytest.raises(InvalidInputError, match="is a damaged index"):
        opened.ask("get_ids", {0: ([10**6],)})
    opened.close()


def written(write: Callable[..., None], question: str, said: object) -> io.BytesIO:
    """What is written of a question or a reply, to be read from its beginning."""
    stream = io.BytesIO()
    write(stream, question, said)
    stream.seek(0)
    return stream


numbers = st.lists(st.integers(0, 2**40), max_size=20)
floats = st.floats(allow_nan=False)
weights_of_terms = st.dictionaries(st.text(max_size=8), floats, max_size=5)
idf_of_terms = st.dictionaries(st.text(max_size=8), st.floats(width=32, allow_nan=False).map(np.float32), max_size=5)
arrays = st.tuples(
    numbers.map(lambda each: np.array(each, dtype=np.int64)), st.lists(floats, max_size=20).map(np.array)
)


@given(weights_of_terms, idf_of_terms, floats, numbers)
def test_questions_come_as_they_were_put(
    weights: dict[str, float], idf: dict[str, np.float32], length: float, places: list[int]
) -> None:
    for question, arguments in (
        ("find_candidates", (weights, len(places))),
        ("score_by_words", (places, WeighedTerms(weights, idf, length))),
        ("digest", ()),
    ):
        assert read_question(written(write_question, question, arguments)) == (question, arguments)


@given(arrays, st.dictionaries(st.text(max_size=8), st.integers(0, 2**40)))
def test_replies_come_as_they_were_given(found: tuple[Numbers, Scores], counts: dict[str, int]) -> None:
    read = read_reply(written(write_reply, "find_candidates", found))
    assert [(array.dtype, array.tobytes()) for array in read] == [(array.dtype, array.tobytes()) for array in found]
    assert read_reply(written(write_reply, "count_passages_with", counts)) == counts


@pytest.mark.parametrize("cut", [0, 4, 8, 20])
def test_a_reply_that_is_cut_off_is_none(cut: int) -> None:
    with pytest.raises(EOFError):
        read_reply(io.BytesIO(written(write_reply, "get_ids", ["p1", "p2", "p3"]).read(cut)))


PROGRAM = """
import os, sys
from pathlib import Path
from indexes.sharding.shard_transport import ShardProcesses
from psutil import Process
shards = ShardProcesses([Path(sys.argv[1])])
shards.ask("digest", {0: ()})
print(Process().children()[0].pid, flush=True)
os.kill(os.getpid(), 9)
"""


def test_shards_end_with_the_program(index: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, str(index / "shard-1-of-4")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    shard = int(done.stdout)
    assert not psutil.pid_exists(shard) or not psutil.wait_procs([psutil.Process(shard)], timeout=10)[1]


def test_the_command_line_takes_shards(tmp_path: Path) -> None:
    passages, index = EXAMPLES / "passages.jsonl", tmp_path / "index"
    both = run("index", "build", passages, "--shards", "2", "--shard", "1/2", "-o", index)
    assert both.returncode == 2
    assert run("index", "build", passages, "--shards", "2", "-o", index, "--embedder", "none").returncode == 0
    assert msgspec.json.decode(run("index", "info", index, "--json").stdout)["passages"] == 72
    found = run("search", index, "rye bread", "--json", "--embedder", "none")
    assert found.returncode == 0, found.stderr
    cut_file_of(index / "shard-2-of-2")
    damaged = run("search", index, "rye bread", "--embedder", "none")
    assert damaged.returncode == 5
    assert "shard-2-of-2" in damaged.stderr


def cut_file_of(shard: Path) -> None:
    (shard / "ids.txt").write_bytes(b"")


@pytest.mark.parametrize(("parts", "at"), [(("--shards", "2"), 20), (("--shard", "2/2"), 8)])
def test_a_build_that_is_killed_leaves_what_was_there(parts: tuple[str, str], at: int, tmp_path: Path) -> None:
    passages, out = EXAMPLES / "passages.jsonl", tmp_path / "index"
    build_sharded_index(find_corpus([passages]), out, 2, skip_problems=False, progress=lambda: None)
    weights = open_index(out).weigh([("rye bread", 1.0)])
    expected = open_index(out).rank(weights, 10)
    command = ("index", "build", passages, *parts, "-o", out, "--embedder", "none", "--overwrite")
    killed = signalled(at, "SIGKILL", tmp_path, *command)
    assert killed.returncode == -signal.SIGKILL
    assert open_index(out).rank(weights, 10) == expected
    assert run(*command).returncode == 0
    assert open_index(out).rank(weights, 10) == expected
    assert [path.name for path in tmp_path.iterdir()] == ["index"]
