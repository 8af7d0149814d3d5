"""The copies of the bundled models that are kept in the cache: whole, and of this source."""

import logging
import subprocess
import sys
from pathlib import Path

import llama_cpp
import pytest

from agent.models.bundled import find_bundled_gguf, requantise, requantised_path
from agent.models.embedding.minilm import convert_to_gguf, find_bundled_weights
from agent.models.embedding.registry import open_embedder
from agent.models.local.hardware import layers_to_offload, physical_cores, threads_to_use
from agent.models.local.weights import describe_processor
from agent.models.registry import open_model
from indexes.storage.atomic_files import write_file_atomically
from indexes.storage.files import hash_file
from schemas.errors import RunError, UsageError
from tests.conftest import PATIENCE, ROOT, needs_embedder, needs_model

REPACK = (
    "from agent.models.bundled import find_bundled_gguf, requantise; from indexes.storage.files import hash_file; "
    "source = find_bundled_gguf(); print(requantise(source, hash_file(source)))"
)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache"
    monkeypatch.setenv("CONVAGENT_CACHE", str(folder))
    return folder


@pytest.fixture(scope="module")
def sound() -> bytes:
    """A sound copy, from the cache of whoever runs the tests."""
    source = find_bundled_gguf()
    return requantise(source, hash_file(source)).read_bytes()


@needs_model
def test_a_copy_is_made_once_with_a_message(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    source = find_bundled_gguf()
    with caplog.at_level(logging.INFO, "convagent"):
        made = requantise(source, "a" * 64)
        before = made.stat().st_mtime_ns
        assert requantise(source, "a" * 64) == made
    assert made == requantised_path(source, "a" * 64)
    assert made.stat().st_mtime_ns == before
    assert [line.split(" for ")[0] for line in caplog.messages] == [f"Preparing {made.name}"]
    assert requantise(source, "b" * 64) != made  # another source


@needs_model
@pytest.mark.parametrize("left", [0, -1, *(pytest.param(left, marks=pytest.mark.soak) for left in (3, 100_000))])
def test_a_torn_copy_of_the_language_model_is_made_anew(
    left: int, cache: Path, sound: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    source = find_bundled_gguf()
    target = requantised_path(source, hash_file(source))
    cache.mkdir()
    target.write_bytes(sound[:left])
    with caplog.at_level(logging.INFO, "convagent"):
        model = open_model("smollm2")
    model.close()
    assert f"{target} is damaged" in caplog.messages
    assert target.stat().st_size == len(sound)


@needs_embedder
def test_a_torn_copy_of_the_embedding_model_is_made_anew(cache: Path) -> None:
    source = find_bundled_weights()
    target = convert_to_gguf(source, hash_file(source))
    whole = target.read_bytes()
    target.write_bytes(whole[:-1])
    embedder = open_embedder("minilm")
    assert embedder is not None
    assert embedder.embed(["bread"]).shape == (1, embedder.size)
    assert target.read_bytes() == whole
    assert [path.name for path in cache.iterdir()] == [target.name]


@needs_model
def test_two_processes_that_make_it_at_once_do_not_hurt_each_other(cache: Path, sound: bytes) -> None:
    calls = [subprocess.Popen([sys.executable, "-c", REPACK], cwd=ROOT, stdout=subprocess.PIPE) for _ in range(2)]
    said = [call.communicate(timeout=PATIENCE)[0].decode().strip() for call in calls]
    source = find_bundled_gguf()
    target = requantised_path(source, hash_file(source))
    assert said == [str(target)] * 2
    assert target.read_bytes() == sound
    assert [path.name for path in cache.iterdir()] == [target.name]


@needs_model
def test_where_no_copy_can_be_kept_that_is_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.models.bundled.find_cache_directory", lambda: cache)  # and nowhere else is room either
    cache.write_text("no directory")
    with pytest.raises(RunError, match="could not be written") as raised:
        requantise(find_bundled_gguf(), "a" * 64)
    assert "CONVAGENT_CACHE" in raised.value.remedy
    cache.unlink()
    not_a_model = cache.with_name("text.gguf")
    not_a_model.write_text("I am no model.")
    with pytest.raises(RunError, match="could not be requantised"):  # as when the disk is full: llama.cpp gives up
        requantise(not_a_model, "a" * 64)
    assert list(cache.iterdir()) == []


def test_what_is_broken_off_leaves_nothing(tmp_path: Path) -> None:
    def broken(path: Path) -> None:
        path.write_text("half")
        raise RunError("the power went")

    with pytest.raises(RunError, match="power"):
        write_file_atomically(tmp_path / "new" / "file", broken)
    assert list((tmp_path / "new").iterdir()) == []


def test_threads_and_layers_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVAGENT_THREADS", "")
    assert threads_to_use() == physical_cores()
    monkeypatch.setenv("CONVAGENT_THREADS", "3")
    assert threads_to_use() == 3
    for wanted in ("0", "two", "1.5", "513", "²"):
        monkeypatch.setenv("CONVAGENT_THREADS", wanted)
        with pytest.raises(UsageError, match=r"CONVAGENT_THREADS=.* is no number from 1 to 512"):
            threads_to_use()
    for wanted in ("-1", "all", "1.5", "1000", "²"):
        monkeypatch.setenv("CONVAGENT_GPU_LAYERS", wanted)
        with pytest.raises(UsageError, match=r"--gpu-layers .* is neither auto nor a number up to 999"):
            layers_to_offload()


def test_layers_are_offloaded_where_llama_cpp_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it was built for is llama.cpp's own word; here it is asked as it is, and as if it had an accelerator."""
    monkeypatch.delenv("CONVAGENT_GPU_LAYERS", raising=False)
    can = llama_cpp.llama_supports_gpu_offload()
    assert (layers_to_offload() > 0) == can
    assert ("layers offloaded" in describe_processor()) == can
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: True)
    assert layers_to_offload() == 999
    assert describe_processor().endswith(", 999 layers offloaded")
    monkeypatch.setenv("CONVAGENT_GPU_LAYERS", "12")
    assert layers_to_offload() == 12
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: False)
    assert layers_to_offload() == 0
    assert "--gpu-layers 12: this llama.cpp was built for no accelerator" in caplog.text
