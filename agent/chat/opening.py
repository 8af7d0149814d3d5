"""The models of a conversation, which are opened in a thread of its own while its documents are read."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from agent.chat.session import CallForwarder, OpenedModel
from agent.models.cancellation import find_token
from agent.models.embedding.registry import open_embedder
from agent.models.hub import PREFIX
from agent.models.protocol import LanguageModel
from agent.models.registry import open_model
from agent.models.wrapper import ModelWrapper
from indexes.ranking.index_vectors import cache_vectors
from indexes.ranking.vectors import Embedder
from indexes.text.sentences import load_tokenizer

POLL_SECONDS = 0.1  # between two looks at whether the answer that waits is still wanted
Opened = TypeVar("Opened")


@dataclass(frozen=True, slots=True)
class OpeningModels:
    """What waits for the models until they are there. Errors: those of `open_embedder` and `open_model`."""

    find_embedder: Callable[[], Embedder | None]
    find_model: Callable[[], OpenedModel]
    answering: "Future[LanguageModel]"  # never done for a model from the hub
    calls: CallForwarder

    def find_model_later(self) -> OpenedModel:
        """The model, for somebody who is not to wait for it now: whoever asks it waits, and is told why it failed."""
        return OpenedModel(ModelToCome(self.answering), self.calls)

    def has_failed(self) -> bool:
        """Whether it is known that the model cannot be opened."""
        return self.answering.done() and self.answering.exception() is not None


class ModelToCome(ModelWrapper):
    """A model that is being opened, which an answer waits for as long as it is wanted. Raises what opening raised."""

    def __init__(self, opening: "Future[LanguageModel]") -> None:
        self._opening = opening

    @property
    def _llm(self) -> LanguageModel:
        token = find_token()
        while not self._opening.done():
            token.pause(POLL_SECONDS)
        return self._opening.result()


def begin_to_open_models(model: str, embedder: str | None, *, keep_vectors: bool) -> OpeningModels:
    """Open both, one after the other; with `keep_vectors` those of passages are kept among the user's caches.

    One from the hub is opened when it is waited for: its download shows progress, as reading does. The thread is a
    daemon: a server that says nothing does not keep the process alive.
    """
    calls, jobs = CallForwarder(), list[Callable[[], object]]()

    def begin(name: str | None, future: "Future[Opened]", open: Callable[[], Opened]) -> Callable[[], Opened]:
        if name and name.startswith(PREFIX):
            return cache(open)
        jobs.append(lambda: _settle(future, open))
        return future.result

    answering = Future[LanguageModel]()
    find_embedder = begin(embedder, Future(), lambda: _open_caching_embedder(embedder, keep_vectors))
    find_llm = begin(model, answering, lambda: open_model(model, calls))
    # The first answer needs it, and a folder that did not change does not; where it fails, that answer tries again.
    jobs.append(lambda: _settle(Future(), load_tokenizer))
    threading.Thread(target=lambda: [job() for job in jobs], name="opening", daemon=True).start()
    return OpeningModels(find_embedder, lambda: OpenedModel(find_llm(), calls), answering, calls)


def _settle(future: "Future[Opened]", open: Callable[[], Opened]) -> None:
    """Let the future have what was opened, or why it cannot be."""
    try:
        future.set_result(open())
    except BaseException as error:  # raised again for whoever waits
        future.set_exception(error)


def _open_caching_embedder(name: str | None, keep_vectors: bool) -> Embedder | None:
    embedder = open_embedder(name)
    return cache_vectors(embedder) if embedder and keep_vectors else embedder
