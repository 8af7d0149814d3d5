"""Sentences and phrases, and the two official ways to measure a response, both of which hold in every edition."""

import re
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from indexes.text.segmentation import segment
from schemas.records import Passage

LONGEST_WORD = re.compile(r"\S{1000}")  # spaCy's time grows with the square of a word's length: minutes for 100,000
SPACY_BLOCK = re.compile(
    r"\S.{0,1000000}(?=\s|$)"
)  # as much as spaCy is given at a time: it refuses texts of ten million


@cache
def load_tokenizer() -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.max_length = 10_000_000
    nlp.add_pipe("sentencizer")
    return nlp


@lru_cache(maxsize=4096)  # the passages of a turn are often those of the turn before
def split_sentences(text: str) -> tuple[str, ...]:
    """Sentences by spaCy's rules, white space folded, words of more than 1,000 characters cut."""
    folded = " ".join(text.split())
    blocks = SPACY_BLOCK.findall(cut_long_words(folded))
    return tuple(
        sentence for block in blocks for span in load_tokenizer()(block).sents if (sentence := span.text.strip())
    )


def cut_long_words(text: str) -> str:
    return LONGEST_WORD.sub(r"\g<0> ", text)


def segment_document(document: Passage) -> Iterator[Passage]:
    """The passages of a document, as the track cuts them."""
    return segment(document, split_sentences)


def extract_phrases(text: str, longest: int = 3) -> list[str]:
    """Runs of words between stop words and punctuation, in order; of a long run its beginning and its end."""
    runs: list[list[str]] = [[]]
    for token in load_tokenizer().tokenizer(cut_long_words(" ".join(text.split()))):
        if token.is_stop or not token.text[0].isalnum() or (len(token.text) < 3 and not token.is_upper):
            runs.append([])
        else:
            runs[-1].append(token.text)
    cut = [[run] if len(run) <= longest else [run[:longest], run[-longest:]] for run in runs if run]
    return [" ".join(words) for parts in cut for words in parts]
