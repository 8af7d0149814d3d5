"""Patterns of numbers, amounts, dates and times, in English and German, as they stand in a sentence."""

import re

from indexes.words import list_tables, list_words, match_any

_ENGLISH = (*list_words("numbers", ["en"])[1:], *list_words("tens"), *list_words("large_numbers", ["en"]))
_GERMAN = (*list_words("numbers", ["de"])[2:], *list_words("large_numbers", ["de"]))
_ONE_WORD = "|".join((*_ENGLISH, *_GERMAN))
DIGITS = r"\d{1,3}(?:[., ]\d{3})+(?:[.,]\d+)?(?!\d)|\d+(?:[.,]\d+)?"
SPELLED = rf"(?:a |an )?(?:{_ONE_WORD})(?:[- ](?:and )?(?:a )?(?:{_ONE_WORD}))*"
_SCALE = r"(?: (?:thousand|million|billion|Millionen|Milliarden)\b)?"
_NUMBER = rf"(?:(?<![\w.,:/-])[-−]?(?:{DIGITS}){_SCALE}|\b(?:{SPELLED})\b)"
_ABOUT = (
    r"(?:(?:no more than|not more than|no less than|more than|less than|fewer than|at most|at least|up to|about|around"
    r"|roughly|approximately|nearly|almost|over|under|etwa|rund|ungefähr|mindestens|höchstens|bis zu|knapp) )?"
)
RANGE = rf"{_ABOUT}(?:{_NUMBER}(?: ?(?:to|or|bis|-|–) ?{_NUMBER})?)"
# Units, by what they measure. Short ones count only right after digits or a space.
UNITS = {measure: "|".join(words) for measure, words in list_tables("units").items()}
# What a question's noun or adjective measures, where it is not named like its units.
MEASURES: dict[str, tuple[str, ...]] = {}
for _measure, _nouns in list_tables("measures").items():
    for _noun in _nouns:
        MEASURES[_noun] = (*MEASURES.get(_noun, ()), _measure)
_CURRENCY = r"(?:€|£|\$|EUR|USD|GBP|CHF|euros?|dollars?|pounds?|cents?|pence|francs?|kronor|kroner|Euro|Franken)"
_RATE = (
    r"(?: (?:an?|per|pro) (?:hour|day|night|week|month|year|person|head|item|glass|"
    r"Stunde|Tag|Nacht|Monat|Jahr|Person))?"
)
MONEY = re.compile(
    rf"{RANGE} ?{_CURRENCY}(?!\w){_RATE}|{_ABOUT}(?:€|£|\$|EUR |CHF |USD ) ?(?:{DIGITS}){_RATE}", re.IGNORECASE
)
MONTH = (
    rf"(?:{match_any('months', ['en'])}|Jan\.?|Feb\.?|Mar\.?|Apr\.?|Aug\.?|Sept?\.?|Oct\.?|Nov\.?|Dec\.?"
    rf"|{match_any('months', ['de'])})"
)
_GERMAN_DAYS = match_any("weekdays", ["de"])
WEEKDAY = (
    rf"(?:(?:{match_any('weekdays', ['en'])})s?|(?:{_GERMAN_DAYS})s?|(?:{_GERMAN_DAYS.lower()})s"
    r"|weekdays|weekends|workdays)"
)
YEAR = r"(?:1[0-9]\d\d|20\d\d)"
_ORDINAL = rf"(?:{match_any('ordinals')}|last)"
_CLOCK = (
    r"(?:\d{1,2}[:.]\d{2} (?:Uhr|a\.?m\b\.?|p\.?m\b\.?|o['’]clock)|\d{1,2}:\d{2}|\d{1,2} ?(?:Uhr|a\.?m\b\.?|"
    r"p\.?m\b\.?|o['’]clock)|"
    rf"(?:half past|(?:a )?quarter (?:past|to)) (?:\d{{1,2}}|{_ONE_WORD})|(?:{_ONE_WORD}) (?:o['’]clock|Uhr)|"
    rf"noon|midnight)"
)
_DAY = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\.? (?:of )?{MONTH}(?:,? {YEAR})?|{MONTH} \d{{1,2}}(?:st|nd|rd|th)?(?!\d)(?:,? "
    rf"{YEAR})?|(?:the )?{_ORDINAL} (?:week |{WEEKDAY} )?(?:of|in) (?:each month|every month|the month|{MONTH})"
    rf"|(?:the )?(?:start|beginning|middle|end) of {MONTH}(?: {YEAR})?"
    rf"|\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}\.\d{{1,2}}\.(?:\d{{4}}|\d{{2}})?|{MONTH},? {YEAR})"
)
SEASON = r"(?:(?:early |late )?(?:spring|summer|autumn|winter)(?: (?:of )?" + YEAR + r")?)"
_MOMENT = rf"(?:{WEEKDAY}(?:,? (?:the )?{_DAY})?|{_DAY})"
_TO = r" ?(?:to|until|and|bis|und|-|–) ?"
_BOUND = r"(?:(?:not before|from|until|till|by|before|after|since|ab|bis|seit|vor|nach) )?"  # "Until 11:00."
_CLOCKS = rf"(?:(?:\d{{1,2}}(?:[:.]\d\d)?|{_ONE_WORD}){_TO}{_CLOCK}|{_CLOCK})"
DATE = re.compile(
    rf"(?<![\w.-]){_BOUND}(?:{_MOMENT}(?:{_TO}{_MOMENT})?(?:,? (?:at|from|um|ab|until) {_CLOCKS})?|"
    rf"{_CLOCKS}|{MONTH}{_TO}{MONTH}|{MONTH}(?![a-z])|{SEASON}|"
    rf"(?<!\d[ ,])(?<!number )(?<!type ){YEAR}(?![\w,.]*\d)(?! (?:euros?|km|m|g|kg|ml|mm|EUR|W|litres?)\b))(?!\w)"
)
_CLOCK_ONLY = re.compile(rf"(?<![\w.-]){_BOUND}{_CLOCKS}(?!\w)", re.IGNORECASE)
PART_OF_DATE = {
    "time": _CLOCK_ONLY,
    "uhrzeit": _CLOCK_ONLY,
    "year": re.compile(rf"(?<![\w.,-]){YEAR}(?![\w-])(?!,\d)"),
    "jahr": re.compile(rf"(?<![\w.,-]){YEAR}(?![\w-])(?!,\d)"),
    "month": re.compile(rf"\b{MONTH}(?!\w)"),
    "day": re.compile(rf"(?<![\w.-])(?:{_MOMENT}(?:{_TO}{_MOMENT})?)(?!\w)"),
    "weekday": re.compile(rf"\b{WEEKDAY}(?!\w)"),
    "hour": _CLOCK_ONLY,
}
FREQUENCY = re.compile(
    rf"{_ABOUT}(?:once|twice|(?:{_NUMBER}) times) (?:an?|every|each|per) \w+|(?:every|each) (?:(?:other|"
    rf"{_NUMBER}|{_ORDINAL}) )?"
    r"(?:second|minute|hour|day|night|morning|evening|week|month|year|half hour)s?\b|\b(?:hourly|daily|weekly|monthly"
    r"|yearly|annually|täglich|wöchentlich|monatlich|jährlich)\b|(?:einmal|zweimal|dreimal) (?:im|am|pro|in der) \w+"
    r"|(?:jede[nrs]?|alle) (?:\w+ )?(?:Stunde|Tag|Woche|Monat|Jahr)\w*",
    re.IGNORECASE,
)
