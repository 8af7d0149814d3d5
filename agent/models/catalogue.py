"""Which models can be named on this machine: the bundled ones, and the GGUF files in the Hugging Face cache."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.models.bundled import find_bundled_gguf
from agent.models.embedding.minilm import convert_to_gguf, find_bundled_weights
from agent.models.embedding.minilm_package import pull_minilm
from agent.models.hub import PREFIX, fetch, find_cached, list_cached_files
from agent.models.registry import check_gguf
from indexes.storage.files import hash_file
from schemas.errors import ConvagentError, UsageError

Kind = Literal["language", "embedding", "other", "unreadable"]
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
    bundled: list[tuple[str, Kind, Callable[[], Path]]]
    bundled = [("smollm2", "language", find_bundled_gguf), ("minilm", "embedding", find_bundled_weights)]
    for name, kind, find in bundled:
        try:
            yield ModelEntry(name, kind, find().stat().st_size)
        except ConvagentError as error:
            yield ModelEntry(name, kind, 0, error.remedy)
    for repo, files in list_cached_files().items():
        for file, path in sorted(files.items()):
            yield ModelEntry(f"{PREFIX}{repo}/{file}", detect_kind(path), path.stat().st_size)


def pull_model(name: str) -> tuple[Path, bool]:
    """The file of a model, and whether it had to be fetched. Errors: those of `fetch` and `pull_minilm`."""
    if name == "minilm":
        return pull_minilm()
    before = {path for files in list_cached_files().values() for path in files.values()}
    path = fetch(name)
    return path, path not in before


def find_model_file(name: str) -> Path:
    """The GGUF of a model on this machine; nothing is downloaded. `minilm` is converted if it was not yet.

    Raises `UsageError` for an unknown name, `MissingError` for a model that is not here.
    """
    if name == "smollm2":
        return find_bundled_gguf()
    if name == "minilm":
        source = find_bundled_weights()
        return convert_to_gguf(source, hash_file(source))
    if name.startswith(PREFIX):
        return find_cached(name)
    if name.endswith(".gguf") or os.sep in name:
        return check_gguf(Path(name).expanduser())
    raise UsageError(
        f"{name!r} is not the name of a model file (available: smollm2, minilm, hf:user/repo[:quant], a path)"
    )


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
