"""ZIP files that hold documents, opened so that a small file cannot become a huge one. Nothing in them is run."""

import io
import re
import zipfile
from typing import Any

from indexes.documents.document_reader import DECLARES_ENTITIES
from schemas.errors import InvalidInputError

MAX_MEMBERS = 10_000
MAX_UNPACKED_BYTES = 200_000_000  # of the members that are read, together
_CENTRAL_ENTRY = b"PK\x01\x02"  # what each entry of a ZIP file's directory begins with
_OLD_OFFICE = bytes.fromhex("d0cf11e0a1b11ae1")  # what old office files and encrypted new ones begin with
_ENCRYPTED = 1  # a flag of a member
_DECLARATIONS = tuple(
    sign.encode(encoding) for sign in ("<!DOCTYPE", "<!ENTITY") for encoding in ("utf-8", "utf-16-le", "utf-16-be")
)
_MARKUP = re.compile(r"\.(?:xml|rels)$", re.IGNORECASE)


class Archive:
    """The members of a ZIP file. What is read of them is counted as it is unpacked, whatever they declare."""

    def __init__(self, data: bytes, kind: str, max_bytes: int = MAX_UNPACKED_BYTES) -> None:
        """`kind` is what messages call the file: "Word file". Raises what `zipfile` does for what is no archive."""
        if data.startswith(_OLD_OFFICE):
            raise InvalidInputError(f"is an encrypted {kind}, or one of an old format; save a copy in the new one")
        if data.count(_CENTRAL_ENTRY) > MAX_MEMBERS:  # before the directory is read, which is what takes long
            raise InvalidInputError(f"has more than {MAX_MEMBERS:,} parts")
        self.kind, self._max, self._left = kind, max_bytes, max_bytes
        self._zip = zipfile.ZipFile(io.BytesIO(data))
        self.names = frozenset(self._zip.namelist())

    def read(self, name: str) -> bytes:
        """A member's bytes. Raises `InvalidInputError` where they, with those read before, are too many."""
        member = self._zip.getinfo(name)
        if member.flag_bits & _ENCRYPTED:
            raise self.make_encrypted_error()
        with self._zip.open(member) as stream:
            data = stream.read(self._left + 1) if member.file_size <= self._left else None
        if data is None or len(data) > self._left:
            raise InvalidInputError(f"unpacks to more than {self._max // 1_000_000} MB")
        self._left -= len(data)
        return data

    def read_xml(self, name: str) -> Any:
        """The root element of an XML member. Entities are refused, as is what is outside the file."""
        from defusedxml import ElementTree

        return ElementTree.fromstring(self.read(name))

    def repack(self, left_out: tuple[str, ...] = ()) -> io.BytesIO:
        """A safe copy for a library: markup without declarations, and every other member (pictures, macros) empty."""
        copy = io.BytesIO()
        with zipfile.ZipFile(copy, "w") as archive:
            for name in sorted(self.names):
                data = self.read(name) if _MARKUP.search(name) and not name.startswith(left_out) else b""
                if any(sign in data for sign in _DECLARATIONS):
                    raise InvalidInputError(DECLARES_ENTITIES)
                archive.writestr(zipfile.ZipInfo(name), data)
        copy.seek(0)
        return copy

    def read_title(self, name: str) -> str:
        """The title (Dublin Core) that a member with metadata gives, or ""."""
        if name not in self.names:
            return ""
        return " ".join((self.read_xml(name).findtext(".//{http://purl.org/dc/elements/1.1/}title") or "").split())

    def make_encrypted_error(self) -> InvalidInputError:
        return InvalidInputError(f"is an encrypted {self.kind}; save a copy without its password to have it read")
