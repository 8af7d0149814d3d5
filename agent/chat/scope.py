"""The part of a collection that a conversation is kept to: a folder, a file, a glob, or words of paths and titles.

A scope is the text that names it, "" for everything. What it stands for is looked up for each question, so that a new
file of a folder is in it, too.
"""

import difflib
import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from agent.chat.selection.dated_items import DatedItem, mark_rows, select_items
from agent.chat.selection.kinds import find_kinds, is_of_kind
from agent.chat.selection.listing import find_wanted_days
from indexes.documents.collection import Collection, Document
from indexes.documents.readers import has_reader
from indexes.ranking.rankings import Rows
from indexes.text.analysis import extract_stems
from schemas.errors import UsageError, list_with_limit

EVERYWHERE = ""
MAX_LISTED = 5  # documents named in a reply
NEAREST, SIMILAR = 3, 0.5  # names that are told where nothing is called as was said, and how similar they are
MAX_NAME_WORDS = 4  # of what may be meant for a name though nothing is called so
_POLITE = (
    r"please|now|again|from now on|bitte|jetzt|wieder|ab jetzt|s['’]il (?:te|vous) pla[iî]t|maintenant|de nouveau"
    r"|por favor|ahora|otra vez|per favore|adesso|ora|di nuovo|alsjeblieft|nu|weer|agora|de novo"
)
_LEAD = (
    rf"(?:(?:{_POLITE}|and|ok|okay|then|und|et|y|e|en)[, ]+)*"
    r"(?:(?:search|look|ask|answer|stay|keep(?: it)?|such|suche|cherche|recherche|busca|buscar|cerca|zoek|procura)"
    r"(?: me)? )?"
)
_END = rf"(?:,? (?:{_POLITE}))*[\s.!]*"
# The way back, and the beginning of a request, in the languages in which answers speak of themselves.
_ALL = (
    r"everywhere|in everything|(?:in )?(?:all|every)(?: of)?(?: the| my| your)? (?:documents?|files?|folders?)",
    r"überall|in allem|in allen (?:meinen )?(?:dokumenten|dateien|ordnern)",
    r"partout|dans tout|dans tous (?:les|mes) (?:documents|fichiers|dossiers)",
    r"en todo|en todas partes|por todas partes|en todos (?:los|mis) (?:documentos|archivos)|en todas las carpetas",
    r"ovunque|dappertutto|in tutto|in tutti i (?:miei )?(?:documenti|file)|in tutte le cartelle",
    r"overal|in alles|in al(?:le| mijn) (?:documenten|bestanden|mappen)",
    r"em tudo|em todo(?: o)? lado|em toda(?: a)? parte|em todos os (?:meus )?(?:documentos|ficheiros|arquivos)",
)
_ONLY = (  # the word, and the prepositions behind it
    r"(?:only|just)(?: (?P<en>in|within|from|among|through))?",
    r"nur(?: noch)?(?: (?P<de>in|im|aus|unter|bei|von))?",
    r"(?:seulement|uniquement)(?: (?P<fr>dans|en|parmi))?",
    r"(?:solo|sólo|solamente|únicamente)(?: (?P<es>en|entre|dentro de|in|nella|nelle|nel|nei|tra))?",
    r"(?:soltanto|solamente)(?: (?P<it>in|nella|nelle|nel|nei|tra))?",
    r"(?:alleen|enkel)(?: (?P<nl>in|binnen|onder|uit))?",
    r"(?:apenas|só|somente)(?: (?P<pt>em|no|na|nos|nas|entre))?",
)
_EVERYWHERE = re.compile(rf"/everywhere|{_LEAD}(?:{'|'.join(_ALL)}){_END}", re.IGNORECASE)
_COMMAND = re.compile(r"/only (?P<where>.+)", re.IGNORECASE)
_PHRASE = re.compile(rf"{_LEAD}(?:{'|'.join(_ONLY)}) (?P<where>[^?]+?){_END}", re.IGNORECASE)
_ARTICLE = re.compile(
    r"(?:(?:the|my|our|this|der|die|das|dem|den|meine[rmn]?|le|la|les|el|los|las|il|lo|gli|i|de|het|o|os|as|a) )+",
    re.IGNORECASE,
)
_HOLDER = re.compile(
    r"(?:(?:sub)?(?:folder|directory)|(?:files?|documents?)(?: (?:in|from|under))?"
    r"|ordner|verzeichnis|dossier|carpeta|cartella|map|pasta) (?P<after>.+)"
    r"|(?P<before>.+) (?:folder|directory|file|document)",
    re.IGNORECASE,
)
_NEUTRAL = {"document", "file", "folder", "about", "call", "name", "from", "year"}  # stems that name no document
Selector = Callable[[str, Collection], list[Document]]


def find_scope_request(utterance: str, collection: Collection) -> str | None:
    """Where the whole of an utterance wants the search to be kept to, "" for everywhere; None for anything else.

    `/only X` always is such a request; a phrase only if it names documents of this folder, or is written like a path.
    """
    text = " ".join(utterance.split())
    if _EVERYWHERE.fullmatch(text):
        return EVERYWHERE
    if found := _COMMAND.fullmatch(text):
        return _strip_quotes(found["where"])
    found = _PHRASE.fullmatch(text) if collection.is_folder else None
    where = _strip_quotes(found["where"]) if found else ""
    if not found or not where:
        return None
    has_preposition = any(name != "where" and word for name, word in found.groupdict().items())
    if _is_like_a_path(where) or (has_preposition and _can_only_be_a_name(where, collection)):
        return where
    return where if _says_which(where, collection) else None


def _says_which(where: str, collection: Collection) -> bool:
    """Whether a phrase names documents. "Just yesterday" names a day, of which there may be documents, too."""
    if _select_named(where, collection):
        return True
    plain = _strip_article(where)
    is_bare_day = not find_kinds(plain) and not re.search(r"\d{4}", plain) and find_wanted_days(plain, collection)
    return bool(not is_bare_day and select_documents(where, collection))


def _can_only_be_a_name(where: str, collection: Collection) -> bool:
    """Whether no document is named nor speaks of it: "only in winter" may be asked where one does."""
    is_short = len(where.split()) <= MAX_NAME_WORDS and not collection.is_empty
    index = collection.index
    return is_short and not find_wanted_days(where, collection) and not index.search([(where, 1.0)], 1)


def find_scope(where: str, collection: Collection) -> str | None:
    """The scope that a request names: a folder by its path, else what was said; None where it has no document."""
    if where == EVERYWHERE:
        return where
    found = select_documents(where, collection)
    if not found or set("*?[") & set(where) or _is_of_days(where, collection):
        return where if found else None
    documents = collection.list_documents()
    for folder in list_folders(found):
        inside = [document for document in documents if document.path.startswith(folder)]
        if inside == found and folder.split("/")[-2].casefold() in where.casefold():
            return folder
    return where


def select_documents(scope: str, collection: Collection) -> list[Document]:
    """The documents that a scope names, by the first way of naming them that finds any."""
    if named := _select_named(scope, collection):
        return named
    paths = {item.path for item in _select_of_days(scope, collection)}
    if paths:
        return [document for document in collection.list_documents() if document.path in paths]
    return _select_by_words(_strip_article(scope), collection) if collection.is_folder else []


def _strip_article(scope: str) -> str:
    plain = _strip_quotes(scope)
    return _ARTICLE.sub("", plain, count=1) if _ARTICLE.match(plain) else plain


def _select_named(scope: str, collection: Collection) -> list[Document]:
    """By their paths, else by their names."""
    plain = _strip_article(scope)
    inner = _HOLDER.fullmatch(plain)
    names = [plain, *([_strip_quotes(inner["after"] or inner["before"])] if inner else [])]
    ways: list[tuple[str, Selector]] = [(name, way) for way in (_select_by_path, _select_by_name) for name in names]
    return next((found for name, way in ways if (found := way(name, collection))), [])


def _is_of_days(scope: str, collection: Collection) -> bool:
    return not _select_named(scope, collection) and bool(_select_of_days(scope, collection))


def _select_of_days(scope: str, collection: Collection) -> list[DatedItem]:
    """Documents and messages of some days ("the mails of 2025", "last week")."""
    wanted = find_wanted_days(_strip_article(scope), collection)
    return select_items(wanted, collection) if wanted else []


def _select_by_path(name: str, collection: Collection) -> list[Document]:
    """A glob, in which * stands for folders, too; else a folder or a file by its path."""
    folded = name.casefold()
    if set("*?[") & set(folded):
        patterns = [re.compile(fnmatch.translate(glob)) for glob in (folded, folded.replace("**/", ""))]
        return _select(collection, lambda path: any(p.match(part) for p in patterns for part in _path_and_name(path)))
    folder = f"{folded.removeprefix('./').rstrip('/')}/"
    return _select(collection, lambda path: path.startswith(folder) or f"{path}/" == folder)


def _select_by_name(name: str, collection: Collection) -> list[Document]:
    """A folder anywhere by its name, or a file by its name with or without the ending."""
    wanted = name.casefold().rstrip("/")

    def has_name(path: str) -> bool:
        *folders, file = path.split("/")
        return wanted in folders or wanted in (file, file.rpartition(".")[0])

    return _select(collection, has_name)


def _select_by_words(text: str, collection: Collection) -> list[Document]:
    """Documents of a kind ("mails of 2025"), or with all words in path or title ("documents about heating").

    None where the words say nothing of documents: "in winter" may be a question.
    """
    stems = set(extract_stems(text))
    kinds = find_kinds(text)
    words = " ".join(stems - kinds - _NEUTRAL)
    if not kinds and not (stems & {"document", "file"} and words):
        return []
    return [
        document
        for document in collection.list_documents()
        if is_of_kind(document.path, kinds) and (not words or collection.is_about(document, words))
    ]


def _select(collection: Collection, is_wanted: Callable[[str], bool]) -> list[Document]:
    return [document for document in collection.list_documents() if is_wanted(document.path.casefold())]


def _path_and_name(path: str) -> tuple[str, str]:
    return path, path.rpartition("/")[2]


def _strip_quotes(text: str) -> str:
    return text.strip().strip("\"'`“”‘’").strip()


def _is_like_a_path(text: str) -> bool:
    """Whether it can be nothing but a path or a glob, which may be misspelt."""
    return " " not in text and (bool(re.search(r"[/*]", text)) or has_reader(Path(text)))


def select_rows(scope: str, collection: Collection) -> Rows | None:
    """Which passages, by their numbers, are in a scope; None for all."""
    if scope == EVERYWHERE:
        return None
    if not _select_named(scope, collection) and (items := _select_of_days(scope, collection)):
        return mark_rows(items, collection)
    paths = {document.path for document in select_documents(scope, collection)}
    ids = collection.index.get_ids(range(len(collection.index)))
    return np.fromiter(((id.rpartition(":")[0] or id) in paths for id in ids), bool, len(ids))


def keep_to_scope(scope: str, collection: Collection) -> Collection:
    """The collection with the documents of a scope alone, for what is said about them."""
    if scope == EVERYWHERE:
        return collection
    return replace(collection, kept_to=frozenset(document.path for document in select_documents(scope, collection)))


def require_scope(where: str, collection: Collection) -> str:
    """The scope that a setting names. Raises `UsageError` where it has no document."""
    scope = find_scope(where, collection)
    if scope is None:
        folders = ", ".join(list_with_limit(list_folders(collection.list_documents()), MAX_LISTED, "and {} more"))
        remedy = f"There are the folders {folders}." if folders else 'Such as: --only "*.pdf"'
        raise UsageError(f"none of the documents is in {where!r}", where=collection.source, remedy=remedy)
    return scope


def describe_scope(scope: str, collection: Collection) -> tuple[str, ...]:
    """The reply to whoever asked for a scope."""
    if scope == EVERYWHERE:
        return ("I search everywhere again.",)
    documents = select_documents(scope, collection)
    if not documents:
        nearest = find_nearest_names(scope, collection)
        hint = (f"The nearest names are {', '.join(nearest)}.",) if nearest else ()
        return (f"Nothing that I have is called “{scope}”: I go on searching where I did.", *hint)
    scope = find_scope(scope, collection) or scope
    listed = ", ".join(list_with_limit([document.path for document in documents], MAX_LISTED, "and {} more"))
    return (
        f"From now on I search only in “{scope}”: {len(documents)} of my documents ({listed}).",
        "“/everywhere” ends that.",
    )


def find_nearest_names(name: str, collection: Collection) -> list[str]:
    """The folders and files whose names are most like a name that none has."""
    documents = collection.list_documents()
    paths = [*list_folders(documents), *(document.path for document in documents)]
    named: dict[str, str] = {}
    for path in paths:
        last = path.rstrip("/").rpartition("/")[2].casefold()
        for key in (path.casefold(), last, last.rpartition(".")[0]):
            named.setdefault(key, path)
    plain = _strip_article(name).casefold().rstrip("/")
    found = difflib.get_close_matches(plain, filter(None, named), 3 * NEAREST, SIMILAR)
    return list(dict.fromkeys(named[key] for key in found))[:NEAREST]


def list_folders(documents: Sequence[Document]) -> list[str]:
    """The folders of documents and those above them, as scopes: `travel/`, `travel/maps/`."""
    folders: set[str] = set()
    for document in documents:
        parts = document.path.split("/")[:-1]
        folders |= {"/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1)}
    return sorted(folders)
