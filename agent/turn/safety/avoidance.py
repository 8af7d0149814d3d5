"""What a person must or would rather avoid, read off statements: "I'm allergic to peanuts", "I hate long flights".

By rules, not by a threshold: whether a statement bears on the turn is for `personal_safety.py`. Where the rules err,
they err on the side of avoiding.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from agent.turn.attribution import content_words
from agent.turn.safety.source_warnings import Condition, find_conditions
from indexes.text.sentences import split_sentences
from indexes.words import list_food, list_words, match_any
from schemas.records import ScoredStatement, Statement

Thing = frozenset[str]  # stems that a sentence must all have to speak of it
# Allergies and pregnancy, where a trace is dangerous; intolerances and diets; the last may be heeded, the others must.
Severity = Literal["health", "diet", "dislike"]


@dataclass(frozen=True, slots=True)
class Avoidance:
    """A statement that speaks against some things."""

    statement: Statement
    severity: Severity
    things: tuple[Thing, ...]
    replaced: Thing = frozenset()  # what something else is asked for in the place of, if anything

    @property
    def is_must(self) -> bool:
        """Whether it must be heeded, whatever else is asked for."""
        return self.severity != "dislike"


@dataclass(frozen=True, slots=True)
class PersonalNeeds:
    """What a person must or would rather avoid, and the conditions that warnings may be about."""

    avoidances: tuple[Avoidance, ...] = ()
    conditions: tuple[Condition, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.avoidances or self.conditions)


KINDS, DIETS = list_food("kinds"), list_food("diets")
PREGNANCY = (*KINDS["alcohol"], *list_words("pregnancy", ["food"]))
_ALLERGY = r"(?:allergic|hypersensitive|allerg(?:y|ies)|allergic reactions?|anaphyla\w+)"
_INTOLERANCE = r"(?:intolerant|intolerances?)"
_BEFORE = (  # from the beginning of a line: tried at every place, it would take the square of the length
    r"^\W*(?:.*\b(?:a|an|the|my|with|have|has|had|got|is|am|are|m|was|been|severe|mild|bad|serious|strong|\w+'s)\s+)?"
    r"(?P<things>\w.*?)[ -]"
)
_MUST = r"(?:can't|cannot|can not|may not|mustn't|must not|shouldn't|should not|(?:not|n't) (?:able|allowed) to)"
_NEVER = r"(?:do not|does not|don't|doesn't|never)"
_THINGS = r"\b(?P<things>.*)"
_SEVERITIES: tuple[tuple[str, Severity], ...] = (
    (rf"\b{_ALLERGY} (?:to|of|from){_THINGS}", "health"),
    (rf"{_BEFORE}(?:allerg(?:y|ies|ic))\b(?! (?:to|of|from)\b)", "health"),
    (rf"\b{_INTOLERANCE} (?:to|of|from){_THINGS}", "diet"),
    (rf"{_BEFORE}{_INTOLERANCE}\b(?! (?:to|of|from)\b)", "diet"),
    (rf"\b(?:can't|cannot|do not|don't|doesn't) tolerate{_THINGS}", "diet"),
    (rf"\b{_MUST} (?:eat|drink|have|consume|touch){_THINGS}", "diet"),
    (rf"\b{_NEVER} (?:eat|drink|consume|touch){_THINGS}", "diet"),
    (
        r"\b(?:avoids? (?!\w+ing\b)|stays? away from|abstains? from|gave up|stopped (?:eating|drinking))"
        rf"{_THINGS}",
        "diet",
    ),
    (rf"\b(?:hates?|dislikes?|avoids? (?=\w+ing\b)|can't stand|(?:can't|cannot) (?:use|wear)){_THINGS}", "dislike"),
    (rf"\b{_NEVER} (?:like|enjoy|want|use|wear){_THINGS}", "dislike"),
)
_PATTERNS = tuple((re.compile(pattern, re.IGNORECASE | re.MULTILINE), severity) for pattern, severity in _SEVERITIES)
# "No alcohol.", "my meals are gluten-free", "nuts make me ill": of well-known things alone.
_HARMED = r"(?:\w+ ){0,2}?(?:ill|sick|hives|rash(?:es)?|swell|itch\w*|wheez\w*|cramps|migraines?|bloated|anaphyla\w+)\b"
_LOOSE_SEVERITIES: tuple[tuple[str, Severity], ...] = (
    (r"^no (?P<things>[^.]*)", "diet"),
    (r"(?P<things>\w+)[ -]free\b", "diet"),
    (r"\b(?:sensitive|sensitivity|react(?:s|ed|ions?)?(?: \w+)?) to\b(?P<things>.*)", "health"),
    (rf"^\W*(?P<things>\w.*?) (?:makes?|made|gives?|gave) (?:me|us|him|her|my \w+) {_HARMED}", "health"),
    (rf"\bget {_HARMED} (?:from|of|after|when)\b(?P<things>.*)", "health"),
    (r"\b(?:can't|cannot) do\b(?P<things>.*)", "diet"),
    (r"\b(?:watch out for|careful with|(?:am|'m|is|been|stay|keep) off)\b(?P<things>.*)", "diet"),
)
_LOOSELY = tuple((re.compile(pattern, re.IGNORECASE), severity) for pattern, severity in _LOOSE_SEVERITIES)
_DIET = re.compile(rf"\b(?P<diet>{'|'.join(DIETS)})s?\b", re.IGNORECASE)
_PREGNANT = re.compile(r"\b(?:pregnan(?:t|cy)|expecting (?:a|our|my|her) (?:\w+ )?(?:baby|child))\b", re.IGNORECASE)
_NO_ALCOHOL = re.compile(
    r"\b(?:(?:do not|don't|doesn't|never) drink(?: anymore| at all)?$|sober\b|recovering alcoholic)"
)
_SUBJECT = r"(?:i|i'm|we|my|he|she|they|it|it's|our)\b"
_CLAUSES = re.compile(
    rf"[.;:!?]|,? \b(?:and|but|because|since|as|so|although|though|while)\b (?={_SUBJECT})|, (?={_SUBJECT})",
    re.IGNORECASE,
)
_ITEMS = re.compile(r"[,/&]|\b(?:and|or|nor|as well as|plus)\b", re.IGNORECASE)
_TAIL = re.compile(
    r"\b(?:because|but|so|since|that much|anymore|any more|which|who|when|if|during|due to|at all|at home|except"
    r"|especially to)\b.*",
    re.IGNORECASE,
)
_VAGUE = re.compile(
    rf"\b(?:(?:kind|sort|type)s? of|such as|dishes with|the taste of|taste of|suffers? from|life-threatening"
    rf"|{match_any('vague')})\b",
    re.IGNORECASE,
)
_HABIT = re.compile(r"^\s*(?:out|much|a lot|well|late|early|enough)\b", re.IGNORECASE)  # "I don't eat out"
_DENIED = re.compile(
    r"(?:\bnot(?! only| just)|n't|\bno longer|\bused to (?:be|have)|\bout ?gr[eo]wn?|\bgr[eo]wn? out of|\bnever|\bno"
    r"|\bwithout)(?:\s+[\w']+){0,4}\s*$",
    re.IGNORECASE,
)
_NO_MORE = re.compile(r"\bbut not any ?(?:more|longer)\b", re.IGNORECASE)
_LISTED = re.compile(r"\b(allerg(?:y|ies|ic)|intolerances?)\s*:(?=\s*\w)", re.IGNORECASE)  # "Allergies: nuts, eggs"
_NO = re.compile(r"\s*(?:no|not|never)\b", re.IGNORECASE)
_SELF = re.compile(r"\b(?:i|we|my|our)\b", re.IGNORECASE)
_OPENING = re.compile(r"^(?:and|but|so|well|hi|hello|as|since|because|given that|also)\s+", re.IGNORECASE)
_ASKING = "what|which|how|where|when|who|why|can|could|should|is|are|do|does|would|will|tell|give|recommend|suggest"
_QUESTION = re.compile(
    rf"(?:^|[,;:–—]\s*|\b(?:and|so|but)\s+)(?:{_ASKING})\b.*?"
    r"(?:\?|$|(?=,? \b(?:as|since|because|given|considering|if|i'm|i am)\b))",
    re.IGNORECASE,
)
_OF_ANOTHER = re.compile(r"\s*(?:my|our|his|her|their|he|she|they)\b(?! \w+ and (?:i|me)\b)", re.IGNORECASE)
MAX_CLAUSE, OVERLAP = 1000, 200  # characters


def find_needs(
    ptkb: Sequence[Statement], selected_statements: Sequence[ScoredStatement], utterances: Iterable[str]
) -> PersonalNeeds:
    """What all of a person's statements and their own utterances say they must heed; dislikes only where selected."""
    chosen = [scored.statement for scored in selected_statements]
    own_words = [Statement("", text) for utterance in utterances for text in split_told(utterance)[0]]
    needs = [_read_statement(statement) for statement in dict.fromkeys((*ptkb, *chosen, *own_words))]
    avoidances = (avoidance for need in needs for avoidance in need.avoidances)
    heeded = tuple(each for each in avoidances if each.is_must or each.statement in chosen)
    return PersonalNeeds(heeded, tuple(condition for need in needs for condition in need.conditions))


@lru_cache(maxsize=1000)
def _read_statement(statement: Statement) -> PersonalNeeds:
    """All that a statement says. It is kept: a topic's statements are read at each of its turns."""
    return PersonalNeeds(tuple(_read_avoidances(statement)), tuple(find_conditions(statement)))


def _read_avoidances(statement: Statement) -> Iterator[Avoidance]:
    """What a statement speaks against, by severity."""
    text = _LISTED.sub(r"\1 to", statement.text.replace("’", "'"))
    clauses = [clause.strip() for clause in _CLAUSES.split(text) if clause]
    pieces = (  # of a clause that nobody says, parts that overlap: patterns take the square of its length
        clause[start : start + MAX_CLAUSE]
        for clause in clauses
        for start in range(0, max(1, len(clause) - OVERLAP), MAX_CLAUSE - OVERLAP)
    )
    found = [pair for piece in pieces for pair in _read_clause(piece)]
    severities: tuple[Severity, ...] = ("health", "diet", "dislike")
    for severity in severities:
        things = tuple(dict.fromkeys(thing for kind, thing in found if kind == severity and thing))
        if things:
            yield Avoidance(statement, severity, things)


def _read_clause(clause: str) -> Iterator[tuple[Severity, Thing]]:
    for pattern, severity in _PATTERNS:
        found = pattern.search(clause)
        if found and not _is_denied(clause, found) and not _HABIT.match(found["things"]):
            yield from ((severity, thing) for thing in _read_list(found["things"], severity))
    for pattern, severity in _LOOSELY:
        if (loose := pattern.search(clause)) and not _DENIED.search(clause[: loose.start()]):
            named = _read_list(loose["things"], severity)
            yield from ((severity, thing) for thing in named if thing in KNOWN_THINGS)
    yield from _read_condition(clause)


def _read_condition(clause: str) -> Iterator[tuple[Severity, Thing]]:
    """What a diet leaves out, and what is left out in pregnancy or by those who do not drink."""
    diet, pregnant = _DIET.search(clause), _PREGNANT.search(clause)
    if diet and not _DENIED.search(clause[: diet.start()]):
        name = diet["diet"].lower()
        is_illness = name in ("celiac", "coeliac")
        severity: Severity = "dislike" if _OF_ANOTHER.match(clause) and not is_illness else "diet"
        yield from ((severity, content_stems(word)) for word in DIETS[name])
    if pregnant and not _DENIED.search(clause[: pregnant.start()]):
        yield from (("health", content_stems(words)) for words in PREGNANCY)
    if _NO_ALCOHOL.search(clause):
        yield from (("diet", content_stems(word)) for word in KINDS["alcohol"])


def _is_denied(clause: str, found: re.Match[str]) -> bool:
    """Whether a clause denies what is found in it: "I'm not allergic to nuts", "I have no nut allergy"."""
    start = found.start() if found.end("things") == found.end() else found.start("things")
    return bool(_DENIED.search(clause[:start]) or _NO.match(found["things"]) or _NO_MORE.search(clause))


def _read_list(listed: str, severity: Severity) -> Iterator[Thing]:
    """The things of a list, and what each takes in, where it is a well-known kind."""
    for item in _ITEMS.split(_TAIL.sub("", listed)):
        thing = content_stems(_VAGUE.sub(" ", item))
        if thing:
            yield thing
            yield from _expand(thing, parts=severity == "health")


def _expand(thing: Thing, *, parts: bool) -> Iterator[Thing]:
    """What a kind takes in; with `parts`, also a kind that is only a part of the thing, as in "raw peanuts"."""
    for name, members in KIND_STEMS.items():
        if name == thing or (parts and name < thing and not any(name < other <= thing for other in KIND_STEMS)):
            yield from members


def split_told(utterance: str) -> tuple[list[str], str]:
    """What people say in an utterance that they must avoid, and the rest, which asks: "I'm vegan. What can I bake?"."""
    told, rest = list[str](), list[str]()
    for sentence in split_sentences(utterance.replace("’", "'")):
        said = _OPENING.sub("", _QUESTION.sub("", sentence).strip(" ,;:?!."))
        if _SELF.search(said) and any(_read_avoidances(Statement("", said))):
            told.append(f"{said[0].upper()}{said[1:]}.")
            rest.extend(found[0] for found in _QUESTION.finditer(sentence))
        else:
            rest.append(sentence)
    return told, " ".join(rest)


def content_stems(text: str) -> Thing:
    """The stems of the words of a text that say something."""
    return frozenset(word.stem for word in content_words(text))


KIND_STEMS = {content_stems(name): [content_stems(word) for word in words] for name, words in KINDS.items()}
KNOWN_THINGS = frozenset(KIND_STEMS) | {thing for members in KIND_STEMS.values() for thing in members}


RequestKind = Literal["recommendation", "fact", "unsure"]
MAX_ELLIPTICAL_WORDS = 5  # "And tomorrow?" goes on with what was asked for before

_PLAIN_FACT = re.compile(
    r"^\W*(?:and |but |so )?"
    r"(?:how (?:much|many|long|old|far|hot|big|large|often|late|early|high|deep|expensive)|when|who|whose|where is|why"
    r"|(?:how )?(?:does|do|did|is|are|was|were|has|have) (?:the|this|that|it|its|they|these|those)\b)\b|\bavoid\b",
    re.IGNORECASE,
)
# "Is the satay safe for me?" asks for a judgement, not for a fact.
_FOR_ONESELF = re.compile(
    r"\b(?:safe|ok(?:ay)?|fine|suitable|all ?right|good|bad|dangerous|harmful|risky)\b[^?]*"
    r"\bfor (?:me|us|my \w+|our \w+)\b"
    r"|\b(?:contain|have|has|include|is there|are there)s?\b[^?]*\b(?:anything|something|things?|what)\b[^?]*"
    r"\b(?:i|we) (?:must|should|have to|need to|can|may|am|are)\b"
    r"|\b(?:is|are)\b[^?]*\b(?:safe|ok(?:ay)?|suitable|all ?right)(?: to (?:eat|drink|have|take|try))?\s*\?*$",
    re.IGNORECASE,
)
_RECOMMENDATION = re.compile(
    r"\b(?:recommend\w*|suggest\w*|advice|advise|ideas?|options?|alternatives?|substitutes?|what to"
    r"|(?:should|could|can|may|shall|might) (?:i|we|one|my \w+|he|she|they)"
    r"|recipes?|dinner|lunch|breakfast|brunch|supper|snacks?|dish(?:es)?|meals?|menus?|desserts?|hungry|restaurants?"
    r"|(?:something|anything) (?:to|for|else|nice|good|tasty|quick|easy|sweet|savoury|healthy)"
    r"|(?:what|which|any|some)\b[^?]*\b(?:best|good|healthy|suitable|safe|nice|tasty|quick|easy|else)"
    r"|looking for|i(?:'d| would) like|i want|i need|give me|find me|help me (?:find|choose|pick|plan)|another"
    r"|which (?:of|ones?)|(?:what|how) about|instead of|in place of|replac\w+)\b",
    re.IGNORECASE,
)
_FACT = re.compile(
    r"^\W*(?:and |but |so |ok(?:ay)?,? |thanks[,!.]? )?"
    r"(?:(?:what|which)(?:'s| is| are| was| were)? (?:the|in|a|an)|what (?:does|do|did)|(?:please )?(?:tell|remind) me"
    r"|(?:can|could|would) you (?:please )?(?:tell|explain|describe|compare|elaborate)|explain|describe|compare|define"
    r"|let's talk)\b",
    re.IGNORECASE,
)


def classify_request(utterances: Sequence[str]) -> RequestKind:
    """What the last of a person's utterances asks for; a very short one asks for what the one before it does."""
    for utterance in reversed(utterances):
        asked = split_told(utterance)[1]
        kind = _classify(asked)
        if kind != "unsure" or len(asked.split()) > MAX_ELLIPTICAL_WORDS:
            return kind
    return "unsure"


def _classify(asked: str) -> RequestKind:
    """By the last of the sentences that tells."""
    for sentence in reversed(split_sentences(asked)):
        if _FOR_ONESELF.search(sentence):
            return "recommendation"
        if _PLAIN_FACT.search(sentence):
            return "fact"
        if _RECOMMENDATION.search(sentence):
            return "recommendation"
        if _FACT.search(sentence):
            return "fact"
    return "unsure"
