"""The lines of a passage as blocks: table rows, list items, headings of one line, and running text.

The readers of documents keep lines (`indexes/documents/formats/block_building.py`): an item ends with ";" or ".", a
row is `name: value; name: value.`, and a heading that nothing stands below ends with a full stop. Text of the web is
one line.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from indexes.text.headings import begins_sentence
from indexes.text.sentence_ends import CLOSING

MIN_WRAPPED_CHARACTERS = 45  # a shorter line, though another follows, was meant to end where it does
MAX_NAME_WORDS = 4  # of a column's name
MAX_LABEL_WORDS = 6  # of a heading before the text that it stands above: "Keeping: The bread ..."
_BULLET = re.compile(r"(?:[-*•–·‣▪]|\[[ xX]\]|\(?\d{1,2}[.)])\s")
_NAME = re.compile(r"(?:[^:;.!?]|\.(?=\w)){1,60}: \S")
_KEY = re.compile(r"[a-z_][\w.\[\]]{0,40}: \S")
_LABEL = re.compile(r"([^:;.!?]{1,60}:) (\S.*)")
_BINDING = re.compile(
    r"warn|note|caution|danger|attention|important|except|only|not\b|never|tip\b|achtung|hinweis|vorsicht|ausnahm|wichtig"
    r"|nicht|nur\b|limit|condition|bedingung|unless|if\b|when\b|wenn\b",
    re.IGNORECASE,
)  # a label that is part of what it stands before
Kind = Literal["text", "item", "row", "heading"]


@dataclass(frozen=True, slots=True)
class TextBlock:
    text: str
    kind: Kind


def read_text_blocks(text: str, title: str = "") -> Iterator[TextBlock]:
    """The blocks of a passage's text, in order, with all its words."""
    lines = list(_join_wrapped_lines(text))
    after_item = False
    for number, line in enumerate(lines):
        if number == 0 and len(lines) > 1 and _is_heading_line(line, title):
            yield TextBlock(line, "heading")
            continue
        is_row = _is_row(line)
        is_item = not is_row and (line.endswith(";") or bool(_BULLET.match(line)) or (after_item and _is_short(line)))
        label, rest = ("", line) if is_row else _cut_label(line, title, is_item=is_item)
        if label:
            yield TextBlock(label, "heading")
        yield TextBlock(rest, "row" if is_row else "item" if is_item else "text")
        after_item = is_item and line.endswith(";")


def _join_wrapped_lines(text: str) -> Iterator[str]:
    """The lines with white space folded; one that does not end where it ends is joined with the next."""
    held: list[str] = []
    for line in [*text.split("\n"), ""]:
        folded = " ".join(line.split())
        if held and (not folded or _ends_line(held[-1], folded)):
            yield " ".join(held)
            held = []
        if folded:
            held.append(folded)


def _ends_line(line: str, following: str) -> bool:
    if line.rstrip(CLOSING)[-1:] in (".", "!", "?", ":", ";", "…") or _BULLET.match(following):
        return True
    return len(line) < MIN_WRAPPED_CHARACTERS and not following[0].islower()


def _is_row(line: str) -> bool:
    """Whether a line is `name: value; name: value.`, or `key: value.` as in front matter."""
    parts = line.split("; ")
    names = [part.split(":")[0] for part in parts if _NAME.match(part)]
    if len(names) < 2 or not _NAME.match(line):
        return bool(_KEY.match(line)) and len(line.split()) > 1
    return all(len(name.split()) <= MAX_NAME_WORDS for name in names) and len(names) * 2 >= len(parts)


def _is_short(line: str) -> bool:
    """Whether a line is one clause, so that it can be the last item of a list."""
    return line.count(". ") == 0 and len(line.split()) <= 25 and not line.endswith(":")


def _is_heading_line(line: str, title: str) -> bool:
    bare = line.rstrip(".").casefold()
    return line.endswith(".") and ". " not in line and len(bare) > 3 and bare in title.casefold()


def _cut_label(line: str, title: str, *, is_item: bool) -> tuple[str, str]:
    """The heading that stands in a line before its text, as `chunk_blocks` joins them, and the text."""
    found = _LABEL.fullmatch(line)
    if not found or len(found[1].split()) > MAX_LABEL_WORDS or _BINDING.search(found[1]) or _BULLET.match(line):
        return "", line
    named = found[1][:-1].casefold() in title.casefold().split(": ")
    if named or (is_item and line.endswith(";")) or begins_sentence(found[2]):
        return found[1], found[2]
    return "", line
