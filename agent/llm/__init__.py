"""Opening a model by its name. `seam.py` says what a model is."""

import os
from pathlib import Path

from agent.hub import PREFIX, fetched
from agent.llm.seam import LLM, Conversation, Listener, Task, unheard
from schemas.errors import InvalidInputError, MissingError, UsageError

__all__ = ["LLM", "MODELS", "Conversation", "Listener", "Task", "open_model", "physical_cores"]

MODELS = "smollm2, a path to a .gguf file, hf:user/repo[:quant], none, scripted:FILE.json"


def open_model(name: str, listen: Listener = unheard, *, threads: int | None = None) -> LLM:
    """The model of that name; every call it takes is told to `listen`.

    Raises `UsageError` for a name that is none, `MissingError` for a file or package that is not there,
    `InvalidInputError` for a file that is no GGUF.
    """
    if name == "none":
        from agent.llm.none import NoModel

        return NoModel(listen)
    if name.startswith("scripted:"):
        from agent.llm.scripted import open_script

        return open_script(Path(name.removeprefix("scripted:")), listen)
    if name == "smollm2":
        from agent.llm.embedded import embedded_gguf, repacked, sha256

        source = embedded_gguf()
        digest = sha256(source)
        return _open_gguf(repacked(source, digest), name, digest, threads, listen)
    if name.startswith(PREFIX):
        from agent.llm.embedded import sha256

        path = fetched(name)
        return _open_gguf(path, name, sha256(path), threads, listen)
    if name.endswith(".gguf") or os.sep in name:
        from agent.llm.embedded import sha256

        path = checked_gguf(Path(name).expanduser())
        return _open_gguf(path, path.name, sha256(path), threads, listen)
    raise UsageError(f"unknown model {name!r} (available: {MODELS})")


def _open_gguf(path: Path, name: str, digest: str, threads: int | None, listen: Listener) -> LLM:
    # OpenMP's threads spin while they wait: a little is fast, much starves other processes (docs/log.md). Read at load.
    os.environ.setdefault("GOMP_SPINCOUNT", "1000")
    from agent.llm.llama_cpp import open_gguf

    return open_gguf(path, name=name, digest=digest, threads=threads or physical_cores(), listen=listen)


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
