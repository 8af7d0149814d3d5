"""What the bundled models were taught (`training/`): files of the package, each with a card beside it."""

from pathlib import Path

from indexes.storage.files import hash_file
from schemas.errors import MissingError

REMEDY = "Install convagent again: its package has this file."
# SHA-256 of the weights that each was taught over: others are left as they are.
QUERY_ENCODER = Path(__file__).with_name("query_encoder.safetensors")
QUERY_ENCODER_BASE = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
QUESTION_ENCODER = Path(__file__).with_name("question_encoder.safetensors")  # over the same weights
READER = Path(__file__).with_name("reader.safetensors")  # over the same weights
TABLE_READER = Path(__file__).with_name("table_reader.safetensors")  # over the same weights
MULTILINGUAL_READER = Path(__file__).with_name("multilingual_reader.safetensors")  # over multilingual-e5-small
REWRITER = Path(__file__).with_name("rewriter.gguf")
WRITER = Path(__file__).with_name("writer.gguf")  # over the same weights
CHOOSER = Path(__file__).with_name("chooser.gguf")  # over the same weights
MULTILINGUAL_CENTRE = Path(__file__).with_name("multilingual_centre.json")  # the mean of vectors of six languages
REWRITER_BASE = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"


def hash_learned(path: Path) -> str:
    """SHA-256 of such a file. Raises `MissingError` where it is not there."""
    try:
        return hash_file(path)
    except FileNotFoundError as error:
        raise MissingError("is not there", where=str(path), remedy=REMEDY) from error
