"""Words of questions, columns and cells, so that they can be held against each other."""

import re
from functools import lru_cache

from agent.turn.spans.amounts_and_dates import UNIT
from indexes.text.analysis import extract_stems
from indexes.words import list_tables, list_words

_WORD = re.compile(r"[^\W_]+|[€£$]")
# What a cell of a column says that tells yes from no.
YES, NO = frozenset(list_words("cells.yes")), frozenset(list_words("cells.no"))


@lru_cache(maxsize=65536)
def stem_of(word: str) -> str:
    """The stem of one word, also of a stop word."""
    return next(iter(extract_stems(word)), word.casefold())


@lru_cache(maxsize=65536)
def split_words(text: str) -> tuple[str, ...]:
    """The stems of all words of a text, in order; of "e-mail" one."""
    plain = re.sub(r"['’]s\b", "", text).replace("e-mail", "email").replace("E-Mail", "email")
    return tuple(stem_of(word) for word in _WORD.findall(plain.casefold()))


# Words of which one stands for another: what was spent is in a table of expenses.
GROUP_OF = {stem_of(word): group for group, words in list_tables("same_meaning").items() for word in words}
UNIT_OF = {stem_of(word): unit for word, unit in UNIT.items()}
QUANTITIES = frozenset(stem for stem, group in GROUP_OF.items() if group == "quantity")
CURRENCIES = frozenset(list_words("table_words.currencies"))
UNIT_WORDS = frozenset(map(stem_of, CURRENCIES))


def name_the_same(one: str, other: str) -> bool:
    """Whether a stem may name a column with another in its name; what was spent is not the column of who paid."""
    return one == other or (GROUP_OF.get(one) != "spending" and mean_the_same(one, other))


def mean_the_same(one: str, other: str) -> bool:
    """Whether two stems are the same, of one group, or of one unit."""
    groups = (GROUP_OF, UNIT_OF)
    return one == other or any(one in group and group[one] == group.get(other) for group in groups)
