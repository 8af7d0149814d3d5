"""What a person must avoid is not recommended, and a warning that bears on them is shown.

Passages are held back by the dish, never by the sentence: a recipe whose line about peanuts is left out is a dangerous
recipe. All passages of one document and heading are one dish; where a passage has several short sections, each of them
is. A question about a thing or a fact ("Does the satay contain peanuts?") is answered from it all the same.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from agent.turn.safety.avoidance import (
    DIETS,
    KIND_STEMS,
    Avoidance,
    PersonalNeeds,
    Thing,
    classify_request,
    content_stems,
    split_told,
)
from agent.turn.safety.dishes import LABELLED, group_dishes, is_of, name_dish, split_sections
from agent.turn.safety.source_warnings import Condition, forbids, is_label, is_warning, lists_contents
from indexes.text.sentences import split_sentences
from indexes.words import match_any
from schemas.records import Passage, Sentence, Statement

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
_OTHER_THINGS = re.compile(rf"\b(?:{match_any('other_things', ['food'])})\b", re.IGNORECASE)
# A compound, and the word of it that says what is in it: there is no milk in almond milk, nor wheat in rice noodles.
_COMPOUND = re.compile(
    rf"\b(?:({match_any('plants', ['food'])})[ -](?:milk|butter|cream|cheese|yogh?urt|sausages?|bacon|chicken|ham"
    r"|steaks?|mince|meat|mayonnaise|mayo|burgers?|meatballs?)"
    rf"|({match_any('grains', ['food'])})[ -](?:flour|noodles?|pasta|bread|crackers?|vermicelli|ramen))\b",
    re.IGNORECASE,
)
_COUNTRY = re.compile(r"(?<=\w )Turkey\b")
_SAFE_FOR = re.compile(
    r"\b(?:suitable|safe|fine) (?:for|if)\b(?:(?!\b(?:but|not|dangerous|unless|except|contains?)\b)[^.;,])*?"
    r"\ballerg\w*(?: to \w+)?",
    re.IGNORECASE,
)
_NOT_BEFORE = re.compile(r"(?:\bnot|n't|\bnever|\bun|\bhardly)\b[^.;,]*$", re.IGNORECASE)
# "Vegan", "gluten-free": what they say is absent. Whoever is "lactose intolerant" is told of what they do without.
_CLAIMED = re.compile(
    rf"(?<!not )(?<!n't )\b(?:(?P<diet>{'|'.join(DIETS)}|veggie|meatless|plant-based)s?"
    r"|(?P<kind>\w+)(?:[- ]free|[- ]intoleran\w+))\b",
    re.IGNORECASE,
)
_ALSO_CALLED = {"veggie": "vegetarian", "meatless": "vegetarian", "plant-based": "vegan"}
_DOING_WITHOUT = re.compile(rf"{_CLAIMED.pattern}|\b(?:substitut\w+|alternatives? (?:to|for)|replac\w+)", re.IGNORECASE)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|other than|apart from|alternatives? (?:to|for)|substitutes? (?:of|for)"
    r"|replac(?:e|es|ing|ements? (?:of|for))|swap(?:s|ping)?)\s+(?:\w+\s+)?[\w-]+"
    r"|[\w-]+\s+(?:can|may|could|is|are)(?:\s+\w+)??(?:\s+be)?\s+(?:replaced|substituted|swapped)\b",
    re.IGNORECASE,
)
_ASKS_LEAVE = re.compile(
    r"^\W*(?:(?:so|and|but|ok(?:ay)?|then|well|hi|hello|thanks)\W+)*"
    r"(?:(?:can|may|could|should)\s+(?:i|we|my|our|he|she|they|one)|is|are|would|am i)\b",
    re.IGNORECASE,
)
Against = Avoidance | Condition  # what rules something out: a thing that it has, or a warning that it has


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A dish that nothing is recommended from, by its title, and the statement that speaks against it."""

    title: str
    statement: Statement
    passages: tuple[Passage, ...]
    reason: Sentence  # a sentence of it that speaks of what the person must avoid
    rest: tuple[Passage, ...] = ()  # of its passages, the sections that nothing speaks against
    thing: str = ""  # what it is in the words of that sentence, where it is one word: "almonds"

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

    def dish_of(self, left_out: LeftOut) -> str:
        """The dish that is left out."""
        return self.dishes[left_out.passages[0].id]


def review_passages(passages: Sequence[Passage], depth: int, needs: PersonalNeeds, utterances: Sequence[str]) -> Review:
    """The best `depth` passages that may answer the last of a person's `utterances`, what is left out, and warnings.

    Passages beyond `depth` tell more of the same dishes, and take the place of what is left out.
    """
    dishes = group_dishes(passages)
    asked = utterances[-1] if utterances else ""
    of_asked_pets = [each for each in needs.conditions if each.named.search("pets") and each.named.search(asked)]
    others = tuple(each for each in needs.conditions if each not in of_asked_pets)
    needs = replace(needs, conditions=others)  # "safe for cats?" is answered by what is dangerous
    against, to_note = find_ruling_out(needs, utterances)
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


def is_harmless(passages: Sequence[Passage], needs: PersonalNeeds, utterances: Sequence[str]) -> bool:
    """Whether nothing in some passages has to be left out or warned of."""
    review = review_passages(passages, len(passages), needs, utterances)
    return not (review.left_out or review.warnings)


def find_ruling_out(
    needs: PersonalNeeds, utterances: Sequence[str]
) -> tuple[tuple[Against, ...], tuple[Avoidance, ...]]:
    """What rules something out of this answer, and what is to be noted of it, without what the question itself names.

    Where a fact is asked for, nothing is ruled out, and what is avoided for health is noted; it is ruled out where that
    is unsure.
    """
    if not utterances:
        return (), ()
    kind = classify_request(utterances)
    bearing = (each for each in needs.avoidances if kind == "recommendation" or each.severity == "health")
    avoided = drop_asked_about(bearing, utterances[-1])
    if kind == "fact":
        return (), avoided
    return (*avoided, *(needs.conditions if kind == "recommendation" else ())), ()


def drop_asked_about(avoidances: Iterable[Avoidance], utterance: str) -> tuple[Avoidance, ...]:
    """The avoidances without the things that the utterance itself asks for; all where it asks whether one may."""
    question = split_told(utterance)[1]
    if _ASKS_LEAVE.match(question):
        return tuple(avoidances)
    asked = find_stems(_INSTEAD.sub(" ", question))
    replaced = content_stems(" ".join(found[0] for found in _INSTEAD.finditer(question)))
    left = (
        replace(each, things=tuple(thing for thing in each.things if not thing <= asked), replaced=replaced)
        for each in avoidances
    )
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
    text = _COMPOUND.sub(r"\1\2", text)
    for absent in (_OTHER_THINGS, _COUNTRY, _DAIRY_FREE, _ABSENT):
        text = absent.sub(" ", text)
    return content_stems(text)


def _find_conflicts(
    passages: Sequence[Passage], dishes: Mapping[str, str], against: Sequence[Against]
) -> Iterator[LeftOut]:
    """The dishes that speak of what the person must avoid, in the order of their best passages."""
    for dish in dict.fromkeys(dishes.values()):
        own = tuple(passage for passage in passages if dishes[passage.id] == dish)
        near = tuple(passage for passage in passages if is_of(dishes[passage.id], dish) and passage not in own)
        for each in against:
            told_of = (*own, *near) if isinstance(each, Avoidance) and each.severity == "health" else own
            reason = find_mention(told_of, each)
            conflicting = own if own[0].title else _keep_conflicting(own, each)
            if reason and conflicting:
                title = name_dish(own[0], dish)
                whole = LeftOut(title, each.statement, conflicting, reason, (), _name_thing(title, reason, each))
                yield from list(_leave_out_sections(own, near, each, against)) or [whole]
                break


def _leave_out_sections(
    own: Sequence[Passage], near: Sequence[Passage], conflicting: Against, against: Sequence[Against]
) -> Iterator[LeftOut]:
    """The sections that conflict, of passages that have several.

    None where what stands around them conflicts, or may go on with one of them.
    """
    split = [(passage, *split_sections(passage)) for passage in own]
    is_of_sections = all(sections and not (lead and len(own) > 1) for _, lead, sections in split)
    around = (*(replace(passage, text=lead) for passage, lead, _ in split), *near)
    if not is_of_sections or find_mention(around, conflicting):
        return
    for passage, lead, sections in split:
        found = [[(find_mention([section], each), each) for each in against] for section in sections]
        reasons = [next(((said, each) for said, each in pairs if said), None) for pairs in found]
        safe = [section.text for section, why in zip(sections, reasons, strict=True) if not why]
        rest = (replace(passage, text="\n".join(filter(None, (lead, *safe)))),) if safe else ()
        for section, why in zip(sections, reasons, strict=True):
            if why:
                title, (said, each) = section.text.partition(":")[0], why
                yield LeftOut(title, each.statement, (section,), said, rest, _name_thing(title, said, each))


def _name_thing(title: str, reason: Sentence, against: Against) -> str:
    """The word of a sentence for what is avoided; empty where it takes several, or where the title has it."""
    if isinstance(against, Condition) or mentions_any(title, against.things):
        return ""
    words = re.findall(r"[\w-]+", reason.text)
    return next((word.lower() for word in words if mentions_any(word, against.things)), "")


def _keep_conflicting(passages: Sequence[Passage], against: Against) -> tuple[Passage, ...]:
    """Of a document without headings, which may be of many things, the passages that are to be left out.

    For health all of them, save those that say that they are without; for a diet, those that speak of what is avoided
    and not of doing without it; for a warning, those that have it.
    """
    told = tuple(each for each in passages if find_mention([each], against))
    if isinstance(against, Condition):
        return told
    if against.severity == "health":
        stems = {passage.id: content_stems(passage.text) for passage in passages}
        named = {id for id, held in stems.items() if any(thing <= held for thing in against.things)}
        return tuple(each for each in passages if each in told or each.id not in named)
    return tuple(each for each in told if not _DOING_WITHOUT.search(each.text))


def find_mention(passages: Iterable[Passage], against: Against) -> Sentence | None:
    """The first sentence that speaks of what is avoided; where only a title does, the first sentence at all.

    What a title or a sentence says it does without counts where health is concerned, not for a diet ("Vegetarians eat
    no meat"). Of a condition, the first sentence that warns whoever has it.
    """
    for passage in passages:
        sentences = split_sentences(passage.text)
        if isinstance(against, Condition):
            found = (text for text in sentences if forbids(text) and against.named.search(text))
        else:
            things = _drop_claimed(passage.title, against)
            found = (text for text in sentences if _speaks_of(text, against, things))
        if text := next(found, ""):
            return Sentence(text, (passage.id,))
        if sentences and isinstance(against, Avoidance) and _is_titled(passage.title, against):
            return Sentence(sentences[0], (passage.id,))
    return None


def _speaks_of(text: str, avoidance: Avoidance, things: Sequence[Thing]) -> bool:
    """Whether a sentence speaks of any of these things, which the person avoids."""
    label = LABELLED.match(text)
    if label and _is_replaced(label["label"], avoidance):
        text = text[label.end() :]
    if avoidance.severity != "health" or avoidance.replaced:
        text = _INSTEAD.sub(" ", text)
    return mentions_any(text, _drop_claimed(text, replace(avoidance, things=tuple(things))))


def _is_titled(title: str, avoidance: Avoidance) -> bool:
    """Whether a heading names what is avoided, and not only what is to be replaced."""
    return any(
        mentions_any(heading, avoidance.things) and not _is_replaced(heading, avoidance)
        for heading in title.split(": ")
    )


def _is_replaced(heading: str, avoidance: Avoidance) -> bool:
    """Whether a heading is but the name of what something else is asked for in the place of."""
    return bool(avoidance.replaced) and content_stems(heading) <= avoidance.replaced


def _drop_claimed(text: str, avoidance: Avoidance) -> tuple[Thing, ...]:
    """What is avoided, without what a text says it does without; for health all of it."""
    if avoidance.severity == "health":
        return avoidance.things
    claimed = set[Thing]()
    for found in _CLAIMED.finditer(text):
        diet, kind = (found["diet"] or "").lower(), content_stems(found["kind"] or "")
        left_out = map(content_stems, DIETS[_ALSO_CALLED.get(diet, diet)]) if diet else KIND_STEMS.get(kind, ())
        claimed |= {kind, *left_out}
    return tuple(thing for thing in avoidance.things if thing not in claimed)


def _find_warnings(
    passages: Sequence[Passage], dishes: Mapping[str, str], needs: PersonalNeeds
) -> Iterator[tuple[Sentence, Statement]]:
    """Every warning that bears on the person, once of each dish, with the statement that it bears on."""
    seen: set[tuple[str, str]] = set()
    for passage in passages if needs else ():
        under_warnings = is_warning(passage.title.rpartition(": ")[2])
        for text in split_sentences(passage.text):
            said = dishes[passage.id], text
            if said not in seen and (statement := find_warned(text, needs, under_warnings=under_warnings)):
                seen.add(said)
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
