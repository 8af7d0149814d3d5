"""Which passages, or sections of one, are of one dish: what is left out and recommended as a whole."""

import re
from collections.abc import Sequence
from dataclasses import replace

from indexes.words import list_words
from schemas.records import Passage

DISH_PARTS = frozenset(list_words("dish_parts"))
MIN_SECTIONS = 2  # short sections, from which a passage is of several things
LABELLED = re.compile(r"(?P<label>[^\W_][^.:!?]{0,60}): ")  # a short section, as it stands in a passage


def group_dishes(passages: Sequence[Passage]) -> dict[str, str]:
    """The dish of each passage, by id: its document and the heading that is neither "Ingredients" nor the like.

    Where a section has such a part, all below the heading above it is one dish.
    """
    paths = {passage.id: (passage.document, *passage.title.split(": ")) for passage in passages}
    wholes = {path[:end] for path in paths.values() for end in range(2, len(path)) if _is_part(path[end])}
    shortest = sorted(wholes, key=len)
    return {
        id: "\n".join(next((whole for whole in shortest if path[: len(whole)] == whole), path))
        for id, path in paths.items()
    }


def _is_part(heading: str) -> bool:
    """Whether a heading names a part of any dish, as "Ingredients" or "How to serve it" do."""
    words = re.findall(r"\w+", heading.lower())
    return bool(words) and (words[:2] == ["for", "the"] or all(word in DISH_PARTS or word.isdigit() for word in words))


def split_sections(passage: Passage) -> tuple[str, list[Passage]]:
    """What stands before and after the short sections of a passage of several things, and each of them.

    "Brownie: It may contain nuts." is one. None where one of them is a part of a dish: the passage is of one thing.
    """
    lines = passage.text.split("\n")
    labels = [found["label"] for line in lines if (found := LABELLED.match(line))]
    if len(labels) < MIN_SECTIONS or any(map(_is_part, labels)):
        return passage.text, []
    sections: list[list[str]] = [[]]
    for line in lines:
        if LABELLED.match(line):
            sections.append([])
        sections[-1].append(line)
    last = sections[-1][1:]  # what closes the last section may be said of all
    return "\n".join((*sections[0], *last)), [replace(passage, text="\n".join(own)) for own in sections[1:]]


def is_of(one: str, other: str) -> bool:
    """Whether two dishes are one, or one of them is the section that the other stands in."""
    return f"{one}\n".startswith(f"{other}\n") or f"{other}\n".startswith(f"{one}\n")


def name_dish(passage: Passage, dish: str) -> str:
    """What a dish is called: its last heading, or its document."""
    heading = dish.rpartition("\n")[2] if "\n" in dish else ""
    return " ".join(heading.split()).strip(" .:") or passage.document
