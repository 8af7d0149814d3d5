"""The part of a collection that a conversation is kept to: a folder, a file, a glob, or words of paths and titles.

A scope is the text that names it, "" for everything. What it stands for is looked up for each question, so that a new
file of a folder is in it, too.
"""

import fnmatch
import re
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from agent.chat.collection import Collection, Document
from indexes.passage_index import Rows
from indexes.text.analysis import extract_stems
from schemas.errors import UsageError, list_with_limit

EVERYWHERE = ""
MAX_LISTED = 5  # documents named in a reply
_LEAD = r"(?:(?:please|now|and|ok|okay|then)[, ]+)*(?:(?:search|look|ask|answer|stay|keep(?: it)?)(?: me)? )?"
_END = r"(?:,? (?:please|now|again|from now on))*[\s.!]*"
_EVERYWHERE = re.compile(
    rf"/everywhere|{_LEAD}(?:everywhere|in everything|(?:in )?(?:all|every)(?: of)?(?: the| my| your)?"
    rf" (?:documents?|files?|folders?)){_END}",
    re.IGNORECASE,
)
_COMMAND = re.compile(r"/only (?P<where>.+)", re.IGNORECASE)
_PHRASE = re.compile(
    rf"{_LEAD}(?:only|just)(?: (?:in|within|from|among|through))? (?P<where>[^?]+?){_END}", re.IGNORECASE
)
_ARTICLE = re.compile(r"(?:(?:the|my|our|this) )+", re.IGNORECASE)
_HOLDER = re.compile(
    r"(?:(?:sub)?(?:folder|directory)|(?:files?|documents?)(?: (?:in|from|under))?) (?P<after>.+)"
    r"|(?P<before>.+) (?:folder|directory|file|document)",
    re.IGNORECASE,
)
# What kinds of documents are called, with how their names end.
_KINDS = {
    "mail": (".eml", ".mbox", ".msg"),
    "email": (".eml", ".mbox", ".msg"),
    "messag": (".eml", ".mbox", ".msg"),
    "pdf": (".pdf",),
    "tabl": (".csv", ".tsv", ".xlsx", ".ods"),
    "spreadsheet": (".csv", ".tsv", ".xlsx", ".ods"),
    "present": (".pptx", ".odp"),
    "slide": (".pptx", ".odp"),
    "note": (".md", ".txt"),
}
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
    return where if where and (select_documents(where, collection) or _is_like_a_path(where)) else None


def find_scope(where: str, collection: Collection) -> str | None:
    """The scope that a request names: a folder by its path, else what was said; None where it has no document."""
    if where == EVERYWHERE:
        return where
    found = select_documents(where, collection)
    if not found or set("*?[") & set(where):
        return where if found else None
    documents = collection.list_documents()
    for folder in list_folders(found):
        inside = [document for document in documents if document.path.startswith(folder)]
        if inside == found and folder.split("/")[-2].casefold() in where.casefold():
            return folder
    return where


def select_documents(scope: str, collection: Collection) -> list[Document]:
    """The documents that a scope names, by the first way of naming them that finds any."""
    plain = _ARTICLE.sub("", _strip_quotes(scope), count=1) if _ARTICLE.match(scope) else _strip_quotes(scope)
    inner = _HOLDER.fullmatch(plain)
    names = [plain, *([_strip_quotes(inner["after"] or inner["before"])] if inner else [])]
    ways: list[tuple[str, Selector]] = [(name, way) for way in (_select_by_path, _select_by_name) for name in names]
    ways += [(plain, _select_by_words)] if collection.is_folder else []
    return next((found for name, way in ways if (found := way(name, collection))), [])


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
    kinds = stems & _KINDS.keys()
    endings = tuple(ending for kind in kinds for ending in _KINDS[kind])
    words = " ".join(stems - kinds - _NEUTRAL)
    if not kinds and not (stems & {"document", "file"} and words):
        return []
    return [
        document
        for document in collection.list_documents()
        if (not kinds or document.path.casefold().endswith(endings) or _has_stem(document.path, kinds))
        and (not words or collection.is_about(document, words))
    ]


def _select(collection: Collection, is_wanted: Callable[[str], bool]) -> list[Document]:
    return [document for document in collection.list_documents() if is_wanted(document.path.casefold())]


def _path_and_name(path: str) -> tuple[str, str]:
    return path, path.rpartition("/")[2]


def _has_stem(path: str, stems: set[str]) -> bool:
    return bool(stems & set(extract_stems(path)))


def _strip_quotes(text: str) -> str:
    return text.strip().strip("\"'`“”‘’").strip()


def _is_like_a_path(text: str) -> bool:
    """Whether it can be nothing but a path or a glob, which may be misspelt."""
    return " " not in text and bool(re.search(r"[/*]", text))


def select_rows(scope: str, collection: Collection) -> Rows | None:
    """Which passages, by their numbers, are in a scope; None for all."""
    if scope == EVERYWHERE:
        return None
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
        return (f"Nothing that I have is called “{scope}”: I go on searching where I did.",)
    scope = find_scope(scope, collection) or scope
    listed = ", ".join(list_with_limit([document.path for document in documents], MAX_LISTED, "and {} more"))
    return (
        f"From now on I search only in “{scope}”: {len(documents)} of my documents ({listed}).",
        "“/everywhere” ends that.",
    )


def list_folders(documents: Sequence[Document]) -> list[str]:
    """The folders of documents and those above them, as scopes: `travel/`, `travel/maps/`."""
    folders: set[str] = set()
    for document in documents:
        parts = document.path.split("/")[:-1]
        folders |= {"/".join(parts[:depth]) + "/" for depth in range(1, len(parts) + 1)}
    return sorted(folders)
