"""What was chosen for this machine, and what stands in the way: facts, gathered without loading a model.

Every value comes from the constant or function that the code itself uses. How fast it is: `benchmarks/speed.py`.
"""

import os
import platform
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from agent.models.bundled import find_bundled_gguf, requantised_path
from agent.models.catalogue import find_model_file
from agent.models.embedding.minilm import find_bundled_weights, gguf_path
from agent.models.hardware import THREADS, physical_cores, stop_spinning_threads, threads_to_use, usable_cores
from indexes.storage.directories import find_cache_directory
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError

State = Literal["ready", "made at first use", "damaged, made anew at first use", "cannot be kept"]
LIBRARIES = ("convagent", "llama-cpp-python", "tantivy", "spacy", "langchain-core")
SETTINGS = {f"CONVAGENT_{name}" for name in ("CACHE", "DATA", "EMBEDDER", "INDEX", "MODEL", "PROMPTS")} | {THREADS}


@dataclass(frozen=True, slots=True)
class Machine:
    """Where it runs."""

    python: str
    system: str
    physical_cores: int  # of those that may be used
    logical_cores: int  # that may be used
    memory_total: int  # bytes
    memory_free: int  # bytes that can be had without swapping
    features: tuple[str, ...]  # of the processor, which llama.cpp was compiled for


@dataclass(frozen=True, slots=True)
class Choice:
    """One thing that is set, and why so."""

    name: str
    value: int | str | bool
    why: str


@dataclass(frozen=True, slots=True)
class Copy:
    """The form of an embedded model that is made for this machine, and kept in the cache."""

    path: str
    quantisation: str
    bytes: int  # 0 where it is not there
    state: State


@dataclass(frozen=True, slots=True)
class Model:
    """A model, and how it is run."""

    name: str
    source: str  # its file; empty where there is none
    bytes: int = 0
    quantisation: str = ""
    copy: Copy | None = None  # of an embedded model
    choices: tuple[Choice, ...] = ()
    remedy: str = ""  # how to install it, where it is not


@dataclass(frozen=True, slots=True)
class CacheFile:
    """One file of the cache, named by its path in it."""

    name: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Cache:
    """The directory of made files."""

    directory: str
    writable: bool  # or could be made
    files: tuple[CacheFile, ...]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting that is not the default, and where it is from."""

    name: str
    value: str
    origin: str


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something wrong with this machine's set-up, and what to do."""

    what: str
    remedy: str
    stops: bool  # nothing can be asked before it is mended


@dataclass(frozen=True, slots=True)
class Facts:
    """All that `convagent doctor` tells without measuring."""

    machine: Machine
    language: Model
    embedding: Model
    cache: Cache
    libraries: dict[str, str]  # version by name; empty where it is not installed
    settings: tuple[Setting, ...]
    troubles: tuple[Trouble, ...]

    @property
    def usable(self) -> bool:
        return not any(trouble.stops for trouble in self.troubles)


def examine_machine(model: str, embedder: str | None, settings_file: Mapping[str, Any]) -> Facts:
    """The facts for these models; `settings_file` is what convagent.toml says, empty where there is none."""
    stop_spinning_threads()  # before llama.cpp is loaded, as it is where a model is opened
    kept = _cache_facts(find_cache_directory())
    loads = _llama_import_error() == ""
    settings = (*_environment_settings(), *_flatten_settings(settings_file))
    language, missing_language = _find_choice(lambda: _language_model(model, kept, loads=loads), model)
    embedding, missing_embedding = _find_choice(
        lambda: _embedding_model(embedder or "minilm", kept, loads=loads), embedder or ""
    )
    troubles = [*_missing_packages(missing_language, stops=True)]
    troubles += _missing_packages(missing_embedding, stops=embedder is not None)
    troubles += _find_troubles(kept, (language, embedding), settings)
    libraries = {name: _package_version(name) for name in LIBRARIES}
    troubles += [
        Trouble(f"{name} is not installed", "pip install convagent, in an environment of its own.", stops=True)
        for name, found in libraries.items()
        if not found
    ]
    return Facts(_machine_facts(), language, embedding, kept, libraries, settings, tuple(troubles))


def _machine_facts() -> Machine:
    import psutil

    memory = psutil.virtual_memory()
    system = f"{platform.system()} {platform.release()} {platform.machine()}"
    python = f"{platform.python_version()} ({sys.executable})"
    return Machine(python, system, physical_cores(), usable_cores(), memory.total, memory.available, _cpu_features())


def _cpu_features() -> tuple[str, ...]:
    """Of "CPU : SSE3 = 1 | AVX512 = 0 | ..." what is 1."""
    if _llama_import_error():
        return ()
    import llama_cpp

    return tuple(re.findall(r"(\w+) = 1\b", llama_cpp.llama_print_system_info().decode()))


@cache
def _llama_import_error() -> str:
    """Why llama.cpp cannot be loaded; empty where it can."""
    try:
        import llama_cpp  # noqa: F401
    except (ImportError, OSError, RuntimeError) as error:  # a wheel for another machine, a missing system library
        return str(error)
    return ""


def _find_choice(find: Callable[[], Model], name: str) -> tuple[Model, ConvagentError | None]:
    """A model, or the name without a file and why."""
    try:
        return find(), None
    except ConvagentError as error:
        return Model(name or "minilm", "", remedy=error.remedy), error


def _language_model(name: str, kept: Cache, *, loads: bool) -> Model:
    if name == "none" or name.startswith("scripted:"):
        return Model(name, "")
    source = find_bundled_gguf() if name == "smollm2" else find_model_file(name)
    if not loads:
        return Model(name, str(source), source.stat().st_size)
    from agent.models import kv_cache
    from agent.models.llama_cpp import MAX_CONTEXT, context_size, read_metadata

    about = read_metadata(source) or {}
    trained = int(about.get(f"{about.get('general.architecture')}.context_length", MAX_CONTEXT))
    choices = (
        *_thread_choice(),
        Choice(
            "GOMP_SPINCOUNT", stop_spinning_threads(), "how long a waiting thread spins: longer starves other processes"
        ),
        Choice("context", context_size(trained), f"tokens: trained with {trained}, at most {MAX_CONTEXT} are opened"),
        Choice("batch", kv_cache.BATCH, "tokens of all candidates in one pass"),
        Choice("block", kv_cache.BLOCK, "tokens read at a time: little slower than more, and less is read again"),
        Choice("candidates", kv_cache.SEQUENCES, "scored in one pass, sharing one prefix"),
        Choice("flash attention", kv_cache.FLASH_ATTENTION, "slower on a processor"),
    )
    copy = _cached_copy(requantised_path(source, hash_file(source)), kept) if name == "smollm2" else None
    return Model(name, str(source), source.stat().st_size, _quantisation_choice(about), copy, choices)


def _embedding_model(name: str, kept: Cache, *, loads: bool) -> Model:
    if name == "none":
        return Model(name, "")
    source = find_bundled_weights() if name == "minilm" else find_model_file(name)
    if not loads:
        return Model(name, str(source), source.stat().st_size)
    from agent.models.embedding import llama_cpp as embedders
    from agent.models.llama_cpp import read_metadata

    choices = (
        *_thread_choice(),
        Choice("text", embedders.MAX_TOKENS, "tokens of one text: what all-MiniLM-L6-v2 was trained with"),
        Choice("flash attention", embedders.FLASH_ATTENTION, "a fifth faster for these short texts"),
    )
    if name == "minilm":
        copy = _cached_copy(gguf_path(hash_file(source)), kept)
        return Model(name, str(source), source.stat().st_size, "safetensors", copy, choices)
    return Model(
        name, str(source), source.stat().st_size, _quantisation_choice(read_metadata(source) or {}), None, choices
    )


def _thread_choice() -> Iterator[Choice]:
    """None where the setting is no number: that is among the troubles."""
    try:
        count = threads_to_use()
    except ConvagentError:
        return
    why = f"set by {THREADS}" if os.environ.get(THREADS) else "one a physical core: more are slower"
    yield Choice("threads", count, why)


def _quantisation_choice(about: Mapping[str, str]) -> str:
    import llama_cpp

    number = about.get("general.file_type", "")
    return str(llama_cpp.llama_ftype_name(int(number)).decode()) if number.isdigit() else "?"


def _cached_copy(path: Path, kept: Cache) -> Copy:
    """What is in the cache of a model; llama.cpp itself says whether it is whole."""
    from agent.models.llama_cpp import read_metadata

    quantisation = path.suffixes[-2].removeprefix(".")
    if not path.is_file():
        return Copy(str(path), quantisation, 0, "made at first use" if kept.writable else "cannot be kept")
    state: State = "damaged, made anew at first use" if read_metadata(path) is None else "ready"
    return Copy(str(path), quantisation, path.stat().st_size, state)


def _cache_facts(directory: Path) -> Cache:
    there = next(path for path in (directory, *directory.absolute().parents) if _exists(path))
    files = [(path, _size_on_disk(path)) for path in directory.rglob("*")] if there == directory else []
    found = sorted((str(path.relative_to(directory)), size) for path, size in files if size is not None)
    writable = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return Cache(str(directory), writable, tuple(CacheFile(name, size) for name, size in found))


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # behind a directory that is closed to us
        return False


def _size_on_disk(path: Path) -> int | None:
    """Of a file; None for what is none, or is gone while it is looked at."""
    try:
        return path.stat().st_size if path.is_file() else None
    except OSError:
        return None


def _package_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


def _environment_settings() -> list[Setting]:
    own = sorted(name for name in os.environ if name.startswith("CONVAGENT_"))
    return [Setting(name, os.environ[name], "environment") for name in own]


def _flatten_settings(table: Mapping[str, Any], above: str = "") -> Iterator[Setting]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _flatten_settings(value, f"{above}{name}.")
        else:
            yield Setting(f"{above}{name}", str(value), "convagent.toml")


def _missing_packages(error: ConvagentError | None, *, stops: bool) -> list[Trouble]:
    if error is None:
        return []
    place = f"{error.where}: " if error.where else ""
    without = "" if stops or not isinstance(error, MissingError) else " (passages are found by words alone)"
    return [Trouble(f"{place}{error.what}{without}", error.remedy, stops)]


def _find_troubles(kept: Cache, models: Sequence[Model], settings: Sequence[Setting]) -> Iterator[Trouble]:
    language, embedding = models
    if error := _llama_import_error():
        remedy = "pip install --force-reinstall --no-binary llama-cpp-python llama-cpp-python, which compiles it here."
        yield Trouble(f"llama.cpp cannot be loaded ({error})", remedy, stops=language.name != "none")
    try:
        if threads_to_use() > usable_cores():
            what = f"{THREADS}={threads_to_use()} is more than the {usable_cores()} cores that may be used"
            yield Trouble(what, "Threads then wait for each other: unset it.", stops=False)
    except ConvagentError as wrong:
        yield Trouble(wrong.what, wrong.remedy, stops=True)
    if not kept.writable:
        remedy = "Set CONVAGENT_CACHE to a directory that can be written."
        unmade = embedding.copy is not None and embedding.copy.state != "ready"
        yield Trouble(f"{kept.directory}: the cache cannot be written", remedy, stops=unmade)
    for setting in settings:
        if setting.origin == "environment" and setting.name not in SETTINGS:
            remedy = f"Settings are {', '.join(sorted(SETTINGS))}."
            yield Trouble(f"{setting.name} is no setting", remedy, stops=False)
