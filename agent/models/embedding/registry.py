"""Opening an embedding model by its name. `indexes/ranking/vectors.py` says what one is."""

import logging
from dataclasses import replace
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from indexes.ranking.vectors import Embedder, EncodeTurn, Read, Readout
from schemas.errors import ConvagentError, MissingError

PASSAGES_KEPT = 64  # a passage is read once for a question
TURNS_KEPT = 8  # a turn is read once for its words and its vector
EMBEDDER_CHOICES = "minilm, a path to a .gguf file, hf:user/repo[:quant], none"
if TYPE_CHECKING:
    from agent.models.embedding.llama_cpp import LlamaCppEmbedder

log = logging.getLogger("convagent")


def open_embedder(name: str | None, *, threads: int | None = None) -> Embedder | None:
    """The embedding model of that name; None for `none`. Without a name, `minilm` where it is installed.

    Raises `UsageError` for an unknown name, `MissingError` for a file or package that is not there,
    `InvalidInputError` for a file that is not an embedding GGUF.
    """
    from agent.models.bundled import open_from_cache
    from agent.models.registry import find_gguf_file
    from indexes.storage.files import hash_file

    if name == "none":
        return None
    if name in (None, "minilm"):
        from agent.models.embedding.minilm import convert_to_gguf, find_bundled_weights
        from agent.models.learned import QUERY_ENCODER_BASE

        try:
            source = find_bundled_weights()
        except MissingError as error:
            if name is not None:
                raise
            log.info("Searching by words alone: %s (%s)", error.what, error.remedy)
            return None
        digest = QUERY_ENCODER_BASE
        embedder = open_from_cache(
            lambda anew: convert_to_gguf(source, digest, anew=anew),
            lambda path: _open_gguf(path, "minilm", digest, threads),
        )
        encode_turn, read = _prepare_query_encoder(source, digest, threads), _prepare_reader(source, digest, threads)
        return replace(embedder, encode_turn=encode_turn, read=read)
    path, shown_name = find_gguf_file(name, "embedding model", EMBEDDER_CHOICES)
    return _open_gguf(path, shown_name, hash_file(path), threads)


def _prepare_query_encoder(source: Path, digest: str, threads: int | None) -> EncodeTurn:
    """The encoder that was taught conversations, over these weights, opened when the first turn is read."""
    from agent.models.embedding.query_encoder import open_query_encoder
    from agent.models.local.hardware import threads_to_use

    open_once = cache(lambda: open_query_encoder(source, digest, threads or threads_to_use()))
    return lru_cache(maxsize=TURNS_KEPT)(lambda text: open_once().encode(text))


def _prepare_reader(source: Path, digest: str, threads: int | None) -> Read:
    """The reader over these weights, opened with the first passage; where it cannot be, that is said, and it finds
    nothing."""
    from agent.models.embedding.reader import open_reader
    from agent.models.local.hardware import threads_to_use

    @cache
    def open_once() -> Read | None:
        try:
            return open_reader(source, digest, threads or threads_to_use()).read
        except ConvagentError as error:
            log.warning("Answers are chosen without the reader: %s", error)
            return None

    @lru_cache(maxsize=PASSAGES_KEPT)
    def read_once(question: str, passage: str) -> tuple[Readout, ...]:
        read = open_once()
        return tuple(read(question, passage)) if read else ()

    return read_once


def _open_gguf(path: Path, name: str, digest: str, threads: int | None) -> "LlamaCppEmbedder":
    from agent.models.local.hardware import stop_spinning_threads, threads_to_use

    stop_spinning_threads()
    from agent.models.embedding.llama_cpp import open_gguf

    return open_gguf(path, name=name, digest=digest, threads=threads or threads_to_use())
