"""What stands around the text of a web page is left out, and nothing of its text is."""

import time

import pytest

from indexes.documents.formats.markup import chunk_html
from tests.conftest import ROOT, read_cases

EXPECTED: dict[str, dict[str, list[str]]] = read_cases("web_pages")


def read_page(page: str) -> str:
    chunks = chunk_html(page, [])[1]
    return " ".join(" ".join([*chunk.headings, chunk.text]) for chunk in chunks)


@pytest.mark.parametrize("name", EXPECTED)
def test_a_page_loses_its_furniture_and_none_of_its_text(name: str) -> None:
    text = read_page((ROOT / "tests" / "cases" / "web_pages" / f"{name}.html").read_text(encoding="utf-8"))
    assert [lost for lost in EXPECTED[name]["lost"] if lost in text] == []
    assert [kept for kept in EXPECTED[name]["kept"] if kept not in text] == []


@pytest.mark.parametrize(
    ("page", "kept"),
    [
        ("<div class='cookie-banner'>We use cookies.<p>The rent is due.", "The rent is due"),  # it never ends
        ("<body class='cookie-banner-open'><h1>Rent</h1><p>Due in May.</p></body>", "Due in May"),
        ("<footer>Elm Street 9, open on Monday.</footer>", "open on Monday"),  # the page has nothing else
        ("<div class='menu'><p>Soup of the day: leek.</p><a href='x'>Order</a></div>", "leek"),
        ("<div class='nav'><div class='nav'><a>One</a></div><p>Two sentences of text.</p></div>", "Two sentences"),
        ("</div></p><aside><p>Keys: with the neighbour.</p></aside>", "with the neighbour"),
        ("<ul><li>one<div class='breadcrumb'>a > b</div><li>two</ul><p>three", "two"),
    ],
)
def test_what_may_be_text_is_kept(page: str, kept: str) -> None:
    assert kept in read_page(page)


def test_lines_are_those_of_the_file() -> None:
    page = "<nav>Home</nav>\n<div id='footer'>\nImprint\n</div>\n<p>The rent\nis due.</p>\n<p>In May.</p>"
    (chunk,) = chunk_html(page, [])[1]
    assert (chunk.place, chunk.text) == ("5-7", "The rent is due.\nIn May.")


def test_thousands_of_nested_elements_and_bold_words_are_read() -> None:
    assert "text" in read_page("<div class='nav'>" * 20_000 + "<p>text</p>" + "</div>" * 20_000)
    began = time.process_time()
    assert "text" in read_page("<p>" + "<b>x</b> " * 20_000 + " <b> </b>" * 20_000 + "</b>" * 20_000 + "text")
    assert time.process_time() - began < 5, "and not in time that grows with the square"
