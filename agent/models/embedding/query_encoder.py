"""all-MiniLM-L6-v2, taught to read a turn together with its conversation (`training/query_encoder.py`).

Its vector lies where the base model would put the question that stands alone (Yu et al., SIGIR 2021), so that passages
keep the vectors they have; and it tells of each word of the conversation how likely it belongs to that question
(Voskarides et al., SIGIR 2020). The package ships what was learned, low-rank changes of the weights, and the two are
merged once, in the cache.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.models.bundled import open_from_cache
from agent.models.embedding.llama_cpp import MAX_TOKENS, LlamaCppEncoder, open_encoder
from agent.models.embedding.minilm import NAME, convert_to_gguf
from agent.models.learned import QUERY_ENCODER, REMEDY, hash_learned
from indexes.ranking.vectors import TurnEncoding
from schemas.errors import InvalidInputError

A, B = ".lora_a", ".lora_b"  # of a weight W, which becomes W + BA
WORDS = "words"  # what tells of a token's state how likely its word belongs to the question: 384 weights, a constant
Numbers = npt.NDArray[np.float32]
Change = Callable[[Mapping[str, Numbers], str, Numbers], Numbers]  # of a weight of that name, by what was learned


@dataclass(frozen=True, slots=True)
class QueryEncoder:
    """The taught model. Opened by `open_query_encoder`."""

    digest: str
    _encoder: LlamaCppEncoder
    _words: Numbers

    def encode(self, text: str) -> TurnEncoding:
        """The vector of a turn as `compose_conversation` writes it, and the probability of each of its words.

        Read to `MAX_TOKENS`; words that stand behind are not told.
        """
        opening, *_, closing = self._encoder.tokenize("a")
        words, starts, tokens = split_words(text, partial(self._encoder.tokenize, with_ends=False), MAX_TOKENS)
        states = self._encoder.compute_states([opening, *tokens, closing])
        mean = states.mean(axis=0)
        odds = states[starts] @ self._words[:-1] + self._words[-1]
        chances = 1 / (1 + np.exp(-odds.astype(np.float64)))
        vector = mean / max(float(np.linalg.norm(mean)), 1e-12)
        return TurnEncoding(vector, tuple(zip(words, map(float, chances), strict=True)))

    def close(self) -> None:
        self._encoder.close()


def split_words(
    text: str, tokenize: Callable[[str], list[int]], max_tokens: int
) -> tuple[list[str], list[int], list[int]]:
    """The words of a text, where the tokens of each begin after an opening token, and all tokens: as many as fit."""
    words, starts, tokens = list[str](), list[int](), list[int]()
    for word in text.split():
        pieces = tokenize(word)
        if len(tokens) + len(pieces) + 2 > max_tokens:
            break
        words.append(word)
        starts.append(len(tokens) + 1)
        tokens.extend(pieces)
    return words, starts, tokens


def open_query_encoder(weights: Path, weights_digest: str, threads: int) -> QueryEncoder:
    """The encoder over the weights of all-MiniLM-L6-v2 with that digest. Errors: those of `open_taught`."""
    merged, encoder, changes = open_taught(weights, weights_digest, threads, QUERY_ENCODER, merge)
    return QueryEncoder(merged, encoder, changes[WORDS])


def open_taught(
    weights: Path, weights_digest: str, threads: int, learned: Path, change: Change
) -> tuple[str, LlamaCppEncoder, dict[str, Numbers]]:
    """A taught model over weights with their digest: its digest, itself, and what was learned.

    Raises `MissingError` where the package lacks what was learned, `InvalidInputError` where it is damaged.
    """
    merged = sha256(f"{weights_digest}{hash_learned(learned)}".encode()).hexdigest()
    changes, name = read_changes(learned), f"{NAME}-{learned.stem}"
    encoder = open_from_cache(
        partial(convert_to_gguf, weights, merged, name=name, change=partial(change, changes)),
        lambda path: open_encoder(path, name=name, digest=merged, threads=threads, by_token=True),
    )
    return merged, encoder, changes


def read_changes(path: Path) -> dict[str, Numbers]:
    """What was learned, by name, as 32-bit floats. Errors: those of `open_taught`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        return {name: tensor.astype(np.float32) for name, tensor in load_file(path).items()}
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(f"is damaged ({error})", where=str(path), remedy=REMEDY) from error


def merge(changes: Mapping[str, Numbers], name: str, weight: Numbers) -> Numbers:
    """The weight of that name with what was learned of it."""
    stem = name.removesuffix(".weight")
    if f"{stem}{A}" not in changes:
        return weight
    return np.asarray(weight + changes[f"{stem}{B}"] @ changes[f"{stem}{A}"], dtype=np.float32)
