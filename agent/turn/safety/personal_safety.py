"""What a person must avoid is not recommended, and a warning that bears on them is shown.

Passages are held back by the dish, never by the sentence: a recipe whose line about peanuts is left out is a dangerous
recipe. All passages of one document and heading are one dish. A question about a thing or a fact ("Does the satay
contain peanuts?") is answered from it all the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from agent.turn.attribution import content_words
from agent.turn.safety.avoidance import Avoidance, PersonalNeeds, Thing, content_stems, split_told
from agent.turn.safety.food_kinds import COMPOUND
from agent.turn.safety.request_kind import classify_request
from agent.turn.safety.source_warnings import is_label, is_warning, lists_contents
from indexes.text.sentences import split_sentences
from schemas.records import Passage, Sentence, Statement

_DISH_PARTS = (
    "allergens allergy cooking description directions equipment how ingredients instructions introduction making "
    "method need note notes nutrition preparation sauce serve serving steps storage storing summary tip tips to "
    "topping variations warning warnings you for the and it what"
)
DISH_PARTS = frozenset(_DISH_PARTS.split())
_WITHOUT = (
    r"(?<!not )(?<!never )\b(?:without|free (?:of|from)|(?:does|do)(?: not|n't) contain|contains? no|with no"
    r"|there (?:is|are) no|no)\s+(?:(?:any|added|traces? of)\s+)*"
)
_ABSENT = re.compile(rf"{_WITHOUT}[\w-]+(?:(?:, [\w-]+)*,? (?:or|nor) [\w-]+)?(?![\w-])", re.IGNORECASE)
_DAIRY_FREE = re.compile(
    r"\b(?:dairy|lactose|milk)[- ]free(?: (?:milk|cheese|butter|cream|yogh?urt))?\b"
    r"|\b(?:gluten|wheat)[- ]free(?: (?:couscous|semolina))?\b"
    r"|\b(?:alcohol-free|non-alcoholic)(?: (?:beer|wine|cocktails?|gin|cider))?\b|\b\w+-free\b",
    re.IGNORECASE,
)
_OTHER_THINGS = re.compile(
    r"\b(?:wine vinegar|ginger beer|root beer|butter (?:beans?|lettuce)|oyster mushrooms?|cream of tartar|coconut meat"
    r"|beef tomato(?:es)?|honeydew)\b",
    re.IGNORECASE,
)
_COUNTRY = re.compile(r"(?<=\w )Turkey\b")
_SAFE_FOR = re.compile(
    r"\b(?:suitable|safe|fine) (?:for|if)\b(?:(?!\b(?:but|not|dangerous|unless|except|contains?)\b)[^.;,])*?"
    r"\ballerg\w*(?: to \w+)?",
    re.IGNORECASE,
)
_NOT_BEFORE = re.compile(r"(?:\bnot|n't|\bnever|\bun|\bhardly)\b[^.;,]*$", re.IGNORECASE)
_DOING_WITHOUT = re.compile(
    r"(?<!not )(?<!n't )\b(?:vegans?|vegetarians?|veggie|meatless|plant-based|c(?:o)?eliacs?|substitut\w+"
    r"|alternatives? (?:to|for)|replac\w+|intoleran\w+|\w+-free)\b",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|other than|apart from|alternatives? (?:to|for)|substitutes? (?:of|for)|replac\w+)"
    r"\s+(?:\w+\s+)?[\w-]+",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A dish that nothing is recommended from, by its title, and the statement that speaks against it."""

    title: str
    statement: Statement
    passages: tuple[Passage, ...]
    reason: Sentence  # a sentence of it that speaks of what the person must avoid


@dataclass(frozen=True, slots=True)
class Review:
    """Passages as they may be used for this person, and what is to be said of them."""

    passages: tuple[Passage, ...]  # all, best first
    kept: tuple[Passage, ...]  # the best that nothing speaks against, as many as are wanted
    left_out: tuple[LeftOut, ...]
    warnings: tuple[tuple[Sentence, Statement], ...]  # in any passage, and the statement that each bears on
    dishes: Mapping[str, str]  # the dish of each passage, by id

    def dish_of(self, left_out: LeftOut) -> str:
        """The dish that is left out."""
        return self.dishes[left_out.passages[0].id]


def review_passages(passages: Sequence[Passage], depth: int, needs: PersonalNeeds, utterances: Sequence[str]) -> Review:
    """The best `depth` passages that may answer the last of a person's `utterances`, what is left out, and warnings.

    Passages beyond `depth` tell more of the same dishes, and take the place of what is left out.
    """
    dishes = group_dishes(passages)
    against = find_ruling_out(needs.avoidances, utterances)
    left_out = tuple(_find_conflicts(passages, dishes, [each for each in against if each.is_must]))
    gone = {passage.id for dish in left_out for passage in dish.passages}
    kept = _prefer_liked([passage for passage in passages if passage.id not in gone], against)
    best = {passage.id for passage in passages[:depth]}
    missed = tuple(dish for dish in left_out if any(passage.id in best for passage in dish.passages))
    warnings = tuple(_find_warnings(passages, drop_asked_pets(needs, utterances)))
    return Review(tuple(passages), kept[:depth], missed, warnings, dishes)


def is_harmless(passages: Sequence[Passage], needs: PersonalNeeds, utterances: Sequence[str]) -> bool:
    """Whether nothing in some passages has to be left out or warned of."""
    review = review_passages(passages, len(passages), needs, utterances)
    return not (review.left_out or review.warnings)


def drop_asked_pets(needs: PersonalNeeds, utterances: Sequence[str]) -> PersonalNeeds:
    """The needs without the animals that the question asks about ("safe for cats?"): its answer tells of dangers."""
    asked = utterances[-1] if utterances else ""
    left = (each for each in needs.conditions if not (each.is_of_pet and each.named.search(asked)))
    return replace(needs, conditions=tuple(left))


def find_ruling_out(avoidances: Sequence[Avoidance], utterances: Sequence[str]) -> tuple[Avoidance, ...]:
    """The avoidances that rule something out of this answer: none for a fact; where that is unsure, those of health."""
    kind = classify_request(utterances)
    if kind == "fact" or not utterances:
        return ()
    bearing = (each for each in avoidances if kind == "recommendation" or each.severity == "health")
    return drop_asked_about(bearing, utterances[-1])


def drop_asked_about(avoidances: Iterable[Avoidance], utterance: str) -> tuple[Avoidance, ...]:
    """The avoidances without the things that the utterance itself asks about."""
    asked = find_stems(_INSTEAD.sub(" ", split_told(utterance)[1]))
    left = (replace(each, things=tuple(thing for thing in each.things if not thing <= asked)) for each in avoidances)
    return tuple(each for each in left if each.things)


def mentions_any(text: str, things: Iterable[Thing]) -> bool:
    """Whether a sentence speaks of any of these things as something that is there."""
    held = find_stems(text)
    return any(thing <= held for thing in things)


def find_stems(text: str) -> Thing:
    """The stems of a sentence, without what is absent ("no peanuts") or something else ("almond milk")."""
    text = text.replace("’", "'")
    for found in reversed(list(_SAFE_FOR.finditer(text))):
        if not _NOT_BEFORE.search(text[: found.start()]):
            text = f"{text[: found.start()]} {text[found.end() :]}"
    text = re.sub(COMPOUND, r"\1", text, flags=re.IGNORECASE)
    for absent in (_OTHER_THINGS, _COUNTRY, _DAIRY_FREE, _ABSENT):
        text = absent.sub(" ", text)
    return frozenset(word.stem for word in content_words(text))


def group_dishes(passages: Sequence[Passage]) -> dict[str, str]:
    """The dish of each passage, by id: its document and the heading that is neither "Ingredients" nor the like.

    Where a section has such a part, all below the heading above it is one dish.
    """
    paths = {passage.id: (passage.document, *passage.title.split(": ")) for passage in passages}
    wholes = {path[:end] for path in paths.values() for end in range(2, len(path)) if _is_part(path[end])}
    return {id: "\n".join(_find_whole(path, wholes)) for id, path in paths.items()}


def _find_whole(path: tuple[str, ...], wholes: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The shortest beginning of a path that is a whole dish."""
    return min((whole for whole in wholes if path[: len(whole)] == whole), key=len, default=path)


def _is_part(heading: str) -> bool:
    """Whether a heading names a part of any dish, as "Ingredients" or "How to serve it" do."""
    words = re.findall(r"\w+", heading.lower())
    return bool(words) and (words[:2] == ["for", "the"] or all(word in DISH_PARTS for word in words))


def _find_conflicts(
    passages: Sequence[Passage], dishes: Mapping[str, str], against: Sequence[Avoidance]
) -> Iterator[LeftOut]:
    """The dishes that speak of what the person must avoid, in the order of their best passages."""
    for dish in dict.fromkeys(dishes.values()):
        own = tuple(passage for passage in passages if dishes[passage.id] == dish)
        near = tuple(passage for passage in passages if is_of(dishes[passage.id], dish) and passage not in own)
        for avoidance in against:
            told_of = (*own, *near) if avoidance.severity == "health" else own
            reason = find_mention(told_of, avoidance)
            conflicting = own if own[0].title else _keep_conflicting(own, avoidance)
            if reason and conflicting:
                yield LeftOut(_name_dish(own[0], dish), avoidance.statement, conflicting, reason)
                break


def _keep_conflicting(passages: Sequence[Passage], avoidance: Avoidance) -> tuple[Passage, ...]:
    """Of a document without headings, which may be of many things, the passages that are to be left out.

    For health all of them, save those that say that they are without; for a diet, those that speak of what is avoided
    and not of doing without it.
    """
    if avoidance.severity == "health":
        return tuple(each for each in passages if find_mention([each], avoidance) or not _names_any(each, avoidance))
    return tuple(each for each in passages if find_mention([each], avoidance) and not _DOING_WITHOUT.search(each.text))


def _names_any(passage: Passage, avoidance: Avoidance) -> bool:
    """Whether a passage has the words for what is avoided, be it to say that it is absent."""
    named = content_stems(passage.text)
    return any(thing <= named for thing in avoidance.things)


def is_of(one: str, other: str) -> bool:
    """Whether two dishes are one, or one of them is the section that the other stands in."""
    return f"{one}\n".startswith(f"{other}\n") or f"{other}\n".startswith(f"{one}\n")


def find_mention(passages: Iterable[Passage], avoidance: Avoidance) -> Sentence | None:
    """The first sentence that speaks of what is avoided; where only a title does, the first sentence at all.

    A sentence about doing without counts where health is concerned, not for a diet ("Vegetarians eat no meat").
    """
    strict = avoidance.severity == "health"
    for passage in passages:
        sentences = split_sentences(passage.text)
        for text in sentences:
            excused = not strict and _DOING_WITHOUT.search(f"{passage.title} {text}")
            if not excused and mentions_any(text, avoidance.things):
                return Sentence(text, (passage.id,))
        if sentences and mentions_any(passage.title, avoidance.things):
            return Sentence(sentences[0], (passage.id,))
    return None


def _name_dish(passage: Passage, dish: str) -> str:
    """What a dish is called: its last heading, or its document."""
    heading = dish.rpartition("\n")[2] if "\n" in dish else ""
    return " ".join(heading.split()).strip(" .:") or passage.document


def _prefer_liked(passages: Sequence[Passage], against: Sequence[Avoidance]) -> tuple[Passage, ...]:
    """The passages without those that speak of what the person dislikes; all, where that would leave none."""
    dislikes = [each for each in against if not each.is_must]
    liked = [passage for passage in passages if not any(find_mention([passage], each) for each in dislikes)]
    return tuple(liked or passages)


def _find_warnings(passages: Sequence[Passage], needs: PersonalNeeds) -> Iterator[tuple[Sentence, Statement]]:
    """Every warning that bears on the person, once, with the statement that it bears on."""
    seen: set[str] = set()
    for passage in passages if needs else ():
        under_warnings = is_warning(passage.title.rpartition(": ")[2])
        for text in split_sentences(passage.text):
            if text not in seen and (statement := find_warned(text, needs, under_warnings=under_warnings)):
                seen.add(text)
                yield Sentence(text, (passage.id,)), statement


def find_warned(text: str, needs: PersonalNeeds, *, under_warnings: bool = False) -> Statement | None:
    """The statement that a sentence bears on as a warning, if any."""
    warns = under_warnings or is_warning(text)
    told = {"health": warns or lists_contents(text), "diet": is_label(text), "dislike": False}
    if not any(told.values()):
        return None
    held = find_stems(text)
    musts = (each for each in needs.avoidances if told[each.severity])
    avoided = (each.statement for each in musts if any(thing <= held for thing in each.things))
    had = (condition.statement for condition in needs.conditions if warns and condition.named.search(text))
    return next(chain(avoided, had), None)
