"""What a web page has beside its text: navigation, bylines, dates, share lines, cookie notes, copyright.

`match_boilerplate` tells where such a thing ends that begins a text; `is_boilerplate` whether a text is nothing else.
"""

import re

from indexes.text.dates import MONTH

_DATE = rf"(?i:{MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?,? \d{{4}}|\d{{1,2}}\.? {MONTH}\.?,? \d{{4}}|\d{{4}}-\d\d-\d\d)"
_TIME = r"(?:,? (?:at )?\d{1,2}:\d\d(?: ?[AaPp]\.?[Mm]\.?)?)?"
_DATED = r"(?i:(?:last |first )?(?:updated|published|posted|modified|reviewed|created)(?: on)?:? ?|date: )"
_NAME = r"[A-Z][\w’'-]+ (?:[A-Z]\. )?(?:Mc|Mac|De|O['’])?[A-Z][\w’'-]+"
_DEGREES = r"(?:,? (?:M\.?D\.?|Ph\.?D\.?|R\.?D\.?N?|MPH|MS|MSc|RN|DO|LD|CDN|BSc|CPT|Staff Writer),?)*"
_CHECKED = r"(?i:(?:written|medically reviewed|reviewed|posted|published|edited|fact[- ]checked|article|story) by)"
_SEPARATOR = r"(?: ?[|·•]|,)?"
_NETWORK = r"(?:Facebook|Twitter|Pinterest|LinkedIn|WhatsApp|Reddit|Instagram|Tweet|Email|Pin(?: it)?|Print|Share)"
_FRONT = (
    rf"(?:{_CHECKED}|[Bb]y:?|BY) (?:Dr\.? )?{_NAME}{_DEGREES}{_SEPARATOR}"
    rf"(?: (?:on )?{_DATED}?{_DATE}{_TIME}|(?= {_CHECKED}| {_DATED}|$))",
    rf"{_DATED}{_DATE}{_TIME}{_SEPARATOR}",
    r"Home(?: (?:[»›>/|→]|>>)(?: [\w&’'-]+){1,4}(?= (?:[»›>/|→]|>>)))* (?:[»›>/|→]|>>) [\w&’'-]+",
    r"Answered (?:\d+ \w+ ago|.{0,15}\d{4})(?: [·•])?|Author has [\w.]+ answers and [\w.]+ answer views",
    r"[Rr]eading [Tt]ime:? \d+ min(?:ute)?s?\.?|\d+ [Mm]in(?:ute)?s? [Rr]ead\b",
    r"\d[\d.,]*K? (?:[Vv]iews|[Cc]omments?|[Ss]hares|subscribers|votes)(?: View \d+ [Uu]pvotes?)?(?= |$)",
    rf"(?:Share (?:on|via|this)|{_NETWORK})(?: (?:Share on )?{_NETWORK})+:?(?= |$)",
    r"(?:Skip to (?:main )?[Cc]ontent|Jump to (?:navigation|search|[Rr]ecipe)|Table [Oo]f [Cc]ontents|Advertisements?"
    r"|ADVERTISEMENT|Anzeige|Sponsored|Print Recipe|Pin Recipe|Get Recipe|Download PDF|Leave a [Cc]omment"
    r"|Leave a [Rr]eply|Click to [Tt]weet|Watch on|Related [Aa]nswer|Continue [Rr]eading"
    r"|Upgrade to Quora\+ to access this answer|Access millions more answer ?s like this"
    r"|From Wikipedia, the free encyclopedia)(?= |$)",
    r"(?:READ MORE|Read [Mm]ore|RELATED|Related|See [Aa]lso|ALSO READ|Also [Rr]ead|Recommended reading):(?= |$)",
    r"\[ ?(?:edit|\w{1,3}) ?\]|\d{1,3}\](?= [A-Z“])",
)
_WHOLE = (  # of a short text
    r"(?:©|\(c\) ?\d{4}|copyright\b).*|.*\ball rights reserved\b.*|alle rechte vorbehalten.*",
    r"(?:this (?:web)?site|we|our partners) uses? cookies\b.*|.*\b(?:accept|reject|manage) (?:all )?cookies\b.*"
    r"|.*\bcookie (?:policy|settings|preferences|notice)\b.*|(?:diese (?:web)?seite|wir) verwende[nt]\b.*\bcookies\b.*",
    r"(?:cookies?|impressum|imprint|datenschutz(?:erklärung)?|privacy policy|terms (?:of (?:use|service)"
    r"|and conditions)|home|menu|menü|search|suche|contact(?: us)?|kontakt|about(?: us)?|sitemap|login|log in"
    r"|sign (?:in|up)|register|subscribe|newsletter|share|tweet|print|email|comments?|share this|next|previous|prev"
    r"|back|weiter|zurück|startseite|advertisements?|anzeige|werbung|continue reading|read more|learn more|weiterlesen"
    r"|mehr lesen|related articles?|related posts?|popular articles|table of contents|contents|inhalt(?:sverzeichnis)?"
    r"|top|faqs?)[.:!]?",
    r"(?:sign up|subscribe|join|register)\b.{0,60}\b(?:newsletter|mailing list|updates|channel|inbox)\b.*",
    r"(?:follow|like|find) us on\b.*|share (?:this|on|via)\b(?: [\w-]+){0,5}:?|(?:click|tap) here\b.*",
    r"(?:read|see|learn|find out) (?:more|also)\b(?: (?:at|on|about|here|in))?[: ].{0,80}",
    r"(?:fig(?:ure)?|abb(?:ildung)?|tab(?:le|elle)?|photo|image|source|credit|quelle|foto)s?\.? ?:? ?\d{0,3}[a-z]?\.?",
    rf"(?:on |am )?(?:{_DATE}|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}){_TIME}\.?",
    r"page \d+(?: of \d+)?\.?|seite \d+(?: von \d+)?\.?",
)
FRONT = re.compile("|".join(f"(?:{pattern})" for pattern in _FRONT))
WHOLE = re.compile("|".join(f"(?:{pattern})" for pattern in _WHOLE), re.IGNORECASE)
MAX_CHARACTERS = 240  # of what is boilerplate as a whole; more are hardly ever


def match_boilerplate(text: str) -> str:
    """The boilerplate that a text begins with, up to white space; empty where there is none."""
    found = FRONT.match(text)
    if not found or (text[found.end() :][:1].strip() and not found[0].endswith(" ")):
        return ""
    return found[0].strip()


def is_boilerplate(text: str) -> bool:
    """Whether a unit is nothing but boilerplate, or has no word at all."""
    short = text[: MAX_CHARACTERS + 1]
    if not re.search(r"[^\W\d_]", text) and not re.search(r"\d\S*\s?[%€$£°]|[€$£]\s?\d", short):
        return True
    return len(short) <= MAX_CHARACTERS and bool(WHOLE.fullmatch(short) or match_boilerplate(short) == short)
