"""What encoders were taught: changes of a base model's weights, merged with it once, in the cache.

The package ships low-rank changes of the weights, or changes as 8-bit integers with a scale a row.
"""

from collections.abc import Callable, Mapping
from functools import partial
from hashlib import sha256
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agent.models.bundled import open_from_cache
from agent.models.embedding.llama_cpp import LlamaCppEncoder, open_encoder
from agent.models.learned import REMEDY, hash_learned
from schemas.errors import InvalidInputError

A, B = ".lora_a", ".lora_b"  # of a weight W, which becomes W + BA
SCALE = ".scale"  # of a weight's changes as integers: one for each row
Numbers = npt.NDArray[np.float32]
Change = Callable[[Mapping[str, Numbers], str, Numbers], Numbers]  # of a weight of that name, by what was learned


def open_taught(
    convert: Callable[..., Path], base: tuple[str, str], threads: int, learned: Path, change: Change
) -> tuple[LlamaCppEncoder, dict[str, Numbers]]:
    """A taught model over base weights with that name and digest, and what was learned, by name, as 32-bit floats.

    `convert` makes its GGUF: given a digest, a name and what changes each weight. Raises `MissingError` where the
    package lacks what was learned, `InvalidInputError` where it is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    base_name, base_digest = base
    name, merged = f"{base_name}-{learned.stem}", sha256(f"{base_digest}{hash_learned(learned)}".encode()).hexdigest()
    try:
        changes = {name: tensor.astype(np.float32) for name, tensor in load_file(learned).items()}
    except (OSError, SafetensorError) as error:
        raise InvalidInputError(f"is damaged ({error})", where=str(learned), remedy=REMEDY) from error
    encoder = open_from_cache(
        partial(convert, merged, name=name, change=partial(change, changes)),
        lambda path: open_encoder(path, name=name, threads=threads, by_token=True),
    )
    return encoder, changes


def add_low_rank(changes: Mapping[str, Numbers], name: str, weight: Numbers) -> Numbers:
    """A weight with its low-rank change; as it is where it has none."""
    stem = name.removesuffix(".weight")
    if f"{stem}{A}" not in changes:
        return weight
    return np.asarray(weight + changes[f"{stem}{B}"] @ changes[f"{stem}{A}"], dtype=np.float32)


def add_scaled(changes: Mapping[str, Numbers], name: str, weight: Numbers) -> Numbers:
    """A weight with its change as integers; as it is where it has none."""
    if name not in changes:
        return weight
    return np.asarray(weight + changes[name] * changes[f"{name}{SCALE}"], dtype=np.float32)
