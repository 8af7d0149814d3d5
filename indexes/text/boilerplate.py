"""What a web page has beside its text: navigation, bylines, dates, share lines, cookie notes, copyright.

`match_boilerplate` tells where such a thing ends that begins a text; `is_boilerplate` whether a text is nothing else.
"""

import re

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?"
    r"|Nov(?:ember)?|Dec(?:ember)?|Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember)\.?"
)
_DATE = rf"(?:{_MONTH} \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}\.? {_MONTH},? \d{{4}}|\d{{4}}-\d\d-\d\d)"
_TIME = r"(?:,? (?:at )?\d{1,2}:\d\d(?: ?[AaPp]\.?[Mm]\.?)?)?"
_DATED = (
    r"(?:(?:Last |First )?(?:[Uu]pdated|[Pp]ublished|[Pp]osted|[Mm]odified|[Rr]eviewed|[Cc]reated)(?: on)?:? ?|Date: )"
)
_NAME = r"[A-Z][\w’'-]+ (?:[A-Z]\. )?(?:Mc|Mac|De|O['’])?[A-Z][\w’'-]+"
_DEGREES = r"(?:,? (?:M\.?D\.?|Ph\.?D\.?|R\.?D\.?N?|MPH|MS|MSc|RN|DO|LD|CDN|BSc|CPT|Staff Writer),?)*"
_CHECKED = (
    r"(?:[Ww]ritten|[Mm]edically [Rr]eviewed|[Rr]eviewed|[Pp]osted|[Pp]ublished|[Ee]dited|Fact[- ][Cc]hecked|Article"
    r"|Story)"
)
_BYLINE = rf"(?:{_CHECKED} by|[Bb]y:?|BY) (?:Dr\.? )?{_NAME}{_DEGREES}"
_SEPARATOR = r"(?: ?[|·•]|,)?"
_ALONE = (  # sure wherever they begin a text
    rf"(?:{_CHECKED} by|[Bb]y:?|BY) (?:Dr\.? )?{_NAME}{_DEGREES}{_SEPARATOR}(?: (?:on )?{_DATED}?{_DATE}{_TIME}"
    rf"|(?= {_CHECKED} by| {_DATED}|$))",
    rf"{_DATED}{_DATE}{_TIME}{_SEPARATOR}",
    r"Home(?: (?:[»›>/|→]|>>)(?: [\w&’'-]+){1,4}(?= (?:[»›>/|→]|>>)))* (?:[»›>/|→]|>>) [\w&’'-]+",
    r"[A-Z][\w&’'-]* (?:[»›]|>>?)(?: [\w&’'-]+){1,4} (?:(?:[»›]|>>?)(?: [\w&’'-]+){1,4} ){0,4}(?:[»›]|>>?) [\w&’'-]+",
    r"Answered (?:\d+ \w+ ago|.{0,15}\d{4})(?: [·•] Author has [\w.]+ answers and [\w.]+ answer views)?",
    rf"Updated {_DATE} [·•] Author has [\w.]+ answers and [\w.]+ answer views",
    r"Author has [\w.]+ answers and [\w.]+ answer views",
    r"(?:Estimated )?[Rr]eading [Tt]ime:? \d+ min(?:ute)?s?\.?",
    r"\d+ [Mm]in(?:ute)?s? [Rr]ead\b",
    r"\d[\d.,]*K? (?:[Vv]iews|[Cc]omments?|[Ss]hares|subscribers|votes)(?: View \d+ [Uu]pvotes?)?(?= |$)",
    r"Share (?:on|via|this(?: on| article| post| page)?) ?(?:Facebook|Twitter|Pinterest|LinkedIn|WhatsApp|Email|Reddit"
    r"|:)?(?: (?:Share on )?(?:Tweet|Pin|Pin it|Email|Twitter|Facebook|Pinterest|LinkedIn|WhatsApp|Print"
    r"|Share))*:?(?= |$)",
    r"(?:Facebook|Twitter|Pinterest|LinkedIn|WhatsApp|Tweet|Email|Instagram)(?: (?:Facebook|Twitter|Pinterest|Pin"
    r"|LinkedIn|WhatsApp|Tweet|Email|Instagram|Share|Print|Reddit|YouTube)){1,8}(?= |$)",
    r"(?:Skip to (?:main )?[Cc]ontent|Jump to (?:navigation|search|recipe|Recipe)|Table [Oo]f [Cc]ontents"
    r"|Skip to:)(?= |$)",
    r"(?:Advertisement|ADVERTISEMENT|Advertisements|Anzeige|Sponsored|Print Recipe|Pin Recipe|Get Recipe|Download PDF"
    r"|Download PDF Copy|Leave a [Cc]omment|Leave a [Rr]eply|Click to [Tt]weet|Watch on|Related [Aa]nswer)(?= |$)",
    r"(?:Continue [Rr]eading|Read [Mm]ore|READ MORE|Learn [Mm]ore|Weiterlesen|Mehr lesen)(?: ?(?:>>|»|→|…|\.\.\.))",
    r"(?:READ MORE|Read More|Read more|RELATED|Related|See also|See Also|ALSO READ|Also [Rr]ead|Recommended reading)"
    r":(?= |$)",
    r"From Wikipedia, the free encyclopedia(?: Jump to: navigation, search)?",
    r"Upgrade to Quora\+ to access this answer|Access millions more answer ?s like this|Continue Reading(?= |$)",
    r"Image [Cc]redits?: [\w’' ]{1,40} / [\w’'-]+",
    r"\[ ?(?:edit|\w{1,3}) ?\]|\d{1,3}\](?= [A-Z“])",
)
_LOOSE = (  # sure only where a sentence begins behind them
    rf"{_BYLINE}{_SEPARATOR}",
    rf"(?:Photo|Image|Photograph|Picture)(?: [Cc]redit| courtesy)?(?: by|:| via| of) {_NAME}"
    r"(?: on [A-Z]\w+(?: [A-Z]\w+)?)?",
    rf"{_DATE}{_TIME}{_SEPARATOR}(?<!,)",
)
_WHOLE = (  # of a short text
    r"(?:©|\(c\) ?\d{4}|copyright\b).*|.*\ball rights reserved\b.*|alle rechte vorbehalten.*",
    r"(?:this (?:web)?site|we|our (?:web)?site|our partners) uses? cookies\b.*|by (?:continuing|using|clicking)\b.*\b"
    r"(?:cookies|privacy policy|terms of (?:use|service))\b.*|.*\b(?:accept|reject|manage) (?:all )?cookies\b.*"
    r"|.*\bcookie (?:policy|settings|preferences|notice)\b.*|(?:diese (?:web)?seite"
    r"|wir) verwende[nt]\b.*\bcookies\b.*",
    r"(?:cookies?|impressum|imprint|datenschutz(?:erklärung)?|privacy policy|terms (?:of (?:use|service)"
    r"|and conditions)|home|menu|menü|search|suche|contact(?: us)?|kontakt|about(?: us)?|sitemap|login|log in"
    r"|sign (?:in|up)|register|subscribe|newsletter|share|tweet|print|email|comments?|share this|next|previous|prev"
    r"|back|weiter|zurück|startseite|advertisements?|anzeige|werbung|continue reading|read more|learn more|weiterlesen"
    r"|mehr lesen|related articles?|related posts?|popular articles|table of contents|contents|inhalt(?:sverzeichnis)?"
    r"|top|faqs?)[.:!]?",
    r"(?:sign up|subscribe|join|register)\b.{0,60}\b(?:newsletter|mailing list|email updates|free trial|updates"
    r"|channel|inbox)\b.*",
    r"(?:follow|like|find) us on\b.*|share (?:this|on|via)\b(?: [\w-]+){0,5}:?|(?:click|tap) here\b.*"
    r"|(?:abonnieren|teilen) sie\b.{0,80}",
    r"(?:read|see|learn|find out) (?:more|also)\b(?: (?:at|on|about|here|in))?[: ].{0,80}",
    r"(?:impressum|imprint|angaben gemäß|verantwortlich (?:i\. ?s\. ?d\.|im sinne|für den inhalt))\b.*",
    r"(?:fig(?:ure)?|abb(?:ildung)?|tab(?:le|elle)?|photo|image|source|credit|quelle|foto)s?\.? ?:? ?\d{0,3}[a-z]?\.?",
    r"(?:if )?playback doesn['’]t begin shortly.*|you['’]re signed out.*|videos you watch may be added.*",
    r"an error occurred while retrieving.*|this post may contain affiliate links.*|.*\baffiliate (?:links?"
    r"|commission)\b.*",
    rf"(?:on |am )?(?:{_DATE}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}){_TIME}\.?",
    r"page \d+(?: of \d+)?\.?|seite \d+(?: von \d+)?\.?|\d+ (?:views|comments?|shares|answers)\.?",
)
ALONE = re.compile("|".join(f"(?:{pattern})" for pattern in _ALONE))
LOOSE = re.compile("|".join(f"(?:{pattern})" for pattern in _LOOSE))
WHOLE = re.compile("|".join(f"(?:{pattern})" for pattern in _WHOLE), re.IGNORECASE)
MAX_CHARACTERS = 240  # of what is boilerplate as a whole; more are hardly ever


def match_boilerplate(text: str) -> str:
    """The boilerplate that a text begins with, up to white space; empty where there is none."""
    found = ALONE.match(text)
    return _up_to_space(text, found)


def match_dateline(text: str) -> str:
    """The byline or date that a text begins with; it counts only where a sentence begins behind it."""
    return _up_to_space(text, LOOSE.match(text))


def _up_to_space(text: str, found: re.Match[str] | None) -> str:
    if not found or not found[0].strip() or (text[found.end() :][:1].strip() and not found[0].endswith(" ")):
        return ""
    return found[0].strip()


def is_boilerplate(text: str) -> bool:
    """Whether a unit is nothing but boilerplate, or has no word at all."""
    short = text[: MAX_CHARACTERS + 1]
    if not re.search(r"[^\W\d_]", text) and not re.search(r"\d\S*\s?[%€$£°]|[€$£]\s?\d", short):
        return True
    return len(short) <= MAX_CHARACTERS and bool(WHOLE.fullmatch(short) or match_boilerplate(short) == short)
