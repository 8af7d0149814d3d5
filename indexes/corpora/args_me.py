"""Arguments of args.me as passages: JSON files of gigabytes, read as a stream.

The format (args.me corpus, Ajjour et al. 2019; one file a debate portal, or all in one):

    {"arguments": [{"id": "f62beb77-2019-04-18T11:00:00Z-00000-000", "conclusion": "School uniforms save money",
                    "premises": [{"text": "A uniform is worn for a year ...", "stance": "PRO"}], "context": {...}}]}

Each argument is a passage: its conclusion is the title, its premises are the text. The context is dropped.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from indexes.corpora.corpus import Corpus, Item
from indexes.storage.files import open_to_read
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Passage

MAX_DEPTH = 10_000  # brackets of an argument that are open at a time
MAX_DIGITS = 2000  # of a number in one block; one of 4,300 digits in two blocks has more in one of them
DIGITS = re.compile(rb"\d\d")
LONG_NUMBER = re.compile(rb"(?:\A|[:,\[]\s*-?)\d{%d}" % MAX_DIGITS)


class ArgumentCorpus(Corpus):
    """Files of args.me as a corpus. Its items have the numbers of arguments, not of lines."""

    def __iter__(self) -> Iterator[Item]:
        """File, number of the argument (from 1), and the passage or what is wrong with the argument."""
        import ijson

        done = 0
        for path in self.files:
            number = 0
            with open_to_read(path) as raw:
                guarded = _GuardedFile(raw)
                try:
                    for number, found in enumerate(ijson.items(guarded, "arguments.item"), start=1):
                        guarded.depth = 0
                        self.bytes_read = done + raw.tell()
                        self.passages_read += 1
                        yield path, number, _to_passage(found, number)
                    if not number:
                        yield path, number, "holds no list `arguments`, or an empty one"
                except (ijson.JSONError, ValueError) as error:  # broken text, and numbers beyond all bounds
                    yield path, number + 1, f"broken JSON ({_explain_error(error)}): nothing can be read from here on"
            done += path.stat().st_size
            self.bytes_read = done


def find_arguments(directory: Path) -> ArgumentCorpus:
    """The files of args.me in a directory: all `.json` files, in name order.

    Raises `MissingError` where there is no such directory and `InvalidInputError` where it holds no such file.
    """
    if not directory.is_dir():
        raise MissingError("no such directory", where=str(directory))
    files = tuple(sorted(path for path in directory.glob("*.json") if path.is_file()))
    if not files:
        remedy = "Expected files of args.me, unpacked: debateorg.json, idebate.json, ... or args-me.json."
        raise InvalidInputError("holds no .json file of a debate portal", where=str(directory), remedy=remedy)
    return ArgumentCorpus(files, sum(path.stat().st_size for path in files))


class _GuardedFile:
    """A file that keeps back what crashes the C library that reads it: 100,000 open brackets, a number of 4,300 digits.

    A block with either is not passed on at all. Brackets in texts are counted too, so set `depth` to 0 after each
    argument.
    """

    def __init__(self, raw: IO[bytes]) -> None:
        self._raw, self.depth = raw, 0

    def read(self, size: int = -1) -> bytes:
        """Read as from any file. Raises `ValueError` for too many open brackets or digits."""
        data = self._raw.read(size)
        self.depth += data.count(b"[") + data.count(b"{") - data.count(b"]") - data.count(b"}")
        if self.depth > MAX_DEPTH:
            raise ValueError("it is nested too deeply")
        if DIGITS.search(data[:: MAX_DIGITS // 2]) and LONG_NUMBER.search(data):
            raise ValueError("it holds a number of thousands of digits")
        return data


class _Premise(msgspec.Struct):
    text: str = ""


class _Argument(msgspec.Struct):
    id: str
    conclusion: str = ""
    premises: list[_Premise] = []


def _to_passage(found: Any, number: int) -> Passage | str:
    try:
        argument = msgspec.convert(found, _Argument)
    except msgspec.ValidationError as error:
        return f"argument {number} is not in the format of args.me: {error}"
    if not argument.id or argument.id.split() != [argument.id]:
        return f"argument {number} has an id that a run cannot name: {argument.id!r}"
    text = "\n".join(premise.text.strip() for premise in argument.premises).strip()
    return Passage(argument.id, text, argument.conclusion.strip()) if text else f"argument {argument.id} has no premise"


def _explain_error(error: Exception) -> str:
    """The first line of an error of ijson, which may be bytes; the other lines point into the text."""
    message = error.args[0] if error.args and not isinstance(error, ValueError) else error
    text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
    return text.strip().partition("\n")[0].removeprefix("parse error: ").removeprefix("lexical error: ").rstrip(".")
