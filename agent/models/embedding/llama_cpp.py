"""Any embedding GGUF, read by llama.cpp in this process: texts in, unit vectors out.

What an encoder was taught is a change of a base model's weights, merged with it once, in the cache: the package ships
low-rank changes, or changes as 8-bit integers with a scale a row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any

import llama_cpp
import numpy as np
from llama_cpp._internals import LlamaModel

from agent.models.bundled import open_from_cache
from agent.models.learned import REMEDY, hash_learned
from agent.models.local.weights import decode_rows, load_weights
from indexes.ranking.vectors import Embedder, Vectors
from schemas.errors import InvalidInputError

MAX_TOKENS = 256  # of one text; what all-MiniLM-L6-v2 was trained with
FLASH_ATTENTION = True  # a fifth faster here (docs/log.md)


@dataclass(slots=True)
class LlamaCppEncoder:
    """An opened encoder: the states of a text's tokens, or what its pooling makes of them. Threads take turns."""

    name: str
    weights: LlamaModel
    _context: Any
    _batch: Any
    _turn: Lock = field(default_factory=Lock)

    def tokenize(self, text: str, *, with_ends: bool = True) -> list[int]:
        """With the model's own opening and closing tokens unless `with_ends` is false."""
        return list(self.weights.tokenize(text.encode("utf-8", "replace"), add_bos=with_ends, special=False))

    def pool(self, tokens: Sequence[int]) -> Vectors:
        """One vector for some tokens, at most `MAX_TOKENS`, by the pooling that the context was opened with."""
        with self._turn:
            self._read(tokens)
            found = llama_cpp.llama_get_embeddings_seq(self._context, 0)
            return np.ctypeslib.as_array(found, shape=(int(self.weights.n_embd()),)).copy()

    def compute_states(self, tokens: Sequence[int]) -> Vectors:
        """A row for each token, at most `MAX_TOKENS`, of a context that was opened without pooling."""
        with self._turn:
            self._read(tokens)
            found = llama_cpp.llama_get_embeddings(self._context)
            return np.ctypeslib.as_array(found, shape=(len(tokens), int(self.weights.n_embd()))).copy()

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row a text, of length 1. A text is cut at `MAX_TOKENS`; an empty one has a vector too.

        Each is read by itself, so that its vector is the same to the bit in whatever company it comes (ADR 13).
        """
        vectors = np.zeros((len(texts), int(self.weights.n_embd())), dtype=np.float32)
        for row, text in zip(vectors, texts, strict=True):
            tokens = self.tokenize(text)
            if len(tokens) > MAX_TOKENS:
                tokens[MAX_TOKENS - 1 :] = tokens[-1:]  # the closing one
            row[:] = self.pool(tokens)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        return np.asarray(vectors / np.maximum(lengths, 1e-12), dtype=np.float32)

    def _read(self, tokens: Sequence[int]) -> None:
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        if decode_rows(self._context, self._batch, [(token, place, 0, True) for place, token in enumerate(tokens)]):
            raise InvalidInputError("the embedding model could not read a text", where=self.name)


def open_gguf(path: Path, *, name: str, digest: str, threads: int) -> Embedder:
    """Load an embedding GGUF. Raises `InvalidInputError` where llama.cpp cannot read it or it is of another kind."""
    encoder = open_encoder(path, name=name, threads=threads)
    size = int(encoder.weights.n_embd())
    return Embedder(name, digest, size, MAX_TOKENS, encoder.embed, lambda text: len(encoder.tokenize(text)))


def open_encoder(path: Path, *, name: str, threads: int, by_token: bool = False) -> LlamaCppEncoder:
    """Load a GGUF that encodes texts, with its own pooling, or `by_token` with none. Errors: those of `open_gguf`."""
    weights = load_weights(path)
    params = llama_cpp.llama_context_default_params()
    params.embeddings = True
    params.n_ctx = params.n_batch = params.n_ubatch = MAX_TOKENS
    params.n_threads = params.n_threads_batch = threads
    params.flash_attn_type = int(FLASH_ATTENTION)  # LLAMA_FLASH_ATTN_TYPE_DISABLED is 0, _ENABLED 1
    params.no_perf = True
    if by_token:
        params.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_NONE
    context = llama_cpp.llama_init_from_model(weights.model, params)
    pools = context and llama_cpp.llama_pooling_type(context) != llama_cpp.LLAMA_POOLING_TYPE_NONE
    if not context or pools == by_token:
        remedy = "Name a GGUF of an embedding model, such as all-MiniLM-L6-v2."
        raise InvalidInputError("is no embedding model", where=str(path), remedy=remedy)
    return LlamaCppEncoder(name, weights, context, llama_cpp.llama_batch_init(MAX_TOKENS, 0, 1))


A, B = ".lora_a", ".lora_b"  # of a weight W, which becomes W + BA
SCALE = ".scale"  # of a weight's changes as integers: one for each row
Change = Callable[[Mapping[str, Vectors], str, Vectors], Vectors]  # of a weight of that name, by what was learned


def open_taught(
    convert: Callable[..., Path], base: tuple[str, str], threads: int, learned: Path, change: Change, pool: bool = False
) -> tuple[LlamaCppEncoder, dict[str, Vectors]]:
    """A taught model over base weights with that name and digest, and what was learned, by name, as 32-bit floats.

    `convert` makes its GGUF: given a digest, a name and what changes each weight. `pool`: it gives a vector a text.
    Raises `MissingError` where the package lacks what was learned, `InvalidInputError` where it is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    base_name, base_digest = base
    name, merged = f"{base_name}-{learned.stem}", sha256(f"{base_digest}{hash_learned(learned)}".encode()).hexdigest()
    try:
        changes = {name: tensor.astype(np.float32) for name, tensor in load_file(learned).items()}
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(f"is damaged ({error})", where=str(learned), remedy=REMEDY) from error
    encoder = open_from_cache(
        partial(convert, merged, name=name, change=partial(change, changes)),
        lambda path: open_encoder(path, name=name, threads=threads, by_token=not pool),
    )
    return encoder, changes


def add_low_rank(changes: Mapping[str, Vectors], name: str, weight: Vectors) -> Vectors:
    """A weight with its low-rank change; as it is where it has none."""
    stem = name.removesuffix(".weight")
    if f"{stem}{A}" not in changes:
        return weight
    return np.asarray(weight + changes[f"{stem}{B}"] @ changes[f"{stem}{A}"], dtype=np.float32)


def add_scaled(changes: Mapping[str, Vectors], name: str, weight: Vectors) -> Vectors:
    """A weight with its change as integers; as it is where it has none."""
    if name not in changes:
        return weight
    return np.asarray(weight + changes[name] * changes[f"{name}{SCALE}"], dtype=np.float32)
