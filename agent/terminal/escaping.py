"""Text of passages beside text of ours: it cites nothing in our name, and in Markdown it is nothing but text.

Whatever a passage holds, an answer's own numbers in brackets are the only ones; and where an answer is rendered,
nothing of a passage becomes an image (which would be fetched from its address), a link, markup or HTML.
"""

import re

from indexes.text.control_characters import strip_directions

_INVISIBLE = "\u00ad\u200b-\u200f\u2060\ufeff"
_FOREIGN_CITATION = re.compile(
    rf"[\[［【〔⟦](?=[^\[\]]{{0,40}}\d)(?P<numbers>[\d\s,;–—{_INVISIBLE}-]{{1,40}})[\]］】〕⟧]"
)
_MARKDOWN = re.compile(
    r"[\\`*\[\]<]"
    r"|(?<!\w)_|_(?!\w)|~(?=~)|(?<=~)~"
    r"|&(?=#?\w{1,40};)"  # a character by its name or number
    r"|:(?=//)|(?<=\w)@(?=\w)|(?<=\w\w)\.(?=[^\W\d_]{2})"  # in what some renderers take for an address
)
_LINE_BEGINNING = re.compile(r"^(\s*\d{1,9}(?=[.)])|(?=[-+=#>]))", re.MULTILINE)
_BLANK_LINES = re.compile(r"\s*\n\s*")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


def defuse_citations(text: str) -> str:
    """A text whose numbers in brackets are in round ones: [3] in a passage is none of our sources."""
    return _FOREIGN_CITATION.sub(lambda found: f"({found['numbers'].strip()})", text)


def escape_markdown(text: str) -> str:
    """A text that Markdown shows as it is, but for foreign citations, which are defused, and turns of direction."""
    plain = defuse_citations(strip_directions(text)).strip()
    escaped = _MARKDOWN.sub(r"\\\g<0>", _BLANK_LINES.sub("\n", plain))
    return _LINE_BEGINNING.sub(r"\1\\", escaped)


def unescape_markdown(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def to_code_span(text: str) -> str:
    """A text as code in Markdown, whatever it holds, on one line."""
    line = " ".join(strip_directions(text).split())
    fence = "`" * (max((len(run) for run in re.findall(r"`+", line)), default=0) + 1)
    space = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{space}{line}{space}{fence}"
