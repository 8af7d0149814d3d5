"""Documents of pathological sizes and shapes, of every type that is read: small to send, costly or insidious to read.

A generator takes a source of randomness, and gives a file's suffix and its bytes; the same seed, the same.
"""

import io
import json
import zipfile
import zlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

from tests.fuzz.mutators import PROLOGUES, write_zip

Attack = tuple[str, bytes]  # suffix and contents
LARGEST = 2_000_000  # bytes of a repeated unit
TEXT = "The bread keeps for nine days.\n"
OUTSIDE = ("file:///etc/passwd", "/etc/passwd", "../../../../etc/passwd", "http://127.0.0.1:9/x", "ftp://127.0.0.1/x")
# Of each type units that are repeated: what opens, what is inside, what closes.
UNITS: Mapping[str, Sequence[tuple[str, str, str]]] = json.loads(
    Path(__file__).with_name("units.json").read_text(encoding="utf-8")
)
HEADS = {".rtf": "{\\rtf1\\ansi ", ".mbox": "From a@b Thu Jan 1 00:00:00 2020\nSubject: x\n\nText.\n\n"}
ARCHIVES = (".docx", ".pptx", ".xlsx", ".odt", ".odp", ".ods", ".epub")


def repeat_unit(rng: Random) -> Attack:
    """A unit repeated up to `LARGEST` bytes, nested where it closes; now and then several units by turns."""
    suffix = rng.choice(list(UNITS))
    size = int(10 ** rng.uniform(1.5, 6.3))
    units = rng.sample(UNITS[suffix], rng.choice((1, 1, 1, 2, 3)))
    opened, closed = "".join(unit[0] for unit in units), "".join(unit[2] for unit in reversed(units))
    times = min(size, LARGEST) // max(1, len(opened) + len(closed))
    text = HEADS.get(suffix, "") + opened * times + units[-1][1] + (closed * times if rng.random() < 0.8 else "")
    return suffix, text.encode("utf-8", "replace")


# PDFs


def build_pdf(objects: Sequence[bytes]) -> bytes:
    """A PDF of these objects, numbered from 1; the first is its catalog."""
    out = io.BytesIO()
    out.write(b"%PDF-1.5\n")
    places = []
    for number, each in enumerate(objects, start=1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, each))
    table = out.tell()
    out.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    out.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, table))
    return out.getvalue()


def build_stream(data: bytes, extra: bytes = b"") -> bytes:
    """A stream of a PDF."""
    return b"<</Length %d%s>>\nstream\n%s\nendstream" % (len(data), extra, data)


def build_pdf_of_one_stream(pages: int, lines: int) -> bytes:
    """A PDF whose pages all show the same lines."""
    shown = b"".join(b"1 0 0 1 50 %d Tm (The bread keeps for nine days) Tj " % line for line in range(lines))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources<</Font<</F1 3 0 R>>>>/Contents 4 0 R>>"
    kids = b" ".join(b"%d 0 R" % (5 + number) for number in range(pages))
    return build_pdf(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids),
            b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
            build_stream(b"BT /F1 12 Tf %sET" % shown),
            *[page] * pages,
        ]
    )


RESOURCES = b"<</Font<</F1 3 0 R>>/XObject<</X 5 0 R>>>>"
SHOWN = b"BT /F1 12 Tf 50 700 Td (The bread keeps for nine days) Tj ET "
CONTENTS = (SHOWN, b"q ", b"BT ", b"[", b"<<", b"(", b"((", b"0 0 m ", b"/F1 1e30 Tf ", b"BI ID ", b"[(a)-9999(b)]TJ ")
ACTIONS = (
    *(b"/OpenAction<</S/URI/URI(%s)>>", b"/OpenAction<</S/Launch/F(%s)>>", b"/AcroForm<</XFA(%s)>>"),
    *(b"/OpenAction<</S/GoToR/F(%s)/D[0/Fit]>>", b"/AA<</WC<</S/SubmitForm/F(%s)>>>>"),
    b"/Names<</EmbeddedFiles<</Names[(a)<</Type/Filespec/F(%s)>>]>>>>",
)
FORM = b"/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</XObject<</X 5 0 R>>>>"


def _one_page(content: bytes, further: bytes = build_stream(b""), catalog: bytes = b"") -> bytes:
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Resources %s/Contents 6 0 R>>" % RESOURCES
    root, font = b"<</Type/Catalog/Pages 2 0 R %s>>" % catalog, b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"
    return build_pdf([root, b"<</Type/Pages/Count 1/Kids[4 0 R]>>", font, page, further, content])


def _nest_pages(rng: Random) -> bytes:
    inner = [b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % (number + 1) for number in range(2, rng.choice((10, 5000)))]
    last = b"<</Type/Pages/Count 1/Kids[%d 0 R]>>" % rng.choice((2, 3, 3))  # 2: a loop
    return build_pdf([b"<</Type/Catalog/Pages 2 0 R>>", *inner, last])


PDF_ATTACKS: Sequence[Callable[[Random], bytes]] = (
    lambda rng: _one_page(build_stream(zlib.compress(SHOWN * 10 ** rng.choice((0, 3, 7))), b"/Filter/FlateDecode")),
    _nest_pages,
    lambda rng: _one_page(build_stream(b"/X Do "), build_stream(b"/X Do " * rng.choice((1, 2, 1000)), FORM)),
    lambda rng: _one_page(build_stream(SHOWN), catalog=rng.choice(ACTIONS) % rng.choice(OUTSIDE).encode()),
    lambda rng: _one_page(build_stream(SHOWN, b"/F(%s)" % rng.choice(OUTSIDE).encode())),
    lambda rng: _one_page(build_stream(rng.choice(CONTENTS) * int(10 ** rng.uniform(0, 5)))),
    lambda rng: build_pdf_of_one_stream(rng.choice((10, 1000, 10_000)), rng.choice((1, 50, 500))),
    lambda rng: _one_page(build_stream(SHOWN), catalog=b"/X " + rng.choice((b"[", b"<</A")) * rng.choice((100, 10**5))),
    lambda rng: b"%PDF-1.4\n" + b"1 0 obj\n" * rng.choice((1, 100_000)) + b"startxref\n%d\n" % rng.choice((0, 10**9)),
    lambda rng: b"%PDF-1.4\nxref\n0 999999999\ntrailer<</Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF",
)


def attack_pdf(rng: Random) -> Attack:
    """A PDF that is deep, wide, recursive, compressed many times over, or that asks for something outside."""
    return ".pdf", rng.choice(PDF_ATTACKS)(rng)


# Archives

ENTITIES = ('<!DOCTYPE x [<!ENTITY a SYSTEM "{}">]>', '<!DOCTYPE x SYSTEM "{}">', '<?xml-stylesheet href="{}"?>')
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
RELATION = f'<Relationship Id="r{{}}" Type="{RELATIONS}/{{}}" Target="{{}}" TargetMode="External"/>'
RELATED = ("image", "attachedTemplate", "oleObject", "hyperlink", "frame", "externalLink", "subDocument", "slide")
SCRIPTS = ("word/vbaProject.bin", "Scripts/python/a.py", "Basic/Standard/Module1.xml", "META-INF/a.js")


def attack_archive(rng: Random, seeds: Mapping[str, bytes]) -> Attack:
    """A whole archive, of which a part is made to ask for something outside."""
    suffix, target = rng.choice(ARCHIVES), rng.choice(OUTSIDE)
    with zipfile.ZipFile(io.BytesIO(seeds[suffix])) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    part = rng.choice([name for name in members if name.endswith((".xml", ".rels", ".opf", "html"))])
    members[part] = _point_out(rng, members[part].decode(), target).encode()
    script = (rng.choice(SCRIPTS), f"import os; os.system('touch {target}')".encode())
    return suffix, write_zip([*members.items(), script])


def _point_out(rng: Random, text: str, target: str) -> str:
    """Markup with entities declared, relations added, or addresses that lead outside."""
    way = rng.randrange(3)
    if way == 0:
        head, sign, rest = text.rpartition("?>")
        declared = rng.choice((*ENTITIES, *PROLOGUES)).replace("{}", target)
        return f"{head}{sign}{declared}{rest}".replace("a", "&a;", rng.randrange(3))
    if way == 1 and "</Relationships>" in text:
        made = "".join(RELATION.format(900 + n, rng.choice(RELATED), target) for n in range(rng.choice((1, 50))))
        return text.replace("</Relationships>", f"{made}</Relationships>")
    for word in ('Target="', 'href="', 'src="', 'full-path="', 'r:embed="'):
        outside = f'TargetMode="External" {word}' if word == 'Target="' else word
        text = text.replace(word, f"{outside}{target}#", rng.choice((1, -1)))
    marked = f'<script src="{target}">x</script><img src="{target}"/><text:section-source xlink:href="{target}"/>'
    return text.replace("</", f"{marked}</", 1) if rng.random() < 0.5 else text


# Mail

CHARSETS = ("utf-7", "punycode", "unicode_escape", "rot13", "zlib", "\u0130")
CODINGS = ("base64", "quoted-printable", "x-uuencode", "nonsense")
MULTIPART = "Content-Type: multipart/mixed; boundary="


def attack_mail(rng: Random) -> Attack:
    """Multiparts in multiparts, many parts, odd encodings, messages in messages, parts that lie outside."""
    depth = rng.choice((1, 50, 1000, 5000))
    body = rng.choice(
        (
            "".join(f'{MULTIPART}"b{n}"\n\n--b{n}\n' for n in range(depth)) + f"\n{TEXT}",
            f'{MULTIPART}"b"\n\n' + f"--b\nContent-Type: text/plain\n\n{TEXT}" * depth + "--b--\n",
            "Content-Type: message/rfc822\n\n" * depth + TEXT,
            f"Content-Type: text/html; charset={rng.choice(CHARSETS)}\n"
            f"Content-Transfer-Encoding: {rng.choice(CODINGS)}\n\n{TEXT * depth}",
            f'Content-Type: message/external-body; access-type=local-file; name="{rng.choice(OUTSIDE)}"\n\n\n{TEXT}',
        )
    )
    suffix, head = rng.choice(((".eml", ""), (".mbox", "From a@b Thu Jan 1 00:00:00 2020\n")))
    return suffix, f"{head}From: a@b\nSubject: x\nMIME-Version: 1.0\n{body}".encode()
