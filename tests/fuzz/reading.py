"""Hostile documents given to the reading process, behind a hook that ends it where it reaches for anything else."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import gettempdir

from indexes.documents.isolation import process
from indexes.documents.isolation.process import ReadingLimits, ReadingProcess
from indexes.documents.reading import ParsedDocument
from indexes.text.control_characters import strip_control_characters
from schemas.errors import MissingError
from tests.fuzz import document_attacks as attacks
from tests.fuzz.mutators import broken

LIMITS = ReadingLimits(seconds=3, seconds_per_megabyte=1, waiting=20, memory_bytes=1_000_000_000)
GUARDED = "tests.fuzz.guarded_worker"
BUGS = "makes its reader"  # fail, crash, or say what makes no sense


@dataclass(slots=True)
class GuardedReader:
    """Reads documents; what goes wrong is a finding, unless the document breaks a limit."""

    seeds: dict[str, bytes]  # a whole document of each suffix
    reader: ReadingProcess = field(default_factory=lambda: ReadingProcess(LIMITS))

    def read(self, suffix: str, data: bytes) -> tuple[int, list[str]]:
        """Read a document: the exit code that a folder of it alone would have, and findings."""
        path = Path(f"/nowhere/a{suffix}")
        started = process.MODULE
        process.MODULE = GUARDED
        try:
            document = self.reader.parse_document(path, path.name, data)
        except MissingError as error:
            return 4, [] if error.what else ["is missing something unnamed"]
        finally:
            process.MODULE = started
        found = [f"{suffix} of {len(data)} bytes {problem}" for problem in _judge(document)]
        return 0 if document.passages else 5, found

    def make_document(self, rng: Random) -> attacks.Attack:
        """A document that is damaged, pathological, or asks for what is outside."""
        ways = rng.randrange(10)
        if ways < 4:
            suffix = rng.choice(sorted(self.seeds))
            return suffix, broken(rng, self.seeds[suffix], suffix)
        if ways < 6:
            return attacks.repeat_unit(rng)
        if ways < 8:
            return attacks.attack_archive(rng, self.seeds)
        return rng.choice((attacks.attack_pdf, attacks.attack_mail))(rng)


def _judge(document: ParsedDocument) -> Iterator[str]:
    """What is wrong with what came of a document."""
    if BUGS in document.reason:
        yield f"{document.reason}\n{_read_reached()}"
    if not document.passages and not document.reason:
        yield "has neither passages nor a reason"
    for said in (document.reason, *document.notes):
        if strip_control_characters(said) != said or "\n" in said or len(said) > 1000:
            yield f"is told of badly: {said[:300]!r}"
    if len({passage.id for passage in document.passages}) != len(document.passages):
        yield "has an id twice"
    if any(len(passage.id) > 1000 or not passage.text.strip() for passage in document.passages):
        yield "has a passage that no index takes"


def _read_reached() -> str:
    """What the reader reached for, if it is known; it is told once."""
    told = Path(gettempdir()) / "convagent-reached"  # as in `guarded_worker.py`, which runs as it is imported
    reached = told.read_text(encoding="utf-8", errors="replace") if told.exists() else ""
    told.unlink(missing_ok=True)
    return reached[:2000]


@contextmanager
def guarded_reader(documents: list[Path]) -> Iterator[GuardedReader]:
    """A reader whose seeds are a document of each suffix, and some beside."""
    seeds = {path.suffix: path.read_bytes() for path in documents}
    seeds |= {
        ".txt": b"Rye\n\nRye bread keeps for nine days.\n\n- oats\n- flour\n",
        ".jsonl": b'{"a": 1}\n{"b": [1, {"c": "d"}]}\n',
    }
    seeds |= {".json": b'{"x": [{"a": 1, "b": "Rye bread"}, {"a": 2}], "y": {"z": null}}'}
    found = GuardedReader(seeds)
    with found.reader:
        yield found
