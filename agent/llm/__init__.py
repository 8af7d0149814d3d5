"""Opening a model by its name. `seam.py` says what a model is."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.hub import PREFIX, fetched
from agent.llm.seam import LLM, Conversation, Listener, Task, unheard
from indexes.cache import Cache
from schemas.errors import InvalidInputError, MissingError, UsageError

__all__ = ["LLM", "MODELS", "Conversation", "Listener", "Task", "open_model", "physical_cores"]

MODELS = "smollm2, a path to a .gguf file, hf:user/repo[:quant], none, scripted:FILE.json"


MEMORY = 1 << 26  # bytes of replies that are remembered where no cache is given


def open_model(name: str, listen: Listener = unheard, *, threads: int | None = None, cache: Cache | None = None) -> LLM:
    """The model of that name; every call it takes is told to `listen`. What it replies is kept in `cache`.

    Raises `UsageError` for a name that is none, `MissingError` for a file or package that is not there,
    `InvalidInputError` for a file that is no GGUF.
    """
    if name == "none":
        from agent.llm.none import NoModel

        return NoModel(listen)
    if name.startswith("scripted:"):
        from agent.llm.scripted import ScriptedModel, read_script

        return ScriptedModel(read_script(Path(name.removeprefix("scripted:"))), listen)
    from agent.llm.embedded import embedded_gguf, repacked, sha256

    if name == "smollm2":
        source = embedded_gguf()
        digest = sha256(source)
        opened = _gguf(repacked(source, digest), name, digest, threads)
    elif name.startswith(PREFIX):
        path = fetched(name)
        opened = _gguf(path, name, sha256(path), threads)
    elif name.endswith(".gguf") or os.sep in name:
        path = checked_gguf(Path(name).expanduser())
        opened = _gguf(path, path.name, sha256(path), threads)
    else:
        raise UsageError(f"unknown model {name!r} (available: {MODELS})")
    from agent.llm.around import Patient, Remembering
    from agent.llm.llama_cpp import way

    return Patient(Remembering(opened, listen, cache or Cache(None, MEMORY), way()))


def _gguf(path: Path, name: str, digest: str, threads: int | None) -> Callable[[Listener], LLM]:
    # OpenMP's threads spin while they wait: a little is fast, much starves other processes (docs/log.md). Read at load.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    from agent.llm.llama_cpp import open_gguf

    return partial(open_gguf, path, name, digest, threads or physical_cores())


def checked_gguf(path: Path) -> Path:
    if not path.is_file():
        remedy = f"Models that can be named: {MODELS}."
        raise MissingError("no such model file", where=str(path), remedy=remedy)
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InvalidInputError("is no GGUF file", where=str(path), remedy="Models for llama.cpp are .gguf files.")
    return path


def physical_cores() -> int:
    """The cores that a model should use: more threads than physical cores slow llama.cpp down."""
    import psutil

    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(usable, psutil.cpu_count(logical=False) or usable))
