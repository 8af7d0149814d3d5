"""The models that a person chose for conversations: read at the start of every command, so that it loads nothing."""

from pathlib import Path

import msgspec

from indexes.storage.directories import find_data_directory
from schemas.errors import InvalidInputError


def find_choice_file() -> Path:
    return find_data_directory() / "chosen-models.json"


def read_choice() -> dict[str, str]:
    """The models, by the names of their flags. Raises `InvalidInputError` for a damaged file."""
    path = find_choice_file()
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, str])
    except FileNotFoundError:
        return {}
    except msgspec.MsgspecError as error:
        remedy = "Delete it, and choose again: convagent model use NAME."
        raise InvalidInputError(f"is damaged ({error})", where=str(path), remedy=remedy) from error
