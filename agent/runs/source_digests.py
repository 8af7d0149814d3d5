"""Which code makes a run: a digest of each package's files, so that one run is never half of one code, half of another.

The files are looked for where the packages are, in a working copy as in an installed wheel.
"""

import hashlib
from functools import cache
from pathlib import Path

PACKAGES = ("agent", "indexes", "prompts", "schemas")
SUFFIXES = (".py", ".toml", ".txt", ".safetensors", ".gguf")  # code, words, prompts, and what was taught
HOME = Path(__file__).parents[2]
SHOWN_DIGITS = 16


@cache
def hash_sources(home: Path = HOME) -> dict[str, str]:
    """For each package the first digits of a BLAKE2 of its files, their names included."""
    return {package: _hash_folder(home / package) for package in PACKAGES}


def _hash_folder(folder: Path) -> str:
    hashed = hashlib.blake2b(digest_size=SHOWN_DIGITS // 2)
    for path in sorted(path for path in folder.rglob("*") if path.suffix in SUFFIXES):
        with path.open("rb") as file:
            content = hashlib.file_digest(file, "blake2b").hexdigest()
        hashed.update(f"{path.relative_to(folder).as_posix()}\0{content}\n".encode())
    return hashed.hexdigest()
