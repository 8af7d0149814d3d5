"""Words of questions, columns and cells, so that they can be held against each other."""

import re
from functools import lru_cache

from agent.turn.conclusions.amounts import UNIT
from indexes.text.analysis import extract_stems, word_set

_WORD = re.compile(r"[^\W_]+|[€£$]")
# What a cell of a column says that tells yes from no.
YES, NO = word_set("yes y ja true x ✓ ✔ done"), word_set("no n nein false none keine keiner n/a - – — / ✗ ✘")
CURRENCIES = word_set("eur euro usd dollar gbp pound chf franc € £ $")
# Words of which one stands for another: what was spent is in a table of expenses.
_GROUPS = (
    "spend spent spending spendings expense expenses expenditure cost costs costing pay paid pays payment payments "
    "purchase purchases shopping buy buys bought buying ausgabe ausgaben kosten kost einkauf einkäufe "
    "dépense dépenses frais gasto gastos spesa spese uitgave uitgaven",
    "sell sold sells sale sales selling",
    "work works worked working hours timesheet timesheets shift shifts",
    "earn earned earns income earnings revenue",
    "phone telephone mobile tel telefon telefonnummer handy",
    "email mail e-mail emails mailadresse",
    "birthday birthdate birth born geburtstag",
    "town city place live lives lived living ort stadt",
    "person people who name wer",
    "quantity qty stock pieces count anzahl menge stück",
    "date day when datum",
)


@lru_cache(maxsize=65536)
def stem_of(word: str) -> str:
    """The stem of one word, also of a stop word."""
    return next(iter(extract_stems(word)), word.casefold())


@lru_cache(maxsize=65536)
def split_words(text: str) -> tuple[str, ...]:
    """The stems of all words of a text, in order; of "e-mail" one."""
    plain = re.sub(r"['’]s\b", "", text).replace("e-mail", "email").replace("E-Mail", "email")
    return tuple(stem_of(word) for word in _WORD.findall(plain.casefold()))


GROUP_OF = {stem_of(word): number for number, group in enumerate(_GROUPS) for word in group.split()}
UNIT_OF = {stem_of(word): unit for word, unit in UNIT.items()}
SPENDING = GROUP_OF[stem_of("spend")]
QUANTITIES = frozenset(stem for stem, number in GROUP_OF.items() if number == GROUP_OF[stem_of("quantity")])
PEOPLE = GROUP_OF[stem_of("person")]
UNIT_WORDS = frozenset(map(stem_of, CURRENCIES))


def name_the_same(one: str, other: str) -> bool:
    """Whether a stem may name a column with another in its name; what was spent is not the column of who paid."""
    return one == other or (GROUP_OF.get(one) != SPENDING and mean_the_same(one, other))


def mean_the_same(one: str, other: str) -> bool:
    """Whether two stems are the same, of one group, or of one unit."""
    groups = (GROUP_OF, UNIT_OF)
    return one == other or any(one in group and group[one] == group.get(other) for group in groups)
