"""No model: nothing is written, and candidates are judged by the words they share with the conversation.

A real baseline, quick and free of any download, and what every model must beat.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.models.protocol import Conversation, LanguageModel, Listener, Reply, Task, TextListener
from indexes.ranking.rankings import score_by_bm25
from schemas.records import Call

NEWEST_WEIGHT = 3  # times as much as earlier messages the last one counts
HISTORY_MESSAGES = 4  # that count beside the last


@dataclass(slots=True)
class NoModel(LanguageModel):
    """Gives the empty reply to whatever it is asked, and scores candidates by BM25."""

    listen: Listener
    name: str = "none"
    digest: str = ""
    settings: str = f"{(NEWEST_WEIGHT, HISTORY_MESSAGES)}"
    generates_text: bool = False

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        """The reply type's default: every reply that the flow asks for may be empty."""
        return reply()

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        """BM25 of each candidate for the words of the conversation: no likelihood, but ordered like one."""
        if not conversation.messages:
            return [0.0] * len(candidates)
        *earlier, last = [message.text for message in conversation.messages[-1 - HISTORY_MESSAGES :]]
        words = " ".join([*earlier, *[last] * NEWEST_WEIGHT])
        scores = score_by_bm25(words, candidates)
        self.listen(Call(task.name, "score", words, candidates=tuple(candidates), scores=tuple(scores)))
        return scores
