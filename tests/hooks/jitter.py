"""Another processor, simulated: the bundled models' numbers and samples differ as they do between machines.

llama.cpp's kernels differ by processor, so likelihoods and vectors differ in their last bits, and a sampled text,
sooner or later, in its words. Here every likelihood is multiplied by 1 + e, e is added to every component of a vector
(e normal, standard deviation `E`: far more than processors differ by), and a sampled reply gets another seed. The
environment variable JITTER is the seed of all this; 0 or none changes nothing. The same text has the same noise every
time, as on one machine. The product knows nothing of it: the classes are patched from outside.
"""

import hashlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from types import ModuleType
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


def jittered_score(score: Callable[..., list[float]]) -> Callable[..., list[float]]:
    @wraps(score)
    def wrapper(context: Any, candidates: Sequence[Sequence[int]]) -> list[float]:
        exact = score(context, candidates)
        if not seed():
            return exact
        read = hash(tuple(context._tokens))  # of integers: the same in every process
        return [float(value * (1 + noise(1, read, list(c))[0])) for value, c in zip(exact, candidates, strict=True)]

    return wrapper


def jittered_ask(ask: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(ask)
    def wrapper(model: Any, conversation: Any, task: Any, *more: Any) -> Any:
        if seed() and task.seed is not None:
            task = replace(task, seed=task.seed + seed() * SEEDS)
        return ask(model, conversation, task, *more)

    return wrapper


def jittered_embed(embed: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(embed)
    def wrapper(model: Any, texts: Sequence[str]) -> Any:
        import numpy as np

        vectors = embed(model, texts)
        if seed():
            for row, text in zip(vectors, texts, strict=True):
                row += noise(len(row), text)
            vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
        return vectors

    return wrapper


def jittered_states(compute: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(compute)
    def wrapper(encoder: Any, tokens: Sequence[int]) -> Any:
        import numpy as np

        states = compute(encoder, tokens)
        if seed():
            lengths = np.linalg.norm(states, axis=1, keepdims=True)
            states += noise(states.size, tuple(tokens)).reshape(states.shape) * lengths
        return states

    return wrapper


# What is patched: module, class, method and what wraps it.
PATCHES: tuple[tuple[str, str, str, Callable[..., Any]], ...] = (
    ("agent.models.local.kv_cache", "KvCache", "score", jittered_score),
    ("agent.models.local.llama_cpp", "LlamaCppModel", "ask", jittered_ask),
    ("agent.models.embedding.llama_cpp", "LlamaCppEmbedder", "embed", jittered_embed),
    ("agent.models.embedding.llama_cpp", "LlamaCppEncoder", "compute_states", jittered_states),
)


def patch(module: ModuleType) -> None:
    """Wrap what this module has of `PATCHES`."""
    for name, owner, method, wrap in PATCHES:
        if name == module.__name__:
            cls = getattr(module, owner)
            setattr(cls, method, wrap(getattr(cls, method)))


class _Patching(importlib.abc.MetaPathFinder):
    """Patches a module as it is imported."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name not in {patched for patched, *_ in PATCHES}:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        loader: Any = spec and spec.loader
        if not spec or not loader:
            return None
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            patch(module)

        loader.exec_module = exec_module
        return spec


def install() -> None:
    """From now on, in this process: modules are patched as they are imported, or at once where they are already."""
    sys.meta_path.insert(0, _Patching())
    for name in dict.fromkeys(name for name, *_ in PATCHES):
        if name in sys.modules:  # a test module may name one of their constants
            patch(sys.modules[name])
