"""How fast the models are on this machine, in a few seconds: what is in use, and what could be."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent.embedders import open_embedder
from agent.llm import THREADS, physical_cores, rest_threads, threads_to_use
from agent.llm.embedded import embedded_gguf, open_kept, repacked, sha256
from agent.models import kind_of, path_of
from schemas.errors import InvalidInputError, UsageError

if TYPE_CHECKING:
    from agent.llm.kv_context import KvContext

READ, PREFIX, WRITTEN = 512, 300, 64  # tokens
REPEAT = 2.0  # seconds; what took less is measured twice, and the better one counts
FASTER = 1.1  # how many times as fast another choice must be to be worth telling: the figures are noisy
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
Progress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]


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
    sentences: float  # a second


@dataclass(frozen=True, slots=True)
class Speeds:
    """All that was measured, and what would be faster."""

    language: tuple[Pace, ...]
    embedding: tuple[EmbeddingPace, ...]
    advice: tuple[str, ...]
    seconds: float


def measure(model: str, embedder: str | None, progress: Progress) -> Speeds:
    """Both models with one thread, a thread a physical core, and what is set; nothing for the model `none`.

    Raises what opening them raises, and `UsageError` for a model that is no language model.
    """
    started = time.perf_counter()
    rest_threads()
    used = threads_to_use()
    counts = sorted({1, physical_cores(), used})
    plan = (
        []
        if _wordless(model)
        else [
            Pace(form, str(path), count, chosen and count == used)
            for form, path, chosen in _forms(model)
            for count in counts
        ]
    )
    language, embedding = [], []
    with progress("measuring", len(plan) + len(counts)) as tick:
        for pace in plan:
            language.append(_measured(pace))
            tick(len(language))
        for count in counts:
            embedding += _embedding(embedder, count, in_use=count == used)
            tick(len(language) + len(embedding))
    advice = (*_advice(language), *_embedding_advice(embedding))
    return Speeds(tuple(language), tuple(embedding), advice, round(time.perf_counter() - started, 1))


def _wordless(model: str) -> bool:
    return model == "none" or model.startswith("scripted:")


def _forms(model: str) -> list[tuple[str, Path, bool]]:
    """The files of a model: what each is called, and whether it is the one in use."""
    if model != "smollm2":
        path = path_of(model)
        if (kind := kind_of(path)) != "language":
            raise UsageError(f"{model} is no language model, but {kind}", remedy="--embedder names the other one.")
        return [("as it is", path, True)]
    source = embedded_gguf()
    digest = sha256(source)
    copy = open_kept(lambda anew: repacked(source, digest, anew=anew), _readable)
    if copy == source:
        return [("as it is", source, True)]
    return [("as it is", source, False), ("repacked", copy, True)]


def _readable(path: Path) -> Path:
    if kind_of(path) == "unreadable":
        raise InvalidInputError("llama.cpp cannot load this model", where=str(path))
    return path


def _measured(pace: Pace) -> Pace:
    with _loaded(Path(pace.path), pace.threads) as (context, tokenize, sampler):
        text = tokenize(" ".join(STATEMENTS * 10))[:READ]
        candidates = [tokenize(f" {statement}") for statement in STATEMENTS]

        def forget() -> None:
            context.read(text[:1])

        context.read(text[:PREFIX])  # threads and pages of the file come into being
        read = _best(forget, lambda: context.read(text))
        written = _best(lambda: context.read(text), lambda: list(context.write(sampler, WRITTEN)))
        scored = _best(lambda: context.read(text[:PREFIX]), lambda: context.score(candidates))
    return replace(pace, read=READ / read, written=WRITTEN / written, scored=len(candidates) / scored)


@contextmanager
def _loaded(path: Path, threads: int) -> "Iterator[tuple[KvContext, Callable[[str], list[int]], Any]]":
    """The context that the agent itself uses, what makes tokens of text, and a greedy sampler."""
    import llama_cpp

    from agent.llm.kv_context import KvContext
    from agent.llm.llama_cpp import be_quiet, context_size

    be_quiet()
    llama = llama_cpp.Llama(str(path), n_ctx=64, n_batch=64, n_threads=threads, verbose=False)
    context = KvContext(llama.model, context_size(llama_cpp.llama_model_n_ctx_train(llama.model)), threads)
    sampler = llama_cpp.llama_sampler_init_greedy()
    try:
        yield context, lambda text: list(llama.tokenize(text.encode(), add_bos=False)), sampler
    finally:
        llama_cpp.llama_sampler_free(sampler)
        context.close()
        llama.close()


def _best(prepare: Callable[[], object], run: Callable[[], object]) -> float:
    """Seconds of `run` after `prepare`, the better of two unless it takes long."""
    seconds: list[float] = []
    while len(seconds) < (2 if not seconds or seconds[0] < REPEAT else 1):
        prepare()
        started = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


def _embedding(name: str | None, threads: int, *, in_use: bool) -> list[EmbeddingPace]:
    """Nothing where there is no embedding model."""
    embedder: Any = open_embedder(name, threads=threads)
    if embedder is None:
        return []
    texts = STATEMENTS * 8
    seconds = _best(lambda: embedder.embed(STATEMENTS), lambda: embedder.embed(texts))
    embedder.close()
    return [EmbeddingPace(threads, in_use, len(texts) / seconds)]


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
