"""The models of a conversation, which are opened in a thread of its own while its documents are read."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from agent.chat.session import OpenedModel, open_and_forward
from agent.models.embedding.index_vectors import cache_vectors
from agent.models.embedding.registry import open_embedder
from agent.models.hub import PREFIX
from indexes.ranking.vectors import Embedder
from indexes.text.sentences import load_tokenizer

Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class OpeningModels:
    """What waits for the models until they are there. Errors: those of `open_embedder` and `open_model`."""

    find_embedder: Callable[[], Embedder | None]
    find_model: Callable[[], OpenedModel]


def begin_to_open_models(model: str, embedder: str | None, *, keep_vectors: bool) -> OpeningModels:
    """Open both, one after the other; with `keep_vectors` those of passages are kept among the user's caches.

    One from the hub is opened when it is waited for: its download shows progress, as reading does.
    """
    opener = ThreadPoolExecutor(1, "opening")

    def begin(name: str | None, open: Callable[[], Opened]) -> Callable[[], Opened]:
        return cache(open) if name and name.startswith(PREFIX) else opener.submit(open).result

    opening = OpeningModels(
        begin(embedder, lambda: _open_caching_embedder(embedder, keep_vectors)),
        begin(model, lambda: open_and_forward(model)),
    )
    opener.submit(load_tokenizer)  # which the first answer needs, and a folder that did not change does not
    opener.shutdown(wait=False)
    return opening


def _open_caching_embedder(name: str | None, keep_vectors: bool) -> Embedder | None:
    embedder = open_embedder(name)
    return cache_vectors(embedder) if embedder and keep_vectors else embedder
