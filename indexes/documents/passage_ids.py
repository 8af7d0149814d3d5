"""Ids of a person's own passages: a file below its folder, and where in it, as a person would say it.

`recipes/bread.md:12-18` (lines), `manual.pdf:p3` (a page; `p3.2` is its second passage), `people.csv:5`,
`data.json:items[3]`. Characters that would break or disguise a line of text are written as in a URI: %0A.
"""

import os
import re

# Controls, line separators, signs that turn the direction of text, bytes that are no UTF-8; and what looks like ours.
_ODD = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})")


def printable_name(name: str) -> str:
    """A file's name as ids have it."""
    return _ODD.sub(lambda odd: "".join(f"%{byte:02X}" for byte in os.fsencode(odd[0])), name)
