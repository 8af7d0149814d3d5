"""Files that are small and cost their reader much, or ask it for what is none of its business."""

import io
from collections.abc import Sequence


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


def nest_json(size: int, depth: int = 300) -> bytes:
    """JSON of about so many bytes: a list of objects in objects, with something to say at each depth."""
    inner = '"x"'
    for level in range(depth):
        inner = f'{{"k{level}": {inner}, "v{level}": "word word word"}}'
    return f"[{','.join([inner] * max(1, size // len(inner)))}]".encode()
