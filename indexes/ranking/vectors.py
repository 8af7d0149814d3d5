"""Vectors of passages: those of a whole small index, kept beside it, and a cache of others by their content.

A vector is a row of 32-bit floats of length 1; on disk 16 bits are enough. What turns texts into vectors is handed over
(`Embed`): this package knows no model.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from indexes.storage.atomic_files import sync_to_disk, write_file_atomically
from indexes.storage.cache import Cache
from schemas.errors import InvalidInputError, RunError

Vectors = npt.NDArray[np.float32]  # one row a text
Embed = Callable[[Sequence[str]], Vectors]
VECTORS_FILE, VECTOR_INFO_FILE = "vectors.f16", "vectors.json"
CHUNK = 64  # texts embedded between two ticks of a progress bar


def combine_vectors(embed: Embed, meant: Sequence[tuple[str, float]]) -> Vectors:
    """Where weighted texts point together: the sum of their vectors, of length 1. Empty texts count nothing."""
    said = [(text, weight) for text, weight in meant if text.strip()]
    total = np.asarray([weight for _, weight in said], dtype=np.float32) @ embed([text for text, _ in said])
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), dtype=np.float32)


class Embedder(Protocol):
    """An embedding model. The cosine of two texts is the product of their vectors."""

    @property
    def name(self) -> str:
        """The name it was opened by."""

    @property
    def digest(self) -> str:
        """SHA-256 of the weights."""

    @property
    def size(self) -> int:
        """Numbers in a vector."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 a text."""


@dataclass(frozen=True, slots=True)
class VectorInfo:
    """What `vectors.json` says of the vectors beside it."""

    model: str
    digest: str
    size: int
    passages: int


def write_vectors(directory: Path, texts: Sequence[str], embedder: Embedder, progress: Callable[[int], None]) -> None:
    """Embed the texts of an index, in the order of their numbers. The vectors are there whole or not at all.

    `progress` is told how many texts are done.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            for start in range(0, len(texts), CHUNK):
                file.write(embedder.embed(texts[start : start + CHUNK]).astype(np.float16).tobytes())
                progress(min(start + CHUNK, len(texts)))
        sync_to_disk(temporary)
        (directory / VECTOR_INFO_FILE).unlink(missing_ok=True)  # between one model's and the next there are none

    about = VectorInfo(embedder.name, embedder.digest, embedder.size, len(texts))
    try:
        write_file_atomically(directory / VECTORS_FILE, write)
        described = msgspec.json.format(msgspec.json.encode(about))
        write_file_atomically(directory / VECTOR_INFO_FILE, lambda temporary: temporary.write_bytes(described))
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(directory)) from error


def read_vector_info(directory: Path) -> VectorInfo | None:
    """What is known of an index's vectors; None where it has none."""
    try:
        return msgspec.json.decode((directory / VECTOR_INFO_FILE).read_bytes(), type=VectorInfo)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        remedy = "Make them again with `convagent index embed`."
        raise InvalidInputError(f"has damaged vectors ({error})", where=str(directory), remedy=remedy) from error


def read_vectors(directory: Path, about: VectorInfo) -> Vectors:
    """All vectors of an index, a row a passage, by its number."""
    stored = np.fromfile(directory / VECTORS_FILE, dtype=np.float16)
    if stored.size != about.passages * about.size:
        remedy = "Make them again with `convagent index embed`."
        raise InvalidInputError("has damaged vectors (their number is wrong)", where=str(directory), remedy=remedy)
    return stored.reshape(about.passages, about.size).astype(np.float32)


class VectorCache:
    """An embedding model whose vectors are kept by the content of their texts, exactly as they were."""

    def __init__(self, embedder: Embedder, cache: Cache) -> None:
        self._embedder, self._cache = embedder, cache
        self.name, self.digest, self.size = embedder.name, embedder.digest, embedder.size

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text; only what is not known yet is computed, and kept."""
        keys = [self._key(text) for text in texts]
        known = self._cache.get(keys)
        if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in known}:
            computed = self._embedder.embed(list(new.values()))
            made = {key: row.tobytes() for key, row in zip(new, computed, strict=True)}
            self._cache.put(made)
            known |= made
        rows = [np.frombuffer(known[key], dtype=np.float32) for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.size), dtype=np.float32)

    def _key(self, text: str) -> bytes:
        decides = f"{self._embedder.digest}\0{text}".encode("utf-8", "replace")
        return hashlib.blake2b(decides, digest_size=16).digest()
