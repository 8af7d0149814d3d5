"""Text and JSON as they come in: decoded in one place, so that whatever is wrong with them is one kind of error."""

from typing import Any, TypeVar, overload

import msgspec

from schemas.errors import InvalidInputError

T = TypeVar("T")
Data = bytes | memoryview
MARK = b"\xef\xbb\xbf"  # which some editors put before UTF-8


@overload
def decode(data: Data | msgspec.Raw, shape: type[T]) -> T: ...
@overload
def decode(data: Data | msgspec.Raw, shape: Any = Any) -> Any: ...
def decode(data: Data | msgspec.Raw, shape: Any = Any) -> Any:
    """JSON of a shape. Raises `msgspec.DecodeError` for all that is not, bad UTF-8 and deep nesting included."""
    try:
        return msgspec.json.decode(data, type=shape)
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"is not UTF-8: {error}") from error
    except RecursionError:
        raise msgspec.DecodeError("is nested too deeply") from None


def utf8(data: Data, where: str) -> Data:
    """The same without a byte order mark. Raises `InvalidInputError` for what begins as UTF-16 or UTF-32 does."""
    beginning = bytes(data[:4])
    if beginning[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in beginning:
        remedy = "Save it as UTF-8; from UTF-16: iconv -f UTF-16 -t UTF-8 FILE > NEW"
        raise InvalidInputError("is not UTF-8: it begins as UTF-16, UTF-32 or no text does", where=where, remedy=remedy)
    return data[len(MARK) :] if beginning.startswith(MARK) else data
