"""Documents cut into passages as the track cuts them: windows of ten sentences that overlap by five.

Source: the passage segmentation of TREC iKAT (its guidelines): the first 10,000 characters, ten sentences, a stride of
five.
"""

from collections.abc import Callable, Iterator, Sequence

from schemas.records import Passage

CHARACTERS, SENTENCES, STRIDE = 10_000, 10, 5
SentenceSplitter = Callable[[str], Sequence[str]]  # a text's sentences


def segment(document: Passage, split: SentenceSplitter) -> Iterator[Passage]:
    """The passages of a document, `id:0`, `id:1`, ...; a short document is one."""
    sentences = split(document.text[:CHARACTERS])
    for number, start in enumerate(range(0, max(1, len(sentences) - STRIDE), STRIDE)):
        text = " ".join(sentences[start : start + SENTENCES])
        yield Passage(f"{document.id}:{number}", text, document.title, document.url)
