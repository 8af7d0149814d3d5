"""Opening a model by its name: a language model (`agent/models/protocol.py` says what one is) or an embedding model
(`indexes/ranking/vectors.py`)."""

import asyncio
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, lru_cache, partial
from pathlib import Path
from threading import Lock
from typing import TypeVar
from urllib.parse import urlsplit

from agent.models.bundled import find_adapters, find_bundled_gguf, open_from_cache, requantise
from agent.models.embedding import minilm, multilingual
from agent.models.hub import PREFIX, fetch
from agent.models.learned import QUERY_ENCODER_BASE, REWRITER_BASE
from agent.models.local.hardware import stop_spinning_threads, threads_to_use
from agent.models.protocol import LanguageModel, Listener, ignore_call
from agent.models.scripted import open_script
from agent.models.wrapper import CachingModel
from indexes.ranking.vectors import Embedder, Read, Readout, ReadTable, TableReadout
from indexes.storage.cache import Cache
from indexes.storage.files import hash_file
from schemas.addresses import is_loopback
from schemas.errors import ConvagentError, InvalidInputError, MissingError, UsageError

MODEL_CHOICES = (
    "smollm2, a path to a .gguf file, hf:user/repo[:quant], http://host:port/v1#name, none, scripted:FILE.json"
)
PASSAGES_KEPT = 64  # a passage is read once for a question
TURNS_KEPT = 8  # a turn is read once for its words and its vector
EMBEDDER_CHOICES = "minilm, multilingual, a path to a .gguf file, hf:user/repo[:quant], none"
MEMORY_CACHE_BYTES = 1 << 26  # of replies, where no cache is given
STAYS = "Nothing leaves this machine."
STAYS_WITH_SERVER = "What you ask goes to this server and no further."
SERVER_SCHEMES = ("http://", "https://")
Open = Callable[[Listener], LanguageModel]
Taught = TypeVar("Taught")
log = logging.getLogger("convagent")


def open_model(
    name: str,
    listen: Listener = ignore_call,
    *,
    threads: int | None = None,
    cache: Cache | None = None,
    concurrency: asyncio.Semaphore | None = None,
) -> LanguageModel:
    """The model of that name. `listen` is given every call that it takes; its replies are kept in `cache`.

    Models of one server that are handed the same `concurrency` share its limit.

    Raises `UsageError` for an unknown name, `MissingError` for a file, package or server that is not there,
    `InvalidInputError` for a file that is not a GGUF.
    """
    if name == "none":
        from agent.models.no_model import NoModel

        return NoModel(listen)
    if name.startswith("scripted:"):
        return open_script(Path(name.removeprefix("scripted:")), listen)
    if is_server_address(name):
        from agent.models.openai_server import open_server_model

        found: tuple[Open, str] = partial(open_server_model, name, concurrency=concurrency), ""
    else:
        found = find_gguf(name, threads)
    open, settings = found
    return CachingModel(open, listen, cache or Cache(None, MEMORY_CACHE_BYTES), settings)


def find_gguf(name: str, threads: int | None) -> tuple[Open, str]:
    """What opens the GGUF of that name, downloaded if it is on the hub, and what decides its replies beside weights
    and prompt. Errors: those of `open_model`."""
    stop_spinning_threads()
    from agent.models.local.llama_cpp import decoding_constants, open_gguf
    from agent.models.local.weights import describe_processor

    if name == "smollm2":
        adapters, shown_name, digest = find_adapters(), name, REWRITER_BASE
        find_file: Callable[..., Path] = partial(requantise, find_bundled_gguf(), digest)
    else:
        path, shown_name = find_gguf_file(name, "model", MODEL_CHOICES)
        adapters, digest, find_file = {}, hash_file(path), lambda **_: path

    def open(listen: Listener) -> LanguageModel:
        many = threads or threads_to_use()
        return open_from_cache(find_file, lambda file: open_gguf(file, shown_name, digest, many, listen, adapters))

    return open, f"{describe_processor()} {decoding_constants(adapters.values())}"


def find_gguf_file(name: str, kind: str, choices: str, find_on_hub: Callable[[str], Path] = fetch) -> tuple[Path, str]:
    """The GGUF of a name that is no bundled model's, and what runs call it. Errors: those of `open_model`."""
    if name.startswith(PREFIX):
        return find_on_hub(name), name
    if name.endswith(".gguf") or os.sep in name:
        path = Path(name).expanduser()
        if not path.is_file():
            remedy = f"Models that can be named: {MODEL_CHOICES}."
            raise MissingError("no such model file", where=str(path), remedy=remedy)
        with path.open("rb") as file:
            if file.read(4) != b"GGUF":
                remedy = "Models for llama.cpp are .gguf files."
                raise InvalidInputError("is no GGUF file", where=str(path), remedy=remedy)
        return path, path.name
    raise UsageError(f"unknown {kind} {name!r} (available: {choices})")


def open_embedder(name: str | None, *, threads: int | None = None) -> Embedder | None:
    """The embedding model of that name; None for `none`. Without a name, `minilm` where it is installed.

    Raises `UsageError` for an unknown name, `MissingError` for a file or package that is not there,
    `InvalidInputError` for a file that is not an embedding GGUF.
    """
    if name == "none":
        return None
    stop_spinning_threads()
    many = threads or threads_to_use()
    if name == "multilingual":
        found = multilingual.open_multilingual(multilingual.find_weights(), many)
        weights = minilm.find_weights() if minilm.WEIGHTS.find_file() else None
        read_table = _keep_tables(weights, many) if weights else None
        return replace(found, read=_keep_reading(weights, many), read_table=read_table)
    if name not in (None, "minilm"):
        from agent.models.embedding.llama_cpp import open_gguf

        path, shown_name = find_gguf_file(name, "embedding model", EMBEDDER_CHOICES)
        return open_gguf(path, name=shown_name, digest=hash_file(path), threads=many)
    try:
        return _open_minilm(minilm.find_weights(), many)
    except MissingError as error:
        if name is not None:
            raise
        log.info("Searching by words alone: %s (%s)", error.what, error.remedy)
        return None


def _open_minilm(weights: Path, threads: int) -> Embedder:
    """The bundled model, with what it was taught over these weights: each opened when it is first needed."""
    from agent.models.embedding.llama_cpp import open_gguf
    from agent.models.embedding.query_encoder import open_query_encoder, open_question_encoder

    embedder = open_from_cache(
        partial(minilm.convert_to_gguf, weights, QUERY_ENCODER_BASE),
        lambda path: open_gguf(path, name="minilm", digest=QUERY_ENCODER_BASE, threads=threads),
    )
    open_encoder = cache(partial(open_query_encoder, weights, threads))
    encode_turn = lru_cache(maxsize=TURNS_KEPT)(lambda text: open_encoder()(text))
    open_questions = partial(open_question_encoder, weights, threads)
    find_questions = _open_when_needed(open_questions, "Questions are embedded as passages are")
    return replace(
        embedder,
        encode_turn=encode_turn,
        embed_questions=lambda texts: (find_questions() or embedder.embed)(texts),
        read=_keep_reading(weights, threads),
        read_table=_keep_tables(weights, threads),
    )


def _keep_reading(weights: Path | None, threads: int) -> Read:
    """The reader over these weights, and that of other languages, where its own weights are there.

    One that cannot be opened reads nothing: answers are chosen as without it. Without the first, the other reads all.
    """
    from agent.models.embedding import reader

    without = "Answers are chosen without the reader"
    open_other = partial(reader.open_multilingual_reader, threads)
    is_there = multilingual.find_file()
    find_other = _open_when_needed(open_other, f"{without} of other languages") if is_there else lambda: None
    find_english = _open_when_needed(partial(reader.open_reader, weights, threads), without) if weights else find_other

    @lru_cache(maxsize=PASSAGES_KEPT)
    def read_once(question: str, passage: str, is_english: bool) -> Sequence[Readout]:
        read = find_english() if is_english else find_other()
        return read(question, passage) if read else ()

    return read_once


def _keep_tables(weights: Path, threads: int) -> ReadTable:
    """The reader of tables over these weights. It tells nothing where it cannot be opened: nothing is computed."""
    from agent.models.embedding.table_reader import open_table_reader

    find_reader = _open_when_needed(partial(open_table_reader, weights, threads), "Nothing is computed over tables")

    def read_table(question: str, blocks: Sequence[Sequence[str]]) -> TableReadout | None:
        read = find_reader()
        return read(question, blocks) if read else None

    return read_table


def open_readers(embedder: Embedder | None) -> None:
    """Open what reads questions, English and tables now, not at the first question."""
    if embedder and embedder.embed_questions:
        embedder.embed_questions(["A?"])
    if embedder and embedder.read:
        embedder.read("", "A.", True)
    if embedder and embedder.read_table:
        embedder.read_table("", [["A"], ["B"]])


def _open_when_needed(open_taught: Callable[[], Taught], without: str) -> Callable[[], Taught | None]:
    """Opens what was taught at the first call; None where it cannot be, which is said once."""
    lock = Lock()

    @cache
    def open_once() -> Taught | None:
        try:
            return open_taught()
        except ConvagentError as error:
            log.warning("%s: %s", without, error)
            return None

    def find() -> Taught | None:
        with lock:
            return open_once()

    return find


def is_server_address(name: str) -> bool:
    return name.startswith(SERVER_SCHEMES)


def describe_destination(model: str, embedder: str | None, *, is_shared: bool = False) -> str:
    """Where questions, passages and statements go, for the person who asks; `is_shared`: perhaps elsewhere."""
    hosts = [_find_host(name) for name in (model, embedder or "") if is_server_address(name)]
    if not hosts:
        return STAYS_WITH_SERVER if is_shared else STAYS
    return f"Questions, passages and statements go to {' and '.join(dict.fromkeys(hosts))}."


def _find_host(address: str) -> str:
    """The host of an address, without a user or password; whether it is this machine."""
    try:
        url = urlsplit(address)
        host, port = url.hostname or "", url.port
    except ValueError:
        return "the model's server"
    named = f"{host}:{port}" if port else host
    return f"the server {named} on this machine" if is_loopback(host) else f"the server {named}, over the network"
