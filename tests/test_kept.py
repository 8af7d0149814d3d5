"""The copies of the bundled models that are kept in the cache: whole, and of this source."""

import logging
import os
from pathlib import Path
from threading import Thread

import llama_cpp
import pytest

from agent.models.bundled import find_bundled_gguf, requantise, requantised_path
from agent.models.embedding.minilm import convert_to_gguf, find_weights
from agent.models.local.hardware import layers_to_offload, physical_cores, threads_to_use
from agent.models.local.weights import describe_processor, load_weights
from agent.models.registry import open_embedder, open_model
from indexes.storage.atomic_files import write_file_atomically
from indexes.storage.files import hash_file
from schemas.errors import RunError, UsageError
from tests.conftest import needs_embedder, needs_model


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
    preparing, larger = caplog.messages
    assert (preparing.split(" for ")[0], larger[:6]) == (f"Preparing {made.name}", "Larger")
    assert requantise(source, "b" * 64) != made  # another source


@needs_model
@pytest.mark.parametrize("left", [0, -1])
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
    source = find_weights()
    target = convert_to_gguf(source, hash_file(source))
    whole = target.read_bytes()
    target.write_bytes(whole[:-1])
    embedder = open_embedder("minilm")
    assert embedder is not None
    assert embedder.embed(["bread"]).shape == (1, embedder.size)
    assert target.read_bytes() == whole
    assert [path.name for path in cache.iterdir()] == [target.name]


@needs_model
def test_where_no_copy_can_be_kept_the_source_is_used(
    cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agent.models.bundled.find_cache_directory", lambda: cache)  # and nowhere else is room either
    cache.write_text("no directory")
    source = find_bundled_gguf()
    with caplog.at_level(logging.INFO, "convagent"):
        assert requantise(source, "a" * 64) == source
    assert caplog.messages[-1].startswith("The copy cannot be kept (")
    cache.unlink()
    not_a_model = cache.with_name("text.gguf")
    not_a_model.write_text("I am no model.")
    assert requantise(not_a_model, "a" * 64) == not_a_model  # as when the disk is full: llama.cpp gives up
    assert list(cache.iterdir()) == []


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """Leftovers are told from work in hand by who holds them, and other names are nobody's."""
    theirs, target = tmp_path / ".file.tmp", tmp_path / "file"
    theirs.write_text("a person's own")
    (tmp_path / ".file.0123abcd.tmp").write_text("half")

    def write(temporary: Path) -> None:
        temporary.write_text("first")
        write_file_atomically(target, lambda other: other.write_text("second"))
        assert temporary.read_text() == "first"

    write_file_atomically(target, write)

    def break_off(temporary: Path) -> None:
        temporary.write_text("half")
        raise RunError("the power went")

    with pytest.raises(RunError, match="power"):
        write_file_atomically(target, break_off)
    assert target.read_text() == "first"
    assert {path.name for path in tmp_path.iterdir()} == {theirs.name, target.name}


def test_threads_and_layers_are_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVAGENT_THREADS", "")
    assert threads_to_use() == physical_cores()
    monkeypatch.setenv("CONVAGENT_THREADS", "3")
    assert threads_to_use() == 3
    for wanted in ("0", "1.5", "513", "²"):
        monkeypatch.setenv("CONVAGENT_THREADS", wanted)
        with pytest.raises(UsageError, match=r"CONVAGENT_THREADS=.* is no number from 1 to 512"):
            threads_to_use()
    for wanted in ("-1", "all", "1000", "²"):
        monkeypatch.setenv("CONVAGENT_GPU_LAYERS", wanted)
        with pytest.raises(UsageError, match=r"--gpu-layers .* is neither auto nor a number up to 999"):
            layers_to_offload()


def test_layers_are_offloaded_where_llama_cpp_can(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """What it was built for is llama.cpp's own word; here it is asked as if it had an accelerator, and none."""
    monkeypatch.delenv("CONVAGENT_GPU_LAYERS", raising=False)
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: True)
    assert layers_to_offload() == 999
    assert describe_processor().endswith(", 999 layers offloaded")
    monkeypatch.setenv("CONVAGENT_GPU_LAYERS", "12")
    assert layers_to_offload() == 12
    monkeypatch.setattr(llama_cpp, "llama_supports_gpu_offload", lambda: False)
    assert layers_to_offload() == 0
    assert "--gpu-layers 12: this llama.cpp was built for no accelerator" in caplog.text


@needs_model
def test_a_model_that_is_loaded_leaves_the_terminal_to_others() -> None:
    """llama-cpp-python would turn off the standard output of the whole process meanwhile: a prompt was lost."""
    shown, loading = os.fstat(1).st_ino, Thread(target=load_weights, args=(find_bundled_gguf(),))
    loading.start()
    while loading.is_alive():
        assert os.fstat(1).st_ino == shown
