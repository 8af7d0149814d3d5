"""The same topics, model and seed give the same bytes: in any process, with any caches, with any number of jobs."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from tests.conftest import EXAMPLES, begin_cache, needs_embedder, needs_model
from tests.processes import run


@pytest.fixture
def topics(tmp_path: Path) -> Path:
    """The beginnings of two conversations."""
    path = tmp_path / "topics.json"
    whole = json.loads((EXAMPLES / "topics.json").read_text())
    path.write_text(json.dumps([topic | {"turns": topic["turns"][:1]} for topic in whole[:2]]))
    return path


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Every third of the bundled passages: each is embedded three times."""
    lines = (EXAMPLES / "passages.jsonl").read_text().splitlines()[::3]
    (tmp_path / "passages.jsonl").write_text("\n".join(lines))
    corpus = find_corpus([tmp_path / "passages.jsonl"])
    build_index(corpus, tmp_path / "index", skip_problems=False, progress=lambda: None)
    return tmp_path / "index"


def calls(run_file: Path) -> Iterator[dict[str, object]]:
    for line in run_file.with_name(f"{run_file.stem}.trace.jsonl").read_text().splitlines()[1:]:
        yield from (call for call in json.loads(line)["calls"] if call["verb"] != "search")


@needs_model
@needs_embedder
def test_runs_have_the_same_bytes(topics: Path, tmp_path: Path, index: Path) -> None:
    def answered(name: str, cache: str, *flags: str) -> Path:
        output = tmp_path / f"{name}.json"
        call = ("answer", topics, "-i", index, "-o", output, "-k", "10", "--query", "context,hyde")
        result = run(*call, *flags, CONVAGENT_CACHE=str(begin_cache(tmp_path / cache)))
        assert result.returncode == 0, result.stderr
        return output

    first = answered("first", "cache")
    cached = answered("cached", "cache")
    two = answered("two", "another", "--no-cache", "--jobs", "2")
    assert len({path.read_bytes() for path in (first, cached, two)}) == 1
    assert answered("sown", "cache", "--seed", "1").read_bytes() != first.read_bytes()  # what is sampled does show
    assert all(call["from_cache"] and not call["tokens_read"] for call in calls(cached))
    assert not any(call["from_cache"] for call in calls(two) if call["step"] == "hyde")
    assert not (tmp_path / "another" / "replies.sqlite").exists()
