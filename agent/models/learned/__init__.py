"""What the bundled models were taught (`training/`): files of the package, each with a card beside it."""

from pathlib import Path

from indexes.storage.files import hash_file
from schemas.errors import MissingError

REMEDY = "Install convagent again: its package has this file."
QUERY_ENCODER = Path(__file__).with_name("query_encoder.safetensors")
REWRITER = Path(__file__).with_name("rewriter.gguf")


def hash_learned(path: Path) -> str:
    """SHA-256 of such a file. Raises `MissingError` where it is not there."""
    try:
        return hash_file(path)
    except FileNotFoundError as error:
        raise MissingError("is not there", where=str(path), remedy=REMEDY) from error
