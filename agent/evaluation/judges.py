"""Judges of answers: a model that is asked, or the bundled embedding model as a rough proxy for one.

A model is asked about ten nuggets at a time, as by the Nuggetizer. Where it gives no verdict (too much to
read, or no reply of the wanted form) there is none. The embedding model knows what an answer is about, and not whether
it says the contrary; docs/evaluation.md has what was measured. The cut-offs between its verdicts are from half of
ClapNQ's questions (`python -m benchmarks.rough_judges`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from msgspec.structs import replace

import prompts
from agent.evaluation.nuggets import JudgedAnswer, Verdict
from agent.models.protocol import Conversation, LanguageModel, Task
from agent.models.registry import MODEL_CHOICES, open_model
from indexes.ranking.vectors import Embed
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from indexes.text.units import split_units
from schemas.errors import ModelReplyError, UsageError
from schemas.records import Message, Passage

SIMILARITY = "minilm"
ROUGH = "its verdicts are a rough proxy: they go by what a text is about, and miss a changed number or a negation"
SMALL = "its verdicts are a rough proxy: a model of less than a billion parameters guesses more than it judges"
BATCH = 10  # nuggets a prompt
REPLY_TOKENS, VERDICT_TOKENS = 16, 12  # around the verdicts, and of each


VERDICTS: tuple[Verdict, ...] = ("support", "partial_support", "not_support")  # the last is that of saying nothing
CUT_OFFS = 0.75, 0.65  # the cosines from which on a verdict is given; below both it is the last


@dataclass(frozen=True, slots=True)
class Judge:
    """Gives an answer its verdicts."""

    find_verdicts: Callable[[str, str, Sequence[str]], list[Verdict]]  # of a query, an answer, and nuggets
    rough: str = ""  # why its verdicts are a rough proxy for a judge's; empty for a judge

    def judge(self, answer: JudgedAnswer) -> JudgedAnswer:
        """The answer with its verdicts; one without a word says nothing, and nobody is asked."""
        texts = [nugget.text for nugget in answer.nuggets]
        says_something = answer.text.strip() and texts
        verdicts = (
            self.find_verdicts(answer.query, answer.text, texts) if says_something else [VERDICTS[-1]] * len(texts)
        )
        pairs = zip(answer.nuggets, verdicts, strict=True)
        return replace(answer, nuggets=tuple(replace(nugget, verdict=verdict) for nugget, verdict in pairs))


def open_nugget_judge(name: str) -> Judge:
    """A judge by its name; what it replies is cached. Raises what `open_model` does, and `UsageError` for none."""
    if name == SIMILARITY:
        return _open_similarity()
    llm = open_model(name, cache=Cache(find_cache_directory() / "replies.sqlite"))
    if not llm.generates_text:
        raise UsageError("a judge has to be a model", remedy=f"Models: {MODEL_CHOICES}.")
    rough = SMALL if llm.runs_here and not llm.writes_answers else ""
    return Judge(lambda query, answer, texts: _ask_all(llm, query, answer, texts), rough)


def _ask_all(llm: LanguageModel, query: str, answer: str, texts: Sequence[str]) -> list[Verdict]:
    """A verdict on each text, None where there is none: too much to read, or no such reply."""
    verdicts: list[Verdict] = []
    conversation = Conversation("You check answers.", (Message("user", ""),))
    for start in range(0, len(texts), BATCH):
        batch = texts[start : start + BATCH]
        prompt = prompts.render("assign", query=query, answer=answer, nuggets=batch)
        tokens = REPLY_TOKENS + VERDICT_TOKENS * len(batch)
        task = Task("assign", prompt.instruction, prompt.opening, max_tokens=tokens)
        try:
            fits = llm.fits(conversation, task)
            verdicts += llm.ask(conversation, task, _reply_type(len(batch))).labels if fits else [None] * len(batch)
        except ModelReplyError:
            verdicts += [None] * len(batch)
    return verdicts


@cache
def _reply_type(count: int) -> Any:
    """What a model replies: as many labels as there are nuggets."""
    label = Literal["support", "partial_support", "not_support"]
    labels: Any = Annotated[list[label], Meta(min_length=count, max_length=count)]
    return msgspec.defstruct("Labels", [("labels", labels)])


def _open_similarity() -> Judge:
    from agent.models.embedding.registry import open_embedder
    from indexes.index_vectors import cache_vectors

    embedder = open_embedder(SIMILARITY)
    assert embedder is not None  # a name that is not `none` is opened or an error
    embed = cache_vectors(embedder).embed

    def find_verdicts(_query: str, answer: str, texts: Sequence[str]) -> list[Verdict]:
        cosines = measure_similarity(embed, answer, texts)
        return [VERDICTS[sum(cosine < least for least in CUT_OFFS)] for cosine in cosines]

    return Judge(find_verdicts, ROUGH)


def measure_similarity(embed: Embed, answer: str, texts: Sequence[str]) -> list[float]:
    """The cosine of each text with what is nearest to it in the answer: a sentence, two of them, or all."""
    sentences = [unit.text for unit in split_units(Passage("", answer))]
    pairs = (" ".join(sentences[start : start + 2]) for start in range(len(sentences) - 1))
    windows = list(dict.fromkeys((*sentences, *pairs, answer)))
    return [float(cosine) for cosine in (embed(texts) @ embed(windows).T).max(axis=1)]
