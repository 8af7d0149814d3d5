"""How long a response may be: the two official counts, and the limit that holds in every edition."""

import unicodedata
from collections.abc import Iterable

from indexes.text.sentences import cut_long_words, load_tokenizer

MAX_TOKENS = 250


def count_spacy_tokens(text: str) -> int:
    """Length as iKAT 2023 and 2024 count it: tokens of spaCy's English tokenizer (track guidelines)."""
    return len(load_tokenizer().tokenizer(cut_long_words(text)))


def count_whitespace_words(text: str) -> int:
    """Length as iKAT 2025 counts it: words by white space after NFKC (`compute_response_length` of its validator)."""
    return len(unicodedata.normalize("NFKC", text).split())


def response_length(text: str) -> int:
    """The stricter of the two official counts; at most `MAX_TOKENS` is allowed."""
    return max(count_spacy_tokens(text), count_whitespace_words(text))


def leading_within_limit(sentences: Iterable[str], limit: int = MAX_TOKENS) -> list[str]:
    """As many leading sentences as stay within `limit` together."""
    kept: list[str] = []
    for sentence in sentences:
        if response_length(" ".join([*kept, sentence])) > limit:
            break
        kept.append(sentence)
    return kept
