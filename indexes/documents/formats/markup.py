"""Web pages (.html, .htm) and Markdown (.md, .markdown) as passages: CommonMark with tables, and front matter.

Of a page, scripts, styles and what stands around the text are left out. What stands around it is told by its markup:
navigation, footers, cookie notes, lists of links. Only what a page itself calls so is left out; what a text is like is
never asked (docs/adr/0009).
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import attrgetter, itemgetter
from typing import Any, Literal

from indexes.documents.chunking import (
    Block,
    Chunk,
    Line,
    Outline,
    chunk_blocks,
    end_with_full_stop,
    format_rows,
    format_table,
)
from indexes.documents.formats.plain_text import LABEL
from indexes.text.analysis import load_stop_words, word_set
from indexes.text.control_characters import TolerantHtmlParser
from indexes.words import LANGUAGES

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
Furniture = Sequence[tuple[Position, Position]]  # elements that are left out: their opening and closing tags, in order
Kind = Literal["", "sure", "links"]


@dataclass(frozen=True, slots=True)
class _Element:
    tag: str
    start: Position
    kind: Kind
    before: tuple[int, int, int]  # what was counted up to it


class _FurnitureFinder(TolerantHtmlParser):
    """Finds elements that are furniture. One without a closing tag of its own is none."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Position, Position]] = []  # the outermost, in their order
        self._open: list[_Element] = []
        self._depths: Counter[str] = Counter()  # how many elements of a tag are open
        self._texts = self._letters = self._linked = 0  # elements of `TEXT_TAGS`, letters outside headings, in links

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        if tag in VOID_TAGS:
            return
        kind = _classify(tag, dict(attrs), in_text=bool(self._depths["article"] or self._depths["main"]))
        self._open.append(_Element(tag, self.getpos(), kind, (self._texts, self._letters, self._linked)))
        self._depths[tag] += 1
        self._texts += tag in TEXT_TAGS

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
        self._letters += letters
        self._linked += letters if self._depths["a"] else 0

    def _is_furniture(self, element: _Element) -> bool:
        texts, letters, linked = element.before
        if not element.kind or self._texts > texts:
            return False
        return element.kind == "sure" or self._linked - linked >= MIN_LINKED * (self._letters - letters)


def _classify(tag: str, attributes: dict[str, str | None], *, in_text: bool) -> Kind:
    """What the tag, role, class and id of an element say it is. A footer of an article belongs to its text."""
    role = (attributes.get("role") or "").casefold()
    names = f"{attributes.get('class') or ''} {attributes.get('id') or ''}".casefold().split()
    is_footer = tag == "footer" or role == "contentinfo" or any(map(FOOTER.fullmatch, names))
    if role in SURE_ROLES or any(map(SURE.fullmatch, names)) or (is_footer and not in_text):
        return "sure"
    return "links" if tag == "aside" or any(map(LINKS.fullmatch, names)) else ""


SKIPPED_TAGS = {"script", "style", "template", "noscript", "nav", "svg", "math", "button", "select", "iframe", "object"}
LIST_TAGS = {"ul", "ol", "dl"}
INLINE_TAGS = word_set(
    "a abbr b bdi bdo cite code data del dfn em font i img ins kbd label mark q s samp small span strong sub sup time "
    "tt u var wbr"
)
_HEADING = re.compile(r"h[1-6]")
_STRONG = ("b", "strong")
_LABEL = re.compile(r"(?:[^\s\d:;.!?]+ ){0,3}[^\s\d:;.!?]+\.")


def _is_label(text: str) -> bool:
    """Whether a few words name something, and say nothing of it: no number, and no stop word, as sentences have."""
    words = text[:-1].lower().split()
    return bool(_LABEL.fullmatch(text)) and all(load_stop_words(each).isdisjoint(words) for each in LANGUAGES)


def chunk_html(text: str, _notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    """The text of a page's `<title>`, or "", and its passages."""
    title, blocks = read_html_blocks(text, _FurnitureFinder().parse(text).found)
    if not blocks:  # a page that is nothing else
        title, blocks = read_html_blocks(text)
    return title, chunk_blocks(blocks)


def read_html_blocks(text: str, furniture: Furniture = ()) -> tuple[str, list[Block]]:
    parser = _BlockParser(furniture).parse(text)
    return parser.title, parser.blocks


class _BlockParser(TolerantHtmlParser):
    """Collects blocks. Every tag that is not inline ends the paragraph before it.

    What is strong at the beginning of one may be a label, as in Markdown.
    """

    def __init__(self, furniture: Furniture) -> None:
        super().__init__()
        self._furniture = furniture
        self.title, self.blocks = "", list[Block]()
        self._outline = Outline()
        self._parts: list[Line] = []  # of the open paragraph's lines
        self._items: list[Line] = []  # of the open list
        self._rows: list[list[Line]] = []  # of the open table
        self._tag, self._opens_strong = "", False
        self._skipped_depth, self._list_depth, self._table_depth = 0, 0, 0

    def handle_starttag(self, tag: str, attrs: Sequence[tuple[str, str | None]]) -> None:
        self._skipped_depth += tag in SKIPPED_TAGS
        if tag in _STRONG:
            self._opens_strong = not self._parts
        if tag in INLINE_TAGS or self._skipped_depth:
            return
        self._finish_paragraph()
        if self._is_in_furniture():
            return
        self._list_depth += tag in LIST_TAGS
        self._table_depth += tag == "table"
        if tag == "tr" or (tag in ("td", "th") and not self._rows):
            self._rows.append([])
        if tag in ("td", "th"):
            self._rows[-1].append(Line(self.getpos()[0], ""))  # an empty cell has its place, too
        self._tag = tag

    def handle_endtag(self, tag: str) -> None:
        if tag in SKIPPED_TAGS:
            self._skipped_depth = max(0, self._skipped_depth - 1)
        elif tag not in INLINE_TAGS and not self._skipped_depth and not self._is_in_furniture():
            self._finish_paragraph()
            self._list_depth = max(0, self._list_depth - (tag in LIST_TAGS))
            self._table_depth = max(0, self._table_depth - (tag == "table"))
            self._finish_closed()
            self._tag = ""
        elif tag in _STRONG and self._opens_strong:
            self._opens_strong = False  # a tag that is closed twice is not looked at twice
            text = "".join(part.text for part in self._parts).strip()
            if _is_label(text):
                self._parts = [Line(self._parts[0].number, f"{text[:-1]}:")]

    def handle_data(self, data: str) -> None:
        begins = bool(self._parts) or not data.isspace()
        if begins and not self._skipped_depth and not self._is_in_furniture():
            self._parts += [Line(number, text) for number, text in enumerate(data.split("\n"), start=self.getpos()[0])]

    def close(self) -> None:
        super().close()
        self._finish_paragraph()
        self._list_depth = self._table_depth = 0
        self._finish_closed()
        self.blocks += self._outline.finish()

    def _is_in_furniture(self) -> bool:
        place = bisect_right(self._furniture, self.getpos(), key=itemgetter(0)) - 1
        return place >= 0 and self.getpos() <= self._furniture[place][1]

    def _finish_paragraph(self) -> None:
        """Make a title, a heading, an item, a cell or a paragraph of the open lines, by the tag they are in."""
        parts, self._parts = self._parts, []
        joined = (Line(at, "".join(part.text for part in same)) for at, same in groupby(parts, attrgetter("number")))
        lines = [line for line in joined if line.text.strip()]
        if not lines:
            return
        whole = Line(lines[0].number, " ".join(" ".join(line.text for line in lines).split()))
        if self._tag == "title":
            self.title = self.title or whole.text
        elif _HEADING.fullmatch(self._tag):
            self._list_depth = 0
            self._finish_closed()
            self.blocks += self._outline.add_heading(int(self._tag[1]), whole)
        elif self._table_depth and self._rows:
            *before, cell = self._rows[-1] or [whole]
            text = whole.text if cell is whole else f"{cell.text} {whole.text}".strip()
            self._rows[-1] = [*before, Line(cell.number if cell.text else whole.number, text)]
        elif self._list_depth:
            self._items.append(whole)
        else:
            self.blocks += self._outline.build_block(lines)

    def _finish_closed(self) -> None:
        """Make blocks of the table and the list that no tag holds open."""
        if not self._table_depth:
            self.blocks += self._outline.build_block(format_table(self._rows), prose=False)
            self._rows = []
        if not self._list_depth:
            self.blocks += self._outline.build_list(self._items)
            self._items = []


_FRONT_MATTER = re.compile(r"---\n(.*?)\n(?:---|\.\.\.)\s*(?:\n|$)", re.DOTALL)


def chunk_markdown(text: str, _notes: list[str]) -> tuple[str, Iterator[Chunk]]:
    front = _FRONT_MATTER.match(text)
    title = re.search(r"^title:[ \t]*(.+)$", front[1], re.MULTILINE) if front else None
    return title[1].strip().strip("\"'") if title else "", chunk_blocks(_read_markdown_blocks(text))


def _read_markdown_blocks(text: str) -> Iterator[Block]:
    """Front matter as a list of its lines, then paragraphs, lists, tables and code."""
    from markdown_it import MarkdownIt

    if front := _FRONT_MATTER.match(text):
        numbered = enumerate(front[1].split("\n"), start=2)
        lines = [Line(number, line) for number, line in numbered if line.strip() and not line.startswith("title:")]
        yield from Outline().build_list(lines)
        text = "\n" * front[0].count("\n") + text[front.end() :]
    outline = Outline()
    tokens: Iterator[Any] = iter(MarkdownIt("commonmark").enable("table").parse(text))
    for token in tokens:
        yield from _read_token(token, tokens, outline)
    yield from outline.finish()


def _read_token(token: Any, following: Iterator[Any], outline: Outline) -> Iterator[Block]:
    """The blocks of a token and of those that belong to it, which are taken from the tokens that follow."""
    if token.type == "heading_open":
        yield from outline.add_heading(int(token.tag[1]), _join_lines(next(following)))
    elif token.type in ("bullet_list_open", "ordered_list_open"):
        yield from _read_list(_take_tokens_within(following, token), outline)
    elif token.type == "table_open":
        yield from _read_table(_take_tokens_within(following, token), outline)
    elif token.type in ("fence", "code_block"):
        numbered = enumerate(token.content.split("\n"), start=token.map[0] + (2 if token.type == "fence" else 1))
        yield from outline.build_block([Line(number, line) for number, line in numbered if line.strip()], prose=False)
    elif token.type == "html_block":
        for block in read_html_blocks(token.content)[1]:
            lines = tuple(Line(line.number + token.map[0], line.text) for line in block.lines)
            yield Block(lines, (*outline.headings, *block.headings), outline.take_heading_line(), block.prose)
    elif token.type == "inline" and token.content.strip():
        read = _read_lines(token)
        are_labelled = len(read) > 1 and all(LABEL.match(line.text) for line in read)
        ended = [Line(line.number, end_with_full_stop(line.text)) for line in read] if are_labelled else read
        yield from outline.build_block(ended, prose=not are_labelled)


def _take_tokens_within(tokens: Iterator[Any], opening: Any) -> list[Any]:
    """The tokens up to the one that closes `opening`."""
    closing = opening.level, opening.type.replace("_open", "_close")
    return list(takewhile(lambda token: (token.level, token.type) != closing, tokens))


def _read_list(tokens: Iterable[Any], outline: Outline) -> Iterator[Block]:
    items = [_join_lines(token) for token in tokens if token.type in ("inline", "fence", "code_block")]
    items = [Line(item.number, text) for item in items if (text := re.sub(r"^\[[ xX]\] ", "", item.text))]
    yield from outline.build_list(items)


def _read_table(tokens: Iterable[Any], outline: Outline) -> Iterator[Block]:
    rows: list[list[Line]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(_join_lines(token))
    yield from outline.build_block(format_rows(rows), prose=False)


def _join_lines(token: Any) -> Line:
    number = token.map[0] + 1
    if token.type != "inline":
        return Line(number, " ".join(token.content.split()))
    return Line(number, " ".join(line.text for line in _read_lines(token)).strip())


def _read_lines(token: Any) -> list[Line]:
    """The lines of an inline token without markup: of a link its text, of an image its description.

    What is strong at the beginning is a label of what follows on the line: "**Fees.** They stay" is "Fees: They stay".
    """
    lines, children = [""], [child for child in token.children if child.type != "text" or child.content]
    is_strong = [child.type for child in children[:4]] == ["strong_open", "text", "strong_close", "text"]
    if is_strong and _is_label(children[1].content) and children[3].content.startswith(" "):
        lines, children = [f"{children[1].content[:-1]}:"], children[3:]
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            lines.append("")
        elif child.type in ("text", "code_inline", "image"):
            lines[-1] += child.content
    return [Line(number, line) for number, line in enumerate(lines, start=token.map[0] + 1)]
