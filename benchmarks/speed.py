"""How fast the models are on this machine, in about 20 seconds: what is in use, and what could be.

python benchmarks/speed.py [--model M] [--embedder E]
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.models.bundled import find_bundled_gguf, open_from_cache, requantise
from agent.models.catalogue import detect_kind, find_model_file
from agent.models.local.hardware import THREADS, physical_cores, stop_spinning_threads, threads_to_use
from agent.models.registry import open_embedder
from indexes.index_vectors import StageProgress
from indexes.storage.files import hash_file
from schemas.errors import InvalidInputError, UsageError

if TYPE_CHECKING:
    from agent.models.local.kv_cache import KvCache

READ, PREFIX, WRITTEN = 512, 300, 64  # tokens
WARMING = 64  # tokens
LONGEST = 2.0  # seconds of reading or writing; a slow model is measured by fewer tokens
REPEAT = 12.0  # seconds; where all was measured in less, it is once more, and the better figures count
FASTER = 1.1  # how many times as fast another choice must be to be worth telling: the figures are noisy
BUSY = 0.5  # of the physical cores, above which other programs distort the figures
TURN = (264, 60, 12)  # tokens read and written, statements scored: a turn of the default (docs/log.md)
STATEMENTS = (
    "I have coeliac disease, so I do not eat wheat, rye or barley.",
    "I play the trumpet in a brass band on Thursdays.",
    "My flat has a balcony that looks to the north.",
    "I moved here for a job in a hospital two years ago.",
    "I am allergic to cats, but my sister keeps three of them.",
    "I would rather travel by train than by plane.",
    "I can read a little German and no French.",
    "I have run two half marathons, both of them slowly.",
    "My budget for the holiday is about nine hundred euros.",
    "I am learning how to bake bread with a sourdough of my own.",
    "I do not drink coffee in the afternoon.",
    "I have a small garden with tomatoes, beans and a plum tree.",
)


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast one file of the language model is with so many threads."""

    form: str  # "as it is" or "repacked"
    path: str
    threads: int
    in_use: bool
    read: float = 0.0  # tokens a second
    written: float = 0.0  # tokens a second
    scored: float = 0.0  # candidates a second, after a prefix that was read

    @property
    def turn(self) -> float:
        """Seconds of the model in a turn of the default's size."""
        read, written, scored = TURN
        return read / self.read + written / self.written + scored / self.scored


@dataclass(frozen=True, slots=True)
class EmbeddingPace:
    """How fast the embedding model is with so many threads."""

    threads: int
    in_use: bool
    sentences: float = 0.0  # a second


@dataclass(frozen=True, slots=True)
class Speeds:
    """All that was measured, and what would be faster."""

    language: tuple[Pace, ...]
    embedding: tuple[EmbeddingPace, ...]
    advice: tuple[str, ...]
    rounds: int  # each figure is the best of so many
    seconds: float
    load: float | None  # how many processes computed just before; None where the system does not say


def measure(model: str, embedder: str | None, progress: StageProgress) -> Speeds:
    """Both models with one thread, a thread a physical core, and what is set; nothing for the model `none`.

    Raises what opening them raises, and `UsageError` for a model that is no language model.
    """
    started, load = time.perf_counter(), _load()
    stop_spinning_threads()
    used = threads_to_use()
    counts = sorted({1, physical_cores(), used})
    forms = [] if _wordless(model) else _forms(model)
    plan = [Pace(form, str(path), count, chosen and count == used) for form, path, chosen in forms for count in counts]
    embedding = [EmbeddingPace(count, count == used) for count in counts]
    language, sentences = _round(plan, embedding, embedder, progress)
    again = time.perf_counter() - started < REPEAT
    if again:  # all or nothing: the better of two would be compared with one figure else
        second = _round(plan, embedding, embedder, progress)
        language = list(map(_better, language, second[0]))
        sentences = list(map(_better_embedded, sentences, second[1]))
    advice = (*_caution(load), *_advice(language), *_embedding_advice(sentences))
    seconds = round(time.perf_counter() - started, 1)
    return Speeds(tuple(language), tuple(sentences), advice, 2 if again else 1, seconds, load)


def _round(
    plan: Sequence[Pace], embedding: Sequence[EmbeddingPace], embedder: str | None, progress: StageProgress
) -> tuple[list[Pace], list[EmbeddingPace]]:
    """Everything measured once; no sentences where there is no embedding model."""
    language: list[Pace] = []
    sentences: list[EmbeddingPace] = []
    with progress("measuring", len(plan) + len(embedding)) as tick:
        for pace in plan:
            language.append(_measure_pace_of(pace))
            tick(len(language))
        for row in embedding:
            found = _measure_embedder(row, embedder)
            if found is None:
                break
            sentences.append(found)
            tick(len(language) + len(sentences))
    return language, sentences


def _wordless(model: str) -> bool:
    return model == "none" or model.startswith("scripted:")


def _forms(model: str) -> list[tuple[str, Path, bool]]:
    """The files of a model: what each is called, and whether it is the one in use."""
    if model != "smollm2":
        path = find_model_file(model)
        if (kind := detect_kind(path)) != "language":
            raise UsageError(f"{model} is no language model, but {kind}", remedy="--embedder names the other one.")
        return [("as it is", path, True)]
    source = find_bundled_gguf()
    digest = hash_file(source)
    copy = open_from_cache(partial(requantise, source, digest), _readable)
    if copy == source:
        return [("as it is", source, True)]
    return [("as it is", source, False), ("repacked", copy, True)]


def _readable(path: Path) -> Path:
    if detect_kind(path) == "unreadable":
        raise InvalidInputError("llama.cpp cannot load this model", where=str(path))
    return path


def _measure_pace_of(pace: Pace) -> Pace:
    from agent.models.local.kv_cache import BLOCK

    with _load_context(Path(pace.path), pace.threads) as (context, tokenize, sampler):
        text = tokenize(" ".join(STATEMENTS * 10))[: min(READ, context.size // 2)]
        candidates = [tokenize(f" {statement}") for statement in STATEMENTS]
        context.read(text[:WARMING])  # threads and pages of the file come into being
        context.read(text[:1])  # nothing that was read is kept
        read = _pace(_blocks(context, text)) * BLOCK
        written = _pace(context.write(sampler, WRITTEN))
        context.read(text[:PREFIX])
        scored = _pace(context.score(candidates) for _ in range(1)) * len(candidates)
    return replace(pace, read=read, written=written, scored=scored)


@contextmanager
def _load_context(path: Path, threads: int) -> "Iterator[tuple[KvCache, Callable[[str], list[int]], Any]]":
    """The context that the agent itself uses, what makes tokens of text, and a greedy sampler."""
    import llama_cpp

    from agent.models.local.kv_cache import KvCache
    from agent.models.local.llama_cpp import MAX_CONTEXT
    from agent.models.local.weights import load_weights

    weights = load_weights(path)
    context = KvCache(weights.model, min(MAX_CONTEXT, weights.n_ctx_train()), threads)
    sampler = llama_cpp.llama_sampler_init_greedy()
    try:
        yield context, lambda text: list(weights.tokenize(text.encode(), add_bos=False, special=False)), sampler
    finally:
        llama_cpp.llama_sampler_free(sampler)
        context.close()
        weights.close()


def _blocks(context: "KvCache", text: Sequence[int]) -> Iterator[int]:
    """Read, a block at a time, as the context itself does."""
    from agent.models.local.kv_cache import BLOCK

    for end in range(BLOCK, len(text) + 1, BLOCK):
        context.read(text[:end])
        yield end


def _pace(steps: Iterator[object]) -> float:
    """Steps a second: all of them, or those that there is time for."""
    started, done, seconds = time.perf_counter(), 0, 0.0
    for _ in steps:
        done, seconds = done + 1, time.perf_counter() - started
        if seconds > LONGEST:
            break
    return done / seconds


def _measure_embedder(row: EmbeddingPace, name: str | None) -> EmbeddingPace | None:
    """None where there is no embedding model."""
    embedder: Any = open_embedder(name, threads=row.threads)
    if embedder is None:
        return None
    embedder.embed(STATEMENTS)
    sentences = _pace(embedder.embed(STATEMENTS) for _ in range(8)) * len(STATEMENTS)
    return replace(row, sentences=sentences)


def _better(one: Pace, other: Pace) -> Pace:
    read, written, scored = max(one.read, other.read), max(one.written, other.written), max(one.scored, other.scored)
    return replace(one, read=read, written=written, scored=scored)


def _better_embedded(one: EmbeddingPace, other: EmbeddingPace) -> EmbeddingPace:
    return max(one, other, key=lambda row: row.sentences)


def _load() -> float | None:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else None


def _caution(load: float | None) -> Iterator[str]:
    if load is not None and load > physical_cores() * BUSY:
        yield f"other programs are computing (load {load:.1f}): measure again when they rest, before anything is set"


def _advice(paces: list[Pace]) -> Iterator[str]:
    """What to set where another choice makes a turn of the language model shorter by a tenth."""
    used = next((pace for pace in paces if pace.in_use), None)
    if used is None:
        return
    best = min(paces, key=lambda pace: pace.turn)
    if used.turn < best.turn * FASTER:
        return
    settings = [f"{THREADS}={best.threads}"] if best.threads != used.threads else []
    settings += [f"CONVAGENT_MODEL={best.path}"] if best.path != used.path else []
    yield f"the language model was {used.turn / best.turn:.1f} times as fast with {' '.join(settings)}"


def _embedding_advice(paces: list[EmbeddingPace]) -> Iterator[str]:
    used = next((pace for pace in paces if pace.in_use), None)
    best = max(paces, key=lambda pace: pace.sentences, default=None)
    if used and best and best.sentences > used.sentences * FASTER:
        times = best.sentences / used.sentences
        yield f"the embedding model was {times:.1f} times as fast with {THREADS}={best.threads}"


def _show_speeds(speeds: "Speeds") -> None:
    """A row a choice, what is in use marked, then what would be faster."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    if speeds.language:
        table = Table(
            "Language model", "threads", "read/s", "written/s", "scored/s", "s a turn", "", box=None, pad_edge=False
        )
        for pace in speeds.language:
            values = (f"{pace.read:.0f}", f"{pace.written:.0f}", f"{pace.scored:.0f}", f"{pace.turn:.2f}")
            table.add_row(pace.form, str(pace.threads), *values, "in use" if pace.in_use else "")
        console.print(table)
    if speeds.embedding:
        table = Table("Embedding model", "threads", "sentences/s", "", box=None, pad_edge=False)
        for row in speeds.embedding:
            table.add_row("", str(row.threads), f"{row.sentences:.0f}", "in use" if row.in_use else "")
        console.print(table)
    for line in speeds.advice or ("nothing that was tried was a tenth faster than what is in use",):
        print(line)
    times = "twice, the better figure counts" if speeds.rounds > 1 else "once"
    print(f"measured {times}, in {speeds.seconds:.0f} s")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--embedder")
    options = parser.parse_args()
    from agent.terminal.progress import stage_progress

    _show_speeds(measure(options.model, options.embedder, stage_progress))


if __name__ == "__main__":
    main()
