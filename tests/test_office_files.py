"""Office files, books, mail and pictures as documents: their passages and places, and what is done about bad ones."""

import io
import shutil
import struct
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from agent.chat.citations import cited_sources
from agent.chat.session import Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from benchmarks.office_files import (
    make_docx,
    make_epub,
    make_image,
    make_message,
    make_odf_paragraph,
    make_odf_slide,
    make_odf_table,
    make_open_document,
    make_pptx,
    make_rtf,
    make_scanned_pdf,
    make_xlsx,
    pack,
)
from indexes.documents.formats.pages import is_ocr_installed
from indexes.documents.office import archives, mail, sheets
from indexes.documents.reading import ParsedDocument, parse_document
from schemas.errors import InvalidInputError
from tests.conftest import EXAMPLES, read_cases
from tests.test_documents import opened, own, passages, skipped

needs_ocr = pytest.mark.skipif(not is_ocr_installed(), reason="Tesseract is not installed")


def read(name: str, data: bytes | str) -> ParsedDocument:
    return parse_document(Path(name), name, data if isinstance(data, bytes) else data.encode())


# The examples


@pytest.fixture(scope="module")
def assistant(tmp_path_factory: pytest.TempPathFactory) -> Assistant:
    home = tmp_path_factory.mktemp("own")
    for folder in (EXAMPLES / "documents" / "office", EXAMPLES / "scans"):
        shutil.copytree(folder, home / "files" / folder.name)
    return open_assistant(open_collection("examples", opened(home / "files", home).index, None), "none")


ASKED = read_cases("office_questions")["asked"]  # a question, the place of its answer, words of the answer


@pytest.mark.parametrize(("question", "place", "answer"), ASKED, ids=[row[1].partition(":")[0] for row in ASKED])
def test_what_is_asked_is_answered_with_its_place(question: str, place: str, answer: str, assistant: Assistant) -> None:
    if place.startswith("scans/") and not is_ocr_installed():
        pytest.skip("Tesseract is not installed")
    result = Session(assistant, Store(None)).ask(question)
    assert answer in result.response.text
    assert place in [source.passage.id for source in cited_sources(result)]


# What the passages are

WORD = [("Heading1", "Use"), ("", "One car.")]
REPEATED = [("Heading1", "Use"), ("", "word " * 100), ("Heading1", "Use: more"), ("", "word " * 100)] * 2
TEXT_CELLS = make_odf_table([["a", "b"], ["1", "x"]], "One")
NESTED = (
    "<table:table><table:table-header-rows><table:table-row><table:table-cell><text:p>a</text:p></table:table-cell>"
    "<table:table-cell><text:p>b</text:p></table:table-cell></table:table-row></table:table-header-rows><table:table-row>"
    "<table:table-cell><text:p>1<draw:frame><draw:text-box><text:p>box</text:p></draw:text-box></draw:frame></text:p>"
    "</table:table-cell><table:table-cell><office:annotation><text:p>no</text:p></office:annotation><table:table>"
    "<table:table-row><table:table-cell><text:p>in</text:p></table:table-cell></table:table-row></table:table>"
    "</table:table-cell></table:table-row></table:table>"
)
REPEATED_CELLS = (
    '<table:table table:name="A: b"><table:table-row table:number-rows-repeated="1000"><table:table-cell '
    'table:number-columns-repeated="16000"/></table:table-row><table:table-row table:number-rows-repeated="2">'
    '<table:table-cell office:value-type="percentage" office:value="0.19"/><table:table-cell '
    'office:value-type="currency" office:currency="EUR" office:value="3"/></table:table-row></table:table>'
)
KINDS = [
    # name, contents, (place, title, text) of every passage
    ("a.docx", make_docx("Lease", WORD), [("Use", "Lease: Use", "One car.")]),
    ("a.docx", make_docx("", [("", "One."), ("", "Two.[1]")], ["Three."]), [
        ("paragraphs1-3", "a.docx", "One.\nTwo.\nNotes: Three."),
    ]),
    ("a.docx", make_docx("", REPEATED), [
        ("Use", "Use", ("word " * 100).strip()), ("Use%3A more", "Use: more", ("word " * 100).strip()),
        ("Use.2", "Use", ("word " * 100).strip()), ("Use%3A more.2", "Use: more", ("word " * 100).strip()),
    ]),
    ("a.odt", make_open_document("text", make_odf_paragraph("T", "p", 'text:style-name="Title"') + TEXT_CELLS, "D"), [
        ("T", "D: T", "a: 1; b: x."),
    ]),
    ("a.odt", make_open_document("text", "<text:p>a<text:s text:c='3'/>b<text:note><text:note-citation>1</text:note"
     "-citation><text:note-body><text:p>N.</text:p></text:note-body></text:note><office:annotation><text:p>no</text:p>"
     "</office:annotation></text:p>"), [("paragraphs1-2", "a.odt", "a b.\nNotes: N.")]),
    ("a.odt", make_open_document("text", NESTED), [("paragraph1", "a.odt", "a: 1 box; b: in.")]),
    ("a.ods", make_open_document("spreadsheet", TEXT_CELLS.replace('"float" office:value="1"',
     '"date" office:date-value="2025-05-28T00:00:00"')), [("One!2", "a.ods: One", "a: 2025-05-28; b: x.")]),
    ("a.rtf", rb"{\rtf1 \u321?\'f3d\u378? {\pict " + b"0a" * 9000 + rb"}{\field{\*\fldinst{HYPERLINK \"x\"}}"
     rb"{\fldrslt{here}}}.}", [("paragraph1", "a.rtf", "Łódź here.")]),
    ("a.epub", make_epub("B", [("One", ["A."]), ("Two", ["C."])]), [("One", "B: One", "A."), ("Two", "B: Two", "C.")]),
    ("a.epub", make_epub("B", [("", ["A."])]), [("part1", "B", "A.")]),
    ("a.pptx", make_pptx("", [("T", ["x"], [["a", "b"], ["1", "2"]], "N")]), [
        ("slide1", "T", "x.\na: 1; b: 2.\nNotes: N"),
    ]),
    ("a.pptx", make_pptx("", [("", ["x"], [], ""), ("Only", [], [], "")]), [
        ("slide1", "a.pptx", "x"), ("slide2", "a.pptx", "Only."),
    ]),
    ("a.odp", make_open_document("presentation", make_odf_slide("T", [TEXT_CELLS], "N")), [
        ("slide1", "T", "a: 1; b: x.\nNotes: N"),
    ]),
    ("a.xlsx", make_xlsx({"F!1": [["a", "b"], [1.0, None], [], [True, "x: y"]]}), [
        ("F!1!2", "a.xlsx: F!1", "a: 1."), ("F!1!4", "a.xlsx: F!1", "a: yes; b: x: y."),
    ]),
    ("a.xlsx", make_xlsx({"S": [[3], [4]]}, {"A": "#,##0.00 [$€-407];[Red]-0"}), [
        ("S!1", "a.xlsx: S", "column 1: 3.00 €."), ("S!2", "a.xlsx: S", "column 1: 4.00 €."),
    ]),
    ("a.ods", make_open_document("spreadsheet", REPEATED_CELLS), [
        ("A%3A b!1001", "a.ods: A: b", "column 1: 19%; column 2: 3.00 EUR."),
        ("A%3A b!1002", "a.ods: A: b", "column 1: 19%; column 2: 3.00 EUR."),
    ]),
    ("a.eml", make_message("=?utf-8?q?=C3=BC?=", "a@b.example", "C <c@d.example>", "?", "One.\n> Two.\nThree."), [
        ("message", "ü (from a@b.example)", "from: a@b.example; to: C; subject: ü.\nOne.\nThree.\nquoted: Two."),
    ]),
    ("a.eml", "Content-Type: text/html\n\n<p>One<script>x</script><img src='http://host.example/x.png'>", [
        ("message", "Message", "One"),
    ]),
    ("a.mbox", "From x 2025\nSubject: A\n\nOne.\n>From here.\n\nFrom x 2025\nSubject: B\n\nTwo.\n\nFrom the sea.\n", [
        ("message1", "A", "subject: A.\nOne.\nFrom here."), ("message2", "B", "subject: B.\nTwo.\nFrom the sea."),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "data", "expected"), KINDS)
def test_every_kind(name: str, data: bytes | str, expected: list[tuple[str, str, str]]) -> None:
    document = read(name, data)
    found = [(passage.id.partition(":")[2], passage.title, passage.text) for passage in document.passages]
    assert (found, document.reason) == (expected, "")


def test_headers_of_a_mail_are_decoded_whatever_wrote_them() -> None:
    """RFC 6532 has UTF-8 in headers, older programs write what their machine has; encoded words stand there, too."""
    header = (
        "From: Jürgen Müller <j@x.example>\nTo: =?utf-8?q?Zo=C3=AB?= Weiß <z@x.example>\nSubject: Grüße\n"
        "Date: Mon, 3 Mar 2025 10:00:00 +0100\n\nHello.\n"
    )
    for encoding in ("utf-8", "latin-1"):
        (passage,) = read("a.eml", header.encode(encoding)).passages
        assert (passage.title, passage.date) == (
            "Grüße (3 March 2025, from Jürgen Müller)",
            "2025-03-03T09:00:00+00:00",
        )
        assert "from: Jürgen Müller; to: Zoë Weiß; date: 3 March 2025; subject: Grüße." in passage.text


def test_what_is_sent_along_is_named_and_not_read() -> None:
    inner = make_message("Inner", "x@y.example", "z@y.example", "", "Secret words.")
    parts = make_message("Outer", "a@b.example", "c@d.example", "", "Hello.", "plan; final.pdf")
    forwarded = parts.replace("--part--", f"--part\nContent-Type: message/rfc822\n\n{inner}\n--part--")
    [passage] = read("a.eml", forwarded).passages
    assert "attachments: plan, final.pdf, message/rfc822." in passage.text
    assert "Secret" not in passage.text


# What is left out, and why

BILLION = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;">]>'
OUTSIDE = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'
ARCHIVES = {
    "docx": make_docx("", WORD),
    "odt": make_open_document("text", make_odf_paragraph("One.")),
    "epub": make_epub("B", [("One", ["A."])]),
    "pptx": make_pptx("", [("T", ["x"], [], "")]),
    "odp": make_open_document("presentation", make_odf_slide("T", [])),
    "xlsx": make_xlsx({"S": [["a"], ["b"]]}),
    "ods": make_open_document("spreadsheet", TEXT_CELLS),
}
MAIN = {
    "docx": "word/document.xml", "odt": "content.xml", "epub": "book/package.opf", "pptx": "ppt/slides/slide1.xml",
    "odp": "content.xml", "xlsx": "xl/worksheets/sheet1.xml", "ods": "content.xml",
}  # fmt: skip


def unpack(data: bytes) -> dict[str, str | bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def change(suffix: str, edit: Callable[[bytes], bytes]) -> bytes:
    """The file of a kind with another main part."""
    members = unpack(ARCHIVES[suffix])
    part = members[MAIN[suffix]]
    assert isinstance(part, bytes)
    return pack(members | {MAIN[suffix]: edit(part)})


def declare(declaration: str, encoding: str, part: bytes) -> bytes:
    text = part.decode().partition("?>")[2] if part.startswith(b"<?xml") else part.decode()
    return (declaration + text.replace(">", ">&a;", 1)).encode(encoding)


@pytest.mark.parametrize("suffix", MAIN)
def test_archives_that_would_do_harm_are_refused(suffix: str) -> None:
    for declaration in (BILLION, OUTSIDE):
        for encoding in ("utf-8", "utf-16"):
            reason = read(f"a.{suffix}", change(suffix, partial(declare, declaration, encoding))).reason
            assert reason == "declares XML entities, which are not expanded"
    many = pack({f"{number}": b"" for number in range(archives.MAX_MEMBERS + 1)})
    assert read(f"a.{suffix}", many).reason == "has more than 10,000 parts"
    end = {"docx": b"</w:body>", "odt": b"</text:p>", "ods": b"</text:p>", "odp": b"</text:p>"}.get(suffix, b"</")
    deep = b"<text:p>" * 50_000 + b"</text:p>" * 50_000 if end == b"</text:p>" else b"<a>" * 50_000
    data = change(suffix, lambda part: part.replace(end, deep + end, 1))
    assert read(f"a.{suffix}", data).reason.startswith(("is nested too deeply", "is a broken "))


@pytest.mark.parametrize("suffix", MAIN)
def test_what_unpacks_to_too_much_is_refused(suffix: str) -> None:
    bomb = change(suffix, lambda part: part + b" " * 250_000_000)
    assert len(bomb) < 500_000
    assert read(f"a.{suffix}", bomb).reason.startswith("unpacks to more than ")


def test_the_parts_of_an_archive_are_counted_together() -> None:
    """None is too large by itself; read again, one counts again."""
    parts = {f"{number}.xml": b"<a/>" + b" " * 40 for number in range(4)}
    archive = archives.Archive(pack(parts), "Word file", max_bytes=100)
    assert [len(archive.read(f"{number}.xml")) for number in range(2)] == [44, 44]
    with pytest.raises(InvalidInputError, match="unpacks to more than"):
        archive.read("2.xml")
    with pytest.raises(InvalidInputError, match="unpacks to more than"):
        archives.Archive(pack(parts), "Word file", max_bytes=100).repack()


BAD = [
    # name, contents, the reason
    ("a.docx", b"no archive", "is a broken Word file (File is not a zip file)"),
    ("a.docx", bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "is an encrypted Word file, or one of an old format"),
    ("a.docx", make_docx("", []), "holds no text"),
    ("a.odt", ARCHIVES["ods"], "is no OpenDocument text, whatever its name says"),
    (
        "a.odt",
        pack({"META-INF/manifest.xml": "<x encryption-data/>", "content.xml": "?"}),
        "is an encrypted OpenDocument",
    ),
    (
        "a.ods",
        make_open_document("spreadsheet", TEXT_CELLS.replace('"1"', '"one"')),
        "is a broken OpenDocument spreads",
    ),
    ("a.rtf", b"plain text", "is no rich text file, whatever its name says"),
    ("a.rtf", b"{\\rtf1 " + b"{\\fonttbl" + b"\\f1 " * 20_000, "is a rich text file that is too long"),
    ("a.epub", pack({"META-INF/container.xml": "<x/>"}), "is a broken book (EPUB) ("),
    ("a.pptx", ARCHIVES["xlsx"], "is a broken PowerPoint presentation ("),
    ("a.xlsx", ARCHIVES["docx"], "is a broken Excel workbook ("),
    ("a.mbox", b"Dear diary,", "is no mailbox, whatever its name says"),
]


@pytest.mark.parametrize(("name", "data", "reason"), BAD)
def test_what_cannot_be_read_is_named(name: str, data: bytes, reason: str) -> None:
    document = read(name, data)
    assert (document.passages, document.reason[: len(reason)]) == ((), reason)


def test_a_broken_chapter_or_message_is_told_and_the_rest_is_read() -> None:
    members = unpack(make_epub("B", [("One", ["A."]), ("Two", ["C."])]))
    del members["book/chapter1.xhtml"]
    document = read("a.epub", pack(members))
    assert [passage.id for passage in document.passages] == ["a.epub:Two"]
    assert document.notes[0].startswith(
        "part 1: is a broken book (EPUB) (\"There is no item named 'book/chapter1.xhtml'"
    )
    nested = "".join(f"Content-Type: multipart/mixed; boundary={n}\n\n--{n}\n" for n in range(3000))
    document = read("a.mbox", f"From x 2025\n{nested}\n\nFrom x 2025\nSubject: B\n\nTwo.\n")
    assert [passage.id for passage in document.passages] == ["a.mbox:message2"]
    assert document.notes == ("message 1 is nested too deeply",)


def test_only_so_many_rows_and_messages_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_ROWS", 3)
    monkeypatch.setattr(mail, "MAX_MESSAGES", 2)
    document = read("a.xlsx", make_xlsx({"S": [["a"], *([number] for number in range(9))]}))
    assert (len(document.passages), document.notes) == (3, ("only its first 3 rows are read",))
    document = read("a.mbox", "From x 2025\n\nOne.\n\n" * 5)
    assert (len(document.passages), document.notes) == (2, ("only its first 2 messages are read",))


def test_many_wide_rows_from_a_small_sheet_stop_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sheets, "MAX_CHARACTERS", 1_000_000)
    wide = TEXT_CELLS.replace("<table:table-row>", '<table:table-row table:number-rows-repeated="99999999">', 1)
    wide = wide.replace("<table:table-cell", '<table:table-cell table:number-columns-repeated="99999"')
    document = read("a.ods", make_open_document("spreadsheet", wide))
    assert document.notes[0].startswith("only its first ")
    assert sum(len(passage.text) for passage in document.passages) <= sheets.MAX_CHARACTERS


# Libraries and programs that are not there

EXTRA = [("a.docx", "mammoth"), ("a.pptx", "pptx"), ("a.xlsx", "openpyxl"), ("a.rtf", "striprtf.striprtf")]


def test_without_the_extra_files_are_named_and_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {name: ARCHIVES.get(name[2:], make_rtf(["One."])) for name, _ in EXTRA}
    folder = own(tmp_path, {"good.txt": "Rye.", "b.odt": ARCHIVES["odt"], **data})
    (tmp_path / "missing").mkdir()
    for _, library in EXTRA:
        (tmp_path / "missing" / f"{library.partition('.')[0]}.py").write_text("raise ImportError")
    with monkeypatch.context() as patch:
        patch.syspath_prepend(str(tmp_path / "missing"))  # which the process that reads looks through, too
        documents = opened(folder, tmp_path)
    assert documents.reading.read == ("b.odt", "good.txt")
    assert skipped(documents) == {
        name: f"cannot be read without {library.partition('.')[0]}; install it: pip install 'convagent[documents]'"
        for name, library in EXTRA
    }
    assert opened(folder, tmp_path).reading.read == tuple(sorted(data))


@needs_ocr
def test_without_tesseract_pictures_are_named_and_read_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan, picture = make_scanned_pdf([["A page of rye bread."]]), make_image(["Oats for the winter."])
    folder = own(tmp_path, {"a.pdf": scan, "b.png": picture, "good.txt": "Rye."})
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        found = skipped(opened(folder, tmp_path))
    install = "install Tesseract (apt install tesseract-ocr; brew install tesseract) and pip install"
    assert found["a.pdf"].startswith(f"holds no text; page 1 is a picture; the text is read if you {install}")
    assert found["b.png"].startswith(f"is a picture; its text is read if you {install}")
    documents = opened(folder, tmp_path)
    assert documents.reading.read == ("a.pdf", "b.png")
    assert passages(documents)["a.pdf:p1"].text == "A page of rye bread."
    assert passages(documents)["b.png:p1"].text == "Oats for the winter."


@needs_ocr
def test_pictures_that_are_huge_broken_or_empty() -> None:
    empty = make_image([])
    header = empty[12:16] + struct.pack(">II", 12_000, 12_000) + empty[24:29]
    huge = empty[:12] + header + struct.pack(">I", zlib.crc32(header)) + empty[33:]
    assert read("a.png", huge).reason == "is a picture of more than 100 megapixels"
    assert read("a.png", make_image(["Rye."])[:200]).reason.startswith("is a broken picture (")
    assert read("a.png", empty).reason == "holds no text"
    assert read("a.tif", make_image(["Oats for the winter."], "TIFF")).passages[0].id == "a.tif:p1"
