"""Greetings, thanks, goodbyes, "what can you do?" and "which documents do you have?", which need no search.

Known by the whole of an utterance. What says more ("Thanks! And how long does it keep?") is a question: to search for a
thank-you does less harm than to reply "You are welcome" to a question. `tests/cases/talk.json` has the cases.
"""

import re
import unicodedata
from itertools import islice

from agent.chat.dated_documents import describe_listing, find_listing
from agent.chat.scope import change_scope, find_scope_request, keep_to_scope
from agent.chat.self_disclosure import find_self_disclosures
from agent.chat.store import ChatTurn, TurnKind
from agent.turn.interface_sentences import SENTENCES, choose_talk
from agent.turn.safety.needs import split_told
from agent.turn.whole_answer import list_sections
from indexes.documents.collection import ENDINGS, Collection
from indexes.text.analysis import ENGLISH
from indexes.words import load_words, match_any
from schemas.records import Query, Response, Sentence, Turn, TurnResult, find_document

MAX_CHARACTERS = 120  # of an utterance that may be small talk
MAX_FOLLOW_UPS, MAX_PASSAGES = 3, 60  # offered; passages of a document in which sections are looked for
MAX_WORDS = 8  # of a title in a question that is offered
NOTED = "I heed that in this conversation."
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


def reply_to_small_talk(turn: Turn, collection: Collection, scope: str = "") -> ChatTurn | None:
    """The turn with its reply, which cites nothing, and the scope of the next one; None for whatever may be a question.

    The documents that are listed are those of the scope.
    """
    utterance = turn.utterance
    kind: TurnKind | None = "documents"
    if (where := find_scope_request(utterance, collection)) is not None:
        kind = "scope"
        scope, said = change_scope(where, scope, collection)
    elif len(utterance) > MAX_CHARACTERS:
        return None
    elif kind := _recognise_courtesy(utterance):
        said = _reply_to_courtesy(kind, utterance, collection.name)
    elif _is_remark(utterance):
        kind, said = "question", (NOTED,)  # a question, in that it counts in those that follow
    elif wanted := find_listing(utterance, collection):
        kind, said = "documents", (describe_listing(wanted, keep_to_scope(scope, collection)),)
    else:
        return None
    response = Response(tuple(Sentence(text, ()) for text in said))
    return ChatTurn(utterance, TurnResult(turn.id, Query(utterance), (), (), (), (response,)), kind, scope)


def _recognise_courtesy(utterance: str) -> TurnKind | None:
    """By the words in lower case, with single spaces. Hyphens and apostrophes stay: "hi-fi" is not "hi"."""
    text = unicodedata.normalize("NFKC", utterance).replace("’", "'").casefold()
    words = " ".join(re.sub(r"[^\w'-]+", " ", text).split())
    return next((kind for kind, pattern in PATTERNS.items() if re.fullmatch(pattern, words)), None)


def _is_remark(utterance: str) -> bool:
    """Whether all that is said is what the person must avoid: "I am allergic to nuts." """
    told, rest = split_told(utterance)
    asks = rest or not load_words("openers").isdisjoint(utterance.casefold().split())
    return bool(told and find_self_disclosures(utterance)) and not asks


def _reply_to_courtesy(kind: TurnKind, utterance: str, name: str) -> tuple[str, ...]:
    said_in = choose_talk(utterance)
    return {
        "greeting": said_in.hello,
        "thanks": (said_in.welcome,),
        "agreement": said_in.agreed,
        "farewell": (said_in.goodbye,),
        "help": (said_in.about_me.format(name=name), *(HELP if said_in == SENTENCES[ENGLISH] else ())),
    }[kind]


def suggest_follow_ups(turn: ChatTurn, collection: Collection) -> tuple[str, ...]:
    """To go on with: what else the first document says that was cited, section by section."""
    documents, used = collection.open_documents(), turn.answered.response.used
    name = find_document(used[0]) if used else ""
    if documents is None or name not in documents.names:
        return ()
    passages = documents.read(name, MAX_PASSAGES)
    sections, cited = list_sections(passages), list_sections(passages, turn.answered.response.text)
    after = sections.index(cited[-1]) + 1 if cited else 0
    left = (section for section in (*sections[after:], *sections[:after]) if section not in cited)
    short = (section for section in left if len(section.split()) <= MAX_WORDS)
    return tuple(f"Summarise “{section}” ({name})" for section in islice(short, MAX_FOLLOW_UPS))


def suggest_questions(collection: Collection) -> tuple[str, ...]:
    """To begin with, over a folder: what there is, the latest mail or document, and a document in short."""
    documents = collection.open_documents()
    if documents is None:
        return ()
    kind = "mail" if any(name.casefold().endswith(ENDINGS["mail"]) for name in documents.names) else "document"
    titles = (documents.read_title(name) for name in documents.names)
    told = next((f"Summarise {title}" for title in titles if 0 < len(title.split()) <= MAX_WORDS), None)
    asked = ("Which documents do you have?", f"What is the latest {kind} about?", told)
    return tuple(question for question in asked if question)
