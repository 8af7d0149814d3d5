"""What a person must avoid is not recommended, and a warning that bears on them is found.

Passages are held back by the dish, never by the sentence: a recipe whose line about peanuts is left out is a dangerous
recipe. All passages of one document and heading are one dish; where one passage has several short sections, each of
them is. A question about a thing or a fact ("Does the satay contain peanuts?") is answered from it all the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agent.turn.safety.needs import DIETS, INSTEAD, KIND_STEMS, Need, Thing, choose_bearing, content_stems, find_stems
from indexes.text.sentences import split_sentences
from indexes.words import compile_any, list_words
from schemas.records import Passage, Sentence, Statement

DISH_PARTS = frozenset(list_words("dish_parts"))
MIN_SECTIONS = 2  # short sections, from which a passage is of several things
_LABEL_OF_SECTION = re.compile(r"^([^\W_][^.:!?\n]{0,60}): ", re.MULTILINE)
_FORBIDDING, _WARNING, _CONTENTS, _LABEL, _HARMLESS = (
    compile_any(f"warnings.{name}") for name in ("forbidding", "warning", "contents", "label", "harmless")
)
# "Vegan", "gluten-free": what they say is absent. Whoever is "lactose intolerant" is told of what they do without.
_CLAIMED = re.compile(
    rf"(?<!not )(?<!n't )\b(?:(?P<diet>{'|'.join(DIETS)}|veggie|meatless|plant-based)s?"
    r"|(?P<kind>\w+)(?:[- ]free|[- ]intoleran\w+))\b",
    re.IGNORECASE,
)
_DOING_WITHOUT = re.compile(rf"{_CLAIMED.pattern}|\b(?:substitut\w+|alternatives? (?:to|for)|replac\w+)", re.IGNORECASE)
_ALSO_CALLED = {"veggie": "vegetarian", "meatless": "vegetarian", "plant-based": "vegan"}


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A dish that nothing is recommended from, by its title, and the statement that speaks against it."""

    dish: str
    title: str
    statement: Statement
    passages: tuple[Passage, ...]
    reason: Sentence  # a sentence of it that speaks of what the person must avoid
    thing: str = ""  # what it is in the words of that sentence, where it is one word: "almonds"
    rest: tuple[Passage, ...] = ()  # of its passage, the sections that nothing speaks against

    @property
    def named(self) -> str:
        """The title, and what speaks against it where that does not say it: "Granny's cake (almonds)"."""
        return f"{self.title} ({self.thing})" if self.thing else self.title


@dataclass(frozen=True, slots=True)
class Review:
    """Passages as they may be used for this person, and what is to be said of them."""

    passages: tuple[Passage, ...]  # all, best first
    kept: tuple[Passage, ...]  # the best that nothing speaks against, as many as are wanted
    left_out: tuple[LeftOut, ...]
    warnings: tuple[tuple[Sentence, Statement], ...]  # in any passage, and the statement that each bears on
    dishes: Mapping[str, str]  # the dish of each passage, by id
    noted: tuple[LeftOut, ...] = ()  # not left out, for a fact is asked for; to be said where it is told from them


def review_passages(
    passages: Sequence[Passage], depth: int, needs: Sequence[Need], utterances: Sequence[str]
) -> Review:
    """The best `depth` passages that may answer the last of a person's `utterances`, what is left out, and warnings.

    Passages beyond `depth` tell more of the same dishes, and take the place of what is left out.
    """
    asked = utterances[-1]  # "safe for cats?" is answered by what is dangerous
    needs = [each for each in needs if not (each.named and each.named.search("pets") and each.named.search(asked))]
    dishes = group_dishes(passages)
    against, to_note = choose_bearing(needs, utterances)
    left_out = tuple(_find_conflicts(passages, dishes, [each for each in against if each.is_must]))
    gone = {passage.id for dish in left_out for passage in dish.passages}
    rest = {passage.id: passage for dish in left_out for passage in dish.rest}
    left = [rest.get(passage.id, passage) for passage in passages if passage.id in rest or passage.id not in gone]
    dislikes = [each for each in against if not each.is_must]
    liked = [passage for passage in left if not any(find_mention([passage], each) for each in dislikes)]
    kept = tuple(liked or left)  # what is disliked may be told where that would leave nothing
    best = {passage.id for passage in passages[:depth]}
    missed = tuple(dish for dish in left_out if any(passage.id in best for passage in dish.passages))
    warnings = tuple(_find_warnings(passages, dishes, needs))
    noted = tuple(_find_conflicts(passages, dishes, to_note))
    return Review(tuple(passages), kept[:depth], missed, warnings, dishes, noted)


def is_harmless(passages: Sequence[Passage], needs: Sequence[Need], utterances: Sequence[str]) -> bool:
    """Whether nothing in some passages has to be left out or warned of."""
    review = review_passages(passages, len(passages), needs, utterances)
    return not (review.left_out or review.warnings)


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


def is_of(one: str, other: str) -> bool:
    """Whether two dishes are one, or one of them is the section that the other stands in."""
    return f"{one}\n".startswith(f"{other}\n") or f"{other}\n".startswith(f"{one}\n")


def _find_conflicts(
    passages: Sequence[Passage], dishes: Mapping[str, str], against: Sequence[Need]
) -> Iterator[LeftOut]:
    """The dishes that speak of what the person must avoid, in the order of their best passages.

    Of a document without headings, which may be of many things, a diet or a warning leaves out the passages that speak
    of it.
    """
    for dish in dict.fromkeys(dishes.values()):
        own = tuple(passage for passage in passages if dishes[passage.id] == dish)
        near = tuple(passage for passage in passages if is_of(dishes[passage.id], dish) and passage not in own)
        for each in against:
            is_health = each.severity == "health"
            if reason := find_mention((*own, *near) if is_health else own, each):
                conflicting = own if is_health or own[0].title else tuple(_keep_conflicting(own, each))
                title = " ".join(dish.rpartition("\n")[2].split()).strip(" .:") or own[0].document
                if not conflicting:
                    continue
                whole = LeftOut(dish, title, each.statement, conflicting, reason, _name_thing(title, reason, each))
                yield from list(_leave_out_sections(dish, own, near, each, against)) or [whole]
                break


def _keep_conflicting(passages: Sequence[Passage], need: Need) -> Iterator[Passage]:
    """The passages that speak of what a diet leaves out and not of doing without it, or that warn."""
    for passage in passages:
        if find_mention([passage], need) and (need.named or not _DOING_WITHOUT.search(passage.text)):
            yield passage


def _leave_out_sections(
    dish: str, own: Sequence[Passage], near: Sequence[Passage], conflicting: Need, against: Sequence[Need]
) -> Iterator[LeftOut]:
    """The sections that conflict, of passages that have several.

    None where what stands around them conflicts, or may go on with one of them.
    """
    split = [(passage, *_split_sections(passage)) for passage in own]
    is_of_sections = all(sections and not (around and len(own) > 1) for _, around, sections in split)
    outside = [*(replace(passage, text=around) for passage, around, _ in split), *near]
    if not is_of_sections or find_mention(outside, conflicting):
        return
    for passage, around, sections in split:
        found = [next(_find_reasons(section, against), None) for section in sections]
        titles = [section.title.rpartition(": ")[2] for section in sections]
        safe = [f"{title}: {each.text}" for title, each, why in zip(titles, sections, found, strict=True) if not why]
        rest = (replace(passage, text="\n".join(filter(None, (around, *safe)))),) if safe else ()
        for title, section, why in zip(titles, sections, found, strict=True):
            if why:
                need, said = why
                yield LeftOut(dish, title, need.statement, (section,), said, _name_thing(title, said, need), rest)


def _find_reasons(section: Passage, against: Sequence[Need]) -> Iterator[tuple[Need, Sentence]]:
    return ((need, said) for need in against if (said := find_mention([section], need)))


def _split_sections(passage: Passage) -> tuple[str, list[Passage]]:
    """What stands around the short sections of a passage of several things, and each of them under its heading.

    "Brownie: It may contain nuts." is one. None where one of them is a part of a dish: the passage is of one thing.
    """
    before, *found = _LABEL_OF_SECTION.split(passage.text)
    labels, texts = found[::2], [text.strip("\n") for text in found[1::2]]
    if len(labels) < MIN_SECTIONS or any(map(_is_part, labels)):
        return passage.text, []
    texts[-1], _, after = texts[-1].partition("\n")  # what closes the last section may be said of all
    sections = [
        replace(passage, title=f"{passage.title}: {label}", text=text)
        for label, text in zip(labels, texts, strict=True)
    ]
    return "\n".join(filter(None, (before.strip("\n"), after))), sections


def _name_thing(title: str, reason: Sentence, need: Need) -> str:
    """The word of a sentence for what is avoided; empty where it takes several, or where the title has it."""
    if mentions_any(title, need.things):
        return ""
    words = re.findall(r"[\w-]+", reason.text)
    return next((word.lower() for word in words if mentions_any(word, need.things)), "")


def mentions_any(text: str, things: Iterable[Thing]) -> bool:
    """Whether a sentence speaks of any of these things as something that is there."""
    held = find_stems(text)
    return any(thing <= held for thing in things)


def find_mention(passages: Iterable[Passage], need: Need) -> Sentence | None:
    """The first sentence that speaks of what is avoided; where only a title does, the first sentence at all.

    Of a condition, the first sentence that warns whoever has it.
    """
    for passage in passages:
        sentences = split_sentences(passage.text)
        found = next((text for text in sentences if _speaks_of(text, passage.title, need)), "")
        headings = [heading for heading in passage.title.split(": ") if not _is_replaced(heading, need)]
        if not found and any(mentions_any(heading, need.things) for heading in headings):
            found = next(iter(sentences), "")
        if found:
            return Sentence(found, (passage.id,))
    return None


def _speaks_of(text: str, title: str, need: Need) -> bool:
    """Whether a sentence speaks of what the person avoids, or warns them.

    What a title or a sentence says it does without counts where health is concerned, not for a diet ("Vegetarians eat
    no meat").
    """
    if need.named:
        return _warns(text, _FORBIDDING) and bool(need.named.search(text))
    if need.severity == "health" and not need.replaced:
        return mentions_any(text, need.things)
    claimed = set[Thing]() if need.severity == "health" else _find_claimed(f"{title}. {text}")
    return mentions_any(INSTEAD.sub(" ", text), (thing for thing in need.things if thing not in claimed))


def _is_replaced(heading: str, need: Need) -> bool:
    """Whether a heading is but the name of what something else is asked for in the place of."""
    return bool(need.replaced) and content_stems(heading) <= need.replaced


def _find_claimed(text: str) -> set[Thing]:
    """What a text says it does without."""
    claimed = set[Thing]()
    for found in _CLAIMED.finditer(text):
        diet, kind = (found["diet"] or "").lower(), content_stems(found["kind"] or "")
        left_out = map(content_stems, DIETS[_ALSO_CALLED.get(diet, diet)]) if diet else KIND_STEMS.get(kind, ())
        claimed |= {kind, *left_out}
    return claimed


def _find_warnings(
    passages: Sequence[Passage], dishes: Mapping[str, str], needs: Sequence[Need]
) -> Iterator[tuple[Sentence, Statement]]:
    """Every warning that bears on the person, once of each dish, with the statement that it bears on."""
    seen: set[tuple[str, str]] = set()
    for passage in passages if needs else ():
        under_warnings = _warns(passage.title.rpartition(": ")[2], _WARNING)
        for text in split_sentences(passage.text):
            said = dishes[passage.id], text
            if said not in seen and (statement := find_warned(text, needs, under_warnings=under_warnings)):
                seen.add(said)
                yield Sentence(text, (passage.id,)), statement


def find_warned(text: str, needs: Sequence[Need], *, under_warnings: bool = False) -> Statement | None:
    """The statement that a sentence bears on as a warning, if any."""
    warns = under_warnings or _warns(text, _WARNING)
    tells = {"health": warns or _warns(text, _CONTENTS), "diet": _warns(text, _LABEL), "condition": warns}
    for need in needs:
        if tells.get(need.severity) and (need.named.search(text) if need.named else mentions_any(text, need.things)):
            return need.statement
    return None


def _warns(text: str, pattern: re.Pattern[str]) -> bool:
    """Whether a sentence warns in one of these ways; a question does not, nor does "non-toxic"."""
    return bool(pattern.search(_HARMLESS.sub(" ", text.replace("’", "'")))) and not text.rstrip().endswith("?")
