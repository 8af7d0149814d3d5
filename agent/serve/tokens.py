"""Tokens: made of 256 random bits, kept as a file that only its owner may read, and of other users as a hash alone.

A plain SHA-256 is enough for a hash: salt and slow hashes protect what people think of, and what is drawn from 2^256
values can neither be guessed nor looked up in a table.
"""

import hashlib
import hmac
import logging
import os
import secrets
from pathlib import Path

from schemas.errors import RunError

BYTES = 32
OTHERS = 0o077  # the rights of everybody but the owner
log = logging.getLogger("convagent")


def make_token() -> str:
    """A new token: 43 characters that may stand in an address."""
    return secrets.token_urlsafe(BYTES)


def hash_token(token: str) -> str:
    """What may be kept of a token, with the name of the hash."""
    return f"sha256:{hashlib.sha256(token.encode('utf-8', 'replace')).hexdigest()}"


def is_token_of(token: str, kept: str) -> bool:
    """Whether a token has that hash, in a time that says nothing of either."""
    return hmac.compare_digest(hash_token(token).encode(), kept.encode())


def find_own_token(path: Path, *, anew: bool) -> str:
    """The person's own token: that of the last start, so that bookmarks and programs go on working.

    A new one where there is none yet, `anew` asks for one, or others could have read it. Raises `RunError` where it can
    be neither read nor kept.
    """
    try:
        kept = None if anew else _read_kept_token(path)
        return kept or _keep_token(path, make_token())
    except OSError as error:
        remedy = "Free the place, or give --incognito for a token that is not kept."
        raise RunError(f"the token cannot be kept ({error.strerror})", where=str(path), remedy=remedy) from error


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


def _keep_token(path: Path, token: str) -> str:
    """Keep a token in a new file, for its owner alone from the first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(f"{token}\n")
    return token
