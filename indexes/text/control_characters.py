"""Text of unknown origin: without what could steer a terminal or turn its order, and a parser for any HTML."""

from html.parser import HTMLParser
from typing import Self

from schemas.errors import InvalidInputError

MAX_TAG_CHARACTERS = 20_000  # the parser would read a longer, unfinished tag again and again


class TolerantHtmlParser(HTMLParser):
    """A parser that goes on, or raises an error, where the standard one fails an assertion or takes for ever."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def parse(self, text: str) -> Self:
        """Parse all of a text. Raises as `feed` does."""
        self.feed(text)
        self.close()
        return self

    def feed(self, data: str) -> None:
        """Parse more markup. Raises `InvalidInputError`, without where, for a tag or comment that does not end."""
        super().feed(data)
        if len(self.rawdata) > MAX_TAG_CHARACTERS:
            what = f"the tag or comment {self.rawdata[:20]!r}... (line {self.getpos()[0]}) does not end"
            raise InvalidInputError(what, remedy=f"At most {MAX_TAG_CHARACTERS} characters are allowed.")

    def parse_html_declaration(self, i: int) -> int:
        """Treat SGML's marked sections other than CDATA as comments, as browsers do."""
        if self.rawdata.startswith("<![", i) and not self.rawdata.startswith("<![CDATA[", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)


_CONTROL_CHARACTERS = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])  # all but tab and newline

# Embeddings, overrides, isolates and marks of direction (Unicode Standard Annex 9): what follows them is shown in
# another order than it has.
_DIRECTIONS = dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])


def strip_control_characters(text: str) -> str:
    return text.translate(_CONTROL_CHARACTERS)


def strip_directions(text: str) -> str:
    """The text without characters that turn the direction of writing. Letters keep the direction of their script."""
    return text.translate(_DIRECTIONS)
