"""`convagent doctor`: facts about this machine, the settings chosen for it, and what stands in the way.

No model is loaded. Every value comes from the constant or function that the code itself uses. `benchmarks/speed.py`
measures how fast it is.
"""

import os
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

import typer
from rich.table import Column
from rich.text import Text

from agent.models.bundled import requantised_path
from agent.models.catalogue import WEIGHTS, find_model_file
from agent.models.embedding.minilm import gguf_path
from agent.models.local.hardware import (
    ALL_LAYERS,
    GPU_LAYERS,
    THREADS,
    layers_to_offload,
    physical_cores,
    stop_spinning_threads,
    threads_to_use,
)
from agent.models.registry import is_server_address
from agent.terminal.output import print_json, print_table, to_plain_text
from indexes.processors import logical_cores
from indexes.storage.directories import is_writable, name_cache_directory
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError
from schemas.secrets import SECRET_SETTINGS, SHOWN_INSTEAD, hide_secrets

LIBRARIES = ("convagent", "llama-cpp-python", "tantivy", "spacy", "langchain-core")
OWN_SETTINGS = ("CACHE", "DATA", "EMBEDDER", "INDEX", "MODEL", "PROMPTS", "TODAY", "API_KEY", "TIMEOUT")
SETTINGS = {THREADS, GPU_LAYERS, *(f"CONVAGENT_{name}" for name in OWN_SETTINGS)}
LANGUAGE, EMBEDDING, CHOSEN = "Language model", "Embedding model", "Settings"


@dataclass(frozen=True, slots=True)
class Fact:
    name: str
    value: int | str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong with the set-up of this machine, and what to do about it."""

    what: str
    remedy: str
    stops: bool  # whether nothing can be asked before it is put right


@dataclass(frozen=True, slots=True)
class Facts:
    sections: Mapping[str, Sequence[Fact]]
    troubles: Sequence[Trouble]

    @property
    def usable(self) -> bool:
        return not any(trouble.stops for trouble in self.troubles)


def show_doctor(facts: Facts, *, as_json: bool) -> None:
    """Print all facts. Raises `MissingError` where something stands in the way, so that the exit code says so."""
    if as_json:
        print_json({"usable": facts.usable, "sections": facts.sections, "problems": facts.troubles})
    else:
        troubles = tuple(Fact("stops" if each.stops else "note", each.what, each.remedy) for each in facts.troubles)
        for title, found in {**facts.sections, "Problems": troubles or (Fact("", "none"),)}.items():
            columns = Column(title, min_width=18), Column("", overflow="fold")  # paths are there to be copied
            print_table(columns, map(_to_row, found))
            typer.echo()
    if not facts.usable:
        raise MissingError("it cannot be used yet", remedy="See the problems named above.")


def _to_row(fact: Fact) -> tuple[Text, Text]:
    about = to_plain_text(f"  {fact.about}", "dim")
    return to_plain_text(f"  {fact.name}"), to_plain_text(str(fact.value)).append_text(about)


def examine_machine(model: str, embedder: str | None, settings_file: Mapping[str, Any]) -> Facts:
    """The facts for these models. `settings_file` has the contents of convagent.toml, empty where there is none."""
    stop_spinning_threads()  # before llama.cpp is loaded, as when a model is opened
    troubles: list[Trouble] = []
    environment = {name: os.environ[name] for name in sorted(os.environ) if name.startswith("CONVAGENT_")}
    sections: dict[str, Sequence[Fact]] = {
        "Machine": list(_describe_machine()),
        LANGUAGE: _describe_model(model, troubles, is_needed=True),
        EMBEDDING: _describe_model(embedder or "minilm", troubles, is_needed=embedder is not None),
        "A turn": list(_describe_turn(model)),
        "Libraries": [Fact(name, version(name)) for name in LIBRARIES],
        CHOSEN: _list_settings(environment, "environment") + _list_settings(settings_file, "convagent.toml"),
    }
    return Facts(sections, [*troubles, *_find_troubles(sections)])


def _describe_machine() -> Iterator[Fact]:
    import psutil

    memory, cached = psutil.virtual_memory(), name_cache_directory()
    yield Fact("python", f"{platform.python_version()} ({sys.executable})")
    yield Fact("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Fact("cores", f"{physical_cores()} physical, {logical_cores()} logical that may be used")
    yield Fact("memory", f"{memory.available / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB")
    yield Fact("cache", str(cached), "can be written" if is_writable(cached) else "cannot be written")


LARGER = "larger models write: convagent model list"
WHO = {  # rewrites the turn, chooses statements, calls the search and makes the answer
    "none": ("the taught encoder", "words and meaning", "the program", "quoted"),
    "smollm2": (
        "the model and an encoder, both taught",
        "likelihood and meaning",
        "the model",
        "quoted, in chats as the model chooses",
    ),
    "": ("the model, if it is large", "likelihood and meaning", "the program", "written if it is large"),
}


def _describe_turn(model: str) -> Iterator[Fact]:
    who = WHO.get(model, WHO[""])
    for job, by in zip(("query rewriting", "statements", "search", "answer"), who, strict=True):
        about = "of a billion parameters or more" if "large" in by else LARGER if by.startswith("quoted") else ""
        yield Fact(job, by, about)


@cache
def _llama_import_error() -> str:
    """Why llama.cpp cannot be loaded; empty where it can be."""
    try:
        import llama_cpp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:  # a wheel for another machine, a missing system library
        return str(error)
    return ""


def _describe_model(name: str, troubles: list[Trouble], *, is_needed: bool) -> tuple[Fact, ...]:
    """What there is to say of a model; where it is not there, that is one of the troubles."""
    try:
        return (Fact("name", name), *_describe_files(name))
    except ConvagentError as error:
        place = f"{error.where}: " if error.where else ""
        without = "" if is_needed else " (passages are found by words alone)"
        troubles.append(Trouble(f"{place}{error.what}{without}", error.remedy, is_needed))
        return Fact("name", name), Fact("file", "not there", error.remedy)


def _describe_files(name: str) -> Iterator[Fact]:
    """The file of a model, the copy in the cache that is made of a bundled one, and what computes it."""
    if name == "none" or name.startswith("scripted:") or is_server_address(name):
        return
    source = WEIGHTS[name].find() if name in WEIGHTS else find_model_file(name)
    yield Fact("source", f"{source.stat().st_size / 1e6:.1f} MB", str(source))
    if name in ("minilm", "smollm2"):
        digest = hash_file(source)
        copy = gguf_path(digest) if name == "minilm" else requantised_path(source, digest)
        yield Fact("copy", "ready" if copy.is_file() else "made at first use", str(copy))
    if _llama_import_error():
        return
    import llama_cpp

    with suppress(ConvagentError):  # where a setting is no number, which is one of the troubles
        yield Fact("threads", threads_to_use(), f"one a physical core, unless {THREADS} says otherwise")
        layers = "all" if layers_to_offload() == ALL_LAYERS else layers_to_offload()
        offloads = llama_cpp.llama_supports_gpu_offload()
        yield Fact("layers offloaded", layers, f"llama.cpp was built for {'an' if offloads else 'no'} accelerator")


def _list_settings(value: Any, about: str, name: str = "") -> list[Fact]:
    """The settings of the environment, or of a file with its sections; no secret is shown."""
    if not isinstance(value, Mapping):
        return [Fact(name, SHOWN_INSTEAD if name in SECRET_SETTINGS else hide_secrets(str(value)), about)]
    return [fact for key in value for fact in _list_settings(value[key], about, f"{name}.{key}" if name else key)]


def _find_troubles(sections: Mapping[str, Sequence[Fact]]) -> Iterator[Trouble]:
    if error := _llama_import_error():
        remedy = "pip install --force-reinstall --no-binary llama-cpp-python llama-cpp-python, which compiles it here."
        is_needed = any(fact.name == "source" for fact in sections[LANGUAGE])
        yield Trouble(f"llama.cpp cannot be loaded ({error})", remedy, is_needed)
    try:
        if threads_to_use() > logical_cores():
            what = f"{THREADS}={threads_to_use()} is more than the {logical_cores()} cores that may be used"
            yield Trouble(what, "Threads then wait for each other: unset it.", stops=False)
        if not error:
            layers_to_offload()
    except ConvagentError as wrong:
        yield Trouble(wrong.what, wrong.remedy, stops=True)
    if not is_writable(name_cache_directory()):
        remedy = "Set CONVAGENT_CACHE to a directory that can be written."
        yield Trouble(f"{name_cache_directory()}: the cache cannot be written", remedy, stops=False)
    for fact in sections[CHOSEN]:
        if fact.about == "environment" and fact.name not in SETTINGS:
            yield Trouble(f"{fact.name} is no setting", f"Settings are {', '.join(sorted(SETTINGS))}.", stops=False)
