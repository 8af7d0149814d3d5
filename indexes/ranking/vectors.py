"""Vectors of passages: files with those of a whole index, and a cache of vectors by their texts.

A vector is a row of 32-bit floats of length 1; on disk 16 bits are enough. The embedding model is passed in: this
package knows none.
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

Vectors = npt.NDArray[np.float32]  # one row for each text
Embed = Callable[[Sequence[str]], Vectors]
VECTORS_FILE, VECTOR_INFO_FILE = "vectors.f16", "vectors.json"
BATCH_TEXTS = 64  # embedded between two calls of `progress`


def combine_vectors(embed: Embed, weighted_texts: Sequence[tuple[str, float]]) -> Vectors:
    """The weighted sum of the texts' vectors, scaled to length 1. Empty texts are ignored."""
    kept = [(text, weight) for text, weight in weighted_texts if text.strip()]
    total = np.asarray([weight for _, weight in kept], dtype=np.float32) @ embed([text for text, _ in kept])
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class TurnEncoding:
    """What an encoder that was taught conversations makes of a turn."""

    vector: Vectors  # of length 1: where the question that stands alone lies
    words: tuple[tuple[str, float], ...]  # each word that it read, and how likely that question has it


EncodeTurn = Callable[[str], TurnEncoding]


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

    @property
    def encode_turn(self) -> EncodeTurn | None:
        """What reads a turn in its conversation, where there is one for this model."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row of length 1 for each text."""


@dataclass(frozen=True, slots=True)
class VectorInfo:
    """The contents of `vectors.json`, which describes the vectors beside it."""

    model: str
    digest: str
    size: int
    passages: int


def write_vectors(directory: Path, texts: Sequence[str], embedder: Embedder, progress: Callable[[int], None]) -> None:
    """Embed the texts of an index, in the order of their numbers. The file is written whole or not at all.

    `progress` is called with the number of texts that are done. Raises `RunError` where the file cannot be written.
    """

    def write(temporary: Path) -> None:
        with temporary.open("wb") as file:
            for start in range(0, len(texts), BATCH_TEXTS):
                file.write(embedder.embed(texts[start : start + BATCH_TEXTS]).astype(np.float16).tobytes())
                progress(min(start + BATCH_TEXTS, len(texts)))
        sync_to_disk(temporary)
        (directory / VECTOR_INFO_FILE).unlink(missing_ok=True)  # it describes the old vectors

    info = VectorInfo(embedder.name, embedder.digest, embedder.size, len(texts))
    try:
        write_file_atomically(directory / VECTORS_FILE, write)
        described = msgspec.json.format(msgspec.json.encode(info))
        write_file_atomically(directory / VECTOR_INFO_FILE, lambda temporary: temporary.write_bytes(described))
    except OSError as error:
        raise RunError(f"could not be written ({error.strerror})", where=str(directory)) from error


def read_vector_info(directory: Path) -> VectorInfo | None:
    """What an index's vectors are made with; None if it has none. Raises `InvalidInputError` if the file is damaged."""
    try:
        return msgspec.json.decode((directory / VECTOR_INFO_FILE).read_bytes(), type=VectorInfo)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        remedy = "Make them again with `convagent index embed`."
        raise InvalidInputError(f"has damaged vectors ({error})", where=str(directory), remedy=remedy) from error


def read_vectors(directory: Path, info: VectorInfo) -> Vectors:
    """All vectors of an index: one row for each passage. Raises `InvalidInputError` if some are missing."""
    stored = np.fromfile(directory / VECTORS_FILE, dtype=np.float16)
    if stored.size != info.passages * info.size:
        remedy = "Make them again with `convagent index embed`."
        raise InvalidInputError("has damaged vectors (their number is wrong)", where=str(directory), remedy=remedy)
    return stored.reshape(info.passages, info.size).astype(np.float32)


class VectorCache:
    """An embedding model with a cache of its vectors, which come back exactly as they were computed."""

    def __init__(self, embedder: Embedder, cache: Cache) -> None:
        self._embedder, self._cache = embedder, cache
        self.name, self.digest, self.size = embedder.name, embedder.digest, embedder.size
        self.encode_turn = embedder.encode_turn

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row for each text. Only vectors that are not in the cache are computed; they are saved there."""
        keys = [self._make_key(text) for text in texts]
        cached = self._cache.get(keys)
        if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in cached}:
            computed = self._embedder.embed(list(new.values()))
            new_rows = {key: row.tobytes() for key, row in zip(new, computed, strict=True)}
            self._cache.put(new_rows)
            cached |= new_rows
        rows = [np.frombuffer(cached[key], dtype=np.float32) for key in keys]
        return np.stack(rows) if rows else np.zeros((0, self.size), dtype=np.float32)

    def _make_key(self, text: str) -> bytes:
        content = f"{self._embedder.digest}\0{text}".encode("utf-8", "replace")
        return hashlib.blake2b(content, digest_size=16).digest()
