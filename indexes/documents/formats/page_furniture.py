"""What stands around the text of a web page, told by its markup: navigation, footers, cookie notes, lists of links.

Only what a page itself calls so is left out; what a text is like is never asked (docs/adr/0009).
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from indexes.text.control_characters import TolerantHtmlParser

VOID_TAGS = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
UNREAD_TAGS = ("script", "style", "template", "noscript")
TEXT_TAGS = ("main", "article", "h1")  # what is around one of these is no furniture
SURE_ROLES = {"navigation", "search", "menu", "menubar"}
SURE = re.compile(
    r"(?:^|.*[-_])(?:(?:cookie|consent|gdpr|dsgvo)s?[-_]?(?:banner|bar|box|consent|container|dialog|hinweis|law|layer|manager|message"
    r"|modal|note|notice|overlay|popup|sdk|wrapper)|onetrust|didomi|usercentrics|cookiebot|cc-window|breadcrumbs?)(?:$|[-_].*)"
)
FOOTER = re.compile(r"(?:(?:site|page|main|global|[a-z])[-_]?)?footer|fu(?:ss|ß)zeile|colophon")
LINKS = re.compile(
    r"(?:^|.*[-_])(?:nav\w*|topnav|(?:main|top|sub)?menu|pagination|pager|sidebar|related|recommend\w*|share|sharing|social"
    r"|popular)(?:$|[-_].*)"
)
MIN_LINKED = 0.8  # of the letters outside headings that are in links, for what may be furniture
Position = tuple[int, int]  # line and column
Kind = Literal["", "sure", "links"]


@dataclass(frozen=True, slots=True)
class Furniture:
    """Where the elements are that are left out, from their opening to their closing tags."""

    starts: Sequence[Position] = ()
    ends: Sequence[Position] = ()

    def holds(self, position: Position) -> bool:
        """Whether a tag or text at this position is in one of them."""
        place = bisect_right(self.starts, position) - 1
        return place >= 0 and position <= self.ends[place]


def find_furniture(page: str) -> Furniture:
    """The furniture of a web page. Raises what `TolerantHtmlParser.feed` raises."""
    finder = _Finder()
    finder.feed(page)
    finder.close()
    return Furniture([start for start, _ in finder.found], [end for _, end in finder.found])


@dataclass(frozen=True, slots=True)
class _Counts:
    """What was read up to a place."""

    texts: int = 0  # elements of `TEXT_TAGS`
    letters: int = 0  # outside headings
    linked: int = 0


@dataclass(frozen=True, slots=True)
class _Element:
    tag: str
    start: Position
    kind: Kind
    before: _Counts


class _Finder(TolerantHtmlParser):
    """Finds elements that are furniture. One without a closing tag of its own is none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Position, Position]] = []  # the outermost, in their order
        self._open: list[_Element] = []
        self._depths: Counter[str] = Counter()  # how many elements of a tag are open
        self._counts = _Counts()

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag in VOID_TAGS:
            return
        kind = _classify(tag, dict(attrs), in_text=bool(self._depths["article"] or self._depths["main"]))
        self._open.append(_Element(tag, self.getpos(), kind, self._counts))
        self._depths[tag] += 1
        if tag in TEXT_TAGS:
            self._counts = _Counts(self._counts.texts + 1, self._counts.letters, self._counts.linked)

    def handle_endtag(self, tag: str) -> None:
        if not self._depths[tag]:
            return
        while (element := self._open.pop()).tag != tag:
            self._depths[element.tag] -= 1
        self._depths[tag] -= 1
        if self._is_furniture(element):
            while self.found and self.found[-1][0] > element.start:
                self.found.pop()
            self.found.append((element.start, self.getpos()))

    def handle_data(self, data: str) -> None:
        if any(self._depths[tag] for tag in UNREAD_TAGS) or any(self._depths[f"h{level}"] for level in range(1, 7)):
            return
        letters = sum(map(str.isalnum, data))
        linked = letters if self._depths["a"] else 0
        self._counts = _Counts(self._counts.texts, self._counts.letters + letters, self._counts.linked + linked)

    def _is_furniture(self, element: _Element) -> bool:
        if not element.kind or self._counts.texts > element.before.texts:
            return False
        letters = self._counts.letters - element.before.letters
        return element.kind == "sure" or self._counts.linked - element.before.linked >= MIN_LINKED * letters


def _classify(tag: str, attributes: dict[str, str | None], *, in_text: bool) -> Kind:
    """What the tag, role, class and id of an element say it is. A footer of an article belongs to its text."""
    role = (attributes.get("role") or "").casefold()
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".casefold().split()
    is_footer = tag == "footer" or role == "contentinfo" or any(map(FOOTER.fullmatch, names))
    if role in SURE_ROLES or any(map(SURE.fullmatch, names)) or (is_footer and not in_text):
        return "sure"
    return "links" if tag == "aside" or any(map(LINKS.fullmatch, names)) else ""
