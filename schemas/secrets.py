"""Keys and passwords are not repeated: they are replaced wherever the words of others are kept or shown.

A server may quote, in an error or a reply, the key that it was sent; what it says goes into traces, stores and caches.
"""

import os
import re
from collections.abc import Iterable
from functools import lru_cache

SHOWN_INSTEAD = "[key]"
SECRET_SETTINGS = ("CONVAGENT_API_KEY", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY")
MIN_CHARACTERS = 6  # of a key that is one: "none" and "test" are what servers without keys are given
MIN_BEGINNING = 4  # of a key at the end of a text that goes on
_IN_ADDRESSES = re.compile(
    r"(?P<before>://)[^\s/@]{1,500}(?=@)"
    r"|(?P<name>[?&][\w-]{0,40}(?:key|token|password|passwd|secret|auth|signature)=)[^\s&#\"'(),;<>]{1,2000}"
    r"|\b(?:sk-|hf_)[\w-]{16,500}",
    re.IGNORECASE,
)


def hide_keys(text: str, *, unfinished: bool = False) -> str:
    """The text without the keys of this process, be they as they are or escaped as JSON or addresses have it.

    An `unfinished` text does not end in the beginning of one either.
    """
    named = (os.environ.get(name, "").strip() for name in SECRET_SETTINGS)
    keys = tuple(key for key in named if len(key) >= MIN_CHARACTERS)
    hidden = _match_keys(keys).sub(SHOWN_INSTEAD, text) if keys else text
    return _cut_beginning(hidden, keys) if unfinished else hidden


def hide_secrets(text: str) -> str:
    """The same, without passwords and keys of addresses either, nor what has the form of a key."""
    return _IN_ADDRESSES.sub(lambda found: f"{found['before'] or found['name'] or ''}{SHOWN_INSTEAD}", hide_keys(text))


@lru_cache(maxsize=8)
def _match_keys(keys: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(keys, key=len, reverse=True)
    return re.compile("|".join("".join(map(_match_character, key)) for key in longest_first))


def _match_character(character: str) -> str:
    """A character as it is, or as JSON and addresses may write it."""
    code = ord(character)
    digits = "".join(f"[{digit}{digit.upper()}]" for digit in f"{code:02x}")
    return rf"(?:\\?{re.escape(character)}|\\u00{digits}|%{digits})"


def _cut_beginning(text: str, keys: Iterable[str]) -> str:
    longest = max(
        (size for key in keys for size in range(MIN_BEGINNING, len(key)) if text.endswith(key[:size])), default=0
    )
    return text[: len(text) - longest]
