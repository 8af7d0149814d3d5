"""The part of a collection that a conversation is kept to: a folder, a file, a glob, or documents of a kind or date.

A scope is the text that names it, "" for everything. What it stands for is looked up for each question, so that a new
file of a folder is in it, too.
"""

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from agent.chat.dated_documents import DatedItem, keep_to_items, list_items, read_wanted, select_items
from indexes.documents.collection import Collection
from indexes.documents.reading import has_reader
from indexes.words import match_any
from schemas.errors import UsageError, list_with_limit

EVERYWHERE = ""
MAX_LISTED = 5  # documents named in a reply
_POLITE = rf"(?:,? (?:{match_any('scope.polite')}))*[\s.!]*"
_LEAD = rf"(?:(?:{match_any('scope.lead')})[, ]+)*(?:(?:{match_any('scope.search')}) )?"
_ONLY = rf"(?:{match_any('scope.only')})(?: (?:{match_any('scope.inside')}))?"
_EVERYWHERE = re.compile(rf"/everywhere|{_LEAD}(?:{match_any('scope.everywhere')}){_POLITE}", re.IGNORECASE)
_COMMAND = re.compile(r"/only (?P<where>.+)", re.IGNORECASE)
_PHRASE = re.compile(rf"{_LEAD}{_ONLY} (?P<where>[^?]+?){_POLITE}", re.IGNORECASE)
_ARTICLE = re.compile(rf"(?:(?:{match_any('scope.articles')}) )+", re.IGNORECASE)
_HOLDER = re.compile(
    rf"(?:{match_any('scope.folder')}) (?P<after>.+)|(?P<before>.+) (?:folder|directory)", re.IGNORECASE
)


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
    is_path = " " not in where and (bool(re.search(r"[/*]", where)) or has_reader(Path(where)))
    is_sure = is_path or _HOLDER.fullmatch(_strip_article(where))
    return where if where and (is_sure or select_scope(where, collection)) else None


def find_scope(where: str, collection: Collection) -> str | None:
    """The scope that a request names: a folder by its path, else what was said; None where it has no document."""
    named = list(dict.fromkeys(item.path for item in _select_named(where, collection)))
    for folder in list_folders(named):
        inside = [path for path in collection.list_documents() if path.startswith(folder)]
        if inside == named and folder.split("/")[-2].casefold() in where.casefold():
            return folder
    return where if where == EVERYWHERE or select_scope(where, collection) else None


def select_scope(scope: str, collection: Collection) -> list[DatedItem]:
    """What a scope names: documents by path or name, else documents and messages by kind, date or subject."""
    if named := _select_named(scope, collection):
        return named
    wanted = read_wanted(_strip_article(scope), collection)
    return select_items(wanted, collection) if wanted and not wanted.is_of_all else []


def _select_named(scope: str, collection: Collection) -> list[DatedItem]:
    """By a path or a glob, in which * stands for folders, too; else by the name of a folder or file anywhere."""
    plain = _strip_article(scope)
    inner = _HOLDER.fullmatch(plain)
    items = list_items(collection)
    for name in (plain, *([_strip_quotes(inner["after"] or inner["before"])] if inner else [])):
        wanted = name.casefold().removeprefix("./").rstrip("/")
        for is_named in (_has_path, _has_name):
            if found := [item for item in items if is_named(item.path.casefold(), wanted)]:
                return found
    return []


def _has_path(path: str, wanted: str) -> bool:
    """Whether a path is in a folder, or fits a glob by all of it or by the name of the file."""
    globs, parts = (wanted, wanted.replace("**/", "")), (path, path.rpartition("/")[2])
    return f"{path}/".startswith(f"{wanted}/") or any(fnmatchcase(part, glob) for glob in globs for part in parts)


def _has_name(path: str, wanted: str) -> bool:
    """Whether a file, with or without its ending, or a folder above it has a name."""
    *folders, file = path.split("/")
    return wanted in (*folders, file, file.rpartition(".")[0])


def _strip_article(scope: str) -> str:
    return _ARTICLE.sub("", _strip_quotes(scope), count=1)


def _strip_quotes(text: str) -> str:
    return text.strip().strip("\"'`“”‘’").strip()


def keep_to_scope(scope: str, collection: Collection) -> Collection:
    """The collection with the documents of a scope alone; of none, where all went away."""
    if scope == EVERYWHERE and not collection.is_empty:
        return collection
    return keep_to_items(select_scope(scope, collection), collection)


def require_scope(where: str, collection: Collection) -> str:
    """The scope that a setting names. Raises `UsageError` where it has no document."""
    scope = find_scope(where, collection)
    if scope is None:
        remedy = _name_folders(collection) or 'Such as: --only "*.pdf"'
        raise UsageError(f"none of the documents is in {where!r}", where=collection.source, remedy=remedy)
    return scope


def change_scope(where: str, before: str, collection: Collection) -> tuple[str, tuple[str, ...]]:
    """The scope after somebody asked for one, which has to have a document; and the reply."""
    scope = find_scope(where, collection)
    if scope == EVERYWHERE:
        return scope, ("I search everywhere again.",)
    if scope is None:
        nothing = f"Nothing that I have is called “{where}”: I go on searching where I did."
        return before, tuple(filter(None, (nothing, _name_folders(collection))))
    paths = list(keep_to_scope(scope, collection).list_documents())
    listed = ", ".join(list_with_limit(paths, MAX_LISTED, "and {} more"))
    return scope, (
        f"From now on I search only in “{scope}”: {len(paths)} of my documents ({listed}).",
        "“/everywhere” ends that.",
    )


def _name_folders(collection: Collection) -> str:
    folders = ", ".join(list_with_limit(list_folders(collection.list_documents()), MAX_LISTED, "and {} more"))
    return f"There are the folders {folders}." if folders else ""


def list_folders(paths: Iterable[str]) -> list[str]:
    """The folders of documents and those above them, as scopes: `travel/`, `travel/maps/`."""
    return sorted({f"{parent.as_posix()}/" for path in paths for parent in Path(path).parents} - {"./"})
