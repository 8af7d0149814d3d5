"""all-MiniLM-L6-v2, taught to read: where in a passage the answer to a question begins and ends (`training/reader.py`).

Question and passage are one text, `[CLS] question [SEP] passage [SEP]`; two numbers on top of each token say where an
answer begins and ends, and the first token stands for "not here" (BERT: Devlin et al., NAACL 2019). The package ships
what was learned, changes of the weights as 8-bit integers, and the two are merged once, in the cache.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from agent.models.embedding.llama_cpp import LlamaCppEncoder
from agent.models.embedding.query_encoder import Numbers, open_taught
from agent.models.learned import READER
from indexes.ranking.vectors import Readout, Vectors

MAX_TOKENS, QUESTION_TOKENS = 224, 40  # as it was taught
OVERLAP = 40  # tokens that a window of a long passage shares with the one before
SCALE, ENDS = ".scale", "ends"
_PIECE = re.compile(r"[^\W_]+|\S")  # a word or a sign: where the tokenizer begins anew
_Piece = tuple[tuple[int, int], list[int]]  # its characters in the passage, and its tokens


@dataclass(frozen=True, slots=True)
class Reader:
    """The taught model. Opened by `open_reader`."""

    digest: str
    _encoder: LlamaCppEncoder
    _ends: Numbers  # (2, 385): what tells a beginning and an end by a token's state; the last column is a constant

    def read(self, question: str, passage: str) -> tuple[Readout, ...]:
        """What it makes of a passage, window by window; nothing of an empty one."""
        opening, *asked, closing = self._encoder.tokenize(question)
        front = [opening, *asked[:QUESTION_TOKENS], closing]
        tokenize = partial(self._encoder.tokenize, with_ends=False)
        pieces = [(found.span(), tokenize(found.group())) for found in _PIECE.finditer(passage)]
        return tuple(
            self._read_window(front, window, closing) for window in _split(pieces, MAX_TOKENS - len(front) - 1)
        )

    def _read_window(self, front: Sequence[int], window: Sequence[_Piece], closing: int) -> Readout:
        states = self._encoder.compute_states([*front, *(token for _, tokens in window for token in tokens), closing])
        odds: Vectors = states @ self._ends[:, :-1].T + self._ends[:, -1]
        firsts = len(front) + np.cumsum([0, *(len(tokens) for _, tokens in window[:-1])])
        best = np.maximum.reduceat(odds[:-1], firsts)
        return Readout(tuple(span for span, _ in window), best[:, 0], best[:, 1], float(odds[0].sum()))

    def close(self) -> None:
        self._encoder.close()


def _split(pieces: Sequence[_Piece], room: int) -> Iterator[Sequence[_Piece]]:
    """Windows of at most so many tokens, each but the first with the end of the one before."""
    pieces = [piece for piece in pieces if 0 < len(piece[1]) <= room]
    ends = np.cumsum([0, *(len(tokens) for _, tokens in pieces)])  # tokens before each piece, and all
    first = last = 0
    while last < len(pieces):
        last = int(np.searchsorted(ends, ends[first] + room, side="right")) - 1
        yield pieces[first:last]
        first = max(first + 1, int(np.searchsorted(ends, ends[last] - OVERLAP)))


def open_reader(weights: Path, weights_digest: str, threads: int) -> Reader:
    """The reader over the weights of all-MiniLM-L6-v2 with that digest. Errors: those of `open_taught`."""
    digest, encoder, learned = open_taught(weights, weights_digest, threads, READER, add)
    return Reader(digest, encoder, learned[ENDS])


def add(changes: Mapping[str, Numbers], name: str, weight: Numbers) -> Numbers:
    """The weight of that name with what was learned of it: an integer for each number, a scale for each row."""
    if name not in changes:
        return weight
    return np.asarray(weight + changes[name] * changes[f"{name}{SCALE}"], dtype=np.float32)
