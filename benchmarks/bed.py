"""What a benchmark runs over: its files, the systems compared, and the runs of each, which go on where they ended."""

import json
import logging
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeVar

from agent.models.registry import open_embedder
from agent.runs.answer_topics import Outputs, RunRequest, TurnProgress, answer_file
from agent.runs.evidence import EvidenceFiles
from agent.runs.given_ranking import format_trec_lines
from agent.runs.trace import read_trace
from agent.tracks.files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.index_vectors import StageProgress, embed_index
from indexes.passage_index import PassageIndex
from indexes.storage.files import write_atomically
from schemas.errors import MissingError, UsageError, format_count
from schemas.records import Hit, Mode, Plan, QueryPart, Topics, TurnResult


@dataclass(frozen=True, slots=True)
class WantedFile:
    """A file or folder below the folder of `--data`."""

    path: str
    purpose: str
    origin: str  # where it is had, and how it is made from what is had there


def check_files(data: Path, wanted: Sequence[WantedFile]) -> None:
    """Raise `MissingError` naming all files that are not there, each with its purpose and origin."""
    missing = [file for file in wanted if not (data / file.path).exists()]
    if missing:
        listed = [f"  {file.path}: {file.purpose}\n    from {file.origin}" for file in missing]
        what = "\n".join([f"{format_count(len(missing), 'file')} of {len(wanted)} not there:", *listed])
        raise MissingError(what, where=str(data), remedy="Put them there, or name another folder with --data.")


QUERY = Plan().query


@dataclass(frozen=True, slots=True)
class System:
    """A way to answer: what it changes of the default."""

    name: str
    asks_model: bool = False  # whether it asks the model of `--model`; else it is run with `--model none`
    embedder: str | None = None
    query: tuple[QueryPart, ...] = QUERY
    mode: Mode | None = None
    min_probability: float | None = None

    @property
    def slug(self) -> str:
        """Its name in a file's."""
        return "-".join(self.name.replace(",", "").split())


DEFAULT = System("default", asks_model=True)
NO_MODEL = System("no model")
WORDS_ONLY = System("no model, words only", embedder="none")
SYSTEMS = (
    DEFAULT,
    System("hypothetical answer", asks_model=True, query=("context", "hyde", "previous")),
    NO_MODEL,
    WORDS_ONLY,
    System("no previous reply", query=("context",)),
    System("no words of the conversation", query=("previous",)),
    System("raw utterance", query=()),
    System("raw utterance, words only", query=(), embedder="none"),
)
WITH_LABELS = (
    System("human rewrite", mode="manual"),
    System("human rewrite, words only", mode="manual", embedder="none"),
)


def format_command(request: RunRequest, run: Path) -> str:
    """The command line that makes the same run, in the folder of the benchmark's files."""
    index = request.origin.index
    words = ["convagent", "answer", request.topics.name, *(("-i", index.name) if index else ()), *_list_flags(request)]
    return shlex.join([*words, "-o", run.name])


def _list_flags(request: RunRequest) -> Iterator[str]:
    """The flags that differ from their defaults."""
    plan, origin = request.plan, request.origin
    yield from ("-m", request.model)
    if origin.embedder:
        yield from ("--embedder", origin.embedder)
    if request.mode:
        yield from ("--mode", request.mode)
    if origin.ranking:
        yield from ("--ranking", origin.ranking.name, "--on-error", origin.on_error)
    if request.edition:
        yield from ("--format", request.edition)
    if plan.query != QUERY:
        yield from ("--query", ",".join(plan.query))
    if plan.k != Plan().k:
        yield from ("-k", str(plan.k))
    if request.min_probability is not None:
        yield from ("--statement-threshold", f"{request.min_probability:g}")


T = TypeVar("T")
TOPICS, INDEX, QRELS, RANKING = "topics.json", "index", "gold.qrels", "gold.trec"


@dataclass(frozen=True, slots=True)
class Bed:
    """The files of a folder, opened. `gold` are the topics' own passages that are in the index, by turn id."""

    folder: Path
    topics: Topics
    index: PassageIndex
    gold: Mapping[str, tuple[str, ...]]
    k: int = 1000  # passages of a ranking

    @property
    def judged(self) -> dict[str, dict[str, int]]:
        """The same as labels."""
        return {turn_id: dict.fromkeys(ids, 1) for turn_id, ids in self.gold.items()}

    def about_search(self) -> str:
        """What its rankings are measured over."""
        return f"Search: {len(self.gold)} turns with gold passages among the {len(self.index):,} indexed."


def prepare_folder(folder: Path, *, resume: bool, overwrite: bool) -> None:
    """Make the folder. Raises `UsageError` where it has files that are neither to be used nor to be replaced."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not (resume or overwrite):
        remedy = "--resume goes on with what is there; --overwrite begins anew."
        raise UsageError("exists already", where=str(folder), remedy=remedy)
    folder.mkdir(parents=True, exist_ok=True)


def prepare_bed(
    folder: Path, topics: Sequence[object], passages: Sequence[Path], progress: StageProgress, *, resume: bool
) -> Bed:
    """Write the topics, the index with its vectors, and the gold passages as labels and as a ranking."""
    write_atomically(folder / TOPICS, [json.dumps(topics, ensure_ascii=False, indent=1).encode()])
    index = open_index(folder / INDEX, passages, progress, resume=resume)
    read = read_topics(folder / TOPICS)
    gold = {id: ids for id in read.turn_ids() if (ids := _keep_indexed(read.labels[id].passage_ids, index))}
    write_atomically(folder / QRELS, (f"{turn} 0 {id} 1\n".encode() for turn, ids in gold.items() for id in ids))
    rankings = (format_trec_lines(turn, rank_given(ids), "gold").encode() for turn, ids in gold.items())
    write_atomically(folder / RANKING, rankings)
    return Bed(folder, read, index, gold)


def open_index(directory: Path, passages: Sequence[Path], progress: StageProgress, *, resume: bool) -> PassageIndex:
    """An index with vectors; where that is resumed, the one that is there already."""
    if not (resume and directory.exists()):
        build_index(find_corpus(passages), directory, skip_problems=False, overwrite=True, progress=lambda: None)
    embedder = open_embedder(None)
    if embedder and not PassageIndex(directory).vector_infos:
        embed_index(directory, embedder, progress)
    return PassageIndex(directory)


def rank_given(ids: Sequence[str]) -> tuple[Hit, ...]:
    """Passages as a ranking in the order given."""
    return tuple(Hit(id, 1.0 / rank) for rank, id in enumerate(ids, start=1))


def choose_evenly(items: Sequence[T], limit: int | None) -> list[T]:
    """At most so many items, evenly spaced; all of them without a limit."""
    if limit is None or limit >= len(items):
        return list(items)
    return [items[number * len(items) // limit] for number in range(limit)]


def _keep_indexed(ids: Iterable[str], index: PassageIndex) -> tuple[str, ...]:
    return tuple(dict.fromkeys(id for id in ids if id in index))


log = logging.getLogger("convagent")
Way = Literal["", "given"]  # as a run; from the gold passages


@dataclass(frozen=True, slots=True)
class BenchRequest:
    """What a benchmark reads, where it writes, and how much of it is run."""

    data: Path
    folder: Path
    model: str = "smollm2"
    only: tuple[str, ...] = ()  # names of systems; none: all
    limit: int | None = None  # of conversations
    jobs: int = 1
    resume: bool = False
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class Progress:
    """How long work shows how far it is: turns, and the stages before them."""

    turns: TurnProgress
    stages: StageProgress


@dataclass(frozen=True, slots=True)
class AnsweredBed:
    """What came of one system: its run and trace, which are read when they are measured, and the command for them."""

    command: str
    run: Path
    trace: Path
    embedder: str | None

    def read_turns(self) -> dict[str, TurnResult]:
        """The results by turn id."""
        return {line.answered.turn_id: line.answered for line in read_trace(self.trace).lines()}

    def read_rankings(self) -> dict[str, dict[str, float]]:
        """Passage ids with their scores, by turn id."""
        return {turn_id: {hit.id: hit.score for hit in turn.hits} for turn_id, turn in self.read_turns().items()}

    def count_tokens(self) -> tuple[int, int]:
        """Tokens that a model reads and writes for a turn on average, also where a reply came from the cache."""
        turns = [line.calls for line in read_trace(self.trace).lines()]
        calls = [call for each in turns for call in each]
        read = sum(call.tokens_read + call.cached_tokens_read for call in calls)
        written = sum(call.tokens_written + call.cached_tokens_written for call in calls)
        return round(read / len(turns)), round(written / len(turns))


def choose_systems(systems: Sequence[System], request: BenchRequest) -> list[System]:
    """Those that are asked for; with `--model none` those that ask a model are left out: there they are no systems."""
    names = [system.name for system in systems]
    if unknown := [name for name in request.only if name not in names]:
        raise UsageError(f"no system: {', '.join(unknown)} (available: {', '.join(names)})")
    wanted = [system for system in systems if not request.only or system.name in request.only]
    return [system for system in wanted if request.model != "none" or not system.asks_model] or [NO_MODEL]


def answer_bed(bed: Bed, system: System, request: BenchRequest, show: TurnProgress, way: Way = "") -> AnsweredBed:
    """Answer all turns, or those that the trace does not have yet."""
    name = "-".join(filter(None, (system.slug, way)))
    outputs = Outputs(bed.folder / f"{name}.run.json", bed.folder / f"{name}.run.trace.jsonl", request.resume)
    asked = make_request(bed, system, request, way)
    log.info("%s%s", system.name, f" ({way})" if way else "")
    report = answer_file(asked, outputs, show)
    return AnsweredBed(format_command(asked, report.run), report.run, report.trace, system.embedder)


def make_request(bed: Bed, system: System, request: BenchRequest, way: Way) -> RunRequest:
    """What `convagent answer` would be asked for."""
    origin = EvidenceFiles(bed.folder / INDEX, embedder=system.embedder)
    if way == "given":
        origin = replace(origin, ranking=bed.folder / RANKING, on_error="skip")
    return RunRequest(
        bed.folder / TOPICS,
        origin,
        request.model if system.asks_model else "none",
        Plan(k=bed.k, query=system.query),
        None if way == "given" else system.mode,
        min_probability=system.min_probability,
        jobs=request.jobs,
    )
