"""Parts of words, in languages that make one word of several: "Jahrespacht", "Pacht"."""

from collections.abc import Iterable

COMPOUNDING = frozenset(("de", "nl", "sv", "da", "no"))
MIN_PART = 5  # letters of a part that stands alone: shorter ones begin and end too many words
MIN_PIECE = 4  # of one where another part of the word is found as well: "Honigglas", "Honig", "Glas"
MAX_LINK = 2  # letters between two parts: "Heizung-s-wartung"


def find_compounds(wanted: Iterable[str], held: frozenset[str]) -> frozenset[str]:
    """Those of some words that others have as a part, or that are made of others."""
    return frozenset(word for word in wanted if has_part_in_common(word, held) or is_made_of(word, held))


def has_part_in_common(word: str, others: Iterable[str]) -> bool:
    """Whether a word has another as a part or is a part of it; or has its end as their beginning, or the other way."""
    return any(_have_part(word, other) or _have_part(other, word) or _join(word, other) for other in others)


def is_made_of(word: str, others: Iterable[str]) -> bool:
    """Whether a word is two others, with hardly a letter between them."""
    known = [other for other in others if MIN_PIECE <= len(other) < len(word)]
    begins = [len(other) for other in known if word.startswith(other)]
    ends = [len(other) for other in known if word.endswith(other)]
    return any(0 <= len(word) - begin - end <= MAX_LINK for begin in begins for end in ends)


def _have_part(whole: str, part: str) -> bool:
    return len(part) >= MIN_PART and len(whole) > len(part) + 1 and (whole.startswith(part) or whole.endswith(part))


def _join(one: str, other: str) -> bool:
    """Whether one ends as the other begins: "Schrebergarten", "Gartenordnung"."""
    longest = min(len(one), len(other)) - 1
    sizes = range(MIN_PART + 1, longest + 1)
    return any(one[-size:] == other[:size] or other[-size:] == one[:size] for size in sizes)
