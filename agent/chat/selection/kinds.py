"""What kinds of documents are called, and how the names of their files end."""

from indexes.text.analysis import extract_stems

_MAIL, _TABLE = (".eml", ".mbox", ".msg"), (".csv", ".tsv", ".xlsx", ".ods")
_SLIDES, _NOTES, _PICTURE = (".pptx", ".odp"), (".md", ".txt"), (".png", ".jpg", ".jpeg", ".tif", ".tiff")
ENDINGS = {
    "mail": _MAIL,
    "email": _MAIL,
    "messag": _MAIL,
    "nachricht": _MAIL,
    "nachrichten": _MAIL,
    "pdf": (".pdf",),
    "pdfs": (".pdf",),  # which the stemmer leaves as it is
    "tabl": _TABLE,
    "tabell": _TABLE,
    "tabellen": _TABLE,
    "spreadsheet": _TABLE,
    "present": _SLIDES,
    "slide": _SLIDES,
    "note": _NOTES,
    "notiz": _NOTES,
    "notizen": _NOTES,
    "pictur": _PICTURE,
    "photo": _PICTURE,
    "ebook": (".epub",),
    "courriel": _MAIL,
    "correo": _MAIL,
    "mensaj": _MAIL,
    "messaggi": _MAIL,
}
# What may be asked for by date, in the forms that questions have it in.
NOUN = (
    r"(?:(?:e-?)?mails?|messages?|nachricht(?:en)?|pdfs?|tables?|spreadsheets?|tabellen?|presentations?|slides|notes?"
    r"|notiz(?:en)?|documents?|docs?|files?|dokumente?n?|datei(?:en)?|courriels?|correos?|mensajes?|messaggi|documentos?|documenti|documenten"
    r"|bestanden|fichiers?|archivos?|pictures?|photos?|e-?books?)"
)


def find_kinds(text: str) -> set[str]:
    """The kinds that a text names, as keys of `ENDINGS`."""
    return set(extract_stems(text.replace("-", ""))) & ENDINGS.keys()


def is_of_kind(path: str, kinds: set[str]) -> bool:
    """Whether a document is of one of some kinds, by its ending or by a word of its path; of no kind are all."""
    endings = tuple(ending for kind in kinds for ending in ENDINGS[kind])
    return not kinds or path.casefold().endswith(endings) or bool(kinds & set(extract_stems(path)))
