"""Markup as a stream of tags, whatever stands in it: the standard library's HTML parser made safe for any input."""

from html.parser import HTMLParser

from schemas.errors import InvalidInputError

MAX_TAG_CHARACTERS = 20_000  # characters: what has not ended by then is looked at again and again, and never will


class TolerantHtmlParser(HTMLParser):
    """Where the parser gives up on markup by an assertion, or takes for ever, here it goes on or raises."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def feed(self, data: str) -> None:
        """Raises `InvalidInputError`, without where, for a tag or comment that does not end."""
        super().feed(data)
        if len(self.rawdata) > MAX_TAG_CHARACTERS:
            what = f"the tag or comment {self.rawdata[:20]!r}... (line {self.getpos()[0]}) does not end"
            raise InvalidInputError(what, remedy=f"At most {MAX_TAG_CHARACTERS} characters are allowed.")

    def parse_html_declaration(self, i: int) -> int:
        """Of SGML's marked sections there is CDATA; any other is a comment, as browsers have it."""
        if self.rawdata.startswith("<![", i) and not self.rawdata.startswith("<![CDATA[", i):
            return self.parse_bogus_comment(i)
        return super().parse_html_declaration(i)
