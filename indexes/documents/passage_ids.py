"""Ids of passages from a person's own files: the file's path below its folder, and the place in it.

`recipes/bread.md:12-18` (lines), `manual.pdf:p3` (a page; `p3.2` is its second passage), `people.csv:5`,
`data.json:items[3]`, `lease.docx:Deposit` (a heading), `talk.pptx:slide4`, `costs.xlsx:Food!12` (a row of a sheet),
`letters.mbox:message3`. Characters that would break or disguise a line of text are escaped as in a URI: %0A. The last
colon of an id ends the path: there is none in a place.
"""

import hashlib
import os
import re

MAX_ID_CHARACTERS = 950  # an index refuses an id of more than a thousand; numbers may be added
MAX_NAME_CHARACTERS = 800  # of a path below the folder
MAX_PLACE_CHARACTERS = 60  # of a heading
# Controls, line separators, marks of text direction, bytes that are no UTF-8; and what looks like an escape.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})")


def escape_name(name: str) -> str:
    """A file's name or path as ids have it: printable, and in one line."""
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in os.fsencode(found[0])), name)


def escape_place(text: str) -> str:
    """A heading or the name of a sheet as the place in an id: without colons, and not too long."""
    short = " ".join(text.split())[:MAX_PLACE_CHARACTERS].strip(" :")
    return escape_name(short).replace(":", "%3A")


def shorten_place(place: str, most: int) -> str:
    """A place that can be written down, and of at most so many characters; a longer one ends in a digest of it."""
    written = place.encode("utf-8", "replace").decode("utf-8")
    if len(written) <= most:
        return written
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{written[: most - len(digest) - 1]}~{digest}"
