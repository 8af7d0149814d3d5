"""Talk about the talk: greetings, thanks, "shorter", "what did I just ask?" and the like, which need no search.

An utterance is recognised by what the whole of it says. Whatever says more ("Thanks! And how long does it keep?") or
could mean the documents is a question. `tests/cases/talk.json` has the cases.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agent.chat.collection import Collection
from agent.chat.store import ChatTurn, TurnKind
from indexes.text.sentences import split_sentences
from schemas.records import Passage, Query, Response, Sentence, Turn, TurnResult

ANSWERED: frozenset[TurnKind] = frozenset({"question", "correction"})  # turns that the documents were asked at
SHOWN: frozenset[TurnKind] = ANSWERED | {"shorter", "source"}  # turns whose reply may be repeated or shortened
MAX_CORRECTION_WORDS = 12
SOURCE_SENTENCES = 3  # of a source that is shown
CANNOT_SHORTEN = Sentence("I cannot make it shorter:", ())

ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SHORT_ORDINALS = ("1st", "2nd", "3rd", *(f"{number}th" for number in range(4, 11)))
_ORDINAL = "|".join((*ORDINALS, *_SHORT_ORDINALS, "last"))
_COUNTING = re.compile(rf"\b(?:{'|'.join(ORDINALS)}|{'|'.join(_SHORT_ORDINALS)}|two|both|three|four)\b", re.IGNORECASE)

_PRAISE = (
    "(?:ok(?:ay)?|alright|all right|right|(?:a )?(?:great|big) help|(?:very )?good|great|perfect|excellent|super|wonderful|lovely|nice|cool|fine|awesome|amazing|brilliant|got it|i see|understood"
    "|(?:that (?:was |is )?|that's )(?:very |really |so )?(?:helps?|helped|helpful|useful|great|perfect|good|fine|clear)"
    "(?: a lot)?|good to know|sounds good|(?:that |it )?makes (?:perfect )?sense|great stuff|no problem|never mind"
    "|(?:that's |that is |that was )?(?:just|exactly) what i (?:needed|wanted|was looking for))"
)
_THANKS = (
    "(?:(?:many |a thousand )?thank(?:s| you| u| you all)(?: a (?:lot|million|ton|bunch)| so much| very much| kindly| again)*"
    "|thx|ty|cheers|much appreciated|(?:i )?(?:really )?appreciate (?:it|that|(?:your|the) help)"
    "|danke(?: schön| sehr| dir| ihnen)?|vielen dank|besten dank|merci(?: beaucoup| bien)?)"
    "(?: für (?:die|deine|ihre) (?:hilfe|antwort)| for (?:that|it|explaining|helping|(?:all )?(?:your|the) (?:help|answers?|explanation|info|information|quick (?:answer|reply)|reply)))?"
)
_DAY = "(?:day|morning|afternoon|evening|weekend|night|time|one)"
_GREETING = (
    "(?:hi|hiya|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day)|hallo|guten (?:morgen|tag|abend)|moin"
    "|servus|grüss gott|grüezi|bonjour|bonsoir|salut|coucou)"
)
_HOW_ARE_YOU = "(?:how are you(?: doing)?(?: today)?|how(?: i|')s it going|what's up|nice to meet you|wie geht(?:s|'s| es dir)?|ça va)"
_FAREWELL = (
    "(?:(?:good ?)?bye(?:[ -]bye)?(?: for now)?|good ?night|see (?:you|ya)(?: (?:later|soon|tomorrow|around|then|again))?"
    "|farewell|cheerio|ciao|tschüss|tschau|auf wiedersehen|bis (?:bald|morgen|dann)|au revoir|à bientôt|take care"
    f"|have a (?:nice|good|great|lovely) {_DAY}|(?:that's|that is|that was|that will be) all(?: for (?:now|today))?"
    "|i(?:'m| am) (?:done|off|leaving)(?: now| then)?(?: for (?:now|today))?|i(?:'ve| have)? (?:have to|must|got to|need to) go(?: now)?"
    "|(?:talk|speak) to you (?:later|soon|tomorrow)|(?:until|till) (?:next time|tomorrow|later))"
)
_WHO = "(?: there| zusammen| everyone| everybody| all| again| you| convagent| assistant| friend| mate| to you)*"
_IT = "(?:it|that|this|your answer|your (?:last|previous) answer|the (?:last |previous )?answer)"
_SHORT = (
    "(?:(?:much |a bit |even )?(?:shorter|briefer)|(?:more )?concise(?:ly)?|short|(?:more )?brief(?:ly)?|in short|in brief"
    "|(?:in |with |use )?(?:fewer|less) (?:words|text|detail)|(?:(?:down )?(?:in|to)|just|only) (?:just |only )?(?P<sentences>a|one|1|a single|two|2|three|3) sentences?)"
)
_FILES = "(?:documents?|docs|files?|papers|texts|sources)"
_HELD = (
    "(?:do you (?:have|know|search|read|use)|have you(?: got| read)?|are (?:there|in (?:the|this|my|your) "
    "(?:folder|index|collection))|can you (?:see|read|search|use|access))"
)
_ABOUT = r"(?: (?:about|on|regarding|concerning) (?P<subject>\w[\w '-]*))?"

# Before what is asked of the agent, and after it.
_LEAD = (
    "(?:(?:and|so|well|oh|ok|okay|hm+|um|sorry|excuse me|please|hi|hello|hey|great|thanks|thank you|now|but|wait) )*"
    "(?:(?:can|could|would|will) you (?:please |just )?)?"
)
_END = "(?: please| thanks| now| for me| then)*"

# In this order; each must be the whole of a normalised utterance.
_PATTERNS: dict[TurnKind, tuple[str, ...]] = {
    "farewell": (f"(?:{_PRAISE} |{_THANKS} )*{_FAREWELL}{_WHO}(?: (?:and )?(?:{_THANKS}|{_FAREWELL}))*",),
    "thanks": (f"(?:{_PRAISE} )*{_THANKS}{_WHO}(?: {_PRAISE}| {_THANKS})*",),
    "agreement": (f"{_PRAISE}(?: {_PRAISE})*",),
    "greeting": (f"(?:{_GREETING}{_WHO} ?)+{_HOW_ARE_YOU}?", _HOW_ARE_YOU),
    "last question": (
        f"{_LEAD}(?:what|(?:what|which) question) (?:did i|have i) (?:just |last |first )?"
        "(?:asked|ask|say|said|want(?:ed)? to know)(?: you)?"
        "(?: just now| before| last| (?P<first>first)| (?P<all>so far| until now))?",
        f"{_LEAD}what (?:was|is) it (?:that )?i (?:just )?asked(?: you)?",
        f"{_LEAD}what (?:was|is|were) "
        "(?:(?:my|the) (?:(?:very )?(?P<first>first) |last |previous |latest )?questions?(?: again)?"
        "|the (?:(?P<first2>first)|last) (?:thing|question) (?:that )?i asked(?: you)?|i asking(?: you)?)",
        f"{_LEAD}(?:repeat|tell me|remind me of|say|show(?: me)?) my (?:last |previous )?question(?: again)?{_END}",
        f"{_LEAD}(?:remind|tell) me (?:again )?what i (?:just )?(?:asked|said|wanted to know)(?: you)?"
        f"(?: before| last| again)?{_END}",
    ),
    "last answer": (
        f"{_LEAD}what was (?:your (?:last |previous )?|the last )(?:answer|reply)(?: again)?",
        f"{_LEAD}what was the answer again",
        f"{_LEAD}(?:say|repeat|tell me|give me) {_IT}(?: again| once (?:more|again)| one more time)?{_END}",
        f"{_LEAD}i (?:did not|didn't) (?:quite )?(?:get|catch|hear|follow|understand) (?:that|it|you)(?: (?:please )?(?:say|repeat)(?: {_IT})?(?: again)?)?",
        f"{_LEAD}(?:repeat|(?:once )?again|once more|come again|(?:say|tell me) again|what was that(?: again)?|(?:i beg your )?pardon){_END}",
        f"{_LEAD}what did you (?:just )?(?:say|answer|reply|tell me)(?: just now| again)?",
        f"{_LEAD}what were you (?:just )?saying",
    ),
    "shorter": (
        f"{_LEAD}(?:(?:make|say|put|give|keep|tell|answer|summari[sz]e)(?: me)?(?: {_IT})? |be )?{_SHORT}{_END}",
        f"{_LEAD}(?:that's |that is |that was |this is |it's |your answer is )?(?:far |much |way )?too "
        "(?:long|wordy|verbose|much(?: text)?|many words)",
        f"{_LEAD}(?:tl dr|tldr|(?:summari[sz]e|shorten) {_IT}|sum {_IT} up|sum up|shorten|condense(?: {_IT})?)(?: {_SHORT})?{_END}",
        f"{_LEAD}(?:have it|can i have (?:it|that)|i want (?:it|that)|boil {_IT} down|cut {_IT}(?: down)?) {_SHORT}{_END}",
        f"{_LEAD}a summary{_END}",
        f"{_LEAD}(?:give me |can i have |i(?:'d like| want) )?(?:(?:a|the) )?(?:short(?:er)?|brief(?:er)?) (?:version|answer|summary){_END}",
    ),
    "source": (
        f"{_LEAD}(?:(?:show|give)(?: me)? |let me see |open |read |what about |how about |what does |what's |what is )?"
        rf"(?:the )?(?:(?P<ordinal>{_ORDINAL}) (?:source|passage|citation)|(?:source|citation) (?:number )?(?P<number>\d+))"
        f"(?: say)?{_END}",
        f"(?:and )?(?:(?:what about|how about|what's|what is|show me) )?the (?P<bare>{_ORDINAL})(?: one)?{_END}",
    ),
    "help": (
        f"{_LEAD}(?:who|what) are you(?: exactly| really)?(?: and what (?:can|do) you do)?",
        f"{_LEAD}(?:who am i (?:talking|speaking) (?:to|with)|what(?:'s| is) your name|do you have a name)",
        f"{_LEAD}what (?:all )?(?:(?:can|do) you (?:do|help(?: me)? with|offer|answer)|are you able to do)(?: for me| here)?",
        f"{_LEAD}(?:how (?:can|do) you help(?: me)?|what are you (?:good )?for|what can you tell me|what is it (?:that )?you do"
        "|(?:tell me (?:something )?about|introduce|describe|explain) yourself|who (?:made|built|wrote|created) you)",
        f"{_LEAD}(?:what(?: (?:kind|sort)s? of)?(?: questions)? (?:can|should|may) i (?:ask|say|do here)(?: you)?"
        "|how do you work|how (?:can|do) i use (?:you|this))",
        f"{_LEAD}are you (?:an? )?(?:real |chat ?)?(?:human(?: being)?|person|robot|bot|chatbot|ai|machine|computer|llm|chatgpt)",
        f"{_LEAD}(?:help(?: me)?|i need help|what is convagent|hilfe|wer bist du|was kannst du|aide|qui es-tu){_END}",
    ),
    "documents": (
        f"{_LEAD}(?:what|which|how many) {_FILES} {_HELD}{_ABOUT}{_END}",
        f"{_LEAD}(?:tell|show) me (?:what|which) {_FILES} (?:you have|there are){_ABOUT}",
        f"{_LEAD}(?:what|which) {_FILES} (?:can|may) i ask(?: you)?(?: about)?",
        f"{_LEAD}(?:what do you have on file|what are your (?:documents|files)|what is in (?:the|this|your) (?:folder|collection|index))",
        f"{_LEAD}do you have (?:any |some )?(?:documents|files){_ABOUT}",
        f"{_LEAD}(?:list|name|(?:show|give)(?: me)?(?: (?:a|the) list of)?)(?: me)? (?:(?:all|of|the|your|my) )*(?:documents|files){_ABOUT}"
        f"(?: (?:that )?you have)?{_END}",
    ),
}


def _compile(kind: TurnKind, pattern: str) -> tuple[TurnKind, re.Pattern[str]]:
    return kind, re.compile(pattern)


_RULES = [_compile(kind, pattern) for kind, patterns in _PATTERNS.items() for pattern in patterns]
_CORRECTION = re.compile(
    r"(?P<no>(?:(?:oh|no|nope|nah|wrong|sorry|not that|that's not what i meant|actually|well|but)\b[\s,.!:;–-]*)*)"
    r"(?P<not>not [^,?]{1,40},\s*(?:but )?)?"
    r"(?:(?P<meant>i (?:actually |really |just |only )?meant|what i (?:actually |really )?meant (?:was|is)"
    r"|i was (?:asking|talking) about(?!.*\?))|i (?:mean|(?:was|am) (?:asking|talking) about|asked (?:about|for)))"
    r"(?: to (?:ask|say|write|know)(?: about)?)?[,:]? (?P<correction>.+)",
    re.IGNORECASE,
)
_NO_CORRECTION = re.compile(r"(?:to|well|it|every word|no harm|what i sa\w+)\b|.*[,:;.?!–]\s*\S", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SmallTalk:
    """An utterance that is no plain question to the documents."""

    kind: TurnKind
    detail: str = ""  # a number of sentences, the number of a source, a subject, or what was meant


def recognise_small_talk(utterance: str, turns: Sequence[ChatTurn], collection: Collection) -> SmallTalk | None:
    """What an utterance is after these turns; None for a question, and for whatever could be one."""
    normalised = _normalise(utterance)
    for kind, pattern in _RULES:
        if found := pattern.fullmatch(normalised):
            groups = {name: text for name, text in found.groupdict().items() if text}
            return _read_details(kind, groups, turns, collection)
    correction = _find_correction(utterance)
    return SmallTalk("correction", correction) if correction and list_questions(turns) else None


def _normalise(utterance: str) -> str:
    """The words in lower case, with single spaces. Hyphens and apostrophes stay: "hi-fi" is not "hi"."""
    text = unicodedata.normalize("NFKC", utterance).replace("’", "'").casefold()
    return " ".join(re.sub(r"[^\w'-]+", " ", text).split())


def _find_correction(utterance: str) -> str:
    """What was meant, in the person's own words; empty where nothing is corrected."""
    text = " ".join(utterance.replace("’", "'").split())
    found = _CORRECTION.fullmatch(text)
    if not found or not (found["meant"] or found["no"] or found["not"]):
        return ""
    correction = found["correction"].strip(" .!")
    longest = len(correction.split()) > MAX_CORRECTION_WORDS
    return "" if longest or _NO_CORRECTION.match(correction) else correction


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
        return SmallTalk(kind, {"two": "2", "2": "2", "three": "3", "3": "3"}.get(groups.get("sentences", ""), "1"))
    if kind == "last question":
        return SmallTalk(kind, "all" if "all" in groups else "first" if groups else "")
    return SmallTalk(kind)


def _choose_source(groups: dict[str, str], turns: Sequence[ChatTurn]) -> SmallTalk | None:
    """The number of a source of the last answer.

    "The second one" may be one only if there is such a source, and nothing else was counted: else it is a question.
    """
    turn = _find_last(turns, ANSWERED)
    sources = _list_sources(turn)
    if turn and turn.answered.response.used and not sources:  # they are known to the client of `/v1` alone
        return None
    number = _to_number(groups, len(sources))
    if "bare" in groups:
        counted = turn and _COUNTING.search(f"{turn.utterance} {turn.answered.response.text}")
        if counted or not 1 <= number <= len(sources) or len(sources) == 1:
            return None
    return SmallTalk("source", str(number))


def _to_number(groups: dict[str, str], last: int) -> int:
    if "number" in groups:
        return int(groups["number"])
    word = groups.get("ordinal") or groups["bare"]
    if word == "last":
        return last
    return (ORDINALS if word in ORDINALS else _SHORT_ORDINALS).index(word) + 1


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


def _find_last(turns: Sequence[ChatTurn], kinds: frozenset[TurnKind]) -> ChatTurn | None:
    return next((turn for turn in reversed(turns) if turn.kind in kinds), None)


def _list_sources(turn: ChatTurn | None) -> list[Passage]:
    """The cited passages of a turn, in the order of their first citation."""
    if turn is None:
        return []
    passages = {passage.id: passage for passage in turn.answered.passages}
    return [passages[id] for id in turn.answered.response.used if id in passages]


def reply_to_small_talk(turn: Turn, talk: SmallTalk, turns: Sequence[ChatTurn], collection: Collection) -> ChatTurn:
    """The turn with its reply. What it cites is from an earlier answer; nothing is searched for."""
    if talk.kind in _REPLIES:
        result = _say(*_REPLIES[talk.kind])
    elif talk.kind == "help":
        result = _say(
            f"I am convagent. I answer from {collection.name}, sentence by sentence, each with its source.", *HELP
        )
    elif talk.kind == "documents":
        result = _say(collection.describe(talk.detail))
    else:
        result = _ABOUT_TURNS[talk.kind](turns, talk.detail)
    return ChatTurn(turn.utterance, replace(result, turn_id=turn.id, query=Query(turn.utterance)), talk.kind)


_REPLIES: dict[TurnKind, tuple[str, ...]] = {
    "greeting": ("Hello.", "What would you like to know?"),
    "thanks": ("You are welcome.",),
    "agreement": ("Good.", "Ask on whenever you like."),
    "farewell": ("Goodbye.",),
}
HELP = (
    "Ask a question, and go on asking: I follow what was said.",
    "You can also say “shorter”, “say that again”, “the second source”, “no, I meant ...”, or “which documents do you have?”.",
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
    turn = _find_last(turns, SHOWN)
    if turn is None:
        return _say("I have not answered anything yet.")
    sentences = turn.answered.response.sentences
    return _reply_from(turn.answered, sentences) if sentences else _say("I found nothing about your last question.")


def _shorten_answer(turns: Sequence[ChatTurn], number: str) -> TurnResult:
    """The last answer up to its first cited sentence, or as many as are asked for."""
    answered = _repeat_answer(turns, "")
    sentences = answered.response.sentences
    cited = [place for place, sentence in enumerate(sentences, start=1) if sentence.passage_ids]
    kept = sentences[: cited[: int(number)][-1] if cited else int(number)]
    if cited and kept == sentences and CANNOT_SHORTEN not in kept:
        kept = (CANNOT_SHORTEN, *kept)
    return _reply_from(answered, kept)


def _show_source(turns: Sequence[ChatTurn], number: str) -> TurnResult:
    """The beginning of a source of the last answer."""
    turn = _find_last(turns, ANSWERED)
    sources = _list_sources(turn)
    if turn is None or not 1 <= int(number) <= len(sources):
        return _say(f"The last answer has {len(sources) or 'no'} {'source' if len(sources) == 1 else 'sources'}.")
    passage = sources[int(number) - 1]
    name = f"{passage.id}, “{passage.title}”" if passage.title else passage.id
    texts = split_sentences(passage.text)[:SOURCE_SENTENCES]
    opening = Sentence(f"Source {number} of the last answer is {name}:", ())
    return _reply_from(turn.answered, (opening, *(Sentence(text, (passage.id,)) for text in texts)))


def _reply_from(answered: TurnResult, sentences: tuple[Sentence, ...]) -> TurnResult:
    """A reply that cites passages of an earlier answer."""
    return replace(answered, selected_statements=(), responses=(Response(sentences),), without_model="")


_ABOUT_TURNS: dict[TurnKind, Callable[[Sequence[ChatTurn], str], TurnResult]] = {
    "last question": _repeat_question,
    "last answer": _repeat_answer,
    "shorter": _shorten_answer,
    "source": _show_source,
}
