"""Decoding text files: as UTF-8, as their byte order mark says, or by a guess, which the caller learns of."""

import codecs
import re

from schemas.errors import InvalidInputError

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),  # after those of UTF-32, which begin with the same bytes
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# Encodings that are guessed; among equally likely ones, the first is taken.
GUESSED_ENCODINGS = ["cp1252", "cp1250", "cp1251", "koi8_r", "cp1253", "cp932", "euc_jp", "gb18030", "big5", "euc_kr"]
SAMPLE_BYTES = 200_000  # that a guess is made from
MAX_CONTROL_SHARE = 0.01  # of control characters; a file with more is no text
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def decode_text(data: bytes) -> tuple[str, str]:
    """The text, with `\\n` at its line ends, and the name of the encoding if it was guessed, else "".

    Raises `InvalidInputError` where the bytes are no text.
    """
    text, guessed = _decode_bytes(data)
    sample = text[:SAMPLE_BYTES]
    if "\0" in text or len(_CONTROL.findall(sample)) > MAX_CONTROL_SHARE * len(sample):
        raise InvalidInputError("is no text, whatever its name says")
    return text.replace("\r\n", "\n").replace("\r", "\n"), guessed


def _decode_bytes(data: bytes) -> tuple[str, str]:
    encoding = next((encoding for mark, encoding in BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        return data.decode(encoding), ""
    except UnicodeDecodeError as error:
        if encoding != "utf-8" or b"\0" in data:
            raise InvalidInputError("is no text, whatever its name says") from error
    from charset_normalizer import from_bytes

    found = from_bytes(data[:SAMPLE_BYTES], cp_isolation=GUESSED_ENCODINGS)
    if not found:
        raise InvalidInputError("is text in no encoding that is known here, or no text")
    best = min(found, key=lambda match: (match.chaos, -match.coherence, GUESSED_ENCODINGS.index(match.encoding)))
    return data.decode(best.encoding, "replace"), best.encoding
