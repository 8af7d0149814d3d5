"""BM25 for a few texts that are in no index: statements, sentences, phrases."""

from collections.abc import Sequence

from indexes.text.analysis import ENGLISH, extract_stems
from indexes.text.languages import stem_query


def score_by_bm25(query: str, texts: Sequence[str], languages: Sequence[str] = ()) -> list[float]:
    """The BM25+ score of each text for a query, shifted so that a text without any of its words scores 0.

    `languages` are those of the texts; without them, all are in English.
    """
    from rank_bm25 import BM25Plus

    languages = languages or [ENGLISH] * len(texts)
    documents = [extract_stems(text, language) for text, language in zip(texts, languages, strict=True)]
    known = {word for document in documents for word in document}
    words = [word for word in stem_query(query, sorted(set(languages))) if word in known]
    if not words:
        return [0.0] * len(texts)
    *scores, empty_score = BM25Plus([*documents, []]).get_scores(words)
    return [float(score - empty_score) for score in scores]
