"""What all systems of a benchmark answer and search: a folder of files that everything else can use, too."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from agent.exchange.trec import format_trec_lines
from agent.models.embedding.index_vectors import embed_index
from agent.models.embedding.registry import open_embedder
from agent.tracks.topic_files import read_topics
from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.passage_index import PassageIndex
from indexes.storage.files import write_atomically
from schemas.errors import UsageError
from schemas.progress import StageProgress
from schemas.records import Hit, Topics

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
    if embedder and PassageIndex(directory).vector_info is None:
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
