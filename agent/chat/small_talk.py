"""Greetings, thanks, goodbyes, "what can you do?" and "which documents do you have?", which need no search.

Known by the whole of an utterance. What says more ("Thanks! And how long does it keep?") is a question: to search for a
thank-you does less harm than to reply "You are welcome" to a question. `tests/cases/talk.json` has the cases.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from agent.chat.dated_documents import Wanted, describe_listing, find_listing
from agent.chat.scope import describe_scope, find_scope, find_scope_request, keep_to_scope
from agent.chat.store import ChatTurn, TurnKind
from agent.turn.interface_sentences import SENTENCES, choose_talk
from indexes.documents.collection import Collection
from indexes.text.analysis import ENGLISH
from indexes.words import match_any
from schemas.records import Query, Response, Sentence, Turn, TurnResult

MAX_CHARACTERS = 120  # of an utterance that may be small talk
HELP = (
    "Ask a question, and go on asking: I follow what was said.",
    "You can also say “which documents do you have?”, or “only in” a folder.",
)

_PRAISE, _THANKS, _GREETING, _FAREWELL = (
    f"(?:{match_any(f'talk.{kind}')})" for kind in ("agreement", "thanks", "greeting", "farewell")
)
_HELPED, _NAMES = (f"(?: (?:{match_any(f'talk.{kind}')}))?" for kind in ("helped", "names"))
# In this order; each is the whole of an utterance, in lower case and without punctuation.
PATTERNS: dict[TurnKind, str] = {
    "farewell": f"(?:(?:{_PRAISE}|{_THANKS}) )*{_FAREWELL}(?: (?:{_FAREWELL}|(?:and )?{_THANKS}))*",
    "thanks": f"(?:{_PRAISE} )*{_THANKS}{_HELPED}{_NAMES}(?: (?:{_PRAISE}|{_THANKS}))*",
    "agreement": f"{_PRAISE}(?: {_PRAISE})*",
    "greeting": f"{_GREETING}{_NAMES}(?: {_GREETING}{_NAMES})*",
    "help": f"(?:(?:{match_any('talk.lead')}) )*(?:{match_any('talk.help')})(?: please| for me)?",
}


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """An utterance that is no question to the documents."""

    kind: TurnKind
    scope: str = ""  # that is asked for


def recognise_small_talk(utterance: str, collection: Collection) -> SmallTalk | None:
    """What an utterance is; None for a question, and for whatever could be one."""
    if (scope := find_scope_request(utterance, collection)) is not None:
        return SmallTalk("scope", scope)
    if len(utterance) > MAX_CHARACTERS:
        return None
    normalised = _normalise(utterance)
    for kind, pattern in PATTERNS.items():
        if re.fullmatch(pattern, normalised):
            return SmallTalk(kind)
    return SmallTalk("documents") if find_listing(utterance, collection) else None


def choose_scope(talk: SmallTalk | None, before: str, collection: Collection) -> str:
    """What a conversation is kept to after an utterance: another scope, if it asks for one that there is."""
    scope = find_scope(talk.scope, collection) if talk and talk.kind == "scope" else None
    return before if scope is None else scope


def _normalise(utterance: str) -> str:
    """The words in lower case, with single spaces. Hyphens and apostrophes stay: "hi-fi" is not "hi"."""
    text = unicodedata.normalize("NFKC", utterance).replace("’", "'").casefold()
    return " ".join(re.sub(r"[^\w'-]+", " ", text).split())


def reply_to_small_talk(turn: Turn, talk: SmallTalk, collection: Collection, scope: str = "") -> ChatTurn:
    """The turn with its reply, which cites nothing. The documents that are listed are those of the scope."""
    said_in = choose_talk(turn.utterance)
    if talk.kind == "scope":
        said = describe_scope(talk.scope, collection)
    elif talk.kind == "documents":
        wanted = find_listing(turn.utterance, collection) or Wanted()
        said = (describe_listing(wanted, keep_to_scope(scope, collection)),)
    elif talk.kind == "help":
        about_me = said_in.about_me.format(name=collection.name)
        said = (about_me, *HELP) if said_in == SENTENCES[ENGLISH] else (about_me,)
    else:
        said = {
            "greeting": said_in.hello,
            "thanks": (said_in.welcome,),
            "agreement": said_in.agreed,
            "farewell": (said_in.goodbye,),
        }[talk.kind]
    response = Response(tuple(Sentence(text, ()) for text in said))
    return ChatTurn(turn.utterance, TurnResult(turn.id, Query(turn.utterance), (), (), (), (response,)), talk.kind)


def list_questions(turns: Sequence[ChatTurn]) -> tuple[ChatTurn, ...]:
    return tuple(turn for turn in turns if turn.kind == "question")
