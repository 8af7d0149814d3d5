"""Vectors of passages: files with those of a whole index, and a cache of vectors by their texts.

A vector is a row of 32-bit floats of length 1; on disk 16 bits are enough. The embedding model is passed in: this
package knows none.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from indexes.storage.cache import Cache
from indexes.storage.files import FileRecord
from schemas.errors import InvalidInputError
from schemas.records import IndexInfo
from schemas.wire import decode

Vectors = npt.NDArray[np.float32]  # one row for each text
StoredVectors = npt.NDArray[np.float16]  # as they are on disk
Embed = Callable[[Sequence[str]], Vectors]
VECTORS_FILE, VECTOR_INFO_FILE = "vectors.f16", "vectors.json"
VALUE_BYTES = 2
BLOCK_ROWS = 4096  # of the file, that have a checksum of their own


def combine_vectors(embed: Embed, weighted_texts: Sequence[tuple[str, float]]) -> Vectors:
    kept = [(text, weight) for text, weight in weighted_texts if text.strip()]
    total = np.asarray([weight for _, weight in kept], dtype=np.float32) @ embed([text for text, _ in kept])
    return np.asarray(total / max(float(np.linalg.norm(total)), 1e-12), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class TurnEncoding:
    """What an encoder that was taught conversations makes of a turn."""

    vector: Vectors  # of length 1: where the question that stands alone lies
    words: tuple[tuple[str, float], ...]  # each word that it read, and how likely that question has it


EncodeTurn = Callable[[str], TurnEncoding]


@dataclass(frozen=True, slots=True)
class Readout:
    """What a model that was taught to read makes of a passage, or of a window of it; all numbers are logits."""

    pieces: tuple[tuple[int, int], ...]  # the characters of each word and sign
    starts: Vectors  # (pieces,): an answer begins here
    ends: Vectors  # (pieces,): it ends here
    nothing: float  # there is no answer; to be held against a beginning and an end together


Read = Callable[[str, str, bool], Sequence[Readout]]  # of a question and a passage, and whether both are in English


@dataclass(frozen=True, slots=True)
class TableReadout:
    """What a model that was taught to read tables makes of a question; all numbers are logits."""

    whole: Vectors  # of the question: what is done
    columns: Vectors  # a row for each column: what it is to the question
    values: Sequence[Vectors]  # of each column, for each of its values: that it is meant


# Of a question, the table's name, and each column with some values; None where nothing can be read.
ReadTable = Callable[[str, Sequence[Sequence[str]]], TableReadout | None]


@dataclass(frozen=True, slots=True)
class Embedder:
    """An embedding model, for any number of threads. The cosine of two texts is the product of their vectors."""

    name: str  # that it was opened by
    digest: str  # SHA-256 of the weights
    size: int  # numbers in a vector
    max_tokens: int  # that it reads of a text; what comes after them is cut off
    embed: Embed  # one row of length 1 for each text
    count_tokens: Callable[[str], int]  # of a text, with the model's own at its ends, and without any cut
    encode_turn: EncodeTurn | None = None  # reads a turn in its conversation, where it was taught that
    embed_questions: Embed | None = None  # near the passages of own documents that answer, where it was taught that
    read: Read | None = None  # finds an answer in a passage, where it was taught that
    read_table: ReadTable | None = None  # tells what of a table a question is about, where it was taught that
    spread: float = 1.0  # how far apart its cosines lie, where those of MiniLM have 1
    knows_languages: bool = False  # other than English
    uncached: "Embedder | None" = None  # the same without its cache, where it has one: it keeps nothing

    def embedding_questions(self, takes_questions: bool) -> Embed:
        """What embeds questions: as it was taught, where such are taken; else as it embeds passages."""
        return (takes_questions and self.embed_questions) or self.embed


@dataclass(frozen=True, slots=True)
class CompressedInfo:
    recipe: str  # what faiss calls it
    file: FileRecord


@dataclass(frozen=True, slots=True)
class VectorInfo:
    """The contents of `vectors.json`, which describes the vectors beside it."""

    model: str
    digest: str
    size: int
    passages: int
    contents: str = ""  # the digest of the passages that these are vectors of, in this order (`IndexInfo.contents`)
    blocks: tuple[str, ...] = ()  # the BLAKE2 of each `BLOCK_ROWS` rows
    compressed: CompressedInfo | None = None
    seal: str = ""  # the BLAKE2 of all fields before this


def split_rows(passages: int) -> Sequence[range]:
    return [range(first, min(first + BLOCK_ROWS, passages)) for first in range(0, passages, BLOCK_ROWS)]


def seal_info(info: VectorInfo) -> VectorInfo:
    return replace(info, seal=hash_block(msgspec.json.encode(replace(info, seal=""))))


def read_vector_info(directory: Path, index: IndexInfo) -> VectorInfo | None:
    """What an index's vectors are made with; None if it has none.

    Raises `InvalidInputError` if the file is damaged, or if the vectors are not those of these passages.
    """
    try:
        info: VectorInfo = decode((directory / VECTOR_INFO_FILE).read_bytes(), VectorInfo)
    except FileNotFoundError:
        return None
    except (OSError, msgspec.DecodeError) as error:
        raise _make_damage_error(directory, str(error)) from error
    if info != seal_info(info):
        raise _make_damage_error(directory, f"{VECTOR_INFO_FILE} has other contents than it was given")
    if (info.passages, info.contents) != (index.passages, index.contents):
        raise _make_damage_error(directory, "they are those of other passages")
    return info


def read_vectors(directories: Sequence[Path], infos: Sequence[VectorInfo]) -> Vectors:
    """All vectors of an index: one row for each passage, which its parts hold in turn.

    One matrix: products of the same matrix have the same bits, products of its parts need not. Raises
    `InvalidInputError` if some are missing, are not what was written, or are no numbers.
    """
    vectors = np.empty((sum(info.passages for info in infos), max(infos[0].size, 0)), dtype=np.float32)
    for place, (directory, info) in enumerate(zip(directories, infos, strict=True)):
        own = vectors[place :: len(infos)]
        for first, rows in read_checked_rows(directory, info):
            own[first : first + len(rows)] = rows
    return vectors


def check_vectors(directory: Path, info: VectorInfo) -> None:
    """Read all vectors of an index, a few at a time. Raises as `read_vectors` does."""
    for _ in read_checked_rows(directory, info):
        pass


def read_checked_rows(directory: Path, info: VectorInfo) -> Iterator[tuple[int, StoredVectors]]:
    """The rows, block by block, each with the number of its first. Raises as `read_vectors` does."""
    try:
        expected, found = info.passages * info.size * VALUE_BYTES, (directory / VECTORS_FILE).stat().st_size
        if found != expected or info.size <= 0:
            raise _make_damage_error(directory, f"their number is wrong: {found} bytes, not {expected}")
        with (directory / VECTORS_FILE).open("rb") as file:
            for numbers, checksum in zip(split_rows(info.passages), info.blocks, strict=True):
                block = file.read(len(numbers) * info.size * VALUE_BYTES)
                if hash_block(block) != checksum:
                    raise _make_damage_error(directory, f"those from passage {numbers[0]} on are not what was written")
                rows = np.frombuffer(block, dtype=np.float16).reshape(-1, info.size)
                if not np.isfinite(rows).all():
                    raise _make_damage_error(directory, f"those from passage {numbers[0]} on hold what is no number")
                yield numbers[0], rows
    except (OSError, ValueError, OverflowError) as error:
        raise _make_damage_error(directory, str(error)) from error


def hash_block(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _make_damage_error(directory: Path, what: str) -> InvalidInputError:
    remedy = "Make them again with `convagent index embed`."
    return InvalidInputError(f"has damaged vectors ({what})", where=str(directory), remedy=remedy)


def keep_vectors(embedder: Embedder, cache: Cache) -> Embedder:
    """The same model with a cache of its vectors, which come back exactly as they were computed."""
    return replace(embedder, embed=partial(_embed_new, embedder, cache), uncached=embedder)


def _embed_new(embedder: Embedder, cache: Cache, texts: Sequence[str]) -> Vectors:
    """One row for each text. Only vectors that are not in the cache are computed; they are saved there."""
    contents = (f"{embedder.digest}\0{text}".encode("utf-8", "replace") for text in texts)
    keys = [hashlib.blake2b(content, digest_size=16).digest() for content in contents]
    cached = cache.get(keys)
    if new := {key: text for key, text in zip(keys, texts, strict=True) if key not in cached}:
        computed = embedder.embed(list(new.values()))
        new_rows = {key: row.tobytes() for key, row in zip(new, computed, strict=True)}
        cache.put(new_rows)
        cached |= new_rows
    rows = [np.frombuffer(cached[key], dtype=np.float32) for key in keys]
    return np.stack(rows) if rows else np.zeros((0, embedder.size), dtype=np.float32)
