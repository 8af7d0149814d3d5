"""`convagent doctor`: facts about this machine, the settings chosen for it, and what stands in the way.

No model is loaded. Every value comes from the constant or function that the code itself uses. `benchmarks/speed.py`
measures how fast it is.
"""

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

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
from indexes.processors import logical_cores
from indexes.storage.directories import is_writable, name_cache_directory
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError
from schemas.secrets import SECRET_SETTINGS, SHOWN_INSTEAD, hide_secrets

State = Literal["ready", "made at first use", "damaged, made anew at first use", "cannot be kept"]
LIBRARIES = ("convagent", "llama-cpp-python", "tantivy", "spacy", "langchain-core")
OWN_SETTINGS = ("CACHE", "DATA", "EMBEDDER", "INDEX", "MODEL", "PROMPTS", "API_KEY", "TIMEOUT")
SETTINGS = {THREADS, GPU_LAYERS, *(f"CONVAGENT_{name}" for name in OWN_SETTINGS)}


@dataclass(frozen=True, slots=True)
class Machine:
    """The computer and its Python."""

    python: str
    system: str
    physical_cores: int  # of those that may be used
    logical_cores: int  # that may be used
    memory_total: int  # bytes
    memory_free: int  # bytes that can be had without swapping
    features: tuple[str, ...]  # of the processor, which llama.cpp was compiled for


@dataclass(frozen=True, slots=True)
class Choice:
    """One setting of a model, and the reason for its value."""

    name: str
    value: int | str | bool
    why: str


@dataclass(frozen=True, slots=True)
class Copy:
    """The copy of a bundled model in the cache, converted for this machine."""

    path: str
    quantisation: str
    bytes: int  # 0 where it is not made yet
    state: State


@dataclass(frozen=True, slots=True)
class Model:
    """A model, and the settings that it is run with."""

    name: str
    source: str  # its file; empty where there is none
    bytes: int = 0
    quantisation: str = ""
    copy: Copy | None = None  # of a bundled model
    choices: tuple[Choice, ...] = ()
    remedy: str = ""  # how to install it, where it is not


@dataclass(frozen=True, slots=True)
class CacheFile:
    """One file of the cache, named by its path below the cache directory."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Cache:
    """The directory of files that can be made anew."""

    directory: str
    writable: bool  # or can be made
    files: tuple[CacheFile, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that differs from the default, and where it was set."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong with the set-up of this machine, and what to do about it."""

    what: str
    remedy: str
    stops: bool  # whether nothing can be asked before it is put right


@dataclass(frozen=True, slots=True)
class Facts:
    """All that `convagent doctor` shows."""

    machine: Machine
    language: Model
    embedding: Model
    cache: Cache
    libraries: dict[str, str]  # version by name; empty where it is not installed
    settings: tuple[Setting, ...]
    troubles: tuple[Trouble, ...]

    @property
    def usable(self) -> bool:
        """Whether no problem stops the first question."""
        return not any(trouble.stops for trouble in self.troubles)


def examine_machine(model: str, embedder: str | None, settings_file: Mapping[str, Any]) -> Facts:
    """The facts for these models. `settings_file` has the contents of convagent.toml, empty where there is none."""
    stop_spinning_threads()  # before llama.cpp is loaded, as when a model is opened
    cached = _cache_facts(name_cache_directory())
    loads = _llama_import_error() == ""
    settings = (*_read_environment(), *_flatten_settings(settings_file))
    language, missing_language = _find_choice(lambda: _language_model(model, cached, loads=loads), model)
    embedding, missing_embedding = _find_choice(
        lambda: _embedding_model(embedder or "minilm", cached, loads=loads), embedder or ""
    )
    troubles = [*_describe_missing(missing_language, stops=True)]
    troubles += _describe_missing(missing_embedding, stops=embedder is not None)
    troubles += _find_troubles(cached, (language, embedding), settings)
    libraries = {name: _find_version(name) for name in LIBRARIES}
    troubles += [
        Trouble(f"{name} is not installed", "pip install convagent, in an environment of its own.", stops=True)
        for name, found in libraries.items()
        if not found
    ]
    return Facts(_machine_facts(), language, embedding, cached, libraries, settings, tuple(troubles))


def _machine_facts() -> Machine:
    import psutil

    memory = psutil.virtual_memory()
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    python = f"{platform.python_version()} ({sys.executable})"
    return Machine(python, system, physical_cores(), logical_cores(), memory.total, memory.available, _cpu_features())


def _cpu_features() -> tuple[str, ...]:
    """The features that llama.cpp lists as 1, in the form "CPU : SSE3 = 1 | AVX512 = 0 | ..."."""
    if _llama_import_error():
        return ()
    import llama_cpp

    return tuple(re.findall(r"(\w+) = 1\b", llama_cpp.llama_print_system_info().decode()))


@cache
def _llama_import_error() -> str:
    """Why llama.cpp cannot be loaded; empty where it can be."""
    try:
        import llama_cpp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:  # a wheel for another machine, a missing system library
        return str(error)
    return ""


def _find_choice(find: Callable[[], Model], name: str) -> tuple[Model, ConvagentError | None]:
    """A model; or, where it is not found, its name alone and the error."""
    try:
        return find(), None
    except ConvagentError as error:
        return Model(name or "minilm", "", remedy=error.remedy), error


def _language_model(name: str, cached: Cache, *, loads: bool) -> Model:
    if name == "none" or name.startswith("scripted:"):
        return Model(name, "")
    source = find_bundled_gguf() if name == "smollm2" else find_model_file(name)
    if not loads:
        return Model(name, str(source), source.stat().st_size)
    from agent.models.local import kv_cache
    from agent.models.local.llama_cpp import MAX_CONTEXT, context_size, read_metadata

    about = read_metadata(source) or {}
    trained = int(about.get(f"{about.get('general.architecture')}.context_length", MAX_CONTEXT))
    choices = (
        *_hardware_choices(),
        Choice(
            "GOMP_SPINCOUNT", stop_spinning_threads(), "how long a waiting thread spins: longer starves other processes"
        ),
        Choice("context", context_size(trained), f"tokens: trained with {trained}, at most {MAX_CONTEXT} are opened"),
        Choice("batch", kv_cache.BATCH, "tokens of all candidates in one pass"),
        Choice("block", kv_cache.BLOCK, "tokens read at a time: little slower than more, and less is read again"),
        Choice("candidates", kv_cache.SEQUENCES, "scored in one pass, sharing one prefix"),
        Choice("flash attention", kv_cache.FLASH_ATTENTION, "slower on a processor"),
    )
    copy = _cached_copy(requantised_path(source, hash_file(source)), cached) if name == "smollm2" else None
    return Model(name, str(source), source.stat().st_size, _find_quantisation(about), copy, choices)


def _embedding_model(name: str, cached: Cache, *, loads: bool) -> Model:
    if name == "none":
        return Model(name, "")
    source = find_bundled_weights() if name == "minilm" else find_model_file(name)
    if not loads:
        return Model(name, str(source), source.stat().st_size)
    from agent.models.embedding import llama_cpp as embedders
    from agent.models.local.llama_cpp import read_metadata

    choices = (
        *_hardware_choices(),
        Choice("text", embedders.MAX_TOKENS, "tokens of one text: what all-MiniLM-L6-v2 was trained with"),
        Choice("flash attention", embedders.FLASH_ATTENTION, "a fifth faster for these short texts"),
    )
    if name == "minilm":
        copy = _cached_copy(gguf_path(hash_file(source)), cached)
        return Model(name, str(source), source.stat().st_size, "safetensors", copy, choices)
    return Model(
        name, str(source), source.stat().st_size, _find_quantisation(read_metadata(source) or {}), None, choices
    )


def _hardware_choices() -> Iterator[Choice]:
    """The numbers of threads and layers. Nothing where a setting is no number, which is one of the troubles."""
    with suppress(ConvagentError):
        why = f"set by {THREADS}" if os.environ.get(THREADS) else "one a physical core: more are slower"
        yield Choice("threads", threads_to_use(), why)
    with suppress(ConvagentError):
        layers = layers_to_offload()
        yield Choice("layers offloaded", "all" if layers == ALL_LAYERS else layers, _explain_offloading())


def _explain_offloading() -> str:
    import llama_cpp

    if not llama_cpp.llama_supports_gpu_offload():
        return "this llama.cpp was built for no accelerator"
    return f"set by {GPU_LAYERS}" if os.environ.get(GPU_LAYERS) else "llama.cpp was built for an accelerator"


def _find_quantisation(about: Mapping[str, str]) -> str:
    import llama_cpp

    number = about.get("general.file_type", "")
    return str(llama_cpp.llama_ftype_name(int(number)).decode()) if number.isdigit() else "?"


def _cached_copy(path: Path, cached: Cache) -> Copy:
    """The copy of a model in the cache; llama.cpp itself says whether the file is whole."""
    from agent.models.local.llama_cpp import read_metadata

    quantisation = path.suffixes[-2].removeprefix(".")
    if not path.is_file():
        return Copy(str(path), quantisation, 0, "made at first use" if cached.writable else "cannot be kept")
    state: State = "damaged, made anew at first use" if read_metadata(path) is None else "ready"
    return Copy(str(path), quantisation, path.stat().st_size, state)


def _cache_facts(directory: Path) -> Cache:
    files: list[tuple[Path, int | None]] = []
    with suppress(OSError):  # in a directory that may not be read
        files = [(path, _find_size(path)) for path in directory.rglob("*")]
    found = sorted((str(path.relative_to(directory)), size) for path, size in files if size is not None)
    return Cache(str(directory), is_writable(directory), tuple(CacheFile(name, size) for name, size in found))


def _find_size(path: Path) -> int | None:
    """The size of a file in bytes; None for what is no file, or was just deleted."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _find_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _read_environment() -> list[Setting]:
    own = sorted(name for name in os.environ if name.startswith("CONVAGENT_"))
    return [Setting(name, _hide_value(name, os.environ[name]), "environment") for name in own]


def _hide_value(name: str, value: str) -> str:
    return SHOWN_INSTEAD if name in SECRET_SETTINGS else hide_secrets(value)


def _flatten_settings(table: Mapping[str, Any], above: str = "") -> Iterator[Setting]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten_settings(value, f"{above}{name}.")
        else:
            yield Setting(f"{above}{name}", hide_secrets(str(value)), "convagent.toml")


def _describe_missing(error: ConvagentError | None, *, stops: bool) -> list[Trouble]:
    """The trouble that a model was not found; none where it was."""
    if error is None:
        return []
    place = f"{error.where}: " if error.where else ""
    without = "" if stops or not isinstance(error, MissingError) else " (passages are found by words alone)"
    return [Trouble(f"{place}{error.what}{without}", error.remedy, stops)]


def _find_troubles(cached: Cache, models: Sequence[Model], settings: Sequence[Setting]) -> Iterator[Trouble]:
    language, _ = models
    if error := _llama_import_error():
        remedy = "pip install --force-reinstall --no-binary llama-cpp-python llama-cpp-python, which compiles it here."
        yield Trouble(f"llama.cpp cannot be loaded ({error})", remedy, stops=bool(language.source))
    try:
        if threads_to_use() > logical_cores():
            what = f"{THREADS}={threads_to_use()} is more than the {logical_cores()} cores that may be used"
            yield Trouble(what, "Threads then wait for each other: unset it.", stops=False)
        if not _llama_import_error():
            layers_to_offload()
    except ConvagentError as wrong:
        yield Trouble(wrong.what, wrong.remedy, stops=True)
    if not cached.writable:
        remedy = "Set CONVAGENT_CACHE to a directory that can be written."
        yield Trouble(f"{cached.directory}: the cache cannot be written", remedy, stops=False)
    for setting in settings:
        if setting.origin == "environment" and setting.name not in SETTINGS:
            remedy = f"Settings are {', '.join(sorted(SETTINGS))}."
            yield Trouble(f"{setting.name} is no setting", remedy, stops=False)
