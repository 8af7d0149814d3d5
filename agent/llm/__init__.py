"""Opening a model by its name. `seam.py` says what a model is."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.hub import PREFIX, fetched
from agent.llm.seam import LLM, Conversation, Listener, Task, unheard
from indexes.cache import Cache
from schemas.errors import InvalidInputError, MissingError, UsageError

__all__ = [
    "LLM",
    "MODELS",
    "Conversation",
    "Listener",
    "Task",
    "open_model",
    "physical_cores",
    "served",
    "threads_to_use",
]

MODELS = "smollm2, a path to a .gguf file, hf:user/repo[:quant], http://host:port/v1#name, none, scripted:FILE.json"
THREADS = "CONVAGENT_THREADS"  # a setting in the environment
MOST_THREADS = 512  # llama.cpp takes no more
MEMORY = 1 << 26  # bytes of replies that are remembered where no cache is given


def open_model(name: str, listen: Listener = unheard, *, threads: int | None = None, cache: Cache | None = None) -> LLM:
    """The model of that name; every call it takes is told to `listen`. What it replies is kept in `cache`.

    Raises `UsageError` for a name that is none, `MissingError` for a file, package or server that is not there,
    `InvalidInputError` for a file that is no GGUF.
    """
    if name == "none":
        from agent.llm.none import NoModel

        return NoModel(listen)
    if name.startswith("scripted:"):
        from agent.llm.scripted import open_script

        return open_script(Path(name.removeprefix("scripted:")), listen)
    from agent.llm.around import Patient, Remembering

    opened, way = _server(name) if served(name) else _gguf(name, threads)
    return Patient(Remembering(opened, listen, cache or Cache(None, MEMORY), way))


Opening = tuple[Callable[[Listener], LLM], str]  # what opens a model, and what decides its replies beside its weights


def _server(name: str) -> Opening:
    from agent.llm.remote import open_remote

    return partial(open_remote, name), ""


def _gguf(name: str, threads: int | None) -> Opening:
    rest_threads()
    from agent.llm.embedded import embedded_gguf, open_kept, repacked, sha256
    from agent.llm.llama_cpp import way

    if name == "smollm2":
        source = embedded_gguf()
        digest = sha256(source)
        return lambda listen: open_kept(
            lambda anew: repacked(source, digest, anew=anew),
            lambda path: _open_gguf(path, name, digest, threads, listen),
        ), way()
    if name.startswith(PREFIX):
        path, called = fetched(name), name
    elif name.endswith(".gguf") or os.sep in name:
        path = checked_gguf(Path(name).expanduser())
        called = path.name
    else:
        raise UsageError(f"unknown model {name!r} (available: {MODELS})")
    return partial(_open_gguf, path, called, sha256(path), threads), way()


def served(name: str) -> bool:
    """Whether a name is the address of a server."""
    return name.startswith(("http://", "https://"))


def _open_gguf(path: Path, name: str, digest: str, threads: int | None, listen: Listener) -> LLM:
    from agent.llm.llama_cpp import open_gguf

    return open_gguf(path, name, digest, threads or threads_to_use(), listen)


def rest_threads() -> str:
    """How long OpenMP's waiting threads spin, unless the environment says so; read when llama.cpp is first loaded.

    They spin while they wait: a little is fast, much starves other processes (docs/log.md).
    """
    return os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def checked_gguf(path: Path) -> Path:
    if not path.is_file():
        remedy = f"Models that can be named: {MODELS}."
        raise MissingError("no such model file", where=str(path), remedy=remedy)
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InvalidInputError("is no GGUF file", where=str(path), remedy="Models for llama.cpp are .gguf files.")
    return path


def threads_to_use() -> int:
    """Those that a model computes with: `CONVAGENT_THREADS`, else one for each physical core.

    Raises `UsageError` where the setting is no number of threads.
    """
    wanted = os.environ.get(THREADS, "").strip()
    if not wanted:
        return physical_cores()
    if not (wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= MOST_THREADS):
        remedy = "Unset it for one thread a physical core; `convagent doctor --bench` measures others."
        raise UsageError(f"{THREADS}={wanted!r} is no number from 1 to {MOST_THREADS}", remedy=remedy)
    return int(wanted)


def physical_cores() -> int:
    """The cores that a model should use: more threads than physical cores slow llama.cpp down."""
    import psutil

    return max(1, min(usable_cores(), psutil.cpu_count(logical=False) or usable_cores()))


def usable_cores() -> int:
    """The logical cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
