"""all-MiniLM-L6-v2 as it was taught: to read a turn together with its conversation, and to find an answer in a passage.

The query encoder (`training/query_encoder.py`) puts a turn where the base model would put the question that stands
alone (Yu et al., SIGIR 2021), so that passages keep the vectors they have; and it tells of each word of the
conversation how likely it belongs to that question (Voskarides et al., SIGIR 2020).

The reader (`training/reader.py`) reads question and passage as one text, `[CLS] question [SEP] passage [SEP]`; two
numbers on top of each token say where an answer begins and ends, and the first token stands for "not here" (BERT:
Devlin et al., NAACL 2019).

The package ships what was learned, low-rank changes of the weights or changes as 8-bit integers; they are merged with
the base model once, in the cache.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.models.bundled import open_from_cache
from agent.models.embedding.llama_cpp import MAX_TOKENS, LlamaCppEncoder, open_encoder
from agent.models.embedding.minilm import NAME, convert_to_gguf
from agent.models.learned import QUERY_ENCODER, READER, REMEDY, hash_learned
from indexes.ranking.vectors import EncodeTurn, Read, Readout, TurnEncoding, Vectors
from schemas.errors import InvalidInputError

A, B = ".lora_a", ".lora_b"  # of a weight W, which becomes W + BA
SCALE = ".scale"  # of a weight's changes as integers: one for each row
WORDS = "words"  # what tells of a token's state how likely its word belongs to the question: 384 weights, a constant
ENDS = "ends"  # (2, 385): what tells a beginning and an end by a token's state; the last column is a constant
READ_TOKENS, QUESTION_TOKENS = 224, 56  # of the reader, as it was taught; of a question the end is kept
OVERLAP = 40  # tokens that a window of a long passage shares with the one before
_PIECE = re.compile(r"[^\W_]+|\S")  # a word or a sign: where the tokenizer begins anew
_Piece = tuple[tuple[int, int], list[int]]  # its characters in the passage, and its tokens
Numbers = npt.NDArray[np.float32]
Change = Callable[[Mapping[str, Numbers], str, Numbers], Numbers]  # of a weight of that name, by what was learned


def open_query_encoder(weights: Path, weights_digest: str, threads: int) -> EncodeTurn:
    """The encoder over the weights of all-MiniLM-L6-v2 with that digest. Errors: those of `open_taught`."""
    encoder, learned = open_taught(weights, weights_digest, threads, QUERY_ENCODER, _add_low_rank)
    return partial(_encode_turn, encoder, learned[WORDS])


def _encode_turn(encoder: LlamaCppEncoder, weights: Numbers, text: str) -> TurnEncoding:
    """The vector of a turn as `compose_conversation` writes it, and the probability of each of its words.

    Read to `MAX_TOKENS`; words that stand behind are not told.
    """
    opening, *_, closing = encoder.tokenize("a")
    words, starts, tokens = split_words(text, partial(encoder.tokenize, with_ends=False), MAX_TOKENS)
    states = encoder.compute_states([opening, *tokens, closing])
    odds = states[starts] @ weights[:-1] + weights[-1]
    chances = 1 / (1 + np.exp(-odds.astype(np.float64)))
    mean = states.mean(axis=0)
    vector = mean / max(float(np.linalg.norm(mean)), 1e-12)
    return TurnEncoding(vector, tuple(zip(words, map(float, chances), strict=True)))


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


def open_reader(weights: Path, weights_digest: str, threads: int) -> Read:
    """The reader over the weights of all-MiniLM-L6-v2 with that digest. Errors: those of `open_taught`."""
    encoder, learned = open_taught(weights, weights_digest, threads, READER, add_scaled)
    return partial(_read_passage, encoder, learned[ENDS])


def _read_passage(encoder: LlamaCppEncoder, ends: Numbers, question: str, passage: str) -> tuple[Readout, ...]:
    """What the reader makes of a passage, window by window; nothing of an empty one."""
    opening, *asked, closing = encoder.tokenize(question)
    front = [opening, *asked[-QUESTION_TOKENS:], closing]
    tokenize = partial(encoder.tokenize, with_ends=False)
    pieces = [(found.span(), tokenize(found.group())) for found in _PIECE.finditer(passage)]

    def read_window(window: Sequence[_Piece]) -> Readout:
        states = encoder.compute_states([*front, *(token for _, tokens in window for token in tokens), closing])
        odds: Vectors = states @ ends[:, :-1].T + ends[:, -1]
        firsts = len(front) + np.cumsum([0, *(len(tokens) for _, tokens in window[:-1])])
        best = np.maximum.reduceat(odds[:-1], firsts)
        return Readout(tuple(span for span, _ in window), best[:, 0], best[:, 1], float(odds[0].sum()))

    return tuple(map(read_window, _split(pieces, READ_TOKENS - len(front) - 1)))


def _split(pieces: Sequence[_Piece], room: int) -> Iterator[Sequence[_Piece]]:
    """Windows of at most so many tokens, each but the first with the end of the one before."""
    pieces = [piece for piece in pieces if 0 < len(piece[1]) <= room]
    ends = np.cumsum([0, *(len(tokens) for _, tokens in pieces)])  # tokens before each piece, and all
    first = last = 0
    while last < len(pieces):
        last = int(np.searchsorted(ends, ends[first] + room, side="right")) - 1
        yield pieces[first:last]
        first = max(first + 1, int(np.searchsorted(ends, ends[last] - OVERLAP)))


def open_taught(
    weights: Path, weights_digest: str, threads: int, learned: Path, change: Change
) -> tuple[LlamaCppEncoder, dict[str, Numbers]]:
    """A taught model over weights with their digest, and what was learned, by name, as 32-bit floats.

    Raises `MissingError` where the package lacks what was learned, `InvalidInputError` where it is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    merged = sha256(f"{weights_digest}{hash_learned(learned)}".encode()).hexdigest()
    try:
        changes = {name: tensor.astype(np.float32) for name, tensor in load_file(learned).items()}
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(f"is damaged ({error})", where=str(learned), remedy=REMEDY) from error
    name = f"{NAME}-{learned.stem}"
    encoder = open_from_cache(
        partial(convert_to_gguf, weights, merged, name=name, change=partial(change, changes)),
        lambda path: open_encoder(path, name=name, threads=threads, by_token=True),
    )
    return encoder, changes


def _add_low_rank(changes: Mapping[str, Numbers], name: str, weight: Numbers) -> Numbers:
    stem = name.removesuffix(".weight")
    if f"{stem}{A}" not in changes:
        return weight
    return np.asarray(weight + changes[f"{stem}{B}"] @ changes[f"{stem}{A}"], dtype=np.float32)


def add_scaled(changes: Mapping[str, Numbers], name: str, weight: Numbers) -> Numbers:
    if name not in changes:
        return weight
    return np.asarray(weight + changes[name] * changes[f"{name}{SCALE}"], dtype=np.float32)
