"""Documents of pathological sizes and shapes, of every type that is read: small to send, costly or insidious to read.

A generator takes a source of randomness, and gives a file's suffix and its bytes; the same seed, the same.
"""

import base64
import io
import json
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from tests.make_hostile_documents import build_pdf, build_pdf_of_one_stream, build_stream, nest_json

Attack = tuple[str, bytes]  # suffix and contents
LARGEST = 2_000_000  # bytes of a repeated unit
CANARY = "file:///etc/passwd"  # what nobody may open
OUTSIDE = (
    CANARY,
    "/etc/passwd",
    "../../../../etc/passwd",
    "http://127.0.0.1:9/x",
    "\\\\127.0.0.1\\share\\x",
    "ftp://127.0.0.1/x",
)

# Of each type units that are repeated: what opens, what is inside, what closes.
UNITS: Mapping[str, Sequence[tuple[str, str, str]]] = json.loads(
    Path(__file__).with_name("units.json").read_text(encoding="utf-8")
)
HEADS = {".rtf": "{\\rtf1\\ansi ", ".mbox": "From a@b Thu Jan 1 00:00:00 2020\nSubject: x\n\nText.\n\n"}


def repeat_unit(rng: Random) -> Attack:
    """A unit repeated up to `LARGEST` bytes, nested where it closes; now and then several units by turns."""
    suffix = rng.choice([name for name in UNITS if name not in MAIN])
    size = int(10 ** rng.uniform(1.5, 6.3))
    units = rng.sample(UNITS[suffix], rng.choice((1, 1, 1, 2, 3)))
    opened, closed = "".join(unit[0] for unit in units), "".join(unit[2] for unit in reversed(units))
    times = min(size, LARGEST) // max(1, len(opened) + len(closed))
    text = HEADS.get(suffix, "") + opened * times + units[-1][1] + (closed * times if rng.random() < 0.8 else "")
    return suffix, text.encode("utf-8", "replace")


def grow_json(rng: Random) -> Attack:
    """Nested JSON with something to say at each depth."""
    return rng.choice(
        ((".json", nest_json(rng.randrange(300_000), rng.randrange(1, 600))), (".jsonl", nest_json(9_000, 300)))
    )


# PDFs

_PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources %s/Contents %s>>"
_RESOURCES = b"<</Font<</F1 3 0 R>>/XObject<</X 5 0 R>>>>"
_FONT = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
_TEXT = b"BT /F1 12 Tf 50 700 Td (The bread keeps for nine days) Tj ET "


def _one_page(
    content: bytes, further: Sequence[bytes] = (), catalog: bytes = b"", resources: bytes = _RESOURCES
) -> bytes:
    page = _PAGE % (resources, b"6 0 R")
    root = b"<</Type/Catalog/Pages 2 0 R %s>>" % catalog
    extra = [*further] or [build_stream(b"")]
    return build_pdf([root, b"<</Type/Pages/Count 1/Kids[4 0 R]>>", _FONT, page, extra[0], content, *extra[1:]])


def attack_pdf(rng: Random) -> Attack:
    """A PDF that is deep, wide, recursive, compressed many times over, or that asks for something outside."""
    return ".pdf", rng.choice(PDF_ATTACKS)(rng)


def _predictor(rng: Random) -> bytes:
    columns, predictor = rng.choice((1, 5, 1000, 10**6, 2**31, -1)), rng.choice((2, 10, 12, 15, 99))
    data = zlib.compress(bytes([rng.randrange(5)]) * 100_000 * rng.choice((1, 10, 100)))
    parameters = b"/Filter/FlateDecode/DecodeParms<</Predictor %d/Columns %d/Colors %d/BitsPerComponent %d>>"
    return _one_page(
        build_stream(data, parameters % (predictor, columns, rng.choice((1, 3, 10**6)), rng.choice((1, 8, 64))))
    )


def _filters(rng: Random) -> bytes:
    data, names = _TEXT * rng.choice((1, 1000)), list[bytes]()
    for _ in range(rng.choice((1, 3, 30))):
        data, names = zlib.compress(data), [b"/FlateDecode", *names]
    names = (
        [
            rng.choice((b"/LZWDecode", b"/ASCII85Decode", b"/RunLengthDecode", b"/DCTDecode", b"/JBIG2Decode", b"/X")),
            *names,
        ]
        if rng.random() < 0.3
        else names
    )
    return _one_page(build_stream(data, b"/Filter[%s]" % b"".join(names)))


def _recursive_form(rng: Random) -> bytes:
    form = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>"
    draw = b"/X Do " * rng.choice((1, 2, 1000))
    return _one_page(build_stream(draw), [build_stream(draw, form)])


def _page_tree(rng: Random) -> bytes:
    depth = rng.choice((10, 500, 5000))
    loop = rng.random() < 0.3
    objects = [b"<</Type/Catalog/Pages 2 0 R>>"]
    objects += [
        b"<</Type/Pages/Count %d/Kids[%d 0 R]>>" % (rng.choice((1, 10**9)), number + 1) for number in range(2, depth)
    ]
    objects.append(b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (2 if loop else 3))
    return build_pdf(objects)


def _content(rng: Random) -> bytes:
    unit = rng.choice(
        (
            _TEXT,
            b"q ",
            b"BT ",
            b"[",
            b"<<",
            b"(",
            b"((",
            b"0 0 m ",
            b"ET ",
            b"/F1 1e30 Tf ",
            b"BI ID ",
            b"1 0 0 1 0 0 cm ",
            b"<41>Tj ",
            b"[(a)-9999(b)]TJ ",
        )
    )
    return _one_page(build_stream(unit * int(10 ** rng.uniform(0, 5))))


def _outside(rng: Random) -> bytes:
    target = rng.choice(OUTSIDE).replace("\\", "\\\\").encode()
    catalog = rng.choice(
        (
            b"/OpenAction<</S/URI/URI(%s)>>", b"/OpenAction<</S/Launch/F(%s)>>",
            b"/OpenAction<</S/JavaScript/JS(app.openDoc('%s'))>>",
            b"/OpenAction<</S/GoToR/F(%s)/D[0/Fit]>>", b"/AA<</WC<</S/SubmitForm/F(%s)>>>>",
            b"/Names<</EmbeddedFiles<</Names[(a)<</Type/Filespec/F(%s)>>]>>>>",
            b"/AcroForm<</XFA(%s)>>",
        )
    )  # fmt: skip
    return _one_page(build_stream(_TEXT, b"/F(%s)" % target if rng.random() < 0.5 else b""), catalog=catalog % target)


def _map_of_characters(rng: Random) -> bytes:
    ranges = rng.choice((b"<0000> <ffffffff> <0041>\n", b"<00> <ff> <0041>\n", b"<00> <01> [<0041> <0042>]\n"))
    made = b"1 beginbfrange\n%sendbfrange\n" % (ranges * rng.choice((1, 1000)))
    font = b"<</Font<</F1<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/ToUnicode 5 0 R>>>>>>"
    return _one_page(build_stream(_TEXT), [build_stream(made)], resources=font)


PDF_ATTACKS: Sequence[Callable[[Random], bytes]] = (
    _predictor, _filters, _recursive_form, _page_tree, _content, _outside, _map_of_characters,
    lambda rng: build_pdf_of_one_stream(rng.choice((10, 1000, 10_000)), rng.choice((1, 50, 500))),
    lambda rng: _one_page(build_stream(_TEXT), catalog=b"/X " + b"[" * rng.choice((100, 100_000))),
    lambda rng: _one_page(build_stream(_TEXT), catalog=b"/X " + b"<</A" * rng.choice((100, 100_000))),
    lambda rng: b"%PDF-1.4\n" + b"1 0 obj\n" * rng.choice((1, 100_000)) + b"startxref\n%d\n" % rng.choice((0, 10**9)),
    lambda rng: b"%PDF-1.4\nxref\n0 999999999\ntrailer<</Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF",
)  # fmt: skip

# Pictures


def _png_part(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def attack_png(rng: Random) -> Attack:
    """A PNG of odd sizes, with texts that unpack to a lot."""
    width, height = (rng.choice((0, 1, 50, 3000, 10_000, 2**31 - 1)) for _ in range(2))
    head = struct.pack(
        ">IIBBBBB", width, height, rng.choice((1, 8, 16)), rng.choice((0, 2, 3, 6)), 0, 0, rng.choice((0, 1))
    )
    text = b"Comment\0\0" + zlib.compress(b"x" * rng.choice((10, 10**7)))
    parts = [
        (b"IHDR", head),
        *[(b"zTXt", text)] * rng.choice((0, 1, 20)),
        (b"IDAT", zlib.compress(bytes(rng.choice((10, 10**6))))),
        (b"IEND", b""),
    ]
    return ".png", b"\x89PNG\r\n\x1a\n" + b"".join(_png_part(*part) for part in parts)


def attack_tiff(rng: Random) -> Attack:
    """A TIFF whose pages lead to themselves, or with odd fields."""
    sizes = [(256, 4, 1, rng.choice((1, 50, 2**31))), (257, 4, 1, rng.choice((1, 50, 2**31))), (258, 3, 1, 8)]
    packing = [(259, 3, 1, rng.choice((1, 5, 7, 8, 9))), (262, 3, 1, 1), (273, 4, rng.choice((1, 10**6)), 8)]
    strips = [(277, 3, 1, rng.choice((1, 9))), (278, 4, 1, 50), (279, 4, 1, rng.choice((10, 2**31)))]
    fields = [*sizes, *packing, *strips]
    after = rng.choice((0, 8, 8, 2**31))  # 8: this page again
    entries = b"".join(struct.pack("<HHII", *field) for field in fields)
    return ".tif", b"II*\0\x08\0\0\0" + struct.pack("<H", len(fields)) + entries + struct.pack("<I", after) + bytes(
        3000
    )


def attack_jpeg(rng: Random) -> Attack:
    """A JPEG with large or odd parts."""
    exif = b"\xff\xe1\xff\xff" + b"Exif\0\0II*\0\x08\0\0\0" + struct.pack("<H", 65535) + bytes(65_000)
    size = struct.pack(">HH", *(rng.choice((1, 50, 65535)) for _ in range(2)))
    frame = b"\xff\xc0\x00\x0b\x08" + size + b"\x01\x01\x11\x00"
    return ".jpg", b"\xff\xd8" + exif * rng.choice(
        (0, 1, 30)
    ) + frame + b"\xff\xda\x00\x08\x01\x01\x00\x00\x3f\x00" + bytes(1000)


# Archives

MAIN = {  # the member with the text
    ".docx": "word/document.xml",
    ".odt": "content.xml",
    ".odp": "content.xml",
    ".ods": "content.xml",
    ".pptx": "ppt/slides/slide1.xml",
    ".xlsx": "xl/worksheets/sheet1.xml",
    ".epub": "",  # any of its chapters
}
ENTITIES = (
    '<!DOCTYPE x [<!ENTITY a "a"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;">]>',
    '<!DOCTYPE x [<!ENTITY a SYSTEM "{}">]>',
    '<!DOCTYPE x SYSTEM "{}">',
    '<!DOCTYPE x [<!ENTITY % a SYSTEM "{}"> %a;]>',
    '<?xml-stylesheet href="{}"?>',
)
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATION = f'<Relationship Id="r{{}}" Type="{RELATIONS}/{{}}" Target="{{}}" TargetMode="External"/>'
RELATION_KINDS = (
    "image",
    "attachedTemplate",
    "oleObject",
    "hyperlink",
    "frame",
    "externalLink",
    "subDocument",
    "slide",
    "worksheet",
    "styles",
)


def attack_archive(rng: Random, seeds: Mapping[str, bytes]) -> Attack:
    """A whole archive, of which a part is grown, nested, made to ask for something outside, or joined by others."""
    suffix = rng.choice(list(MAIN))
    with zipfile.ZipFile(io.BytesIO(seeds[suffix])) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    names = [name for name, _ in members]
    main = MAIN[suffix] or rng.choice([name for name in names if name.endswith(("xhtml", "html"))])
    edit = rng.choice((_grow, _grow, _grow, _declare, _relate, _relate, _point_out, _join))
    return suffix, _write_zip(edit(rng, members, main, suffix))


Members = list[tuple[str, bytes]]


def _replace(members: Members, name: str, change: Callable[[str], str]) -> Members:
    return [
        (held, change(data.decode("utf-8", "replace")).encode("utf-8", "replace") if held == name else data)
        for held, data in members
    ]


def _grow(rng: Random, members: Members, main: str, suffix: str) -> Members:
    """A unit of markup repeated before a tag that closes."""
    opened, inside, closed = rng.choice(UNITS[suffix])
    times = int(10 ** rng.uniform(0, 4.7))
    grown = opened * times + inside + closed * times

    def put_in(text: str) -> str:
        places = [place for place in range(len(text)) if text.startswith("</", place)] or [0]
        place = rng.choice(places[len(places) // 2 :])
        return text[:place] + grown + text[place:]

    return _replace(members, main, put_in)


def _declare(rng: Random, members: Members, main: str, _suffix: str) -> Members:
    """Entities and documents' types, in any member of markup."""
    declared = rng.choice(ENTITIES).replace("{}", rng.choice(OUTSIDE))
    name = rng.choice([main, *(name for name, _ in members if name.endswith((".xml", ".rels", ".opf")))])

    def put_in(text: str) -> str:
        head, sign, rest = text.partition("?>")
        return f"{head}{sign}{declared}{rest}" if sign else declared + text

    return _replace(members, name, lambda text: put_in(text).replace("a", "&a;", rng.randrange(3)))


def _relate(rng: Random, members: Members, _main: str, _suffix: str) -> Members:
    """Relationships to what is outside."""
    names = [name for name, _ in members if name.endswith(".rels")]
    if not names:
        return _point_out(rng, members, _main, _suffix)
    made = "".join(
        RELATION.format(900 + n, rng.choice(RELATION_KINDS), rng.choice(OUTSIDE)) for n in range(rng.choice((1, 50)))
    )
    name = rng.choice(names)
    if rng.random() < 0.5:
        return _replace(members, name, lambda text: text.replace("</Relationships>", f"{made}</Relationships>"))
    old = rng.choice(('Target="', 'Target="/'))
    return _replace(
        members, name, lambda text: text.replace(old, f'TargetMode="External" Target="{rng.choice(OUTSIDE)}', 1)
    )


def _point_out(rng: Random, members: Members, main: str, _suffix: str) -> Members:
    """Every address in the markup, or one of them, leads outside; scripts and macros beside."""
    target = rng.choice(OUTSIDE)
    script = (
        "word/vbaProject.bin",
        "Scripts/python/a.py",
        "Basic/Standard/Module1.xml",
        "xl/vbaProject.bin",
        "META-INF/a.js",
    )
    members = [*members, (rng.choice(script), f"import os; os.system('touch {target}')".encode())]
    marked = f'<script src="{target}">x</script><img src="{target}"/><link href="{target}"/>'
    marked += (
        f'<office:script><text:section><text:section-source xlink:href="{target}"/></text:section></office:script>'
    )

    def put_in(text: str) -> str:
        for word in ('href="', 'src="', 'full-path="', 'r:embed="'):
            text = text.replace(word, f"{word}{target}#", rng.choice((1, -1)))
        return text.replace("</", f"{marked}</", 1) if rng.random() < 0.5 else text

    return _replace(
        members, rng.choice([main, *(name for name, _ in members if name.endswith((".xml", ".opf", "html")))]), put_in
    )


def _join(rng: Random, members: Members, main: str, _suffix: str) -> Members:
    """Many members, members of odd names, and bombs."""
    way = rng.randrange(4)
    if way == 0:
        return [*members, *((f"x{n}.xml", b"<a/>") for n in range(rng.choice((100, 9_000, 20_000))))]
    if way == 1:
        return [
            *members,
            *((name, b"x") for name in ("../../etc/x", "/etc/x", "C:\\x", "a\0b", main, "con", "." * 5000)),
        ]
    if way == 2:
        return [(name, data + b" " * 60_000_000 if name == main else data) for name, data in members]
    return [*members, (main, b"<a>" * 100_000)]


def _write_zip(members: Members) -> bytes:
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, data in members:
            archive.writestr(zipfile.ZipInfo(name) if "mimetype" in name else name, data)
    return stream.getvalue()


# Mail


def attack_mail(rng: Random) -> Attack:
    """Multiparts in multiparts, many parts, odd encodings, messages in messages, parts that lie outside."""
    depth, text = rng.choice((1, 50, 1000, 5000)), "The bread keeps for nine days.\n"
    way = rng.randrange(5)
    if way == 0:
        body = (
            "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(depth)) + f"\n{text}"
        )
    elif way == 1:
        body = (
            'Content-Type: multipart/mixed; boundary="b"\n\n'
            + f"--b\nContent-Type: text/plain\n\n{text}" * depth
            + "--b--\n"
        )
    elif way == 2:
        body = "Content-Type: message/rfc822\n\n" * depth + text
    elif way == 3:
        encoding, charset = (
            rng.choice(("base64", "quoted-printable", "x-uuencode", "7bit", "nonsense")),
            rng.choice(("utf-7", "idna", "punycode", "unicode_escape", "rot13", "hex", "zlib", "cp037", "\u0130")),
        )
        content = rng.choice(
            (
                text * 1000,
                base64.b64encode(text.encode() * 1000).decode(),
                "=" * 100_000,
                "begin 666 /etc/passwd\n" + "M" * 10_000,
            )
        )
        kind = rng.choice(("text/plain", "text/html"))
        body = f"Content-Type: {kind}; charset={charset}\nContent-Transfer-Encoding: {encoding}\n\n{content}"
    else:
        body = f'Content-Type: message/external-body; access-type=local-file; name="{rng.choice(OUTSIDE)}"\n\n\n{text}'
    message = f"From: a@b\nSubject: x\nMIME-Version: 1.0\n{body}"
    return rng.choice(
        (
            (".eml", message.encode("utf-8", "replace")),
            (".mbox", f"From a@b Thu Jan 1 00:00:00 2020\n{message}".encode("utf-8", "replace")),
        )
    )


def attack_rtf(rng: Random) -> Attack:
    """Rich text that holds objects and links."""
    target = rng.choice(OUTSIDE)
    link = f'{{\\field{{\\*\\fldinst{{INCLUDETEXT "{target}"}}}}{{\\fldrslt{{a}}}}}}{{\\*\\template {target}}}'
    link += "{\\object\\objautlink{\\*\\objdata 0105}}"
    return ".rtf", ("{\\rtf1 Rye. %s}" % (link * rng.choice((1, 100, 3000)))).encode()
