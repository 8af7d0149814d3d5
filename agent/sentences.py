"""Sentences and phrases, and the two official ways to measure a response, both of which hold in every edition."""

import re
import unicodedata
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import Any

from indexes.segments import segments
from schemas.records import Passage

MAX_TOKENS = 250
LONGEST_WORD = re.compile(r"\S{1000}")  # spaCy's time grows with the square of a word's length: minutes for 100,000
BLOCK = re.compile(r"\S.{0,1000000}(?=\s|$)")  # as much as spaCy is given at a time: it refuses texts of ten million


@cache
def _nlp() -> Any:
    import spacy

    nlp = spacy.blank("en")
    nlp.max_length = 10_000_000
    nlp.add_pipe("sentencizer")
    return nlp


@lru_cache(maxsize=4096)  # the passages of a turn are often those of the turn before
def split_sentences(text: str) -> tuple[str, ...]:
    """Sentences by spaCy's rules, white space folded, words of more than 1,000 characters cut."""
    folded = " ".join(text.split())
    blocks = BLOCK.findall(_cut(folded))
    return tuple(sentence for block in blocks for span in _nlp()(block).sents if (sentence := span.text.strip()))


def _cut(text: str) -> str:
    return LONGEST_WORD.sub(r"\g<0> ", text)


def into_passages(document: Passage) -> Iterator[Passage]:
    """The passages of a document, as the track cuts them."""
    return segments(document, split_sentences)


def phrases(text: str, longest: int = 3) -> list[str]:
    """Runs of words between stop words and punctuation, in order; of a long run its beginning and its end."""
    runs: list[list[str]] = [[]]
    for token in _nlp().tokenizer(_cut(" ".join(text.split()))):
        if token.is_stop or not token.text[0].isalnum() or (len(token.text) < 3 and not token.is_upper):
            runs.append([])
        else:
            runs[-1].append(token.text)
    cut = [[run] if len(run) <= longest else [run[:longest], run[-longest:]] for run in runs if run]
    return [" ".join(words) for parts in cut for words in parts]


def spacy_tokens(text: str) -> int:
    """Length as iKAT 2023 and 2024 count it: tokens of spaCy's English tokenizer (track guidelines)."""
    return len(_nlp().tokenizer(_cut(text)))


def whitespace_words(text: str) -> int:
    """Length as iKAT 2025 counts it: words by white space after NFKC (`compute_response_length` of its validator)."""
    return len(unicodedata.normalize("NFKC", text).split())


def response_length(text: str) -> int:
    """The stricter of the two official counts; at most `MAX_TOKENS` is allowed."""
    return max(spacy_tokens(text), whitespace_words(text))


def fitting(sentences: Iterable[str], limit: int = MAX_TOKENS) -> list[str]:
    """As many leading sentences as stay within `limit` together."""
    kept: list[str] = []
    for sentence in sentences:
        if response_length(" ".join([*kept, sentence])) > limit:
            break
        kept.append(sentence)
    return kept
