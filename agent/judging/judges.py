"""Opening a judge by its name: a model that is asked, or a bundled one whose measure stands in for a judge."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import prompts
from agent.evaluation.judge import open_judge
from agent.evaluation.nuggets import AssignedAnswer
from agent.evaluation.rubric import GradedAnswer
from agent.judging.judging import Judge, JudgeSettings
from agent.judging.model_judges import ASSIGN, GRADE, LabelStep, ask_for_labels
from agent.judging.rough_judges import SIMILAR_NUGGETS, SIMILAR_QUESTIONS, CutOffs, Strength, similarity
from indexes.storage.cache import Cache
from indexes.storage.directories import find_cache_directory
from indexes.storage.files import hash_file

SIMILARITY = "minilm"
ROUGH = "its verdicts are a rough proxy: they go by what a text is about, and miss a changed number or a negation"
SMALL = "its verdicts are a rough proxy: a model of less than a billion parameters guesses more than it judges"
# Of a query, an answer, and nuggets or questions: a verdict on each, None where there is none.
Label = Callable[[str, str, Sequence[str]], list[Any]]


@dataclass(frozen=True, slots=True)
class _Labeller:
    """What gives verdicts."""

    settings: JudgeSettings
    label: Label
    rough: str = ""


def open_nugget_judge(name: str) -> Judge[AssignedAnswer]:
    """A judge of nuggets. Raises what `open_model` does, and `UsageError` for none at all."""
    labeller = _open(name, ASSIGN, SIMILAR_NUGGETS)

    def judge(answer: AssignedAnswer) -> AssignedAnswer:
        texts = [nugget.text for nugget in answer.nuggets]
        labels = _label(labeller, answer.query, answer.text, texts, "not_support")
        nuggets = zip(answer.nuggets, labels, strict=True)
        return replace(answer, nuggets=tuple(replace(nugget, assignment=label) for nugget, label in nuggets))

    return Judge(labeller.settings, judge, labeller.rough)


def open_question_judge(name: str) -> Judge[GradedAnswer]:
    """A judge of questions. Raises what `open_model` does, and `UsageError` for none at all."""
    labeller = _open(name, GRADE, SIMILAR_QUESTIONS)

    def judge(answer: GradedAnswer) -> GradedAnswer:
        texts = [question.text for question in answer.questions]
        questions = zip(answer.questions, _label(labeller, answer.query, answer.text, texts, 0), strict=True)
        return replace(answer, questions=tuple(replace(question, grade=grade) for question, grade in questions))

    return Judge(labeller.settings, judge, labeller.rough)


def _label(labeller: _Labeller, query: str, answer: str, texts: Sequence[str], blank: Any) -> list[Any]:
    """The verdicts; an answer without a word says nothing, and nobody is asked."""
    return labeller.label(query, answer, texts) if answer.strip() and texts else [blank] * len(texts)


def _open(name: str, step: LabelStep, cut_offs: CutOffs) -> _Labeller:
    if name == SIMILARITY:
        return _open_similarity(cut_offs)
    llm = open_judge(name, Cache(find_cache_directory() / "replies.sqlite"))
    prompt = hash_file(prompts.file_of(step.prompt))
    settings = JudgeSettings(name, llm.digest, llm.settings, prompt, version("convagent"))
    rough = SMALL if llm.runs_here and not llm.writes_answers else ""
    return _Labeller(settings, lambda query, answer, texts: ask_for_labels(llm, step, query, answer, texts), rough)


def _open_similarity(cut_offs: CutOffs) -> _Labeller:
    from agent.models.embedding.registry import open_embedder
    from indexes.index_vectors import cache_vectors

    embedder = open_embedder(SIMILARITY)
    assert embedder is not None  # a name that is not `none` is opened or an error
    settings = JudgeSettings(SIMILARITY, embedder.digest, f"{cut_offs.strengths}", "", version("convagent"))
    strength: Strength = similarity(cache_vectors(embedder).embed)
    return _Labeller(settings, lambda _query, answer, texts: list(map(cut_offs.label, strength(answer, texts))), ROUGH)
