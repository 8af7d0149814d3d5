"""Two encoders as they were taught to find an answer in a passage (`training/reader.py`).

all-MiniLM-L6-v2 reads English, multilingual-e5-small a question or a passage in another language. Question and passage
are one text, `[CLS] question [SEP] passage [SEP]`; two numbers on top of each token say where an answer begins and
ends, and the first token stands for "not here" (BERT: Devlin et al., NAACL 2019).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from agent.models.embedding import minilm, multilingual
from agent.models.embedding.llama_cpp import LlamaCppEncoder, add_scaled, open_taught
from agent.models.learned import MULTILINGUAL_READER, READER
from indexes.ranking.vectors import Readout, Vectors

ENDS = "ends"  # (2, 385): what tells a beginning and an end by a token's state; the last column is a constant
READ_TOKENS, QUESTION_TOKENS = 224, 56  # as it was taught; of a question the end is kept
OVERLAP = 40  # tokens that a window of a long passage shares with the one before
_PIECE = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+|\S")  # a word, accents and all, or a sign
ReadPassage = Callable[[str, str], tuple[Readout, ...]]  # of a question and a passage
Cut = Callable[[str], list[int]]  # a word or sign into tokens; with a space in front, where there is one
Piece = tuple[tuple[int, int], list[int]]  # its characters in the text, and its tokens


def open_reader(weights: Path, threads: int) -> ReadPassage:
    """The reader of English over the weights of all-MiniLM-L6-v2. Errors: those of `open_taught`."""
    convert = partial(minilm.convert_to_gguf, weights)
    encoder, changes = open_taught(convert, minilm.BASE, threads, READER, add_scaled)
    return partial(_read_passage, encoder, cut_english(encoder), changes[ENDS])


def open_multilingual_reader(threads: int) -> ReadPassage:
    """The one of other languages, over multilingual-e5-small. Errors: those of `find_weights` and `open_taught`."""
    convert = partial(multilingual.convert_to_gguf, multilingual.find_weights(), keeps_spaces=True)
    base = (multilingual.NAME, multilingual.DIGEST)
    encoder, changes = open_taught(convert, base, threads, MULTILINGUAL_READER, add_scaled)
    return partial(_read_passage, encoder, cut_any(encoder), changes[ENDS])


def cut_english(encoder: LlamaCppEncoder) -> Cut:
    """How all-MiniLM-L6-v2 has words."""
    return lambda word: encoder.tokenize(word.strip(), with_ends=False)


def cut_any(encoder: LlamaCppEncoder) -> Cut:
    """How multilingual-e5-small has them: after a space they begin with one."""
    return lambda word: encoder.tokenize(unicodedata.normalize("NFKC", word), with_ends=False)


def split_pieces(text: str, cut: Cut) -> list[Piece]:
    pieces = []
    for found in _PIECE.finditer(text):
        is_apart = not text[found.start() - 1 : found.start()].strip()
        pieces.append((found.span(), cut(f" {found.group()}" if is_apart else found.group())))
    return pieces


def _read_passage(
    encoder: LlamaCppEncoder, cut: Cut, ends: Vectors, question: str, passage: str
) -> tuple[Readout, ...]:
    """What the reader makes of a passage, window by window; nothing of an empty one."""
    opening, *_, closing = encoder.tokenize("a")
    asked = [token for _, tokens in split_pieces(question, cut) for token in tokens]
    front = [opening, *asked[-QUESTION_TOKENS:], closing]

    def read_window(window: Sequence[Piece]) -> Readout:
        states = encoder.compute_states([*front, *(token for _, tokens in window for token in tokens), closing])
        odds: Vectors = states @ ends[:, :-1].T + ends[:, -1]
        firsts = len(front) + np.cumsum([0, *(len(tokens) for _, tokens in window[:-1])])
        best = np.maximum.reduceat(odds[:-1], firsts)
        return Readout(tuple(span for span, _ in window), best[:, 0], best[:, 1], float(odds[0].sum()))

    return tuple(map(read_window, _split(split_pieces(passage, cut), READ_TOKENS - len(front) - 1)))


def _split(pieces: Sequence[Piece], room: int) -> Iterator[Sequence[Piece]]:
    """Windows of at most so many tokens, each but the first with the end of the one before."""
    pieces = [piece for piece in pieces if 0 < len(piece[1]) <= room]
    ends = np.cumsum([0, *(len(tokens) for _, tokens in pieces)])  # tokens before each piece, and all
    first = last = 0
    while last < len(pieces):
        last = int(np.searchsorted(ends, ends[first] + room, side="right")) - 1
        yield pieces[first:last]
        first = max(first + 1, int(np.searchsorted(ends, ends[last] - OVERLAP)))
