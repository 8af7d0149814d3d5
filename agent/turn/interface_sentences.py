"""What is said to a person in their own language: that nothing was found, what was left out, greetings.

Chosen by the language of the question. In runs everything is in English (`AnswerTuning.own_language`).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from indexes.text.analysis import ENGLISH
from indexes.text.languages import find_question_language
from indexes.words import LANGUAGES, read_file


@dataclass(frozen=True, slots=True)
class InterfaceSentences:
    """The sentences of one language. Statements of the person are quoted, since they are not translated."""

    not_found: str  # before what comes nearest
    nothing: str  # where there is not even that
    told: str  # of a statement
    left_out: str  # of what was told, and the names of what was left out
    careful: str  # of what was told, and the names of what has what the person must avoid
    conflict: str  # of statements, and the names of what conflicts
    last: str  # before the last of several names
    more: str  # names that are not listed, by their number
    hello: tuple[str, ...]
    welcome: str
    agreed: tuple[str, ...]
    goodbye: str
    about_me: str  # of the name of the collection
    talk_words: frozenset[str] = frozenset()  # of greetings and thanks, which are too short to tell the language by


def _read_sentences(language: str) -> InterfaceSentences:
    said = read_file(language)["sentences"]
    return msgspec.convert(said | {"talk_words": said.get("talk_words", "").split()}, InterfaceSentences)


SENTENCES = {language: _read_sentences(language) for language in LANGUAGES}
NOT_FOUND = SENTENCES[ENGLISH].not_found
NOT_FOUND_SENTENCES = tuple(
    text for sentences in SENTENCES.values() for text in (sentences.not_found, sentences.nothing)
)


def choose_sentences(utterances: Sequence[str]) -> InterfaceSentences:
    """Those of the language of the last utterance whose language is sure; English where that is none of the table."""
    found = (find_question_language(utterance) for utterance in reversed(utterances))
    return SENTENCES.get(next(filter(None, found), ENGLISH), SENTENCES[ENGLISH])


def choose_talk(utterance: str) -> InterfaceSentences:
    """Those of a greeting, thanks and the like, by its words; English where none of them tells."""
    words = re.findall(r"[^\W\d_]+", utterance.lower())
    shares = {language: sum(word in own.talk_words for word in words) for language, own in SENTENCES.items()}
    best = max(shares, key=lambda language: shares[language])
    return SENTENCES[best if shares[best] else ENGLISH]


def starts_with_not_found(text: str) -> bool:
    """Whether an answer opens by saying, in any language, that it found none."""
    return text.startswith(NOT_FOUND_SENTENCES)


def strip_not_found(text: str) -> str:
    """What an answer says of the matter: without the opening that says that it found none."""
    opening = next((sentence for sentence in NOT_FOUND_SENTENCES if text.startswith(sentence)), "")
    return text.removeprefix(opening).strip()


MAX_CHARACTERS = 120  # of a statement that is said back in other words; a longer one is quoted
_TURNED = read_file(ENGLISH)["second_person"]["turned"]
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


def say_outcome(sentence: str, statement: str, names: Sequence[str], said_in: InterfaceSentences) -> str:
    """The sentence that tells what came of a statement: `said_in.left_out`, or `said_in.careful`."""
    return sentence.format(told=say_told(statement, said_in), names=list_names(names, said_in=said_in))


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
