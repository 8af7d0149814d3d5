"""A model that passes everything on to another: the base of those that add something."""

from collections.abc import Sequence
from dataclasses import replace

from agent.models.protocol import Conversation, LanguageModel, Reply, Task, TextListener
from schemas.errors import ModelReplyError


class ModelWrapper:
    """Does what the model inside it does."""

    def __init__(self, llm: LanguageModel) -> None:
        self._inside = llm

    @property
    def _llm(self) -> LanguageModel:
        return self._inside

    @property
    def name(self) -> str:
        return self._llm.name

    @property
    def digest(self) -> str:
        return self._llm.digest

    @property
    def settings(self) -> str:
        return self._llm.settings

    @property
    def runs_here(self) -> bool:
        return self._llm.runs_here

    @property
    def generates_text(self) -> bool:
        return self._llm.generates_text

    @property
    def writes_answers(self) -> bool:
        return self._llm.writes_answers

    @property
    def has_likelihoods(self) -> bool:
        return self._llm.has_likelihoods

    @property
    def adapters(self) -> frozenset[str]:
        return self._llm.adapters

    def fits(self, conversation: Conversation, task: Task) -> bool:
        return self._llm.fits(conversation, task)

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        return self._llm.ask(conversation, task, reply, on_text)

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        return self._llm.score(conversation, task, candidates)

    def close(self) -> None:
        self._llm.close()


MAX_ATTEMPTS = 3
RETRY_SEED_STEP = 1 << 30  # what a further attempt adds to the seed; those of a run are below


class RetryingModel(ModelWrapper):
    """Asks again where a reply is not of the wanted form, with other seeds that are always the same."""

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        for attempt in range(1, MAX_ATTEMPTS):
            try:
                return self._llm.ask(conversation, task, reply, on_text)
            except ModelReplyError:
                task = replace(task, seed=(task.seed or 0) + attempt * RETRY_SEED_STEP)
        return self._llm.ask(conversation, task, reply, on_text)
