"""Questions of tables in German, French, Spanish, Italian and Dutch, and what is said of rows in these languages."""

import re
from dataclasses import dataclass
from typing import Literal

from indexes.text.analysis import ENGLISH
from indexes.words import read_file


@dataclass(frozen=True, slots=True)
class TableLanguage:
    """How a language asks of tables. Each pattern but the superlatives has the group "rest"."""

    counts: str
    spending: str
    which: str  # before a superlative
    dearest: str
    cheapest: str
    neutral: frozenset[str]  # words that say nothing of which rows are meant
    some_rows: str
    all_rows: str
    more_rows: tuple[str, str]
    sum_of: str


def _read_phrases(language: str) -> TableLanguage:
    """Those of a language, from its file; English questions have rules of their own."""
    said = dict.fromkeys(("counts", "which", "dearest", "cheapest"), "") | read_file(language)["table_questions"]
    spending, neutral = "|".join(said.get("spending", ())), frozenset(said.get("neutral", "").split())
    return TableLanguage(**said | {"spending": spending, "neutral": neutral, "more_rows": tuple(said["more_rows"])})


LANGUAGES = {language: _read_phrases(language) for language in (ENGLISH, "de", "fr", "es", "it", "nl")}


@dataclass(frozen=True, slots=True)
class ForeignQuestion:
    """A question of a table as its language asks it."""

    language: str
    aim: Literal["count", "money", "most", "least"]
    rest: str
    measure: str = ""


def read_foreign_question(text: str) -> ForeignQuestion | None:
    """What a question asks of a table, given without "¿" and "?"; None where none of these languages asks so."""
    for language, forms in LANGUAGES.items():
        if found := _read_in(language, forms, text.lstrip("¿¡ ")) if language != ENGLISH else None:
            return found
    return None


def _read_in(language: str, forms: TableLanguage, text: str) -> ForeignQuestion | None:
    found = re.fullmatch(forms.which, text, re.IGNORECASE)
    asked = found["rest"] if found else ""
    if re.search(rf"\b{forms.dearest}\b", asked, re.IGNORECASE):
        return ForeignQuestion(language, "most", _drop(forms.dearest, asked), "money")
    if re.search(rf"\b{forms.cheapest}\b", asked, re.IGNORECASE):
        return ForeignQuestion(language, "least", _drop(forms.cheapest, asked), "money")
    if found := re.fullmatch(forms.spending, text, re.IGNORECASE):
        return ForeignQuestion(language, "money", found["rest"] or found["rest2"])
    found = re.fullmatch(forms.counts, text, re.IGNORECASE)
    return ForeignQuestion(language, "count", found["rest"]) if found else None


def _drop(words: str, text: str) -> str:
    return re.sub(rf"\b{words}\b", " ", text, flags=re.IGNORECASE)
