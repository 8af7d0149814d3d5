"""Asking which of several documents is meant, and how the reply completes the utterance before. English only."""

import re
from collections.abc import Sequence

from indexes.documents.collection import stem_path
from indexes.words import list_words, load_words
from schemas.records import Message, Response, Sentence

MAX_REPLY_WORDS = 8  # that choose a document; a longer reply asks something else
QUESTION = re.compile(r"Do you mean (“[^“”]+”(?:, “[^“”]+”)*) or something else\?")
REPLY_WORD = re.compile(r"[\w'’-]+")
ORDINALS = list_words("ordinals")
FILLERS, OPENERS = load_words("reply_fillers"), load_words("openers")


def ask_which(names: Sequence[str], passage_ids: Sequence[str]) -> Response:
    """The question that names several documents; it cites their passages."""
    named = ", ".join(f"“{name}”" for name in names)
    return Response((Sentence(f"Do you mean {named} or something else?", tuple(passage_ids)),))


def complete_utterance(history: Sequence[Message], utterance: str) -> tuple[Sequence[Message], str]:
    """The utterance before, with the document that this one chooses, and the history before that.

    Both as they are where the last message is no question of ours, or where the utterance chooses none of its names.
    """
    asked = QUESTION.fullmatch(history[-1].text.strip()) if len(history) > 1 else None
    chosen = choose_name(utterance, re.findall("“([^“”]+)”", asked[1])) if asked else ""
    return (history[:-2], f"{history[-2].text} ({chosen})") if chosen else (history, utterance)


def choose_name(reply: str, names: Sequence[str]) -> str:
    """The name that a reply chooses, by number or by its words; empty where it chooses none, or asks a question."""
    words = REPLY_WORD.findall(reply.lower())
    for place, name in enumerate(names):
        numbers = {ORDINALS[place], str(place + 1), *(("last", "latter") if name == names[-1] else ())}
        if not numbers.isdisjoint(words) and numbers | FILLERS >= set(words):
            return name
    if not words or len(words) > MAX_REPLY_WORDS or words[0] in OPENERS:
        return ""
    shared = {name: len(stem_path(reply) & stem_path(name)) for name in names}
    best = [name for name, count in shared.items() if count == max(shared.values()) > 0]
    return best[0] if len(best) == 1 else ""
