"""What talk about the talk looks like: patterns of whole utterances, in lower case and without punctuation.

They are deliberately narrow. An utterance that none of them covers is a question: to search for a thank-you does less
harm than to reply "You are welcome" to a question. German and French are understood where people greet and thank.
"""

import re

from agent.chat.store import TurnKind
from indexes.text.languages import count_stop_words

LANGUAGES = {
    "english": "en",
    "german": "de",
    "french": "fr",
    "spanish": "es",
    "italian": "it",
    "dutch": "nl",
    "portuguese": "pt",
    "polish": "pl",
    "swedish": "sv",
    "turkish": "tr",
}


def is_in_language(text: str, name: str) -> bool:
    """Whether no other of the languages has as many stop words among the words of a text as the one of this name."""
    words = re.findall(r"[^\W\d_]+", text.lower())
    counts = {code: count_stop_words(words, code) for code in LANGUAGES.values()}
    own = counts.pop(LANGUAGES[name.lower()])
    return own > max(counts.values())


ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
SHORT_ORDINALS = ("1st", "2nd", "3rd", *(f"{number}th" for number in range(4, 11)))
_ORDINAL = "|".join((*ORDINALS, *SHORT_ORDINALS, "last"))

_PRAISE = (
    "(?:ok(?:ay)?|alright|all right|right|(?:a )?(?:great|big) help|(?:very )?good|great|perfect|excellent|super"
    "|wonderful|lovely|nice|cool|fine|awesome|amazing|brilliant|got it|i see|understood|(?:that (?:was |is )?"
    "|that's )(?:very |really |so )?(?:helps?|helped|helpful|useful|great|perfect|good|fine|clear)(?: a lot)?"
    "|good to know|sounds good|(?:that |it )?makes (?:perfect )?sense|great stuff|no problem|never mind|(?:that's "
    "|that is |that was )?(?:just|exactly) what i (?:needed|wanted|was looking for))"
)
_THANKS = (
    "(?:(?:many |a thousand )?thank(?:s| you| u| you all)(?: a (?:lot|million|ton|bunch)| so much| very much| kindly"
    "| again)*|thx|ty|cheers|much appreciated|(?:i )?(?:really )?appreciate (?:it|that|(?:your|the) help)"
    "|danke(?: schön| sehr| dir| ihnen)?|vielen dank|besten dank|merci(?: beaucoup| bien)?"
    "|(?:muchas )?gracias|grazie(?: mille)?"
    "|(?:hartelijk )?bedankt|dank (?:je|u)(?: wel)?|(?:muito )?obrigad[oa])(?: für (?:die|deine"
    "|ihre) (?:hilfe|antwort)| for (?:that|it|explaining|helping|(?:all )?(?:your|the) (?:help|answers?|explanation"
    "|info|information|quick (?:answer|reply)|reply)))?"
)
_DAY = "(?:day|morning|afternoon|evening|weekend|night|time|one)"
_GREETING = (
    "(?:hi|hiya|hello|hey|howdy|greetings|good (?:morning|afternoon|evening|day)|hallo|guten (?:morgen|tag|abend)"
    "|moin|servus|grüss gott|grüezi|bonjour|bonsoir|salut|coucou"
    "|hola|buen[oa]s (?:días|tardes|noches)|buongiorno|buonasera|salve|hoi|goede(?:morgen|middag|navond)|olá"
    "|bom dia|boa (?:tarde|noite))"
)
_HOW_ARE_YOU = (
    "(?:how are you(?: doing)?(?: today)?|how(?: i|')s it going|what's up|nice to meet you|wie geht(?:s|'s| es dir)?"
    "|ça va)"
)
_FAREWELL = (
    "(?:(?:good ?)?bye(?:-bye)?(?: for now)?|good ?night|see (?:you|ya)(?: (?:later|soon|tomorrow|around|then"
    "|again))?|farewell|cheerio|ciao|tschüss|tschau|auf wiedersehen|bis (?:bald|morgen|dann)|au revoir|à bientôt|adiós"
    "|hasta (?:luego|mañana)|arrivederci|tot ziens|doei|tchau|adeus|até (?:logo|amanhã)"
    "|take care"
    f"|have a (?:nice|good|great|lovely) {_DAY}|(?:that's|that is|that was|that will be) all(?: for (?:now|today))?"
    "|i(?:'m| am) (?:done|off|leaving)(?: now| then)?(?: for (?:now|today))?|i(?:'ve| have)? (?:have to|must|got to"
    "|need to) go(?: now)?|(?:talk|speak) to you (?:later|soon|tomorrow)|(?:until|till) (?:next time|tomorrow|later))"
)
_WHO = "(?: there| zusammen| everyone| everybody| all| again| you| convagent| assistant| friend| mate| to you)*"
_IT = "(?:it|that|this|your answer|your (?:last|previous) answer|the (?:last |previous )?answer)"
_SHORT = (
    "(?:(?:much |a bit |even )?(?:shorter|briefer)|(?:more )?concise(?:ly)?|short|(?:more )?brief(?:ly)?|in short"
    "|in brief|(?:in |with |use )?(?:fewer|less) (?:words|text|detail)|(?:(?:down )?(?:in|to)|just|only) (?:just "
    "|only )?(?P<sentences>a|one|1|a single|two|2|three|3) sentences?)"
)
_FILES = "(?:documents?|docs|files?|papers|texts|sources)"
_HELD = (
    "(?:do you (?:have|know|search|read|use)|have you(?: got| read)?|are (?:there|in (?:the|this|my|your) (?:folder"
    "|index|collection))|can you (?:see|read|search|use|access))"
)
_ABOUT = r"(?: (?:about|on|regarding|concerning) (?P<subject>\w[\w '-]*))?"

_LANGUAGE = f"(?P<language>{'|'.join(LANGUAGES)})"
_LIST = "(?:(?:a |an )?(?:short |simple )?(?:bullet(?:ed|[ -]point)? |numbered )?list|bullet[ -]?points?|bullets)"
_FORM = "(?:(?:please|ok|okay|now|sorry|thanks|great) )*(?:(?:can|could|would|will) you (?:please |just )?)?"

# Before what is asked of the agent, and after it.
_LEAD = (
    "(?:(?:and|so|well|oh|ok|okay|hm+|um|sorry|excuse me|please|hi|hello|hey|great|thanks|thank you|now|but"
    "|wait) )*(?:(?:can|could|would|will) you (?:please |just )?)?"
)
_END = "(?: please| thanks| now| for me| then)*"

_SOURCES: dict[TurnKind, tuple[str, ...]] = {
    "farewell": (f"(?:{_PRAISE} |{_THANKS} )*{_FAREWELL}{_WHO}(?: (?:and )?(?:{_THANKS}|{_FAREWELL}))*",),
    "thanks": (f"(?:{_PRAISE} )*{_THANKS}{_WHO}(?: {_PRAISE}| {_THANKS})*",),
    "agreement": (f"{_PRAISE}(?: {_PRAISE})*",),
    "greeting": (f"(?:{_GREETING}{_WHO} ?)+{_HOW_ARE_YOU}?", _HOW_ARE_YOU),
    "last question": (
        f"{_LEAD}(?:what|(?:what|which) question) (?:did i|have i) (?:just |last |first )?"
        "(?:asked|ask|say|said|want(?:ed)? to know)(?: you)?(?: just now| before| last| (?P<first>first)"
        "| (?P<all>so far| until now))?",
        f"{_LEAD}what (?:was|is) (?:it|that)(?: again)? (?:that )?i (?:just )?(?:asked|wanted to know)"
        "(?: you)?(?: before| again)?",
        f"{_LEAD}what (?:was|is|were) "
        "(?:(?:my|the) (?:(?:very )?(?P<first>first) |last |previous |latest )?questions?(?: again)?"
        "|the (?:(?P<first2>first)|last) (?:thing|question) (?:that )?i asked(?: you)?|i asking(?: you)?)",
        f"{_LEAD}(?:repeat|tell me|remind me of|say|show(?: me)?) my (?:last |previous )?question(?: again)?{_END}",
        f"{_LEAD}(?:remind|tell) me (?:again )?what i (?:just )?(?:asked|said|wanted to know)(?: you)?(?: before"
        f"| last| again)?{_END}",
    ),
    "last answer": (
        f"{_LEAD}what was (?:your (?:last |previous )?|the last )(?:answer|reply)(?: again)?",
        f"{_LEAD}what was the answer again",
        f"{_LEAD}(?:say|repeat|tell me|give me) {_IT}(?: again| once (?:more|again)| one more time)?{_END}",
        f"{_LEAD}i (?:did not|didn't) (?:quite )?(?:get|catch|hear|follow|understand) (?:that|it"
        f"|you)(?: (?:please )?(?:say|repeat)(?: {_IT})?(?: again)?)?",
        f"{_LEAD}(?:repeat|(?:once )?again|once more|come again|(?:say|tell me) again|what was that(?: again)?"
        f"|(?:i beg your )?pardon){_END}",
        f"{_LEAD}what did you (?:just )?(?:say|answer|reply|tell me)(?: just now| again)?",
        f"{_LEAD}what were you (?:just )?saying",
    ),
    "shorter": (
        f"{_LEAD}(?:(?:make|say|put|give|keep|tell|answer|summari[sz]e)(?: me)?(?: {_IT})? |be )?{_SHORT}{_END}",
        f"{_LEAD}(?:that's |that is |that was |this is |it's |your answer is )?(?:far |much |way )?too "
        "(?:long|wordy|verbose|much(?: text)?|many words)",
        f"{_LEAD}(?:tl dr|tldr|(?:summari[sz]e|shorten) {_IT}|sum {_IT} up|sum up|shorten"
        f"|condense(?: {_IT})?)(?: {_SHORT})?{_END}",
        f"{_LEAD}(?:have it|can i have (?:it|that)|i want (?:it|that)|boil {_IT} down"
        f"|cut {_IT}(?: down)?) {_SHORT}{_END}",
        f"{_LEAD}a summary{_END}",
        f"{_LEAD}(?:give me |can i have |i(?:'d like| want) )?(?:(?:a|the) )?(?:short(?:er)?"
        f"|brief(?:er)?) (?:version|answer|summary){_END}",
    ),
    "list": (
        f"{_FORM}(?:(?:make|say|put|give|show|repeat|write|format)(?: me)?(?: {_IT})?(?: to me)? )?"
        f"(?:as|in|into) {_LIST}(?: form(?:at)?)?{_END}",
        f"{_FORM}(?:make {_IT} {_LIST}|list {_IT}|turn {_IT} into {_LIST}|(?:use )?bullet points?){_END}",
    ),
    "language": (
        f"{_FORM}(?:(?:say|repeat|put|give|write|tell|answer|reply|respond|explain|show)(?: me)?(?: {_IT})?"
        f"(?: again)? )?(?:in|into) {_LANGUAGE}{_END}",
        f"{_FORM}translate(?: {_IT})? (?:in|into|to) {_LANGUAGE}{_END}",
        "(?:(?:bitte|und bitte|sag es|sag das) )*auf (?P<language>deutsch|englisch|französisch)(?: bitte)?",
    ),
    "source": (
        f"{_LEAD}(?:(?:show|give)(?: me)? |let me see |open |read |what about |how about |what does |what's "
        f"|what is )?"
        rf"(?:the )?(?:(?P<ordinal>{_ORDINAL}) (?:source|passage|citation)|(?:source"
        rf"|citation) (?:number )?(?P<number>\d+))"
        f"(?: say)?{_END}",
        f"(?:and )?(?:(?:what about|how about|what's|what is|show me) )?the (?P<bare>{_ORDINAL})(?: one)?{_END}",
    ),
    "help": (
        f"{_LEAD}(?:who|what) are you(?: exactly| really)?(?: and what (?:can|do) you do)?",
        f"{_LEAD}(?:who am i (?:talking|speaking) (?:to|with)|what(?:'s| is) your name|do you have a name)",
        f"{_LEAD}what (?:all )?(?:(?:can|do) you (?:do|help(?: me)? with|offer|answer)|are you able to do)(?: for me"
        f"| here)?",
        f"{_LEAD}(?:how (?:can|do) you help(?: me)?|what are you (?:good )?for|what can you tell me"
        f"|what is it (?:that )?you do"
        "|(?:tell me (?:something )?about|introduce|describe|explain) yourself|who (?:made|built|wrote|created) you)",
        f"{_LEAD}(?:what(?: (?:kind|sort)s? of)?(?: questions)? (?:can|should|may) i (?:ask|say|do here)(?: you)?"
        "|how do you work|how (?:can|do) i use (?:you|this))",
        f"{_LEAD}are you (?:an? )?(?:real |chat ?)?(?:human(?: being)?|person|robot|bot|chatbot|ai|machine|computer"
        f"|llm|chatgpt)",
        f"{_LEAD}(?:help(?: me)?|i need help|what is convagent|hilfe|wer bist du|was kannst du"
        f"|aide|qui es-tu|ayuda|quién eres|aiuto|chi sei|wie ben je|ajuda|quem és|quem é você){_END}",
    ),
    "documents": (
        f"{_LEAD}(?:what|which|how many) {_FILES} {_HELD}{_ABOUT}{_END}",
        f"{_LEAD}(?:tell|show) me (?:what|which) {_FILES} (?:you have|there are){_ABOUT}",
        f"{_LEAD}(?:what|which) {_FILES} (?:can|may) i ask(?: you)?(?: about)?",
        f"{_LEAD}(?:what do you have on file|what are your (?:documents|files)|what is in (?:the|this"
        f"|your) (?:folder|collection|index))",
        f"{_LEAD}do you have (?:any |some )?(?:documents|files){_ABOUT}",
        f"{_LEAD}(?:list|name|(?:show|give)(?: me)?(?: (?:a|the) list of)?)(?: me)? (?:(?:all|of|the|your"
        f"|my) )*(?:documents|files){_ABOUT}(?: (?:that )?you have)?{_END}",
    ),
}
# In this order; each is the whole of an utterance.
PATTERNS = tuple((kind, re.compile(source)) for kind, sources in _SOURCES.items() for source in sources)

# Those of an utterance as it was typed.
COUNTING = re.compile(rf"\b(?:{'|'.join(ORDINALS)}|{'|'.join(SHORT_ORDINALS)}|two|both|three|four)\b", re.IGNORECASE)
CORRECTION = re.compile(
    r"(?P<no>(?:(?:oh|no|nope|nah|wrong|sorry|not that|that's not what i meant|actually|well"
    r"|but)\b[\s,.!:;–-]*)*)(?P<not>not [^,?]{1,40},\s*(?:but )?)?(?:(?P<meant>i (?:actually |really |just "
    r"|only )?meant|what i (?:actually |really )?meant (?:was|is)|i was (?:asking|talking) about(?!.*\?))|i (?:mean"
    r"|(?:was|am) (?:asking|talking) about|asked (?:about|for)))(?: to (?:ask|say|write"
    r"|know)(?: about)?)?[,:]? (?P<correction>.+)",
    re.IGNORECASE,
)
NO_CORRECTION = re.compile(r"(?:to|well|it|every word|no harm|what i sa\w+)\b|.*[,:;.?!–]\s*\S", re.IGNORECASE)
