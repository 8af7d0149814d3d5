"""Of what a question asks an amount, a time or a place: the bathtub of "How big is the bathtub?"; also in German."""

import re

_DETERMINER = (
    r"(?:the|an?|my|our|your|his|her|its|their|this|that|der|die|das|den|dem|ein|eine|einen|mein|meine|unser|unsere"
    r"|\w+['’]s)"
)
_PHRASE = rf"(?:{_DETERMINER} )?(?P<phrase>[\w-]+(?: [\w-]+){{0,4}})"
_DEFINITE = rf"{_DETERMINER} (?P<phrase>[\w-]+(?: [\w-]+){{0,4}})"
_ADJECTIVE = r"(?:big|old|tall|heavy|long|wide|high|deep|far|large|small|fast|hot|cold|expensive|thick|loud)"
_FORMS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"\b(?:what|how much) (?:does|do|did|would|will) {_PHRASE} (?:cost|weigh|measure|hold)$",
        rf"\bhow much (?:is|are|was|were) {_PHRASE}$",
        rf"\bhow {_ADJECTIVE} (?:is|are|was|were) {_PHRASE}$",
        rf"\bwhat(?: is| was| are| were|['’]s) {_DETERMINER} (?:[\w-]+ ){{1,3}}(?:of|for) {_DEFINITE}$",
        rf"\b(?:when|where|wann|wo) (?:is|are|was|were|ist|sind|war|waren) {_DEFINITE}$",
        rf"\bhow (?:do|can|should) (?:i|we|you) .*\b{_DETERMINER} (?P<phrase>[\w-]+)$",
        rf"\bwas (?:kostet|kosten|kostete) {_PHRASE}$",
        rf"\bwie (?:hoch|groß|alt|teuer|lang|breit|schwer) (?:ist|sind|war|waren) {_PHRASE}$",
        rf"\bwie heißt {_DEFINITE}$",
        rf"\bwann (?:kommt|beginnt|endet) {_DEFINITE}$",
    )
)
_END = re.compile(
    r"\b(?:in|on|at|for|of|to|from|with|by|which|who|im|am|vom|von|für|mit|bei|zum|zur|now|today|again)\b.*",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"\b(?:by|i|we|you|he|she|they|it|that|this|there|ich|wir|du|er|sie|es|das|dort)\b", re.IGNORECASE)
# What a thing is, and no thing: "When is the gate locked?"
_STATE = re.compile(
    r"\w+ed|open|due|held|free|off|shut|ready|over|available|born|made|built|done|offen|fällig|frei|ge\w+(?:t|en)"
)


def find_asked_thing(question: str) -> str:
    """The noun, in small letters; empty where the form of the question does not tell it."""
    text = " ".join(question.split()).rstrip(" ?!.")
    for form in _FORMS:
        if found := form.search(text):
            words = [] if _CLAUSE.search(found["phrase"]) else _END.sub("", found["phrase"]).split()
            things = [word.casefold() for word in words if not _STATE.fullmatch(word.casefold())]
            return things[-1] if things else ""
    return ""
