"""Finds lasting facts that somebody says about themselves in a question. They are remembered only if the person agrees.

Lasting are allergies, diets, pets, family, home, work, possessions, likings and abilities. What is wanted, done or
planned now is not, nor what happened once, and nothing that is about the conversation.
"""

import re
from collections.abc import Iterable, Iterator

from indexes.text.sentences import split_sentences
from schemas.records import Statement

MAX_CHARACTERS = 200  # characters of a statement
_PARTS = re.compile(
    r"\s*[,;:–—]\s+(?:and\s+|but\s+|so\s+)?|\s+-\s+|\s+(?:so|but)\s+(?=(?:what|which|how|where|when|who|can|could"
    r"|should|is|are|do|does)\b)"
)
_OPENING = re.compile(r"^(?:(?:and|but|so|well|hi|hello|as|since|because|given that|also)\s+)+", re.IGNORECASE)
_ONESELF = re.compile(r"(?:I|we|my|our)\b", re.IGNORECASE)


_I = r"(?:i|we)(?:\s+|(?='))(?:(?:also|still|already|really|just|only|both|all|never)\s+)?"
_AM = r"(?:i|we)(?:\s+(?:am|are)|'m|'re)\s+(?:(?:not|so|very|too|quite|really|just|still|a bit|a little|always)\s+)*"
_HAVE = r"(?:i|we)(?:\s+have|'ve)\s+(?:got\s+)?(?:(?:not|never|just|already|always|also)\s+)*"
_MY = r"(?:my|our)\s+"
_CONVERSATION = (
    "(?:questions?|problems?|issues?|points?|guess|mistakes?|apologies|answers?|messages?|search|request|doubts?"
    r"|(?:own|main|only|real|actual|original|last|previous|first|next|other|second)\s+\w+)"
)
_PAST = (
    "(?:was|were|had|did|said|told|meant|thought|went|came|saw|got|made|took|found|forgot|left|bought|knew|heard"
    "|felt|kept|lost|paid|met|sent|wrote|spoke|ate|drank|broke|began|fell|gave|held|put|ran|sat|slept|spent|stood"
    "|threw|understood"
    r"|won|woke|caught|chose|cut|drove|flew|hit|let|rang|set|shot|sold|stole|tore|(?!need|shed|bleed|feed"
    r"|breed)\w{2,}ed)\b"
)
_MOMENTARY_VERBS = (
    "(?:want|wish|need|wonder|think|guess|mean|see|understand|agree|hope|ask|say|bet|believe|suppose|assume|expect"
    r"|remember|forget|notice|find|get(?! \w*sick)|figure|know|look|try|seem|feel|plan|intend|promise|thank"
    "|appreciate|doubt|worry|wait"
    r"|leave|go|give up|come|start|begin|refer|decide|recall|keep\s+\w+ing|mind)\b"
)
_DAYS = "(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)"

# What is so now or on one day, wherever it stands.
_TEMPORARY = (
    r"\b(?:today|tonight|tomorrow|yesterday|right now|currently|at the moment|for now|in a (?:moment|hurry|minute"
    r"|rush))\b",
    r"\b(?:this|next|last|coming) (?:week|weekend|month|year|time|morning|afternoon|evening|night|spring|summer|autumn"
    rf"|winter|holiday|trip|{_DAYS})\b",
    r"\bat \d{1,2}(?::\d\d)?(?:\s*[ap]m| o'clock)?$",
    rf"\b(?:on|by|until) {_DAYS}\b",
    r"\bin (?:an|\d+|two|three|a few) (?:hours?|minutes?|days?|weeks?)\b",
    r"\bago\b",
)
# What is lasting though it has the form of what is not.
_LASTING = (
    r"(?:i|we) (?:can|can't|cannot) (?:not |only |really |hardly |barely |no longer )?(?:eat|drink|tolerate|digest"
    r"|stand|swim|drive|ride|cycle|climb|walk|run|hear|see (?:well|colou?rs)|speak|cook|bake|dance|sing|play|lift"
    r"|smell|taste|sleep|read (?:music|braille|small)|knit|sew|ski|bear|bend|kneel|have)\b(?! (?:it|that|this|them"
    r"|here|there)\b)",
    _I
    + r"need (?:an? |my )?(?:\w+ )?(?:wheelchair|glasses|insulin|medication|medicine|hearing aids?"
    + "|walking stick|large print)",
    r"(?:i|we) (?:was|were) (?:born|raised)\b",
    r"(?:i|we) (?:grew up|used to (?:be|work|live|smoke|play)|gave up|stopped|quit)\b",
    _HAVE + "been (?:an?|vegan|vegetarian|allergic|married|retired|diabetic)\\b",
)
# What is wanted, done, felt or meant now, or happened once.
_MOMENTARY = (
    _I + f"(?:{_MOMENTARY_VERBS}|{_PAST})",
    _I + r"'?(?:would|will|shall|should|could|may|might|must|d|ll|can|can't|cannot)\b",
    _I + rf"(?:do not|don't) (?:{_MOMENTARY_VERBS}|have (?:time|a clue|any idea))",
    _I + r"(?:didn't|won't|wouldn't|shouldn't|couldn't|haven't|hadn't|wasn't|weren't)\b",
    _I
    + r"(?:don't |do not )?(?:like|love|hate|enjoy|prefer) "
    + r"(?:it|that|this|your|the (?:answer|idea|first|second|last|other))\b",
    _HAVE + rf"(?:(?:an?|some|another|one|no|more|two|any|\w+) )?(?:{_CONVERSATION}|idea|clue|time|meeting|appointment"
    r"|headache|cold|deadline|flight|exam|date|feeling|chance|look|trouble|guests|visitors)\b",
    _HAVE
    + rf"(?:to|(?!got){_PAST}|seen|been|done|gone|read|written|eaten|taken|given|spoken|come|become|begun|chosen)\b",
    _AM + r"(?!living|working|studying|training|raising|breastfeeding|nursing|caring|looking after)\w+ing\b",
    _AM
    + r"(?:sure|sorry|afraid (?!of)|tired|hungry|thirsty|here|there|at\b|back|late|early|about|done|ready"
    + "|confused|stuck|lost"
    r"|curious|interested|happy|glad|sad|angry|worried|supposed|(?:un)?able to (?:find|open|see|get)|on (?:my|the"
    r"|a) |in (?:the|a) |out|off|busy|grateful|aware|certain|unsure|new here|right|wrong|fine|ok|okay|good(?! at"
    r"| with)|bored|ill|sick|cold|hot|to)\b",
    _MY + f"(?:{_CONVERSATION}\\b|bad$)",
    _MY + rf"(?:(?!(?:is|are|has|have) )\w+ ){{1,3}}(?:{_PAST}"
    r"|(?:will|would|might|just|says?|wants?|asks?|thinks?|seems?|won't)\b)",
    _MY
    + r"(?:\w+ ){1,3}(?:is|are) (?:not )?(?:\w+ing|broken|late|about|that|whether|how|what|why|lost|gone|over|due)\b",
    _MY + r"(?:\w+ ){1,3}(?:has|have) (?:just )?(?:been|\w+ed)\b",
    _MY + r"(?:flight|train|bus|plane|ferry|guests?|visitors?|appointment|meeting|order|parcel|deadline)\b",
)
_PHRASE = _MY + r"[\w'-]+( [\w'-]+)?$"  # "my favourite": a thing, and nothing about it


def find_self_disclosures(utterance: str, known: Iterable[Statement] = ()) -> tuple[str, ...]:
    """The lasting facts about the person in an utterance, as sentences, without those that are known already."""
    known_texts = {statement.text.casefold() for statement in known}
    return tuple(text for text in dict.fromkeys(_find_statements(utterance)) if text.casefold() not in known_texts)


def _find_statements(utterance: str) -> Iterator[str]:
    for sentence in split_sentences(utterance):
        parts = [sentence] if _is_about_oneself(sentence) else _PARTS.split(sentence)
        for part in parts:
            statement = _OPENING.sub("", part)
            if _is_about_oneself(statement) and _is_lasting(statement):
                yield f"{statement[0].upper()}{statement[1:].rstrip(' .!')}."


def _is_about_oneself(text: str) -> bool:
    return (
        bool(_ONESELF.match(text)) and not text.endswith("?") and len(text.split()) > 1 and len(text) <= MAX_CHARACTERS
    )


def _is_lasting(statement: str) -> bool:
    """Whether a statement about oneself will still be true in another conversation."""
    text = " ".join(statement.replace("’", "'").lower().rstrip(" .!").split())
    if any(re.search(pattern, text) for pattern in _TEMPORARY):
        return False
    if any(re.match(pattern, text) for pattern in _LASTING):
        return True
    return not any(re.match(pattern, text) for pattern in (*_MOMENTARY, _PHRASE))
