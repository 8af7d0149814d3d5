"""BM25 for a few texts that are in no index: statements, sentences, phrases."""

from collections.abc import Sequence

from indexes.text.analysis import extract_stems


def score_by_bm25(query: str, texts: Sequence[str]) -> list[float]:
    """The BM25+ score of each text for a query, shifted so that a text without any of its words scores 0."""
    from rank_bm25 import BM25Plus

    documents = [extract_stems(text) for text in texts]
    known = {word for document in documents for word in document}
    words = [word for word in extract_stems(query) if word in known]
    if not words:
        return [0.0] * len(texts)
    *scores, empty_score = BM25Plus([*documents, []]).get_scores(words)
    return [float(score - empty_score) for score in scores]
