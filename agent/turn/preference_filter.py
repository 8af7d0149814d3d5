"""What a person's statements rule out of an answer: a vegetarian is not offered the meat dish.

From "I'm allergic to peanuts", "I hate long flights" or "I can't eat cheese" the things are read off; what a few diets
leave out has to be known. A sentence speaks of a thing where it has all its words, not negated ("without peanuts").
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from agent.turn.attribution import content_words
from schemas.records import ScoredStatement

Thing = frozenset[str]  # stems that a sentence must all have to speak of it

_AVERSE = re.compile(
    r"\b(?:allergic to|intolerant (?:to|of)|hates?|dislikes?|avoids?|can't stand|stays? away from"
    r"|(?:can't|cannot) (?:eat|drink|have|use|wear)"
    r"|(?:do not|does not|don't|doesn't|never) (?:like|eat|drink|enjoy|want|use|wear))\b(?P<things>.*)",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[.;]|\b(?:and|but) (?=(?:i|we|my|he|she|they)\b)", re.IGNORECASE)
_ITEMS = re.compile(r",|\b(?:and|or|nor)\b")
_REASON = re.compile(r"\b(?:because|but|so|since|that much|anymore|any more)\b.*")
_AMOUNT = re.compile(r"\b(?:any|all|most|many|much|too|some|kinds? of)\b", re.IGNORECASE)
_DIET = re.compile(
    r"\b(?:(?P<diet>vegetarian|vegan|pescatarian|c(?:o)?eliac)"
    r"|(?P<not>lactose|dairy|gluten)[ -](?:free|intoleran\w+|allerg\w+))",
    re.IGNORECASE,
)
_DENIED = re.compile(r"(?:\bnot|n't|\bno longer|\bused to be|\bnever)\b[^.;]*$", re.IGNORECASE)
_FREE_OF = re.compile(r"\w+-free\b(?:\s+\w+)?", re.IGNORECASE)  # and what is free of it
_MEAT = "meat beef pork bacon ham lamb veal chicken turkey duck sausage steak"
_FISH = "fish seafood salmon tuna cod mackerel herring shrimp prawn anchovy"
_MILK = "milk cheese butter cream yogurt"
DIETS = {
    "vegetarian": f"{_MEAT} {_FISH}",
    "vegan": f"{_MEAT} {_FISH} {_MILK} egg honey",
    "pescatarian": _MEAT,
    "lactose": _MILK,
    "dairy": _MILK,
    "gluten": "wheat barley rye",
    "celiac": "gluten wheat barley rye",
    "coeliac": "gluten wheat barley rye",
}


def avoided_things(selected_statements: Sequence[ScoredStatement], asked: str) -> tuple[Thing, ...]:
    """What the chosen statements speak against, save what the person `asked` about."""
    spoken = content_stems(asked)
    things = [
        thing
        for chosen in selected_statements
        for thing in read_avoided_things(chosen.statement.text.replace("’", "'"))
    ]
    return tuple(thing for thing in dict.fromkeys(things) if thing and not thing <= spoken)


def mentions_any(sentence: str, things: Iterable[Thing]) -> bool:
    """Whether a sentence speaks of any of these things as something to have."""
    held = frozenset(word.stem for word in content_words(_FREE_OF.sub("", sentence)) if not word.negated)
    return any(thing <= held for thing in things)


def read_avoided_things(statement: str) -> list[Thing]:
    clauses = _CLAUSES.split(statement)
    listed = [
        item for found in find_affirmed(_AVERSE, clauses) for item in _ITEMS.split(_REASON.sub("", found["things"]))
    ]
    known = [
        item
        for found in find_affirmed(_DIET, clauses)
        for item in DIETS[(found["diet"] or found["not"]).lower()].split()
    ]
    return [content_stems(_AMOUNT.sub("", item)) for item in (*listed, *known)]


def find_affirmed(pattern: re.Pattern[str], clauses: Iterable[str]) -> Iterator[re.Match[str]]:
    """What clauses say, and do not deny."""
    for clause in clauses:
        found = pattern.search(clause)
        if found and not _DENIED.search(clause[: found.start()]):
            yield found


def content_stems(text: str) -> Thing:
    return frozenset(word.stem for word in content_words(text))
