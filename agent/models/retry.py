"""A model that is asked again where its reply cannot be used."""

from dataclasses import replace

from agent.models.protocol import Conversation, Reply, Task, TextListener
from agent.models.wrapper import ModelWrapper
from schemas.errors import ModelReplyError

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
