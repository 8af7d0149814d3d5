"""Talk about the talk: greetings, thanks, "shorter", "what did I just ask?" and the like, which need no search.

An utterance is recognised by what the whole of it says. Whatever says more ("Thanks! And how long does it keep?") or
could mean the documents is a question. `tests/cases/talk.json` has the cases.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.chat.scope import describe_scope, find_scope, find_scope_request
from agent.chat.selection.listing import describe_languages, find_listing
from agent.chat.small_talk_patterns import (
    CORRECTION,
    COUNTING,
    NO_CORRECTION,
    ORDINALS,
    PATTERNS,
    SHORT_ORDINALS,
    is_in_language,
)
from agent.chat.store import ChatTurn, TurnKind
from agent.turn.clarification import is_clarification
from agent.turn.interface_sentences import SENTENCES, InterfaceSentences, choose_talk
from indexes.documents.collection import Collection
from indexes.text.analysis import ENGLISH
from indexes.text.sentences import split_sentences
from schemas.records import Passage, Query, Response, Sentence, Turn, TurnResult

ANSWERED: frozenset[TurnKind] = frozenset({"question", "correction"})  # turns that the documents were asked at
FORMS: frozenset[TurnKind] = frozenset({"shorter", "list", "language"})  # in which the last answer is wanted
SHOWN: frozenset[TurnKind] = ANSWERED | FORMS | {"source"}  # turns whose reply may be repeated or reworded
MAX_CORRECTION_WORDS = 12
MAX_CHARACTERS = 120  # of an utterance that may be small talk
SOURCE_SENTENCES = 3  # of a source that is shown
CANNOT_SHORTEN = Sentence("I cannot make it shorter:", ())
GERMAN_NAMES = {"deutsch": "german", "englisch": "english", "französisch": "french"}


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """An utterance that is no plain question to the documents."""

    kind: TurnKind
    detail: str = ""  # a number of sentences or of a source, a subject, a language, what was meant, or a scope


def recognise_small_talk(utterance: str, turns: Sequence[ChatTurn], collection: Collection) -> SmallTalk | None:
    """What an utterance is after these turns; None for a question, and for whatever could be one."""
    if (scope := find_scope_request(utterance, collection)) is not None:
        return SmallTalk("scope", scope)
    if len(utterance) > MAX_CHARACTERS:
        return None
    if find_listing(utterance, collection) or describe_languages(utterance, collection):
        return SmallTalk("documents")
    normalised = _normalise(utterance)
    for kind, pattern in PATTERNS:
        if found := pattern.fullmatch(normalised):
            groups = {name: text for name, text in found.groupdict().items() if text}
            return _read_details(kind, groups, turns, collection)
    correction = _find_correction(utterance)
    return SmallTalk("correction", correction) if correction and list_questions(turns) else None


def choose_scope(talk: SmallTalk | None, before: str, collection: Collection) -> str:
    """What a conversation is kept to after an utterance: another scope, if it asks for one that there is."""
    scope = find_scope(talk.detail, collection) if talk and talk.kind == "scope" else None
    return before if scope is None else scope


def _normalise(utterance: str) -> str:
    """The words in lower case, with single spaces. Hyphens and apostrophes stay: "hi-fi" is not "hi"."""
    text = unicodedata.normalize("NFKC", utterance).replace("’", "'").casefold()
    return " ".join(re.sub(r"[^\w'-]+", " ", text).split())


def _find_correction(utterance: str) -> str:
    """What was meant, in the person's own words; empty where nothing is corrected."""
    text = " ".join(utterance.replace("’", "'").split())
    found = CORRECTION.fullmatch(text)
    if not found or not (found["meant"] or found["no"] or found["not"]):
        return ""
    correction = found["correction"].strip(" .!")
    longest = len(correction.split()) > MAX_CORRECTION_WORDS
    return "" if longest or NO_CORRECTION.match(correction) else correction


def _read_details(
    kind: TurnKind, groups: dict[str, str], turns: Sequence[ChatTurn], collection: Collection
) -> SmallTalk | None:
    """What is asked for, or None where it could be asked of the documents."""
    if kind == "source":
        return _choose_source(groups, turns)
    if kind == "documents":
        subject = groups.get("subject", "")
        return None if subject and not collection.is_folder else SmallTalk(kind, subject)
    if kind == "shorter":
        number = groups.get("sentences", "")
        return SmallTalk(kind, {"two": "2", "2": "2", "three": "3", "3": "3"}.get(number, "1" if number else ""))
    if kind == "language":
        language = groups["language"]
        return SmallTalk(kind, GERMAN_NAMES.get(language, language).title())
    if kind == "last question":
        return SmallTalk(kind, "all" if "all" in groups else "first" if groups else "")
    return SmallTalk(kind)


def _choose_source(groups: dict[str, str], turns: Sequence[ChatTurn]) -> SmallTalk | None:
    """The number of a source of the last answer.

    "The second one" may be one only if there is such a source, and nothing else was counted: else it is a question.
    """
    turn = find_last(turns, ANSWERED)
    sources = list_sources(turn)
    if turn and turn.answered.response.used and not sources:  # they are known to the client of `/v1` alone
        return None
    number = _to_number(groups, len(sources))
    if "bare" in groups:
        last = f"{turn.utterance} {turn.answered.response.text}" if turn else ""
        counted = COUNTING.search(last) or (turn and is_clarification(turn.answered.response.text))
        if counted or not 1 <= number <= len(sources) or len(sources) == 1:
            return None
    return SmallTalk("source", str(number))


def _to_number(groups: dict[str, str], last: int) -> int:
    if "number" in groups:
        return int(groups["number"])
    word = groups.get("ordinal") or groups["bare"]
    if word == "last":
        return last
    return (ORDINALS if word in ORDINALS else SHORT_ORDINALS).index(word) + 1


def list_questions(turns: Sequence[ChatTurn]) -> tuple[ChatTurn, ...]:
    """The turns that the documents were asked at; a correction is in the place of what it corrects."""
    questions: list[ChatTurn] = []
    for turn in turns:
        if turn.kind == "correction" and questions:
            questions.pop()
        if turn.kind in ANSWERED:
            questions.append(turn)
    return tuple(questions)


def complete_correction(correction: str, turns: Sequence[ChatTurn]) -> str:
    """A correction with the question that it corrects. There must be one."""
    return f"{list_questions(turns)[-1].answered.query.utterance} {correction}"


def find_last(turns: Sequence[ChatTurn], kinds: frozenset[TurnKind]) -> ChatTurn | None:
    """The latest turn of one of these kinds."""
    return next((turn for turn in reversed(turns) if turn.kind in kinds), None)


def list_sources(turn: ChatTurn | None) -> list[Passage]:
    """The cited passages of a turn, in the order of their first citation."""
    if turn is None:
        return []
    passages = {passage.id: passage for passage in turn.answered.passages}
    return [passages[id] for id in turn.answered.response.used if id in passages]


def reply_to_small_talk(turn: Turn, talk: SmallTalk, turns: Sequence[ChatTurn], collection: Collection) -> ChatTurn:
    """The turn with its reply. What it cites is from an earlier answer; nothing is searched for."""
    if talk.kind in _PLEASANTRIES:
        result = _say(*_PLEASANTRIES[talk.kind](choose_talk(turn.utterance)))
    elif talk.kind == "help":
        said_in = choose_talk(turn.utterance)
        help = HELP if said_in == SENTENCES[ENGLISH] else ()
        result = _say(said_in.about_me.format(name=collection.name), *help)
    elif talk.kind == "documents":
        listing = find_listing(turn.utterance, collection, is_sure=True)
        listed = listing.describe(collection) if listing else describe_languages(turn.utterance, collection)
        result = _say(listed or collection.describe(talk.detail))
    elif talk.kind == "scope":
        result = _say(*describe_scope(talk.detail, collection))
    else:
        result = _ABOUT_TURNS[talk.kind](turns, talk.detail)
    return ChatTurn(turn.utterance, replace(result, turn_id=turn.id, query=Query(turn.utterance)), talk.kind)


def has_form(response: Response, talk: SmallTalk, before: Response) -> bool:
    """Whether an answer has the form that was asked for, in which it was not before."""
    if talk.kind == "shorter":
        has_few = not talk.detail or len(response.sentences) <= int(talk.detail)
        return bool(response.sentences) and has_few and len(response.text.split()) < len(before.text.split())
    return bool(response.sentences) and (talk.kind != "language" or is_in_language(response.text, talk.detail))


_PLEASANTRIES: dict[TurnKind, Callable[[InterfaceSentences], tuple[str, ...]]] = {
    "greeting": lambda said_in: said_in.hello,
    "thanks": lambda said_in: (said_in.welcome,),
    "agreement": lambda said_in: said_in.agreed,
    "farewell": lambda said_in: (said_in.goodbye,),
}
HELP = (
    "Ask a question, and go on asking: I follow what was said.",
    "You can also say “shorter”, “say that again”, “the second source”, “no, I meant ...”, or “which documents do you"
    " have?”, or “only in” a folder.",
)


def _say(*sentences: str) -> TurnResult:
    """A reply that cites nothing."""
    response = Response(tuple(Sentence(text, ()) for text in sentences))
    return TurnResult("", Query(""), (), (), (), (response,))


def _repeat_question(turns: Sequence[ChatTurn], which: str) -> TurnResult:
    asked = [turn.utterance for turn in turns if turn.kind in ANSWERED and turn.utterance]
    if not asked:
        return _say("You have not asked anything yet.")
    wanted = asked if which == "all" else asked[:1] if which == "first" else asked[-1:]
    return _say(f"You asked: {', '.join(f'“{question}”' for question in wanted)}")


def _repeat_answer(turns: Sequence[ChatTurn], _detail: str) -> TurnResult:
    turn = find_last(turns, SHOWN)
    if turn is None:
        return _say("I have not answered anything yet.")
    sentences = turn.answered.response.sentences
    return reply_from(turn.answered, sentences) if sentences else _say("I found nothing about your last question.")


def _shorten_answer(turns: Sequence[ChatTurn], number: str) -> TurnResult:
    """The last answer up to its first cited sentence, or as many as are asked for."""
    count = int(number or 1)
    answered = _repeat_answer(turns, "")
    sentences = answered.response.sentences
    cited = [place for place, sentence in enumerate(sentences, start=1) if sentence.passage_ids]
    kept = sentences[: cited[:count][-1] if cited else count]
    if cited and kept == sentences and CANNOT_SHORTEN not in kept:
        kept = (CANNOT_SHORTEN, *kept)
    return reply_from(answered, kept)


def _list_answer(turns: Sequence[ChatTurn], _detail: str) -> TurnResult:
    """The sentences of the last answer that cite something; all of them where none does."""
    answered = _repeat_answer(turns, "")
    cited = tuple(sentence for sentence in answered.response.sentences if sentence.passage_ids)
    return reply_from(answered, cited or answered.response.sentences)


def _decline_language(turns: Sequence[ChatTurn], language: str) -> TurnResult:
    if find_last(turns, SHOWN) is None:
        return _repeat_answer(turns, "")
    return _say(f"I cannot say it in {language}: I keep to the words of the documents, so that it can be checked.")


def _show_source(turns: Sequence[ChatTurn], number: str) -> TurnResult:
    """The beginning of a source of the last answer."""
    turn = find_last(turns, ANSWERED)
    sources = list_sources(turn)
    if turn is None or not 1 <= int(number) <= len(sources):
        return _say(f"The last answer has {len(sources) or 'no'} {'source' if len(sources) == 1 else 'sources'}.")
    passage = sources[int(number) - 1]
    name = f"{passage.id}, “{passage.title}”" if passage.title else passage.id
    texts = split_sentences(passage.text)[:SOURCE_SENTENCES]
    opening = Sentence(f"Source {number} of the last answer is {name}:", ())
    return reply_from(turn.answered, (opening, *(Sentence(text, (passage.id,)) for text in texts)))


def reply_from(answered: TurnResult, sentences: tuple[Sentence, ...]) -> TurnResult:
    """A reply that cites passages of an earlier answer."""
    return replace(answered, selected_statements=(), responses=(Response(sentences),), without_model="")


_ABOUT_TURNS: dict[TurnKind, Callable[[Sequence[ChatTurn], str], TurnResult]] = {
    "last question": _repeat_question,
    "last answer": _repeat_answer,
    "shorter": _shorten_answer,
    "list": _list_answer,
    "language": _decline_language,
    "source": _show_source,
}
