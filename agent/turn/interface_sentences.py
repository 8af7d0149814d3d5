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
from schemas.errors import list_with_limit


@dataclass(frozen=True, slots=True)
class InterfaceSentences:
    """The sentences of one language. Statements of the person are quoted, since they are not translated."""

    not_found: str  # before what comes nearest
    nothing: str  # where there is not even that
    quoted: str  # a statement
    left_out: str  # of statements, and the names of what was left out
    careful: str  # of statements, and the names of what has what the person must avoid
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


MAX_NAMES = 3  # that are listed


def say_why(sentence: str, statements: Sequence[str], names: Sequence[str], said_in: InterfaceSentences) -> str:
    """What came of some statements, as `left_out`, `careful` or `conflict` says it: these quoted, the names listed."""
    plain = [" ".join(re.sub(r"[\"“”]", "'", text).split()).rstrip(" .") for text in statements]
    quoted = "; ".join(said_in.quoted.format(text) for text in plain)
    return sentence.format(statements=quoted, names=list_names(names, said_in))


def list_names(names: Sequence[str], said_in: InterfaceSentences = SENTENCES[ENGLISH]) -> str:
    """As one says them: "A", "A and B", "A, B and C", "A, B, C and 2 more"."""
    shown = list_with_limit(list(dict.fromkeys(names)), MAX_NAMES, said_in.more)
    return said_in.last.join(filter(None, (", ".join(shown[:-1]), shown[-1])))
