"""Which models can be named on this machine: the embedded ones, and the GGUF files in the Hugging Face cache."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent.embedders.minilm import converted, embedded_weights
from agent.hub import PREFIX, cached, cached_files, fetched
from agent.llm import checked_gguf
from agent.llm.embedded import embedded_gguf, sha256
from schemas.errors import MissingError, UsageError

Kind = Literal["language", "embedding", "other", "unreadable"]
RERANKER = "4"  # llama.cpp's number for a pooling that gives a score in the place of a vector


@dataclass(frozen=True, slots=True)
class Named:
    """A model that can be named."""

    name: str
    kind: Kind
    bytes: int  # of its file; 0 where it is not installed
    remedy: str = ""  # how to install it, where it is not


def named_models() -> Iterator[Named]:
    """The embedded models, installed or not, then what is in the Hugging Face cache, by name."""
    embedded: list[tuple[str, Kind, Callable[[], Path]]]
    embedded = [("smollm2", "language", embedded_gguf), ("minilm", "embedding", embedded_weights)]
    for name, kind, find in embedded:
        try:
            yield Named(name, kind, find().stat().st_size)
        except MissingError as error:
            yield Named(name, kind, 0, error.remedy)
    for repo, files in cached_files().items():
        for file, path in sorted(files.items()):
            yield Named(f"{PREFIX}{repo}/{file}", kind_of(path), path.stat().st_size)


def pulled(name: str) -> tuple[Path, bool]:
    """The GGUF of a model on the hub, and whether it had to be fetched. Errors: those of `fetched`."""
    before = {path for files in cached_files().values() for path in files.values()}
    path = fetched(name)
    return path, path not in before


def path_of(name: str) -> Path:
    """The GGUF of a model that is here; nothing is downloaded. `minilm` is converted if it was not yet.

    Raises `UsageError` for a name that is none, `MissingError` for a model that is not here.
    """
    if name == "smollm2":
        return embedded_gguf()
    if name == "minilm":
        source = embedded_weights()
        return converted(source, sha256(source))
    if name.startswith(PREFIX):
        return cached(name)
    if name.endswith(".gguf") or os.sep in name:
        return checked_gguf(Path(name).expanduser())
    raise UsageError(f"no file has the name {name!r} (available: smollm2, minilm, hf:user/repo[:quant], a path)")


def kind_of(path: Path) -> Kind:
    """What a GGUF is for, by its metadata (a tenth of a second). `other`: rerankers, and what sees or hears."""
    from agent.llm.llama_cpp import metadata_of

    metadata = metadata_of(path)
    return "unreadable" if metadata is None else _kind(metadata)


def _kind(metadata: Mapping[str, str]) -> Kind:
    """Embedding models say how vectors of tokens are pooled, or that every token sees all others."""
    family = metadata.get("general.architecture", "")
    pooling = metadata.get(f"{family}.pooling_type", "0")
    if pooling == RERANKER or family == "clip":
        return "other"
    return "embedding" if pooling != "0" or metadata.get(f"{family}.attention.causal") == "false" else "language"
