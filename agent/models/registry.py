"""Opening a model by its name. `seam.py` says what a model is."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agent.models.hardware import stop_spinning_threads, threads_to_use
from agent.models.hub import PREFIX, fetch
from agent.models.protocol import LanguageModel, Listener, ignore_call
from indexes.storage.cache import Cache
from schemas.errors import InvalidInputError, MissingError, UsageError

MODELS = "smollm2, a path to a .gguf file, hf:user/repo[:quant], http://host:port/v1#name, none, scripted:FILE.json"
MEMORY_CACHE_BYTES = 1 << 26  # bytes of replies that are remembered where no cache is given


def open_model(
    name: str, listen: Listener = ignore_call, *, threads: int | None = None, cache: Cache | None = None
) -> LanguageModel:
    """The model of that name; every call it takes is told to `listen`. What it replies is kept in `cache`.

    Raises `UsageError` for a name that is none, `MissingError` for a file, package or server that is not there,
    `InvalidInputError` for a file that is no GGUF.
    """
    if name == "none":
        from agent.models.no_model import NoModel

        return NoModel(listen)
    if name.startswith("scripted:"):
        from agent.models.scripted import open_script

        return open_script(Path(name.removeprefix("scripted:")), listen)
    from agent.models.reply_cache import CachingModel
    from agent.models.retry import RetryingModel

    opened, way = _server_opening(name) if is_server_address(name) else gguf_opening(name, threads)
    return RetryingModel(CachingModel(opened, listen, cache or Cache(None, MEMORY_CACHE_BYTES), way))


Opening = tuple[
    Callable[[Listener], LanguageModel], str
]  # what opens a model, and what decides its replies beside its weights


def _server_opening(name: str) -> Opening:
    from agent.models.openai_server import open_server_model

    return partial(open_server_model, name), ""


def gguf_opening(name: str, threads: int | None) -> Opening:
    stop_spinning_threads()
    from agent.models.bundled import find_bundled_gguf, open_from_cache, requantise
    from agent.models.llama_cpp import decoding_settings
    from indexes.storage.files import hash_file

    if name == "smollm2":
        source = find_bundled_gguf()
        digest = hash_file(source)
        return lambda listen: open_from_cache(
            lambda anew: requantise(source, digest, anew=anew),
            lambda path: _open_gguf(path, name, digest, threads, listen),
        ), decoding_settings()
    if name.startswith(PREFIX):
        path, called = fetch(name), name
    elif name.endswith(".gguf") or os.sep in name:
        path = check_gguf(Path(name).expanduser())
        called = path.name
    else:
        raise UsageError(f"unknown model {name!r} (available: {MODELS})")
    return partial(_open_gguf, path, called, hash_file(path), threads), decoding_settings()


def is_server_address(name: str) -> bool:
    """Whether a name is the address of a server."""
    return name.startswith(("http://", "https://"))


def _open_gguf(path: Path, name: str, digest: str, threads: int | None, listen: Listener) -> LanguageModel:
    from agent.models.llama_cpp import open_gguf

    return open_gguf(path, name, digest, threads or threads_to_use(), listen)


def check_gguf(path: Path) -> Path:
    if not path.is_file():
        remedy = f"Models that can be named: {MODELS}."
        raise MissingError("no such model file", where=str(path), remedy=remedy)
    with path.open("rb") as file:
        if file.read(4) != b"GGUF":
            raise InvalidInputError("is no GGUF file", where=str(path), remedy="Models for llama.cpp are .gguf files.")
    return path
