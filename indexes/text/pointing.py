"""Whether a sentence hangs on the one before it, told by its opening words in English and German.

A sentence points back where a pronoun, a demonstrative or a connective opens it. It limits where it is the negation,
condition or exception of what stands before: "Only with written permission.", "It was not agreed in this contract."
"""

import re
from collections.abc import Sequence

MAX_LIMITING_WORDS = 14  # of a sentence that points back and negates; a longer one says something of its own
_ITSELF = "article|page|post|guide|blog|site|website|document|manual|handbook|contract|policy|year|month|chapter|paper"
_CONNECTIVES = (
    "however but and or so yet nor then thus hence therefore also besides moreover furthermore additionally"
    " otherwise "
    "instead nevertheless nonetheless consequently accordingly similarly likewise conversely alternatively meanwhile "
    "afterwards afterward subsequently secondly thirdly lastly finally next again still too plus indeed specifically "
    "regardless eventually ultimately second third "
    "aber und oder doch sondern denn jedoch allerdings trotzdem dennoch deshalb deswegen daher darum dann danach"
    " dabei "
    "dadurch damit davon dafür dagegen dazu daran darin darauf darüber darunter außerdem zudem ferner sonst "
    "andernfalls ansonsten stattdessen hierbei hierzu hierfür dort ebenso somit folglich schließlich anschließend"
)
_PRONOUNS = (
    "he she they him them his her hers its their theirs himself herself themselves itself "
    "er ihm ihn ihnen ihr ihre ihren ihrem ihrer ihres sein seine seinen seinem seiner seines dies diese dieser"
    " diesem "
    "diesen dieses jene jener jenes letztere letzterer erstere ersterer beides solche solcher solches"
)
_POINTERS = r"(?:this|these|those|that|such|it|them|him|both|either|neither)"
_ORDINALS = "second|third|fourth|latter|former|same|other|others|above|following|first one|second one"
_POINTS_BACK = (
    rf"(?:{'|'.join(_PRONOUNS.split())})\b",
    rf"(?:{'|'.join(_CONNECTIVES.split())})\b(?!-|:|\s(?:of|than|that is|far|many|much|long|time|week|year|month"
    rf"|day|door)\b)",
    r"it(?:['’]s|['’]ll|['’]d)?\b(?!\s(?:rains?|snows?|(?:is|was|may be|can be|could be|would be|might be)\s"
    r"(?:\w+\s){0,2}(?:important|possible|impossible|necessary|best|better|advisable|recommended|clear|known|easy|"
    r"hard|difficult|estimated|believed|worth|crucial|essential|common|normal|true|useful|helpful|safe)\b))",
    rf"(?:this|that|these|those|such)\b(?!\s(?:{_ITSELF}|who)\b)(?:['’]s\b)?(?!\sday)",
    rf"(?:(?:as|in)\s)?the\s(?:{_ORDINALS})\b(?!\s(?:time|century|day|week|month|year|saturday|sunday|monday|tuesday|"
    r"wednesday|thursday|friday|of|frost|two|three|few)\b)",
    r"(?:for (?:example|instance)|in (?:addition|contrast|comparison|other words|turn|short|fact|conclusion"
    r"|particular)"
    r"|as (?:a result|such|a consequence)|on the (?:other hand|contrary|one hand)|at the same time|by contrast"
    r"|after all"
    r"|if (?:so|not)|even so|either way|that said|what['’]?s more|in both|rather)(?:,|\s(?!to\b|of\b|than\b))",
    rf"(?:in|on|at|by|for|from|with|without|during|after|before|under|despite|given|of|like|unlike|to|through"
    rf"|because of"
    r"|due to|all|some|many|most|none|few|each|one|two|both|any|several|half|part|much|neither|either)"
    rf"(?:\s(?:of|all))?\s{_POINTERS}\b(?!\s(?:{_ITSELF}|who|which)\b)",
    r"(?!(?:how|what|where|who|why)\s|when\sit\scomes|if\sit\s(?:rains|snows))[a-z]+\s(?:it|they|them|these|those"
    r"|this|he|she|him)\b"
    rf"(?!\s(?:rains|snows|{_ITSELF}|who)\b)",
    r"(?:while|although|though|if|when|because|since|once|until|whether|even if|even though)\s(?:that|such)\b",
    r"(?:since|until|by|even|back|from|only) then\b|even (?:better|worse|more)\b|more so\b|not only that\b"
    r"|as (?:already )?(?:mentioned|noted|discussed|described|stated|said|shown|explained|seen|you can see|we saw)\b",
    r"(?:another|others?|both|neither|either|one)\s(?:of\s(?:them|these|those)|is|are|was|were|has|have|can|way"
    r"|reason"
    r"|option|example|benefit|advantage|thing|factor)\b",
    r"sie\s(?:\w*[^n\s]|ist)\b(?!\S)",
    r"es\s(?!(?:gibt|regnet|schneit|ist\s(?:wichtig|möglich|verboten|nicht möglich)|handelt)\b)\w+",
    r"das\s(?:ist|war|gilt|hat|wird|kann|sind|heißt|macht|geht|muss|darf|soll|führt|liegt|bedeutet|kostet|nicht)\b",
    r"(?:in|bei|für|mit|von|nach|vor|aus|zu|an|auf|während|wegen|trotz)\s(?:dies|jen|solch)(?:e|er|em|en|es)?\b",
    r"auch\b",
)
POINTS_BACK = re.compile(rf"[\"'“‘„(\[]*(?:{'|'.join(_POINTS_BACK)})", re.IGNORECASE)
_CUT_OFF = re.compile(  # the rest of a sentence
    r"[,;:)\]]|\w{1,4}\]|(?:which|who|that|while|where|because|than|of|to|with|in|on|for|from|by|is|are|was|were"
    r"|the|if"
    r"|dass|weil|welche\w*|mit|von|ist|sind|war)\s"
)
_LIMITS = (
    r"only (?:with|if|when|after|for|in|on|at|by|where|until|as|once|during|under|from)\b|not (?:in|on|at|for|with"
    r"|if|when|before|after|during|by|until|without|suitable|allowed|valid|included|covered"
    r"|available|permitted)\b"
    r"|unless\b[^,]*$|except(?:ion|ions)?\b|exclud|provided\b|but (?:not|only|never)\b|never(?:\s\w+){0,3}\.?$"
    r"|no exceptions"
    r"|subject to\b|this does not|this is not|that does not|does not apply|limited to"
    r"|nur (?:mit|wenn|nach|für|bei|in|im|auf|bis|von|unter|am|an|falls|mit)\b|nicht\b|außer\b|ausnahme|ausgenommen"
    r"|es sei denn|sofern\b[^,]*$|vorausgesetzt|(?:das|dies) gilt nicht|aber (?:nicht|nur)\b|jedoch (?:nicht|nur)\b"
)
LIMITS = re.compile(rf"[\"'“‘„(\[]*(?:{_LIMITS})", re.IGNORECASE)
_NEGATES = re.compile(
    r"\b(?:not|never|no|nor|none|only|unless|except|without|cannot|nicht|kein\w*|nie|niemals|nur|ohne|außer)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)

_DEMONSTRATIVE = re.compile(r"(?:this|these|that|those|dies\w*)\s(\w{3,})", re.IGNORECASE)


def points_back(text: str, *, is_item: bool = False) -> bool:
    """Whether a sentence or list item begins with, or hangs on, something that stands before it."""
    return bool(POINTS_BACK.match(text) or (not is_item and _CUT_OFF.match(text)))


def names_its_subject(text: str, headings: Sequence[str]) -> bool:
    """Whether a sentence begins with a demonstrative and a noun that the headings above it have: "These pancakes"."""
    found = _DEMONSTRATIVE.match(text)
    return found is not None and found[1].lower().rstrip("s") in " ".join(headings).lower()


def limits_what_stands_before(text: str) -> bool:
    """Whether a sentence is the negation, condition or exception of the one before it."""
    if len(text.split()) > MAX_LIMITING_WORDS:
        return bool(re.match(r"(?:except|exception|exceptions|ausnahme|ausnahmen)\b", text, re.IGNORECASE))
    return bool(LIMITS.match(text)) or (bool(_NEGATES.search(text)) and points_back(text))
