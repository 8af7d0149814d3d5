"""Cutting documents into passages as the track does: windows of ten sentences that overlap by five.

Source: the passage segmentation of TREC iKAT (its guidelines): the first 10,000 characters, ten sentences, a stride of
five.
"""

from collections.abc import Callable, Iterator, Sequence

from schemas.records import Passage

MAX_CHARACTERS, WINDOW_SENTENCES, STRIDE = 10_000, 10, 5
SentenceSplitter = Callable[[str], Sequence[str]]  # a text's sentences


def cut_into_windows(document: Passage, split: SentenceSplitter) -> Iterator[Passage]:
    """The passages of a document: `id:0`, `id:1`, ... A short document is one passage."""
    sentences = split(document.text[:MAX_CHARACTERS])
    for number, start in enumerate(range(0, max(1, len(sentences) - STRIDE), STRIDE)):
        text = " ".join(sentences[start : start + WINDOW_SENTENCES])
        yield Passage(f"{document.id}:{number}", text, document.title, document.url)
