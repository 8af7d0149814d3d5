"""What a person must or would rather avoid, read off statements: "I'm allergic to peanuts", "I hate long flights".

And what an utterance asks for, a recommendation or a fact, and which needs that lets rule something out. By rules, not
by a threshold. Where they err, they err on the side of avoiding. The words are those of `indexes/words`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from agent.turn.attribution import content_words
from indexes.text.sentences import split_sentences
from indexes.words import compile_any, list_food, list_words, match_any, read_file
from schemas.records import ScoredStatement, Statement

Thing = frozenset[str]  # stems that a sentence must all have to speak of it
# Allergies and pregnancy, where a trace is dangerous; intolerances and diets; what warnings may be about, as asthma or
# a cat in the house; and what may be heeded, while the others must.
Severity = Literal["health", "diet", "condition", "dislike"]


@dataclass(frozen=True, slots=True)
class Need:
    """A statement that speaks against some things, or by which a warning bears on the person."""

    statement: Statement
    severity: Severity
    things: tuple[Thing, ...] = ()
    named: re.Pattern[str] | None = None  # what warnings call a condition
    replaced: Thing = frozenset()  # what something else is asked for in the place of, if anything

    @property
    def is_must(self) -> bool:
        """Whether it must be heeded, whatever else is asked for."""
        return self.severity != "dislike"


def content_stems(text: str) -> Thing:
    """The stems of the words of a text that say something."""
    return frozenset(word.stem for word in content_words(text))


def find_stems(text: str) -> Thing:
    """The stems of a sentence, without what is absent ("no peanuts") or something else ("almond milk")."""
    return content_stems(_ABSENT.sub(" ", _COMPOUND.sub(r"\1\2", text.replace("’", "'"))))


_PLANTS, _GRAINS, _OTHER_THINGS = (match_any(name, ["food"]) for name in ("plants", "grains", "other_things"))
_ABSENT = compile_any("warnings.absent", other_things=_OTHER_THINGS)
_COMPOUND = compile_any("warnings.compound", plants=_PLANTS, grains=_GRAINS)
KINDS, DIETS = list_food("kinds"), list_food("diets")
KIND_STEMS = {content_stems(name): [content_stems(word) for word in words] for name, words in KINDS.items()}
KNOWN_THINGS = frozenset(KIND_STEMS) | {thing for members in KIND_STEMS.values() for thing in members}
MAX_LEAD = 200  # characters before what is found that may name or deny it
SEVERITIES: tuple[Severity, ...] = ("health", "diet", "dislike")

# What is avoided stands behind a pattern or before it; some patterns are those of well-known things alone.
_RULES = tuple(
    (compile_any(f"avoidance.{severity}{place}"), severity, "before" in place, "known" in place)
    for severity in SEVERITIES
    for place in ("", "_before", "_known", "_known_before")
    if f"{severity}{place}" in read_file("en")["avoidance"]
)
# What somebody is, and what is left out for it.
_STATES: tuple[tuple[re.Pattern[str], Severity, tuple[str, ...]], ...] = (
    *((re.compile(rf"\b{name}s?\b", re.IGNORECASE), "diet", things) for name, things in DIETS.items()),
    (compile_any("avoidance.pregnant"), "health", (*KINDS["alcohol"], *list_words("pregnancy", ["food"]))),
    (compile_any("avoidance.sober"), "diet", KINDS["alcohol"]),
)
# A condition that a person may have by a statement, and what a warning calls it.
_CONDITIONS = tuple(
    (re.compile(rf"\b(?:{has})", re.IGNORECASE), re.compile(rf"\b(?:{named})", re.IGNORECASE))
    for has, named in read_file("food")["conditions"]["pairs"]
)
# A medicine: "I take warfarin". Whatever else is taken, no warning speaks of taking it.
_TAKES = re.compile(r"\b(?:take|takes|taking|am on|'m on|is on|prescribed) (?P<what>[a-z]{5,})\b", re.IGNORECASE)
_SUBJECT = r"(?:i|i'm|we|my|he|she|they|it|it's|our)\b"
_CLAUSES = re.compile(
    rf"[.;!?]|,? \b(?:and|but|because|since|as|so|although|though|while)\b (?={_SUBJECT})|, (?={_SUBJECT})",
    re.IGNORECASE,
)
_ITEMS = re.compile(r"[,/&]|\b(?:and|or|nor|as well as|plus)\b", re.IGNORECASE)
_LEAD = re.compile(rf"(?<!\band )(?<!\bor )\b(?:{match_any('avoidance.lead')})\s+", re.IGNORECASE)
_TAIL = re.compile(rf"\b(?:{match_any('avoidance.tail')})\b.*", re.IGNORECASE | re.DOTALL)
_VAGUE = re.compile(rf"\b(?:{match_any('avoidance.vague_phrases')}|{match_any('vague')})\b", re.IGNORECASE)
_DENIED = compile_any("avoidance.denied")  # before what is found
_DENIED_AFTER = re.compile(r"\s*(?:no|not|never)\b|.*\bbut not any ?(?:more|longer)\b", re.IGNORECASE)
_HATED = re.compile(r"\b(?:hates?|dislikes?)\b", re.IGNORECASE)
_OF_ANOTHER = re.compile(r"\s*(?:my|our|his|her|their|he|she|they)\b(?! \w+ and (?:i|me)\b)", re.IGNORECASE)
_SELF = re.compile(r"\b(?:i|we|my|our)\b", re.IGNORECASE)
_OPENING = re.compile(r"^(?:and|but|so|well|hi|hello|as|since|because|given that|also)\s+", re.IGNORECASE)
_QUESTION = compile_any("requests.question")


def find_needs(
    ptkb: Sequence[Statement], selected_statements: Sequence[ScoredStatement], utterances: Iterable[str]
) -> tuple[Need, ...]:
    """What all of a person's statements and their own utterances say they must heed; dislikes only where selected."""
    chosen = [scored.statement for scored in selected_statements]
    told = [Statement("", text) for utterance in utterances for text in split_told(utterance)[0]]
    needs = (need for statement in dict.fromkeys((*ptkb, *chosen, *told)) for need in _read_statement(statement))
    heeded = (need for need in needs if need.is_must or need.statement in chosen)
    return tuple(sorted(heeded, key=lambda need: need.severity == "condition"))  # what is avoided tells more


@lru_cache(maxsize=1000)
def _read_statement(statement: Statement) -> tuple[Need, ...]:
    """All that a statement says. It is kept: a topic's statements are read at each of its turns."""
    text = statement.text.replace("’", "'")
    found = [pair for clause in _CLAUSES.split(text) if clause for pair in _read_clause(clause.strip())]
    things = {kind: tuple(dict.fromkeys(thing for severity, thing in found if severity == kind)) for kind in SEVERITIES}
    avoided = (Need(statement, severity, things[severity]) for severity in SEVERITIES if things[severity])
    return (*avoided, *(Need(statement, "condition", named=named) for named in _find_conditions(text)))


def _read_clause(clause: str) -> Iterator[tuple[Severity, Thing]]:
    for pattern, severity, is_before, is_known in _RULES:
        matches = list(pattern.finditer(clause))
        ends = [*(found.start() for found in matches[1:]), len(clause)]
        for found, end in zip(matches, ends, strict=False):
            lead = clause[max(0, found.start() - MAX_LEAD) : found.start()]
            listed = _LEAD.split(lead)[-1] if is_before else clause[found.end() : end]
            before = lead.removesuffix(listed) if is_before else lead
            after = (listed if is_before else "") + clause[found.end() : found.end() + MAX_LEAD]
            if not (_DENIED.search(before) or _DENIED_AFTER.match(after)):
                things = _read_list(listed, severity)
                yield from ((severity, thing) for thing in things if not is_known or thing in KNOWN_THINGS)
    for pattern, severity, left_out in _STATES:
        state = pattern.search(clause)
        if state and not _DENIED.search(clause[max(0, state.start() - MAX_LEAD) : state.start()]):
            is_choice = severity == "diet" and _OF_ANOTHER.match(clause) and "eliac" not in state[0]
            yield from (("dislike" if is_choice else severity, content_stems(words)) for words in left_out)


def _read_list(listed: str, severity: Severity) -> Iterator[Thing]:
    """The things of a list, and what each takes in, where it is a well-known kind."""
    for item in _ITEMS.split(_TAIL.sub("", listed)):
        if thing := content_stems(_VAGUE.sub(" ", item)):
            yield thing
            yield from _expand(thing, parts=severity == "health")


def _expand(thing: Thing, *, parts: bool) -> Iterator[Thing]:
    """What a kind takes in; with `parts`, also a kind that is only a part of the thing, as in "raw peanuts"."""
    for name, members in KIND_STEMS.items():
        if name == thing or (parts and name < thing and not any(name < other <= thing for other in KIND_STEMS)):
            yield from members


def _find_conditions(text: str) -> Iterator[re.Pattern[str]]:
    """What warnings call the conditions and medicines that a person has by a statement, save what it denies."""
    for has, named in _CONDITIONS:
        if (found := has.search(text)) and not _has_not(text[: found.start()]):
            yield named
    if (taken := _TAKES.search(text)) and not _has_not(text[: taken.start()]):
        medicine = taken["what"].lower()
        kinds = (name for name, members in KINDS.items() if medicine in members)  # simvastatin is a statin
        called = "|".join(map(re.escape, dict.fromkeys((medicine, *kinds))))
        yield re.compile(rf"\b(?:tak\w+|us(?:e|ing)|with|on) (?:\w+ )?(?:{called})s?\b", re.IGNORECASE)


def _has_not(before: str) -> bool:
    return bool(_DENIED.search(before[-MAX_LEAD:]) or _HATED.search(before))


def split_told(utterance: str) -> tuple[list[str], str]:
    """What people say in an utterance that they must avoid, and the rest, which asks: "I'm vegan. What can I bake?"."""
    told, rest = list[str](), list[str]()
    for sentence in split_sentences(utterance.replace("’", "'")):
        said = _OPENING.sub("", _QUESTION.sub("", sentence).strip(" ,;:?!."))
        if _SELF.search(said) and any(need.severity != "condition" for need in _read_statement(Statement("", said))):
            told.append(f"{said[0].upper()}{said[1:]}.")
            rest.extend(found[0] for found in _QUESTION.finditer(sentence))
        else:
            rest.append(sentence)
    return told, " ".join(rest)


RequestKind = Literal["recommendation", "fact", "unsure"]
MAX_ELLIPTICAL_WORDS = 5  # "And tomorrow?" goes on with what was asked for before
# The first that fits tells. "Is the satay safe for me?" asks for a judgement, not for a fact.
_REQUESTS: tuple[tuple[re.Pattern[str], RequestKind], ...] = (
    (compile_any("requests.judgement"), "recommendation"),
    (compile_any("requests.plain_fact"), "fact"),
    (compile_any("requests.recommendation"), "recommendation"),
    (compile_any("requests.fact"), "fact"),
)
_ASKS_LEAVE = compile_any("requests.leave")
INSTEAD = compile_any("requests.instead")


def classify_request(utterances: Sequence[str]) -> RequestKind:
    """What the last of a person's utterances asks for; a very short one asks for what the one before it does."""
    for utterance in reversed(utterances):
        asked = split_told(utterance)[1]
        sentences = reversed(split_sentences(asked))  # the last that tells
        kinds = (kind for sentence in sentences for pattern, kind in _REQUESTS if pattern.search(sentence))
        if (kind := next(kinds, None)) or len(asked.split()) > MAX_ELLIPTICAL_WORDS:
            return kind or "unsure"
    return "unsure"


def choose_bearing(needs: Sequence[Need], utterances: Sequence[str]) -> tuple[list[Need], list[Need]]:
    """What rules something out of this answer, and what is only to be noted of it; neither what the question names.

    Where a fact is asked for, nothing is ruled out, and what is avoided for health is noted; it is ruled out where that
    is unsure.
    """
    kind = classify_request(utterances)
    bearing = [each for each in needs if kind == "recommendation" or each.severity == "health"]
    avoided = drop_asked_about([each for each in bearing if each.severity != "condition"], utterances[-1])
    conditions = [each for each in bearing if each.severity == "condition"]
    return ([], avoided) if kind == "fact" else ([*avoided, *conditions], [])


def drop_asked_about(needs: Sequence[Need], utterance: str) -> list[Need]:
    """The needs without the things that the utterance itself asks for; all where it asks whether one may."""
    question = split_told(utterance)[1]
    if _ASKS_LEAVE.match(question):
        return list(needs)
    asked = find_stems(INSTEAD.sub(" ", question))
    replaced = content_stems(" ".join(found[0] for found in INSTEAD.finditer(question)))
    left = (
        replace(each, things=tuple(thing for thing in each.things if not thing <= asked), replaced=replaced)
        for each in needs
    )
    return [each for each in left if each.things]
