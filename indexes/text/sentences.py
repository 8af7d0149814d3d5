"""Splitting text into sentences, passages and phrases with spaCy."""

import re
import threading
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from schemas.records import Passage

LONG_WORD = re.compile(r"\S{1000}")  # spaCy's time grows with its square: minutes for 100,000 characters
SPACY_BLOCK = re.compile(r"\S.{0,1000000}(?=\s|$)")  # a part of a text for spaCy, which refuses ten million characters


_LOADING = threading.Lock()  # spaCy cannot be imported by two threads at once


def load_tokenizer() -> Any:
    """spaCy's English tokenizer, with rules that find the ends of sentences."""
    with _LOADING:
        return _load_once()


@cache
def _load_once() -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.max_length = 10_000_000
    nlp.add_pipe("sentencizer")
    return nlp


@lru_cache(maxsize=4096)  # a turn often has the passages of the turn before
def split_sentences(text: str) -> tuple[str, ...]:
    """A text's sentences by spaCy's rules. White space is folded, and words of more than 1,000 characters are cut."""
    folded = " ".join(text.split())
    blocks = SPACY_BLOCK.findall(cut_long_words(folded))
    return tuple(
        sentence for block in blocks for span in load_tokenizer()(block).sents if (sentence := span.text.strip())
    )


def cut_long_words(text: str) -> str:
    return LONG_WORD.sub(r"\g<0> ", text)


def extract_phrases(text: str, max_words: int = 3) -> list[str]:
    """The runs of words between stop words and punctuation, in order. A long run becomes its beginning and its end."""
    runs: list[list[str]] = [[]]
    for token in load_tokenizer().tokenizer(cut_long_words(" ".join(text.split()))):
        if token.is_stop or not token.text[0].isalnum() or (len(token.text) < 3 and not token.is_upper):
            runs.append([])
        else:
            runs[-1].append(token.text)
    cut = [[run] if len(run) <= max_words else [run[:max_words], run[-max_words:]] for run in runs if run]
    return [" ".join(words) for parts in cut for words in parts]


MAX_CHARACTERS, WINDOW_SENTENCES, STRIDE = 10_000, 10, 5
SEGMENTATION = f"windows of {WINDOW_SENTENCES} sentences, a stride of {STRIDE}"  # what an index says of it


def cut_into_windows(document: Passage) -> Iterator[Passage]:
    """The passages of a document as the track cuts it: `id:0`, `id:1`, ... A short document is one passage.

    Source: the passage segmentation of TREC iKAT (its guidelines, and `spacy_passage_chunker.py` of the organisers'
    repository): the first 10,000 characters, windows of ten sentences that overlap by five.
    """
    sentences = split_sentences(document.text[:MAX_CHARACTERS])
    for number, start in enumerate(range(0, max(1, len(sentences) - STRIDE), STRIDE)):
        text = " ".join(sentences[start : start + WINDOW_SENTENCES])
        yield Passage(f"{document.id}:{number}", text, document.title, document.url)
