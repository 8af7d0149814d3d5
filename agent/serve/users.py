"""Who may ask: whoever has the token of this machine's person, the users of a file, or anybody.

The file of users is a JSON object of names and hashed tokens, `{"ana": "sha256:..."}`, as `convagent users add` writes
it; it is read again for each request. A plain SHA-256 is enough: salt and slow hashes protect what people think of, and
256 random bits can be neither guessed nor looked up in a table.
"""

import hashlib
import hmac
import logging
import os
import re
import secrets
from pathlib import Path
from typing import Annotated

import msgspec

from agent.chat.store import Store
from indexes.storage.directories import find_data_directory, make_private_directory
from indexes.storage.files import read_bytes, write_atomically
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError, UsageError

BYTES = 32  # of a token
OTHERS = 0o077  # the rights of everybody but the owner
PERSON = ""  # the user where there is only one: the person whose machine it is
_NAME = r"[a-z0-9][a-z0-9._-]{0,31}"
_Users = dict[
    Annotated[str, msgspec.Meta(pattern=rf"^{_NAME}\Z")],
    Annotated[str, msgspec.Meta(pattern=r"^sha256:[0-9a-f]{64}\Z")],
]
log = logging.getLogger("convagent")


def make_token() -> str:
    """A new token: 43 characters that may stand in an address."""
    return secrets.token_urlsafe(BYTES)


def hash_token(token: str) -> str:
    """What may be kept of a token, with the name of the hash."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'replace')).hexdigest()}"


def find_own_token(path: Path, *, anew: bool) -> str:
    """The person's own token: that of the last start, so that bookmarks and programs go on working.

    A new one where there is none yet, `anew` asks for one, or others could have read it. Raises `RunError` where it can
    be neither read nor kept.
    """
    try:
        token = None if anew else _read_kept_token(path)
        if token is None:
            token = make_token()
            _write_privately(path, f"{token}\n".encode())
    except (OSError, RunError) as error:
        remedy = "Free the place, or give --incognito for a token that is not kept."
        raise RunError(f"the token cannot be kept ({error})", where=str(path), remedy=remedy) from error
    return token


def _read_kept_token(path: Path) -> str | None:
    """A kept token that nobody else could read; None where there is none."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            state, token = os.fstat(file.fileno()), file.read(1000).strip()
    except FileNotFoundError:
        return None
    if os.name != "nt" and (state.st_mode & OTHERS or state.st_uid != os.getuid()):
        log.warning("%s: others could read it, so there is a new token; its old address no longer works", path)
        return None
    return token if len(token) >= len(make_token()) and token.isascii() and token.isprintable() else None


class Access:
    """Who may ask: whoever has the token with the hash `kept` (anybody where there is none), or the users of a file.

    Raises what `read_users` raises at first; later, where the file is gone or broken, the users are those of before.
    """

    def __init__(self, kept: str = "", users: Path | None = None) -> None:
        self._path, self._problem = users, ""
        self._users = read_users(users) if users else {PERSON: kept} if kept else None

    @property
    def is_for_several(self) -> bool:
        return self._path is not None

    def find_user(self, token: str) -> str | None:
        """The user with that token (of a server without users: ""); None where it is nobody's."""
        if self._path:
            self._read_again(self._path)
        if self._users is None:
            return PERSON
        shown = hash_token(token)  # all are compared, in a time that says nothing
        found = [name for name, kept in self._users.items() if hmac.compare_digest(shown, kept)]
        return found[0] if found else None

    def _read_again(self, path: Path) -> None:
        """Read the file of users, which may have changed. A problem is told once."""
        try:
            self._users, self._problem = read_users(path), ""
        except ConvagentError as error:
            if (problem := str(error)) != self._problem:
                log.warning("%s\n  Until this is mended, the users are those of before.", problem)
            self._problem = problem


def find_user_file(path: Path | None) -> Path:
    return path or find_data_directory() / "users.json"


def read_users(path: Path) -> dict[str, str]:
    """The users of a file and the hashes of their tokens. Raises `MissingError` or `InvalidInputError`."""
    try:
        data = read_bytes(path)
    except MissingError as error:
        remedy = f"Make it: convagent users add NAME --file {path}"
        raise MissingError(error.what, where=error.where, remedy=remedy) from error
    try:
        return msgspec.json.decode(data, type=_Users)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInputError(f"is no file of users ({error})", where=str(path)) from error


def add_user(path: Path, name: str, *, anew: bool) -> str:
    """Add a user; the token, which is nowhere kept. `anew` gives one who is there another token.

    Raises `UsageError` for a name that is none, or is there already, and what reading and writing the file raises.
    """
    if not re.fullmatch(_NAME, name):
        remedy = "A name has small letters, digits, '.', '_' and '-', at most 32."
        raise UsageError(f"{name!r} is no name of a user", remedy=remedy)
    users = read_users(path) if path.exists() else {}
    if name in users and not anew:
        raise UsageError(f"{name} is a user already", where=str(path), remedy="--new-token gives another token.")
    token = make_token()
    _write_users(path, users | {name: hash_token(token)})
    return token


def remove_user(path: Path, name: str) -> None:
    """Remove a user, whose token is worth nothing from then on. Raises `MissingError` where there is none."""
    users = read_users(path)
    if name not in users:
        raise MissingError(f"there is no user {name!r}", where=str(path))
    _write_users(path, {other: kept for other, kept in users.items() if other != name})


def forget_user(store: Store, name: str) -> tuple[int, int]:
    """Delete the conversations and statements of a user; how many these were."""
    own = store.for_user(name)
    chats, statements = own.list_chats(), own.list_statements()
    for chat in chats:
        own.delete_chat(chat.id)
    own.delete_statements([statement.id for statement in statements])
    return len(chats), len(statements)


def _write_users(path: Path, users: dict[str, str]) -> None:
    _write_privately(path, msgspec.json.format(msgspec.json.encode(users)) + b"\n")


def _write_privately(path: Path, content: bytes) -> None:
    """A file for its owner alone, from the first byte on."""
    make_private_directory(path.parent)
    write_atomically(path, [content], private=True)
