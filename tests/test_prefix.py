"""How much a turn may read: every prompt of a turn begins with the conversation, which is read once."""

from collections.abc import Iterator, Sequence
from typing import cast

from agent.flow import Tools, answer_topic
from agent.models.local.chat_template import CHATML, ChatTemplate
from agent.models.local.kv_cache import BLOCK
from agent.models.no_model import NoModel
from agent.models.protocol import Conversation, Reply, Task, TextListener, ignore_call
from agent.models.registry import open_model
from agent.models.wrapper import ModelWrapper
from agent.tracks.topic_files import read_topics
from agent.turn.retrieval import Searcher
from indexes.passage_index import PassageIndex
from indexes.ranking.hybrid import open_retriever
from schemas.records import Call, Message, Plan, Topic, Turn
from tests.conftest import EXAMPLES, needs_model

SAID = "It keeps for some days in a tin and longer where it is cool and dry."


class Counting(ModelWrapper):
    """Counts in words what a model would read, as `KvCache` does: what two prompts share is free, by whole blocks."""

    def __init__(self) -> None:
        super().__init__(NoModel(ignore_call))
        self.before: list[str] = []
        self.prompts: list[int] = []  # words of each
        self.read: list[int] = []

    def ask(
        self, conversation: Conversation, task: Task, reply: type[Reply], on_text: TextListener | None = None
    ) -> Reply:
        self._reads(conversation, task)
        return cast("Reply", SAID) if reply is str else reply()

    def score(self, conversation: Conversation, task: Task, candidates: Sequence[str]) -> list[float]:
        self._reads(conversation, task, sum(len(text.split()) for text in candidates))
        return super().score(conversation, task, candidates)

    def _reads(self, conversation: Conversation, task: Task, more: int = 0) -> None:
        prompt = "".join(piece.text for piece in ChatTemplate(CHATML).render(conversation, task)).split()
        shared = next((n for n, (a, b) in enumerate(zip(self.before, prompt, strict=False)) if a != b), None)
        kept = min(len(self.before), len(prompt) - 1) if shared is None else min(shared, len(prompt) - 1)
        self.prompts.append(len(prompt) + more)
        self.read.append(len(prompt) - kept // BLOCK * BLOCK + more)
        self.before = prompt


def long_conversation(turns: int) -> Topic:
    """One in which everything that was said is long: what is read again would show."""

    def history(n: int) -> Iterator[Message]:
        for k in range(n):
            yield Message("user", f"Question {k}, " + f"which is long, {k} " * 20)
            yield Message("assistant", f"Answer {k}. " + f"Rice bread {k} keeps. " * 40)

    said = (Turn(f"1_{n}", f"And how long does loaf {n} keep?", tuple(history(n))) for n in range(turns))
    return Topic("1", (), tuple(said))


def answered(topic: Topic, index: PassageIndex, model: Counting) -> Counting:
    plan = Plan(k=10, query=("context", "hyde", "previous"))  # every step that a model has
    searcher = Searcher.over(open_retriever(index, None), plan)
    list(answer_topic(topic, Tools(model, searcher.search, searcher.read, plan)))
    return model


def test_a_turn_reads_what_is_new_and_its_tasks(example_index: PassageIndex) -> None:
    model = answered(long_conversation(12), example_index, Counting())
    conversation = model.prompts[-1]
    assert sum(model.prompts) > 10 * conversation  # what prompts that share nothing would read
    assert sum(model.read) < 3 * conversation


@needs_model
def test_the_embedded_model_reads_no_more_than_that(example_index: PassageIndex) -> None:
    calls: list[Call] = []
    topic = read_topics(EXAMPLES / "topics.json").topics[0]
    searcher = Searcher.over(open_retriever(example_index, None), Plan(k=10))
    model = open_model("smollm2", calls.append)
    list(answer_topic(topic, Tools(model, searcher.search, searcher.read, Plan(k=10))))
    model.close()
    assert sum(call.tokens_read for call in calls) / len(topic.turns) < 330
