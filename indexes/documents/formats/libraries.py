"""Libraries that only some documents need: loaded when a file needs them, their errors told as reasons."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from schemas.errors import ConvagentError, InvalidInputError, MissingError

INSTALL = "pip install 'convagent[documents]'"
MAX_ERROR_CHARACTERS = 200  # of a library's own words


def load_library(name: str) -> Any:
    """A module of the extra `documents`. Raises `MissingError`, without where, if it is not installed."""
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingError(f"cannot be read without {name.partition('.')[0]}; install it: {INSTALL}") from error


@contextmanager
def explain_faults(kind: str) -> Iterator[None]:
    """Within the block, what a library raises for broken bytes becomes an `InvalidInputError`: "is a broken `kind`".

    What libraries raise for broken files has no common base. Their warnings are not shown.
    """
    from defusedxml import DefusedXmlException

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (ConvagentError, MemoryError):
        raise
    except DefusedXmlException as error:
        raise make_entity_error() from error
    except RecursionError as error:
        raise InvalidInputError("is nested too deeply") from error
    except Exception as error:
        what = " ".join(str(error).split())[:MAX_ERROR_CHARACTERS] or type(error).__name__
        raise InvalidInputError(f"is a broken {kind} ({what})") from error


def make_entity_error() -> InvalidInputError:
    """The error for XML that would grow when it is read, or asks for other files."""
    return InvalidInputError("declares XML entities, which are not expanded")
