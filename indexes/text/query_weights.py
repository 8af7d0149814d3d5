"""What the stems of a query weigh: each text of it has a weight, and a stem that occurs twice counts twice."""

from collections.abc import Iterable, Sequence

from indexes.text.analysis import count_query_stems, extract_stems
from indexes.text.languages import find_question_language

WeightedText = tuple[str, float]  # a text to search with, and the weight of each of its words


def weight_stems(parts: Iterable[WeightedText]) -> dict[str, float]:
    """The weight of each stem of some texts. A stem that occurs twice counts twice."""
    weights: dict[str, float] = {}
    for text, weight in parts:
        for stem in extract_stems(text):
            weights[stem] = weights.get(stem, 0.0) + weight
    return weights


def weight_foreign_stems(parts: Iterable[WeightedText], languages: Sequence[str]) -> dict[str, float]:
    """The weight of each stem that a word of some texts has in one of the languages."""
    weights: dict[str, float] = {}
    for text, weight in parts:
        for stem, count in count_query_stems(text, languages, find_question_language(text, tuple(languages))).items():
            weights[stem] = weights.get(stem, 0.0) + count * weight
    return weights
