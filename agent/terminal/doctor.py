"""`convagent doctor`: facts about this machine, the settings chosen for it, and what stands in the way.

No model is loaded. Every value comes from the constant or function that the code itself uses. `benchmarks/speed.py`
measures how fast it is.
"""

import os
import platform
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from agent.models.bundled import find_bundled_gguf, requantised_path
from agent.models.catalogue import find_model_file
from agent.models.embedding.minilm import find_bundled_weights, gguf_path
from agent.models.local.hardware import (
    ALL_LAYERS,
    GPU_LAYERS,
    THREADS,
    layers_to_offload,
    physical_cores,
    stop_spinning_threads,
    threads_to_use,
)
from agent.terminal.output import open_stdout, print_json, to_plain_text
from indexes.processors import logical_cores
from indexes.storage.directories import is_writable, name_cache_directory
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError
from schemas.secrets import SECRET_SETTINGS, SHOWN_INSTEAD, hide_secrets

LIBRARIES = ("convagent", "llama-cpp-python", "tantivy", "spacy", "langchain-core")
OWN_SETTINGS = ("CACHE", "DATA", "EMBEDDER", "INDEX", "MODEL", "PROMPTS", "API_KEY", "TIMEOUT")
SETTINGS = {THREADS, GPU_LAYERS, *(f"CONVAGENT_{name}" for name in OWN_SETTINGS)}
LISTED_FILES = 10  # files of the cache that are named
MACHINE, LANGUAGE, EMBEDDING = "Machine", "Language model", "Embedding model"
CACHE, INSTALLED, CHOSEN = "Cache", "Libraries", "Settings"


@dataclass(frozen=True, slots=True)
class Fact:
    """A name, a value, and where it is from or why it is so."""

    name: str
    value: int | str | bool
    about: str = ""


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong with the set-up of this machine, and what to do about it."""

    what: str
    remedy: str
    stops: bool  # whether nothing can be asked before it is put right


@dataclass(frozen=True, slots=True)
class Facts:
    """All that `convagent doctor` shows."""

    sections: Mapping[str, tuple[Fact, ...]]
    troubles: tuple[Trouble, ...]

    @property
    def usable(self) -> bool:
        """Whether no problem stops the first question."""
        return not any(trouble.stops for trouble in self.troubles)


def show_doctor(facts: Facts, *, as_json: bool) -> None:
    """Print all facts. Raises `MissingError` where something stands in the way, so that the exit code says so."""
    if as_json:
        print_json({"usable": facts.usable, "sections": facts.sections, "problems": facts.troubles})
    else:
        troubles = [Fact("stops" if each.stops else "note", each.what, each.remedy) for each in facts.troubles]
        for title, found in {**facts.sections, "Problems": troubles}.items():
            _show_section(title, tuple(found) or (Fact("", "none"),))
    if not facts.usable:
        raise MissingError("it cannot be used yet", remedy="See the problems named above.")


def _show_section(title: str, facts: tuple[Fact, ...]) -> None:
    """Print names and values, and dim behind them what is said about them."""
    from rich.table import Table

    table = Table(title, "", box=None, pad_edge=False, header_style="bold")
    table.columns[0].min_width = 18
    table.columns[1].overflow = "fold"  # paths are there to be copied
    for fact in facts:
        value = ("on" if fact.value else "off") if isinstance(fact.value, bool) else str(fact.value)
        told = to_plain_text(value).append_text(to_plain_text(f"  {fact.about}", "dim"))
        table.add_row(to_plain_text(f"  {fact.name}"), told)
    console = open_stdout()
    console.print(table)
    console.print()


def examine_machine(model: str, embedder: str | None, settings_file: Mapping[str, Any]) -> Facts:
    """The facts for these models. `settings_file` has the contents of convagent.toml, empty where there is none."""
    stop_spinning_threads()  # before llama.cpp is loaded, as when a model is opened
    cached = name_cache_directory()
    settings = (*_read_environment(), *_flatten_settings(settings_file))
    language, troubles = _describe_model(_describe_language, model, stops=True)
    embedding, missing = _describe_model(_describe_embedding, embedder or "minilm", stops=embedder is not None)
    troubles += missing
    if error := _llama_import_error():
        remedy = "pip install --force-reinstall --no-binary llama-cpp-python llama-cpp-python, which compiles it here."
        needed = any(fact.name == "source" for fact in language)
        troubles.append(Trouble(f"llama.cpp cannot be loaded ({error})", remedy, needed))
    troubles += _find_troubles(cached, settings)
    libraries = tuple(Fact(name, _find_version(name) or "not installed") for name in LIBRARIES)
    remedy = "pip install convagent, in an environment of its own."
    lacking = [fact.name for fact in libraries if fact.value == "not installed"]
    troubles += [Trouble(f"{name} is not installed", remedy, stops=True) for name in lacking]
    sections = {
        MACHINE: tuple(_describe_machine()),
        LANGUAGE: language,
        EMBEDDING: embedding,
        CACHE: tuple(_describe_cache(cached)),
        INSTALLED: libraries,
        CHOSEN: settings,
    }
    return Facts(sections, tuple(troubles))


def _describe_machine() -> Iterator[Fact]:
    import psutil

    memory = psutil.virtual_memory()
    yield Fact("python", f"{platform.python_version()} ({sys.executable})")
    yield Fact("system", f"{platform.system()} {platform.release()} {platform.machine()}")
    yield Fact("cores", f"{physical_cores()} physical, {logical_cores()} logical that may be used")
    yield Fact("memory", f"{memory.available / 1e9:.1f} GB free of {memory.total / 1e9:.1f} GB")


@cache
def _llama_import_error() -> str:
    """Why llama.cpp cannot be loaded; empty where it can be."""
    try:
        import llama_cpp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:  # a wheel for another machine, a missing system library
        return str(error)
    return ""


def _describe_model(
    describe: Callable[[str], Iterator[Fact]], name: str, *, stops: bool
) -> tuple[tuple[Fact, ...], list[Trouble]]:
    """What there is to say of a model, and the trouble where it is not there."""
    try:
        return (Fact("name", name), *describe(name)), []
    except ConvagentError as error:
        place = f"{error.where}: " if error.where else ""
        without = "" if stops or not isinstance(error, MissingError) else " (passages are found by words alone)"
        found = Fact("name", name), Fact("file", "not there", error.remedy)
        return found, [Trouble(f"{place}{error.what}{without}", error.remedy, stops)]


def _describe_language(name: str) -> Iterator[Fact]:
    if name == "none" or name.startswith("scripted:"):
        return
    source = find_bundled_gguf() if name == "smollm2" else find_model_file(name)
    if _llama_import_error():
        yield _describe_source(source)
        return
    from agent.models.local.llama_cpp import MAX_CONTEXT, context_size, read_metadata

    about = read_metadata(source) or {}
    trained = int(about.get(f"{about.get('general.architecture')}.context_length", MAX_CONTEXT))
    yield _describe_source(source, _find_quantisation(about))
    if name == "smollm2":
        yield _describe_copy(requantised_path(source, hash_file(source)))
    yield from _describe_hardware()
    context = f"tokens: trained with {trained}, at most {MAX_CONTEXT} are opened"
    yield Fact("context", context_size(trained), context)


def _describe_embedding(name: str) -> Iterator[Fact]:
    if name == "none":
        return
    source = find_bundled_weights() if name == "minilm" else find_model_file(name)
    if _llama_import_error():
        yield _describe_source(source)
        return
    from agent.models.local.llama_cpp import read_metadata

    if name == "minilm":
        yield _describe_source(source, "safetensors")
        yield _describe_copy(gguf_path(hash_file(source)))
    else:
        yield _describe_source(source, _find_quantisation(read_metadata(source) or {}))
    yield from _describe_hardware()


def _describe_source(path: Path, quantisation: str = "") -> Fact:
    return Fact("source", f"{quantisation} {_format_megabytes(path.stat().st_size)}".strip(), str(path))


def _describe_copy(path: Path) -> Fact:
    """The copy of a bundled model in the cache; llama.cpp itself says whether the file is whole."""
    from agent.models.local.llama_cpp import read_metadata

    if path.is_file():
        state = "damaged, made anew at first use" if read_metadata(path) is None else "ready"
        state += f" {_format_megabytes(path.stat().st_size)}"
    else:
        state = "made at first use" if is_writable(name_cache_directory()) else "cannot be kept"
    return Fact(path.suffixes[-2].removeprefix("."), state, str(path))


def _describe_hardware() -> Iterator[Fact]:
    """The numbers of threads and layers. Nothing where a setting is no number, which is one of the troubles."""
    import llama_cpp

    with suppress(ConvagentError):
        why = f"set by {THREADS}" if os.environ.get(THREADS) else "one a physical core: more are slower"
        yield Fact("threads", threads_to_use(), why)
    with suppress(ConvagentError):
        layers = layers_to_offload()
        why = f"set by {GPU_LAYERS}" if os.environ.get(GPU_LAYERS) else "llama.cpp was built for an accelerator"
        if not llama_cpp.llama_supports_gpu_offload():
            why = "this llama.cpp was built for no accelerator"
        yield Fact("layers offloaded", "all" if layers == ALL_LAYERS else layers, why)


def _find_quantisation(about: Mapping[str, str]) -> str:
    import llama_cpp

    number = about.get("general.file_type", "")
    return str(llama_cpp.llama_ftype_name(int(number)).decode()) if number.isdigit() else "?"


def _describe_cache(directory: Path) -> Iterator[Fact]:
    """The directory, its largest files by name, and how many more there are."""
    yield Fact("directory", str(directory), "can be written" if is_writable(directory) else "cannot be written")
    sizes: dict[str, int] = {}
    with suppress(OSError):  # in a directory that may not be read, and of what was just deleted
        for path in directory.rglob("*"):
            sizes |= {str(path.relative_to(directory)): path.stat().st_size} if path.is_file() else {}
    largest = sorted(sizes, key=lambda name: -sizes[name])
    for name in largest[:LISTED_FILES]:
        yield Fact("", name, _format_megabytes(sizes[name]))
    if more := largest[LISTED_FILES:]:
        yield Fact("", f"{len(more)} more", _format_megabytes(sum(sizes[name] for name in more)))


def _format_megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _read_environment() -> Iterator[Fact]:
    for name in sorted(name for name in os.environ if name.startswith("CONVAGENT_")):
        shown = SHOWN_INSTEAD if name in SECRET_SETTINGS else hide_secrets(os.environ[name])
        yield Fact(name, shown, "environment")


def _flatten_settings(table: Mapping[str, Any], above: str = "") -> Iterator[Fact]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten_settings(value, f"{above}{name}.")
        else:
            yield Fact(f"{above}{name}", hide_secrets(str(value)), "convagent.toml")


def _find_troubles(cached: Path, settings: tuple[Fact, ...]) -> Iterator[Trouble]:
    try:
        if threads_to_use() > logical_cores():
            what = f"{THREADS}={threads_to_use()} is more than the {logical_cores()} cores that may be used"
            yield Trouble(what, "Threads then wait for each other: unset it.", stops=False)
        if not _llama_import_error():
            layers_to_offload()
    except ConvagentError as wrong:
        yield Trouble(wrong.what, wrong.remedy, stops=True)
    if not is_writable(cached):
        remedy = "Set CONVAGENT_CACHE to a directory that can be written."
        yield Trouble(f"{cached}: the cache cannot be written", remedy, stops=False)
    for setting in settings:
        if setting.about == "environment" and setting.name not in SETTINGS:
            yield Trouble(f"{setting.name} is no setting", f"Settings are {', '.join(sorted(SETTINGS))}.", stops=False)
