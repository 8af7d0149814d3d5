"""Opening an embedding model by its name. `indexes/ranking/vectors.py` says what one is."""

import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path

from indexes.ranking.vectors import Embedder, Read, Readout
from schemas.errors import ConvagentError, MissingError

PASSAGES_KEPT = 64  # a passage is read once for a question
TURNS_KEPT = 8  # a turn is read once for its words and its vector
EMBEDDER_CHOICES = "minilm, a path to a .gguf file, hf:user/repo[:quant], none"
log = logging.getLogger("convagent")


def open_embedder(name: str | None, *, threads: int | None = None) -> Embedder | None:
    """The embedding model of that name; None for `none`. Without a name, `minilm` where it is installed.

    Raises `UsageError` for an unknown name, `MissingError` for a file or package that is not there,
    `InvalidInputError` for a file that is not an embedding GGUF.
    """
    from agent.models.local.hardware import stop_spinning_threads, threads_to_use
    from agent.models.registry import find_gguf_file
    from indexes.storage.files import hash_file

    if name == "none":
        return None
    stop_spinning_threads()
    if name in (None, "minilm"):
        from agent.models.embedding.minilm import find_bundled_weights

        try:
            return _open_minilm(find_bundled_weights(), threads or threads_to_use())
        except MissingError as error:
            if name is not None:
                raise
            log.info("Searching by words alone: %s (%s)", error.what, error.remedy)
            return None
    path, shown_name = find_gguf_file(name, "embedding model", EMBEDDER_CHOICES)
    from agent.models.embedding.llama_cpp import open_gguf

    return open_gguf(path, name=shown_name, digest=hash_file(path), threads=threads or threads_to_use())


def _open_minilm(weights: Path, threads: int) -> Embedder:
    """The bundled model, with what it was taught over these weights: each opened when it is first needed."""
    from agent.models.bundled import open_from_cache
    from agent.models.embedding.llama_cpp import open_gguf
    from agent.models.embedding.minilm import convert_to_gguf
    from agent.models.embedding.query_encoder import open_query_encoder
    from agent.models.embedding.reader import open_reader
    from agent.models.learned import QUERY_ENCODER_BASE as DIGEST

    embedder = open_from_cache(
        partial(convert_to_gguf, weights, DIGEST),
        lambda path: open_gguf(path, name="minilm", digest=DIGEST, threads=threads),
    )
    open_encoder = cache(partial(open_query_encoder, weights, DIGEST, threads))

    @cache
    def find_reader() -> Read | None:
        """None where it cannot be opened, which is said once: answers are chosen as without it."""
        try:
            return open_reader(weights, DIGEST, threads).read
        except ConvagentError as error:
            log.warning("Answers are chosen without the reader: %s", error)
            return None

    @lru_cache(maxsize=PASSAGES_KEPT)
    def read_once(question: str, passage: str) -> Sequence[Readout]:
        read = find_reader()
        return read(question, passage) if read else ()

    encode_turn = lru_cache(maxsize=TURNS_KEPT)(lambda text: open_encoder().encode(text))
    return replace(embedder, encode_turn=encode_turn, read=read_once)
