"""The words of each language that rules refer to: numbers, units, negations, and what is said to a person.

One TOML file a language, and one of kinds of food. Whoever adds a word adds it there; what it does is in the rules.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
LANGUAGES = ("en", "de", "fr", "es", "it", "nl", "pt")


@cache
def read_file(name: str) -> dict[str, Any]:
    """All that a file says, by the code of its language, or of `food`."""
    return tomllib.loads((HERE / f"{name}.toml").read_text(encoding="utf-8"))


def list_words(name: str, languages: Sequence[str] = LANGUAGES) -> tuple[str, ...]:
    """The words of a list, `numbers` or `cells.yes`, in those languages that have it, one after another.

    Raises `KeyError` where none of them has it.
    """
    section, _, key = name.rpartition(".")
    files = (read_file(language) for language in languages)
    found = [own[key] for file in files if key in (own := file.get(section, {}) if section else file)]
    if not found:
        raise KeyError(name)
    return tuple(word for words in found for word in _split(words))


def _split(words: str | list[str]) -> list[str]:
    """A list in TOML, or a text that is parted by its semicolons, else its commas, else white space."""
    if isinstance(words, list):
        return words
    separator = next((mark for mark in ";," if mark in words), None)
    return [word for part in words.split(separator) if (word := " ".join(part.split()))]


def load_words(name: str) -> frozenset[str]:
    return frozenset(list_words(name))


def list_tables(section: str) -> dict[str, tuple[str, ...]]:
    """All lists of a section by their names, as `list_words` gives them."""
    names = dict.fromkeys(name for language in LANGUAGES for name in read_file(language).get(section, {}))
    return {name: list_words(f"{section}.{name}") for name in names}


def match_any(name: str, languages: Sequence[str] = LANGUAGES) -> str:
    return "|".join(list_words(name, languages))


def compile_any(name: str, *, front: str = "", ignore_case: bool = True, **parts: str) -> re.Pattern[str]:
    """All patterns of a list as one, behind `front`. In them `<part>` is one of `parts`, or another list beside it."""
    section = name.rpartition(".")[0]

    def expand(pattern: str) -> str:
        return re.sub(r"<(\w+)>", lambda part: parts.get(part[1]) or expand(match_any(f"{section}.{part[1]}")), pattern)

    patterns = "|".join(f"(?:{expand(pattern)})" for pattern in list_words(name))
    return re.compile(f"{front}(?:{patterns})", re.IGNORECASE if ignore_case else re.NOFLAG)


@cache
def list_food(section: str) -> Mapping[str, tuple[str, ...]]:
    """The kinds of food, or the diets, with the things that each takes in or leaves out."""
    groups: dict[str, str] = {}
    for name, words in read_file("food")["groups"].items():
        groups[name] = _expand(words, groups)
    return {name: tuple(_expand(words, groups).split()) for name, words in read_file("food")[section].items()}


def _expand(words: str, groups: Mapping[str, str]) -> str:
    return re.sub(r"<(\w+)>", lambda found: groups[found[1]], words)
