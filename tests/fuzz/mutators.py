"""Ways to break a file: byte by byte, line by line, by the structure of its JSON, by its tags, by its compression.

A mutator takes a source of randomness and the contents of a file, and gives other contents; the same seed, the same.
"""

import bz2
import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import zstandard

Mutator = Callable[[Random, bytes], bytes]
LONG = 10_000_000  # characters of a line that is too long
BRACKETS = 100_000
BOMB = 60_000_000  # times a few bytes that a member of an archive is grown by

VALUES: dict[str, list[str]] = json.loads(Path(__file__).with_name("values.json").read_text(encoding="utf-8"))
RAW_VALUES = (*VALUES["json"], "9" * 5000, "[" * 900 + "]" * 900)  # as JSON text, some of which no `dumps` writes
TEXTS = tuple(value for value in RAW_VALUES if value.startswith('"'))
LARGE_VALUES = ("[" * BRACKETS, "[" * BRACKETS + "]" * BRACKETS, '{"a":' * BRACKETS, f'"{"word " * 20_000}"')
TOKENS = (*VALUES["columns"], "9" * 5000)
LAUGHS = "".join(f'<!ENTITY lol{n} "{f"&lol{n - 1 or str()};" * 10}">' for n in range(1, 10))
PROLOGUES = (*VALUES["prologues"], f'<!DOCTYPE x [<!ENTITY lol "lol">{LAUGHS}]>')
BYTES = (*(bytes([byte]) for byte in b'\x00\xff\xc3\r\n\x1a"\\{['), b"\xed\xa0\x80", b"\xf4\x90\x80\x80")
ENCODINGS = ("utf-16", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "utf-7", "cp037")
WHOLES = (b"", b" ", b"\n\n\n", b"\x00", b"[]", b"{}", b"null", b"[[]]", b"[{}]", b"0", b'""', b"<a/>")
FILLINGS = (b"x", b"word ", b"\x00", b"[", b'{"a":', b"<", b"<p ", b"\t", b" ", b'"', b"\xf0\x9f\x98\x80")


def bytewise(rng: Random, data: bytes) -> bytes:
    """A bit turned over; a piece gone or there again; bytes that do not belong; the end gone; a mark before it, another
    encoding; something else altogether; a very long line."""
    start = rng.randint(0, len(data))
    head, piece, rest = data[:start], data[start : start + rng.choice((1, 2, 8, 60, 500))], data[start:]
    filling, size = rng.choice(FILLINGS), LONG if rng.random() < 0.01 else rng.choice((5_000, 70_000))
    return rng.choice(
        (
            head + bytes(byte ^ 1 << rng.randrange(8) for byte in rest[:1]) + rest[1:],
            head + rest[len(piece) :],
            head + piece * rng.choice((1, 2, 10)) + rest,
            head + rng.choice(BYTES) * rng.choice((1, 1, 2, 50)) + rest,
            head,
            rng.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xff\xfe\x00\x00")) + data,
            data.decode("utf-8", "replace").encode(rng.choice(ENCODINGS), "replace"),
            rng.choice(WHOLES),
            head + filling * (size // len(filling)) + rest,
        )
    )


def relined(rng: Random, data: bytes) -> bytes:
    """Lines left out, doubled, in another order, or ended in another way."""
    lines = data.splitlines(keepends=True) or [b""]
    place, way = rng.randrange(len(lines)), rng.randrange(4)
    if way < 2:
        lines[place : place + 1] = [lines[place]] * 2 * way
    elif way == 2:
        rng.shuffle(lines)
    else:
        ending = rng.choice((b"", b"\r\n", b"\r", b"\n" * 1000, b"\x0b", b"\xe2\x80\xa8"))
        lines[place] = lines[place].rstrip(b"\r\n") + ending
    return b"".join(lines)


def recolumned(rng: Random, data: bytes) -> bytes:
    """Another word in a column of a line, a column more, or one less."""
    lines = data.decode("utf-8", "replace").split("\n")
    place = rng.randrange(len(lines))
    columns = re.split(r"(\t| )", lines[place])
    at = rng.randrange(len(columns))
    columns[at : at + rng.choice((0, 1, 1, 1))] = [rng.choice(TOKENS)]
    lines[place] = "".join(columns)
    return "\n".join(lines).encode()


def restructured(rng: Random, data: bytes) -> bytes:
    """A value of the JSON replaced, a key left out or renamed, an entry doubled, something nested; or of one line."""
    with suppress(ValueError, RecursionError):
        return _change(rng, json.loads(data))
    lines = data.split(b"\n")
    place = rng.randrange(len(lines))
    with suppress(ValueError, RecursionError):
        lines[place] = _change(rng, json.loads(lines[place]))
        return b"\n".join(lines)
    return bytewise(rng, data)


def _change(rng: Random, root: Any) -> bytes:
    holder = {"root": root}
    raw: dict[str, str] = {}  # texts that `json.dumps` cannot write, under names that stand for them
    for number in range(rng.choice((1, 1, 1, 2, 4))):
        parent, key = rng.choice(_list_places(holder))
        value, way = parent[key], rng.randrange(8)
        if way == 0 and parent is not holder:
            del parent[key]
        elif way == 1 and isinstance(parent, dict):
            parent[rng.choice((f"{key}x", "", "$ref", "id", "1\n", "\u202e"))] = value
        elif way == 2 and isinstance(parent, list):
            parent.insert(rng.randint(0, len(parent)), value)
        elif way == 3:
            parent[key] = rng.choice(([value], {"x": value}, str(value), [value] * 3))
        else:
            same_type = TEXTS if isinstance(value, str) and rng.random() < 0.5 else RAW_VALUES  # it gets further
            parent[key] = f"@@{number}@@"
            raw[f'"@@{number}@@"'] = rng.choice(LARGE_VALUES if rng.random() < 0.01 else same_type)
    text = json.dumps(holder["root"], ensure_ascii=rng.random() < 0.5)
    for name, value in raw.items():
        text = text.replace(name, value)
    return text.encode("utf-8", "replace")


def _list_places(holder: Any) -> list[tuple[Any, Any]]:
    """Every place of a value: what holds it, and under which key."""
    keys = list(holder) if isinstance(holder, dict) else range(len(holder)) if isinstance(holder, list) else ()
    return [place for key in keys for place in ((holder, key), *_list_places(holder[key]))]


def retagged(rng: Random, data: bytes) -> bytes:
    """Markup put in, tags left out or doubled, entities declared."""
    text = data.decode("utf-8", "replace")
    place = rng.randint(0, len(text))
    start, end = rng.choice([match.span() for match in re.finditer(r"<[^<>]*>", text)] or [(place, place)])
    markup = rng.choice((*VALUES["markup"], "&" + "a" * 200)) * (20_000 if rng.random() < 0.02 else 1)
    changed = rng.choice(
        (
            text[:place] + markup + text[place:],
            text[:start] + text[end:],
            text[:end] + text[start:end] * rng.choice((1, 2, 2000)) + text[end:],
            text[: start + 1] + rng.choice(("\x00", "x", " ", "🍞", "p ", "/")) + text[start + 1 :],
            rng.choice(PROLOGUES) + text.replace("</title>", "&lol9;&lol;</title>", 1),
        )
    )
    return changed.encode("utf-8", "replace")


def rezipped(rng: Random, data: bytes) -> bytes:
    """An archive with a member broken, left out, renamed, there twice, or grown beyond all measure."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = [(name, archive.read(name)) for name in archive.namelist()]
    except Exception:  # broken before; what is raised then has no common base
        return bytewise(rng, data)
    name, content = members.pop(rng.randrange(len(members))) if members else ("content.xml", b"")
    way = rng.randrange(100)
    if way < 75:
        members.append((name, rng.choice((retagged, bytewise))(rng, content[:LONG])))  # longer ones are bombs already
    elif way < 85:
        members.append((rng.choice(("../../etc/passwd", "/x", "x" * 60_000, "\x1b[31m", "a/" * 900 + "x")), content))
    elif way < 88:
        members.append((name, content + rng.choice((b" ", b"<p/>")) * BOMB))
    ways = (zipfile.ZIP_DEFLATED, zipfile.ZIP_STORED, zipfile.ZIP_BZIP2)
    return write_zip(members, ways[0] if 85 <= way < 88 else rng.choice(ways))


def write_zip(members: list[tuple[str, bytes]], compression: int = zipfile.ZIP_DEFLATED) -> bytes:
    """An archive, whose members may have any names, also twice."""
    stream = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(stream, "w", compression) as archive:
        warnings.simplefilter("ignore")  # of names that are there twice
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name) if "mimetype" in name else name or " ", content)
    return stream.getvalue()


LINE_WAYS: tuple[Mutator, ...] = (relined, recolumned, recolumned, recolumned)
PACKED: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstandard.compress}
WAYS: dict[str, tuple[Mutator, ...]] = {
    **dict.fromkeys((".json", ".jsonl"), (restructured,)),
    **dict.fromkeys((".html", ".xml"), (retagged,)),
    **dict.fromkeys((".docx", ".odt", ".epub", ".pptx", ".odp", ".xlsx", ".ods"), (rezipped,)),
    **dict.fromkeys((".pdf", ".png", ".rtf"), ()),
}


def broken(rng: Random, data: bytes, suffix: str) -> bytes:
    """The file after one to three changes, by ways of its own kind more often than by bytes."""
    ways = WAYS.get(suffix, LINE_WAYS)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(ways if ways and rng.random() < 0.65 else (bytewise,))(rng, data)
    return data


def packed(rng: Random, data: bytes, suffix: str) -> bytes:
    """Compressed as `suffix` says, and now and then torn, broken, or not compressed at all."""
    whole = PACKED[suffix](data)
    return rng.choice((data, bytewise(rng, whole), whole, whole, whole + b"\x00" * 8, whole + b"rubbish", whole * 2))
