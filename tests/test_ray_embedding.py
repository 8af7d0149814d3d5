"""`index embed --on ray`: the same bytes as here, whatever becomes of the workers."""

from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from agent.runs import ray as ray_backend
from agent.runs.ray import open_block_embedders
from agent.runs.ray_cluster import MAX_LOSSES, Cluster
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.index_vectors import PART_FILE, PART_INFO_FILE, embed_index
from indexes.ranking import vectors as vector_files
from indexes.ranking.vectors import VECTOR_INFO_FILE, VECTORS_FILE, Embedder
from schemas.errors import RunError, UsageError
from tests import ray_workers
from tests.conftest import needs_embedder, no_progress
from tests.processes import names, write_passages
from tests.test_ray import cluster  # noqa: F401  the fixture

needs_ray = pytest.mark.skipif(find_spec("ray") is None, reason="Ray is not installed (extra ray)")


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """48 passages in six blocks."""
    monkeypatch.setattr(vector_files, "BLOCK_ROWS", 8)
    corpus = find_corpus([write_passages(tmp_path / "passages.jsonl", "alder", 48)])
    build_index(corpus, tmp_path / "index", skip_problems=False, progress=lambda: None)
    return tmp_path / "index"


def embed(index: Path, model: Embedder, on: str) -> list[bytes]:
    open_blocks = partial(open_block_embedders, on, 2 if on == "ray" else 1, "minilm", model)
    embed_index(index, model, no_progress, anew=True, open_blocks=open_blocks)
    return [(index / name).read_bytes() for name in (VECTORS_FILE, VECTOR_INFO_FILE)]


@pytest.mark.soak
@needs_ray
@needs_embedder
def test_workers_that_are_lost_change_no_byte(
    cluster: Cluster,  # noqa: F811
    index: Path,
    minilm: Embedder,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = names(index)
    here = embed(index, minilm, "local")
    monkeypatch.setattr(ray_backend, "BlockEmbedder", ray_workers.MortalEmbedder)
    for block in (0, 24):
        ray_workers.prepare_losses(index.parent, block, 1)
    assert embed(index, minilm, "ray") == here
    assert names(index) == before | {VECTORS_FILE, VECTOR_INFO_FILE}
    ray_workers.prepare_losses(index.parent, 40, MAX_LOSSES)
    with pytest.raises(RunError, match="3 workers were lost at the same task"):
        embed(index, minilm, "ray")
    assert {PART_INFO_FILE, PART_FILE} <= names(index)  # what came before is kept, and gone on with here
    assert embed(index, minilm, "local") == here


@pytest.mark.parametrize(
    ("on", "jobs", "told"), [("slurm", 1, "unknown backend 'slurm'"), ("local", 2, "--jobs is for")]
)
def test_what_cannot_be_meant_is_refused(on: str, jobs: int, told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        open_block_embedders(on, jobs, None, None, tmp_path).__enter__()
