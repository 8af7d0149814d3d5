"""all-MiniLM-L6-v2 as it was taught to read questions; passages keep the vectors that they have.

The query encoder (`training/query_encoder.py`) puts a turn where the base model would put the question that stands
alone (Yu et al., SIGIR 2021), and tells of each word of the conversation how likely it belongs to that question
(Voskarides et al., SIGIR 2020). The question encoder (`training/question_encoder.py`) puts a person's question near the
passages of their own documents that answer it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from agent.models.embedding.llama_cpp import MAX_TOKENS, LlamaCppEncoder, add_low_rank, open_taught
from agent.models.embedding.minilm import BASE, convert_to_gguf
from agent.models.learned import QUERY_ENCODER, QUESTION_ENCODER
from indexes.ranking.vectors import Embed, EncodeTurn, TurnEncoding, Vectors

WORDS = "words"  # what tells of a token's state how likely its word belongs to the question: 384 weights, a constant


def open_query_encoder(weights: Path, threads: int) -> EncodeTurn:
    """The encoder over the weights of all-MiniLM-L6-v2. Errors: those of `open_taught`."""
    convert = partial(convert_to_gguf, weights)
    encoder, learned = open_taught(convert, BASE, threads, QUERY_ENCODER, add_low_rank)
    return partial(_encode_turn, encoder, learned[WORDS])


def open_question_encoder(weights: Path, threads: int) -> Embed:
    """What gives questions their vectors, over the same weights. Errors: those of `open_taught`."""
    convert = partial(convert_to_gguf, weights)
    return open_taught(convert, BASE, threads, QUESTION_ENCODER, add_low_rank, pool=True)[0].embed


def _encode_turn(encoder: LlamaCppEncoder, weights: Vectors, text: str) -> TurnEncoding:
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
