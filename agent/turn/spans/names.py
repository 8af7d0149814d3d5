"""Names, and numbers and codes, that a text has: what an answer or a rewrite may not exchange for others."""

import re

from indexes.text.analysis import extract_stems

_NAME = re.compile(r"(?<=[\w,;] )[A-ZÄÖÜ][\w-]*\w")  # a word with a capital that does not open a sentence
_CODE = re.compile(r"\b(?=[\w.-]*\d)\w+(?:[.-]\w+)*")


def find_names(text: str) -> frozenset[str]:
    """The stems of the names in a text."""
    return frozenset(extract_stems(" ".join(_NAME.findall(text))))


def find_codes(text: str) -> frozenset[str]:
    """The numbers and codes in a text, in small letters: "e.17" of "It shows E.17"."""
    return frozenset(code.lower() for code in _CODE.findall(text))
