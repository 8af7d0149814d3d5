"""Ids of passages from a person's own files: the file's path below its folder, and the place in it.

`recipes/bread.md:12-18` (lines), `manual.pdf:p3` (a page; `p3.2` is its second passage), `people.csv:5`,
`data.json:items[3]`. Characters that would break or disguise a line of text are escaped as in a URI: %0A.
"""

import os
import re

# Controls, line separators, marks of text direction, bytes that are no UTF-8; and what looks like an escape.
_ESCAPED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]|%(?=[0-9A-Fa-f]{2})")


def escape_name(name: str) -> str:
    """A file's name or path as ids have it: printable, and in one line."""
    return _ESCAPED.sub(lambda found: "".join(f"%{byte:02X}" for byte in os.fsencode(found[0])), name)
