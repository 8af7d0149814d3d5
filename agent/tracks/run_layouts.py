"""How the turns stand in a run file: in an object after a head, in an array, or on lines.

Files are split into turns without decoding them, so that only one turn at a time is in memory in its decoded form.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from agent.tracks.lenient_reading import decode_spelling, fit_to_shape
from agent.tracks.oddities import Oddities
from schemas.records import RunInfo
from schemas.wire import Data, decode

MAX_FIRST_LINE = 1 << 24  # bytes


@dataclass(frozen=True, slots=True)
class Entry:
    """One turn of a file, not yet decoded. `where` is its JSON path."""

    where: str
    data: Data | msgspec.Raw


@dataclass(frozen=True, slots=True)
class JsonObject:
    """An object: the fields of the head, then the list of turns as the last field. All layouts have these methods."""

    shape: Any  # the wire type of a run file whose turns are not decoded yet
    make_head: Callable[[RunInfo], Any]
    read_head: Callable[[Any], RunInfo]

    def encode_frame(self, info: RunInfo) -> tuple[bytes, bytes, bytes]:
        """What stands before, between and after the turns of a file."""
        return msgspec.json.encode(self.make_head(info))[:-1] + b',"turns":[', b",", b"]}"

    def json_path(self, number: int) -> str:
        """Where the turn with this number (from 0) stands in a file."""
        return f"$.turns[{number}]"

    def split_entries(self, data: Data, oddities: Oddities) -> tuple[RunInfo, Iterator[Entry]]:
        """What the head of a file says, and its turns. Raises `msgspec.DecodeError` for a file of another layout."""
        head = self._decode_head(data, oddities)
        return self.read_head(head), (Entry(self.json_path(n), raw) for n, raw in enumerate(head.turns))

    def _decode_head(self, data: Data, oddities: Oddities) -> Any:
        try:
            return decode(data, self.shape)
        except msgspec.DecodeError:
            fields = decode_spelling(data, dict[str, msgspec.Raw], "$", oddities)
            raw = {name: decode(value) for name, value in fields.items() if name != "turns"}
            raw |= {"turns": decode(fields["turns"], list[msgspec.Raw])} if "turns" in fields else {}
            return msgspec.convert(fit_to_shape(raw, self.shape, "$", oddities), self.shape)

    def read_first_fields(self, data: Data) -> Mapping[str, msgspec.Raw]:
        """The head's fields, or the first turn's where there is no head; none for another layout."""
        return decode_fields(data, dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class JsonRows:
    """Turns without a head: in an array, or one a line."""

    frame: tuple[bytes, bytes, bytes]
    place: str  # the JSON path of a turn
    first: int  # its number there
    on_lines: bool

    def encode_frame(self, _info: RunInfo) -> tuple[bytes, bytes, bytes]:
        return self.frame

    def json_path(self, number: int) -> str:
        return self.place.format(number + self.first)

    def split_entries(self, data: Data, oddities: Oddities) -> tuple[RunInfo, Iterator[Entry]]:
        if self.on_lines:
            rows: list[Any] = bytes(data).splitlines()
        else:
            rows = decode_spelling(data, list[msgspec.Raw], "$", oddities)
        return RunInfo(""), (Entry(self.json_path(n), row) for n, row in enumerate(rows) if bytes(row).strip())

    def read_first_fields(self, data: Data) -> Mapping[str, msgspec.Raw]:
        if not self.on_lines:
            return decode_fields(data, list[dict[str, msgspec.Raw]])
        return decode_fields(bytes(data[:MAX_FIRST_LINE]).lstrip().partition(b"\n")[0], dict[str, msgspec.Raw])


JSON_ARRAY = JsonRows((b"[", b",", b"]"), "$[{}]", 0, on_lines=False)
JSON_LINES = JsonRows((b"", b"\n", b"\n"), "line {} $", 1, on_lines=True)
RunLayout = JsonObject | JsonRows


def decode_fields(data: Data, shape: Any) -> Mapping[str, msgspec.Raw]:
    """The fields of an object, or of the first object of a list; none where `data` is not of the shape."""
    try:
        decoded = decode_spelling(data, shape, "$", Oddities())
    except msgspec.DecodeError:
        return {}
    return decoded if isinstance(decoded, dict) else next(iter(decoded), {})
