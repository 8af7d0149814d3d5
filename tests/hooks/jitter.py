"""Another processor, simulated: the bundled models' numbers and samples differ as they do between machines.

llama.cpp's kernels differ by processor, so likelihoods and vectors differ in their last bits, and a sampled text,
sooner or later, in its words. Here every likelihood is multiplied by 1 + e, e is added to every component of a vector
(e normal, standard deviation `E`: far more than processors differ by), and a sampled reply gets another seed. The
environment variable JITTER is the seed of all this; 0 or none changes nothing. The same text has the same noise every
time, as on one machine. The product knows nothing of it: the classes are patched from outside.
"""

import hashlib
import importlib
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

E = 1e-3
SEEDS = 1 << 24  # what one step of JITTER adds to the seed of a sample


def seed() -> int:
    """Which processor is simulated; 0: this one, as it is."""
    return int(os.environ.get("JITTER") or 0)


def noise(size: int, *decided_by: object) -> Any:
    """So many values of e, always the same for the same inputs."""
    import numpy as np

    digest = hashlib.blake2b(repr((seed(), *decided_by)).encode("utf-8", "replace"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "big")).normal(0.0, E, size)


# Each takes the method that it stands for, and what that is called with.


def score(exact: Callable[..., list[float]], context: Any, candidates: Sequence[Sequence[int]]) -> list[float]:
    read = hash(tuple(context._tokens))  # of integers: the same in every process
    scores = exact(context, candidates)
    return [float(value * (1 + noise(1, read, list(c))[0])) for value, c in zip(scores, candidates, strict=True)]


def weigh(
    exact: Callable[..., list[float]], context: Any, candidates: Sequence[Sequence[int]], *words: int
) -> list[float]:
    read, odds = hash(tuple(context._tokens)), exact(context, candidates, *words)
    return [float(value * (1 + noise(1, read, list(c))[0])) for value, c in zip(odds, candidates, strict=True)]


def ask(exact: Callable[..., Any], model: Any, conversation: Any, task: Any, *more: Any) -> Any:
    if task.seed is not None:
        task = replace(task, seed=task.seed + seed() * SEEDS)
    return exact(model, conversation, task, *more)


def embed(exact: Callable[..., Any], model: Any, texts: Sequence[str]) -> Any:
    import numpy as np

    vectors = exact(model, texts)
    for row, text in zip(vectors, texts, strict=True):
        row += noise(len(row), text)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def compute_states(exact: Callable[..., Any], encoder: Any, tokens: Sequence[int]) -> Any:
    import numpy as np

    states = exact(encoder, tokens)
    lengths = np.linalg.norm(states, axis=1, keepdims=True)
    states += noise(states.size, tuple(tokens)).reshape(states.shape) * lengths
    return states


PATCHES: tuple[tuple[str, str, Callable[..., Any]], ...] = (  # module, class, and the method of that name
    ("agent.models.local.kv_cache", "KvCache", score),
    ("agent.models.local.kv_cache", "KvCache", weigh),
    ("agent.models.local.llama_cpp", "LlamaCppModel", ask),
    ("agent.models.embedding.llama_cpp", "LlamaCppEncoder", embed),
    ("agent.models.embedding.llama_cpp", "LlamaCppEncoder", compute_states),
)


def install() -> None:
    """From now on, in this process."""
    for module, owner, jittered in PATCHES:
        cls, name = getattr(importlib.import_module(module), owner), jittered.__name__
        setattr(cls, name, _wrap(getattr(cls, name), jittered))


def _wrap(exact: Callable[..., Any], jittered: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(exact)
    def wrapper(*arguments: Any) -> Any:
        return jittered(exact, *arguments) if seed() else exact(*arguments)

    return wrapper
