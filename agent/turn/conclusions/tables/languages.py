"""Questions of tables in German, French, Spanish, Italian and Dutch, and what is said of rows in these languages."""

import re
from dataclasses import dataclass
from typing import Literal

from indexes.text.analysis import ENGLISH, word_set


@dataclass(frozen=True, slots=True)
class TableLanguage:
    """How a language asks of tables. Each pattern but the superlatives has the group "rest"."""

    counts: str = ""
    spending: str = ""
    which: str = ""  # before a superlative
    dearest: str = ""
    cheapest: str = ""
    neutral: frozenset[str] = frozenset()  # words that say nothing of which rows are meant
    some_rows: str = "{} of {} rows"
    all_rows: str = "{} rows"
    more_rows: tuple[str, str] = ("And {} more row.", "And {} more rows.")
    sum_of: str = "Sum of {} rows: {}"


_ENGLISH = TableLanguage()
LANGUAGES = {
    ENGLISH: _ENGLISH,
    "de": TableLanguage(
        r"(?:wie ?viele?) (?P<rest>.+)",
        r"(?:wie ?viel(?: geld)?|was) (?P<rest>(?:habe|haben|hat|hatten) .*\b(?:ausgegeben|bezahlt|gezahlt|gekostet))"
        r"|(?:wie ?viel|was) (?P<rest2>(?:kosten|kostet|kostete|kosteten) .*\b(?:insgesamt|zusammen))",
        r"(?:was|welche[rsmn]?|wer)\b(?P<rest>.+)",
        r"teuerste[nrsm]?",
        r"(?:billigste|günstigste)[nrsm]?",
        word_set(
            "gibt es haben hat habe wir ich der die das den dem des im in am an auf von vom für zu zum zur bei mit "
            "mein meine unser unsere unseren ist sind war waren wurden es alle alles allem insgesamt zusammen gesamt "
            "kostet kosten kostete kosteten gekostet ausgegeben bezahlt gezahlt geld da davon"
        ),
        "{} von {} Zeilen",
        "{} Zeilen",
        ("Und {} weitere Zeile.", "Und {} weitere Zeilen."),
        "Summe aus {} Zeilen: {}",
    ),
    "fr": TableLanguage(
        r"combien (?:de |d['’])(?P<rest>.+)",
        r"combien (?:d['’]argent )?(?P<rest>(?!de |d['’]).*\b(?:dépensé|payé|coûté)\b.*)"
        r"|combien (?P<rest2>coûtent? .*\b(?:en tout|au total))",
        r"(?:quel(?:le)?s?|qu['’]est-ce qui)\b(?P<rest>.+)",
        r"(?:la |le )?plus ch[eè]re?",
        r"(?:la |le )?moins ch[eè]re?",
        word_set(
            "y a t il est ce que qu avons nous avez vous j ai ont on dans la le les l du des de d à au aux en tout "
            "total notre nos mon ma mes sur pour par été sont était étaient dépensé payé coûté coûte coûtent argent "
            "chez ensemble"
        ),
        "{} lignes sur {}",
        "{} lignes",
        ("Et {} autre ligne.", "Et {} autres lignes."),
        "Somme de {} lignes : {}",
    ),
    "es": TableLanguage(
        r"cu[aá]nt[oa]s (?P<rest>.+)",
        r"cu[aá]nto (?:dinero )?(?P<rest>.*\b(?:gastado|pagado|costado|gastamos|pagamos|gastó|pagó|gasté|pagué|costó"
        r"|costaron)\b.*)|cu[aá]nto (?P<rest2>cuestan? .*\ben total)",
        r"(?:cu[aá]l(?:es)?|qu[eé])\b(?P<rest>.+)",
        r"(?:el |la )?más car[oa]",
        r"(?:el |la )?más barat[oa]",
        word_set(
            "hay tenemos tengo tiene en el la los las lo de del al a por para total todo todos todas he ha hemos han "
            "que mi mis nuestro nuestra nuestros es son fue fueron era eran se me nos gastado pagado costado gastamos "
            "pagamos gastó pagó gasté pagué costó costaron cuesta cuestan dinero"
        ),
        "{} de {} filas",
        "{} filas",
        ("Y {} fila más.", "Y {} filas más."),
        "Suma de {} filas: {}",
    ),
    "it": TableLanguage(
        r"quant[ie] (?P<rest>.+)",
        r"quanto (?:denaro )?(?P<rest>.*\b(?:speso|pagato|costato)\b.*)"
        r"|quanto (?P<rest2>costano? .*\bin (?:totale|tutto))",
        r"(?:quale?|qual['’]|che)\b(?P<rest>.+)",
        r"(?:il |la )?più car[oa]",
        r"(?:il |la )?(?:meno car[oa]|più economic[oa])",
        word_set(
            "ci sono c è ne abbiamo ho ha hanno avete in nel nella nei nelle della del dello dei delle degli di la il "
            "lo le gli i l un per da al alla totale tutto tutti tutte mio mia nostro nostra erano era che si speso "
            "pagato costato costa costano denaro"
        ),
        "{} righe su {}",
        "{} righe",
        ("E {} altra riga.", "E altre {} righe."),
        "Somma di {} righe: {}",
    ),
    "nl": TableLanguage(
        r"hoeveel (?P<rest>.+)",
        r"(?:hoeveel(?: geld)?|wat) (?P<rest>(?:heb|hebben|heeft|hebt) .*\b(?:uitgegeven|betaald|gekost)\b.*)"
        r"|(?:hoeveel|wat) (?P<rest2>(?:kost|kosten|kostte|kostten) .*\b(?:bij elkaar|in totaal|samen))",
        r"(?:wat|welke?|wie)\b(?P<rest>.+)",
        r"duurste",
        r"goedkoopste",
        word_set(
            "zijn er is was waren heb hebben heeft hebt ik we wij de het een van in op voor bij aan uit met te naar "
            "totaal elkaar alles alle samen mijn ons onze kost kosten kostte kostten gekost uitgegeven betaald geld"
        ),
        "{} van {} rijen",
        "{} rijen",
        ("En nog {} rij.", "En nog {} rijen."),
        "Som van {} rijen: {}",
    ),
}


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
