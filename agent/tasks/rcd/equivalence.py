"""Which topics of RCD-2020 share a scene: the organisers' file of them, lines of topic numbers.

    27 28
    36,37,43

Numbers are parted by white space or commas; a line that begins with `#` is a comment. Lines with a number in common are
one scene, and a topic in no line stands alone.
"""

from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path

from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError

Scene = tuple[str, ...]  # topic numbers


def read_equivalence(path: Path) -> tuple[Scene, ...]:
    """The scenes of a file. Raises `InvalidInputError` for a file without a number."""
    lines = read_utf8(path).decode("utf-8", "replace").splitlines()
    listed = [line.replace(",", " ").split() for line in lines if not line.lstrip().startswith("#")]
    if not any(listed):
        raise InvalidInputError("holds no topic number", where=str(path), remedy="A line is `27 28` or `27,28`.")
    scene_of: dict[str, Scene] = {}
    for numbers in listed:
        met = dict.fromkeys(scene_of[number] for number in numbers if number in scene_of)
        scene = tuple(dict.fromkeys((*chain.from_iterable(met), *numbers)))
        scene_of |= dict.fromkeys(scene, scene)
    return tuple(dict.fromkeys(scene_of.values()))


def group_numbers(numbers: Iterable[str], scenes: Iterable[Scene]) -> list[Scene]:
    """The numbers that share a scene together, in their own order; every other one alone."""
    scene_of = {number: scene for scene in scenes for number in scene}
    found: dict[Scene, list[str]] = {}
    for number in numbers:
        found.setdefault(scene_of.get(number, (number,)), []).append(number)
    return [tuple(group) for group in found.values()]


def add_unlabelled(labelled: Sequence[str], scenes: Iterable[Scene]) -> tuple[str, ...]:
    """Topics with labels, and those that share a scene with one of them."""
    known = set(labelled)
    return tuple(dict.fromkeys((*labelled, *(number for scene in scenes if known & {*scene} for number in scene))))
