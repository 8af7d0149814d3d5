"""Small files of office formats, mail and pictures, made of text.

The same bytes come out each time, but for those of libraries of another version.
"""

import datetime
import io
import re
import time
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from xml.sax.saxutils import escape

WHEN = datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC)
CORE = """<cp:coreProperties xmlns:cp="http://schemas.openxmlformats.org/package/2006/metadata/core-properties"
 xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></cp:coreProperties>"""
RELATIONS = '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{}</Relationships>'
RELATION = '<Relationship Id="{id}" Target="{target}" Type="{type}"/>'
OFFICE_TYPE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"
CORE_TYPE = "http://schemas.openxmlformats.org/package/2006/relationships/metadata/core-properties"
ODF = "urn:oasis:names:tc:opendocument:xmlns"
ODF_PREFIXES = {"draw": "drawing"} | {
    name: name for name in ("office", "text", "table", "presentation", "style", "meta")
}
ODF_NAMES = " ".join(f'xmlns:{prefix}="{ODF}:{name}:1.0"' for prefix, name in ODF_PREFIXES.items())
Table = Sequence[Sequence[str]]


def pack(members: Mapping[str, str | bytes], kind: str = "") -> bytes:
    """A ZIP file without times. `kind` is the type that comes first and is not compressed, as ODF and EPUB want it."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        if kind:
            archive.writestr(zipfile.ZipInfo("mimetype"), kind)
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return stream.getvalue()


def repack(data: bytes) -> bytes:
    """What a library packed, without the time at which it did."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist() if "thumbnail" not in name}
    core = members["docProps/core.xml"].decode()
    members["docProps/core.xml"] = re.sub(r"\d{4}-\d\d-\d\dT[\d:]+Z", f"{WHEN:%Y-%m-%dT%H:%M:%SZ}", core).encode()
    if "_rels/.rels" in members:
        members["_rels/.rels"] = re.sub(rb"<Relationship [^>]*thumbnail[^>]*/>", b"", members["_rels/.rels"])
    return pack(members)


def make_docx(title: str, parts: Iterable[tuple[str, Any]], notes: Sequence[str] = ()) -> bytes:
    """A Word file of parts: (style, text) or ("table", rows). `[1]` in a text refers to the first note."""
    body = "".join(_make_word_part(style, value) for style, value in parts)
    space = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
    names = ["Title", *(f"heading {level}" for level in (1, 2))]
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="{name.title().replace(" ", "")}"><w:name w:val="{name}"/></w:style>'
        for name in names
    )
    footnotes = "".join(
        f'<w:footnote w:id="{number}">{_make_word_part("", text)}</w:footnote>' for number, text in enumerate(notes, 1)
    )
    kinds = {"document": "document.main", "styles": "styles", "footnotes": "footnotes"}
    word = "application/vnd.openxmlformats-officedocument.wordprocessingml"
    types = "".join(f'<Override PartName="/word/{n}.xml" ContentType="{word}.{k}+xml"/>' for n, k in kinds.items())
    return pack({
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
        '<Default Extension="xml" ContentType="application/xml"/><Default Extension="rels" '
        f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{types}</Types>',
        "_rels/.rels": RELATIONS.format(
            RELATION.format(id="a", target="word/document.xml", type=f"{OFFICE_TYPE}officeDocument")
            + RELATION.format(id="b", target="docProps/core.xml", type=CORE_TYPE)
        ),
        "docProps/core.xml": CORE.format(title=escape(title)),
        "word/_rels/document.xml.rels": RELATIONS.format(
            RELATION.format(id="a", target="styles.xml", type=f"{OFFICE_TYPE}styles")
            + RELATION.format(id="b", target="footnotes.xml", type=f"{OFFICE_TYPE}footnotes")
        ),
        "word/styles.xml": f"<w:styles {space}>{styles}</w:styles>",
        "word/footnotes.xml": f"<w:footnotes {space}>{footnotes}</w:footnotes>",
        "word/document.xml": f"<w:document {space}><w:body>{body}</w:body></w:document>",
    })  # fmt: skip


def _make_word_part(style: str, value: Any) -> str:
    if style == "table":
        rows = ("".join(f"<w:tc>{_make_word_part('', cell)}</w:tc>" for cell in row) for row in value)
        return f"<w:tbl>{''.join(f'<w:tr>{row}</w:tr>' for row in rows)}</w:tbl>"
    runs = re.sub(r"\[(\d)\]", r'</w:t></w:r><w:r><w:footnoteReference w:id="\1"/></w:r><w:r><w:t>', escape(value))
    look = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f'<w:p>{look}<w:r><w:t xml:space="preserve">{runs}</w:t></w:r></w:p>'


def make_open_document(kind: str, body: str, title: str = "") -> bytes:
    """An OpenDocument file; `kind` is "text", "spreadsheet" or "presentation"."""
    meta = f'<office:document-meta {ODF_NAMES} xmlns:dc="http://purl.org/dc/elements/1.1/"><office:meta><dc:title>'
    return pack(
        {
            "content.xml": f"<office:document-content {ODF_NAMES}><office:body><office:{kind}>{body}</office:{kind}>"
            "</office:body></office:document-content>",
            "meta.xml": f"{meta}{escape(title)}</dc:title></office:meta></office:document-meta>",
        },
        f"application/vnd.oasis.opendocument.{kind}",
    )


def make_odf_paragraph(text: str, tag: str = "p", attributes: str = "") -> str:
    return f"<text:{tag} {attributes}>{escape(text)}</text:{tag}>"


def make_odf_list(items: Iterable[str]) -> str:
    listed = "".join(f"<text:list-item>{make_odf_paragraph(item)}</text:list-item>" for item in items)
    return f"<text:list>{listed}</text:list>"


def make_odf_table(rows: Table, name: str = "") -> str:
    """Cells that begin with a digit and hold a date or a plain number have values, as a sheet saves them."""
    lines = "".join(f"<table:table-row>{''.join(map(_make_odf_cell, row))}</table:table-row>" for row in rows)
    return f'<table:table table:name="{escape(name)}">{lines}</table:table>'


def _make_odf_cell(text: str) -> str:
    value = ""
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text):
        value = f'office:value-type="date" office:date-value="{text}"'
    elif re.fullmatch(r"[\d.]+", text):
        value = f'office:value-type="float" office:value="{text}"'
    return f"<table:table-cell {value}>{make_odf_paragraph(text)}</table:table-cell>"


def make_odf_slide(title: str, boxes: Iterable[str], notes: str = "") -> str:
    frame = "<draw:frame {}><draw:text-box>{}</draw:text-box></draw:frame>"
    shown = frame.format('presentation:class="title"', make_odf_paragraph(title))
    others = "".join(frame.format("", box) for box in boxes)
    said = f"<presentation:notes>{frame.format('', make_odf_paragraph(notes))}</presentation:notes>" if notes else ""
    return f"<draw:page>{shown}{others}{said}</draw:page>"


def make_rtf(paragraphs: Iterable[str], table: Table = ()) -> bytes:
    """Rich text with umlauts as Word writes them, and a table at its end."""
    rows = "".join("\\trowd " + "".join(f"\\intbl {cell}\\cell " for cell in row) + "\\row\n" for row in table)
    text = "".join(f"{paragraph}\\par\n" for paragraph in paragraphs) + rows
    coded = "".join(char if ord(char) < 128 else "\\'" + char.encode("cp1252").hex() for char in text)
    return ("{\\rtf1\\ansi\\ansicpg1252{\\fonttbl{\\f0\\fnil\\fcharset0 Arial;}}\n" + coded + "}").encode("ascii")


def make_epub(title: str, chapters: Sequence[tuple[str, Sequence[str]]]) -> bytes:
    pages = {f"chapter{number}.xhtml": chapter for number, chapter in enumerate(chapters, start=1)}
    items = "".join(f'<item id="{name}" href="{name}" media-type="application/xhtml+xml"/>' for name in pages)
    spine = "".join(f'<itemref idref="{name}"/>' for name in pages)
    html = (
        '<html xmlns="http://www.w3.org/1999/xhtml"><head><title>{0}</title></head><body><h1>{0}</h1>{1}</body></html>'
    )
    return pack(
        {
            "META-INF/container.xml": '<container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
            '<rootfile full-path="book/package.opf"/></rootfiles></container>',
            "book/package.opf": '<package xmlns="http://www.idpf.org/2007/opf"><metadata '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{escape(title)}</dc:title></metadata>'
            f"<manifest>{items}</manifest><spine>{spine}</spine></package>",
        }
        | {
            f"book/{name}": html.format(escape(heading), "".join(f"<p>{escape(text)}</p>" for text in paragraphs))
            for name, (heading, paragraphs) in pages.items()
        },
        "application/epub+zip",
    )


def make_pptx(title: str, slides: Iterable[tuple[str, Sequence[str], Table, str]]) -> bytes:
    """A presentation of slides: title, points, table, speaker's notes."""
    from pptx import Presentation
    from pptx.util import Inches

    presentation = Presentation()
    presentation.core_properties.title = title
    for name, points, table, notes in slides:
        slide = presentation.slides.add_slide(presentation.slide_layouts[1])
        slide.shapes.title.text, slide.placeholders[1].text = name, "\n".join(points)
        if table:
            place = (Inches(1), Inches(4), Inches(6), Inches(2))
            cells = slide.shapes.add_table(len(table), len(table[0]), *place).table
            for row, values in enumerate(table):
                for column, value in enumerate(values):
                    cells.cell(row, column).text = value
        if notes:
            slide.notes_slide.notes_text_frame.text = notes
    stream = io.BytesIO()
    presentation.save(stream)
    return repack(stream.getvalue())


def make_xlsx(sheets: Mapping[str, Sequence[Sequence[Any]]], formats: Mapping[str, str] | None = None) -> bytes:
    """A workbook; `formats` are those of columns, by their letters."""
    import openpyxl

    book = openpyxl.Workbook()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
        for column, shape in (formats or {}).items():
            for cell in sheet[column]:
                cell.number_format = shape
    stream = io.BytesIO()
    book.save(stream)
    return repack(stream.getvalue())


def make_picture(lines: Sequence[str]) -> Any:
    """A picture (of Pillow) of lines of text, as a scanner might make it."""
    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("L", (1300, 80 + 60 * len(lines)), 255)
    font = ImageFont.load_default(36)
    for number, line in enumerate(lines):
        ImageDraw.Draw(picture).text((50, 40 + 60 * number), line, fill=0, font=font)
    return picture


def make_image(lines: Sequence[str], kind: str = "PNG") -> bytes:
    stream = io.BytesIO()
    make_picture(lines).convert("1").save(stream, kind)
    return stream.getvalue()


def make_scanned_pdf(pages: Sequence[Sequence[str]]) -> bytes:
    """A PDF whose pages are pictures."""
    first, *others = map(make_picture, pages)
    stream = io.BytesIO()
    long_ago = time.gmtime(WHEN.timestamp())
    first.save(
        stream, "PDF", resolution=150, save_all=True, append_images=others, creationDate=long_ago, modDate=long_ago
    )
    return stream.getvalue()


def make_message(subject: str, sender: str, to: str, date: str, text: str, attachment: str = "") -> str:
    head = f"From: {sender}\nTo: {to}\nDate: {date}\nSubject: {subject}\nMIME-Version: 1.0\n"
    plain = f"Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n{text}\n"
    if not attachment:
        return head + plain
    file = f'Content-Type: application/pdf\nContent-Disposition: attachment; filename="{attachment}"\n\n%PDF-1.4\n'
    return f'{head}Content-Type: multipart/mixed; boundary="part"\n\n--part\n{plain}\n--part\n{file}\n--part--\n'
