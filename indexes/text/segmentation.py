"""Cutting documents into passages as the track does: windows of ten sentences that overlap by five.

Source: the passage segmentation of TREC iKAT (its guidelines, and `spacy_passage_chunker.py` of the organisers'
repository): the first 10,000 characters, ten sentences, a stride of five. Sentences are found by rule.
"""

from collections.abc import Iterator

from indexes.text.sentences import split_sentences
from schemas.records import Passage

MAX_CHARACTERS, WINDOW_SENTENCES, STRIDE = 10_000, 10, 5
SEGMENTATION = f"windows of {WINDOW_SENTENCES} sentences, a stride of {STRIDE}"  # what an index says of it


def cut_into_windows(document: Passage) -> Iterator[Passage]:
    """The passages of a document: `id:0`, `id:1`, ... A short document is one passage."""
    sentences = split_sentences(document.text[:MAX_CHARACTERS])
    for number, start in enumerate(range(0, max(1, len(sentences) - STRIDE), STRIDE)):
        text = " ".join(sentences[start : start + WINDOW_SENTENCES])
        yield Passage(f"{document.id}:{number}", text, document.title, document.url)
