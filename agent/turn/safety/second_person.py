"""A person's statement as one says it back to them: "I am allergic to nuts." is "you are allergic to nuts"."""

import re
from collections.abc import Sequence

from agent.turn.interface_sentences import SENTENCES, InterfaceSentences
from indexes.text.analysis import ENGLISH

MAX_CHARACTERS = 120  # of a statement that is said back in other words; a longer one is quoted
_TURNED = (
    (r"i(?:'m| am)", "you are"),
    (r"i was", "you were"),
    (r"i wasn't", "you weren't"),
    (r"i've", "you have"),
    (r"i'll", "you will"),
    (r"i'd", "you'd"),
    (r"we're", "you are"),
    (r"we've", "you have"),
    (r"we'll", "you will"),
    (r"we'd", "you'd"),
    (r"(?:i|we)", "you"),
    (r"(?:my|our)", "your"),
    (r"myself", "yourself"),
    (r"ourselves", "yourselves"),
    (r"me", "you"),
)
_WORDS = re.compile("|".join(rf"(?P<w{n}>\b{word}\b)" for n, (word, _) in enumerate(_TURNED)), re.IGNORECASE)
_OPENING = re.compile(r"(?:i|i'm|i've|i'd|i'll|we|we're|we've|my|our|both my|none of my|one of my)\b", re.IGNORECASE)
# What cannot be turned word by word: who is meant is not sure, or "I" is a number, "mine" a pit, "US" a country.
_UNSURE = re.compile(
    r"[\"“”?!.;:]|\byou\b|\byour|\bam i\b|\b(?:type|part|phase|stage|class|war|vitamin|grade|level) I\b|\bmine\b"
    r"|\bus\b|\bam\b(?<!\bi am)",
    re.IGNORECASE,
)
_CONCLUSION = re.compile(r", so (?=i\b).*", re.IGNORECASE)  # "so I have to be careful": what follows says its own "so"
_UPPER_ME = re.compile(r"\bME\b")


def turn_to_you(statement: str) -> str:
    """The statement as said to the person, without its full stop; empty where that cannot be done surely."""
    text = statement.replace("’", "'").strip().rstrip(" .!")
    text = _CONCLUSION.sub("", text)
    if len(text) > MAX_CHARACTERS or not _OPENING.match(text) or _UNSURE.search(text) or _UPPER_ME.search(text):
        return ""
    return _WORDS.sub(lambda found: _TURNED[int(str(found.lastgroup)[1:])][1], text)


def say_told(statement: str, said_in: InterfaceSentences = SENTENCES[ENGLISH]) -> str:
    """What begins a sentence about a statement: "You told me you are vegetarian"; as a quotation where unsure.

    In another language than English, statements are quoted.
    """
    turned = turn_to_you(statement) if said_in == SENTENCES[ENGLISH] else ""
    return f"You told me {turned}" if turned else said_in.told.format(_unquote(statement))


def say_left_out(statement: str, names: Sequence[str], said_in: InterfaceSentences) -> str:
    """The sentence that tells what was left out because of a statement."""
    return said_in.left_out.format(told=say_told(statement, said_in), names=list_names(names, said_in=said_in))


def say_careful(statement: str, names: Sequence[str], said_in: InterfaceSentences) -> str:
    """The sentence that tells that what is told of has what a statement speaks against."""
    return said_in.careful.format(told=say_told(statement, said_in), names=list_names(names, said_in=said_in))


def say_conflict(statements: Sequence[str], names: Sequence[str], said_in: InterfaceSentences) -> str:
    """The sentence that tells that everything found conflicts with some statements, and what that is."""
    turned = [turn_to_you(text) if said_in == SENTENCES[ENGLISH] else "" for text in statements]
    told = [own or f"“{text.rstrip('.')}”" for own, text in zip(turned, statements, strict=True)]
    return said_in.conflict.format(statements="; ".join(told), names=list_names(names, said_in=said_in))


def _unquote(statement: str) -> str:
    return " ".join(re.sub(r"[\"“”]", "'", statement).split())


def list_names(names: Sequence[str], most: int = 3, said_in: InterfaceSentences = SENTENCES[ENGLISH]) -> str:
    """As one says them: "A", "A and B", "A, B and C", "A, B, C and 2 more"."""
    names = list(dict.fromkeys(names))
    shown = names[:most] + ([said_in.more.format(len(names) - most)] if len(names) > most else [])
    return said_in.last.join(filter(None, (", ".join(shown[:-1]), shown[-1])))
