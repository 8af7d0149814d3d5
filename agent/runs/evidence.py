"""Where a run's passages come from: searched in an index, or a given ranking and the texts that were given with it."""

import hashlib
import logging
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from agent.models.protocol import Listener
from agent.runs.given_ranking import GivenRanking, read_ranking
from agent.tracks.lenient_reading import list_problems
from agent.turn.retrieval import Searcher
from indexes.corpora.corpus import find_corpus
from indexes.passage_index import Index
from indexes.ranking.hybrid import open_retriever
from indexes.ranking.vectors import Embedder
from indexes.sharding.sharded_index import open_index
from indexes.storage.atomic_files import resolve_replaced
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Hit, Passage, Plan, Problem, Query, Topics

log = logging.getLogger("convagent")
DEFAULT_INDEX = Path("index")
SearchFunction = Callable[[Query], tuple[Hit, ...]]


@dataclass(frozen=True, slots=True)
class EvidenceFiles:
    """The files that passages come from. Without a ranking they are searched in the index."""

    index: Path | None = None
    ranking: Path | None = None
    passages: tuple[Path, ...] = ()
    on_error: Literal["stop", "skip"] = "stop"
    embedder: str | None = None  # its name; None: the embedded one where it is installed


@dataclass(frozen=True, slots=True)
class Evidence:
    """Opened and checked, for any number of workers."""

    read: Callable[[Sequence[Hit]], tuple[Passage, ...]]
    digest: str  # SHA-256 of the index's own description, or of the texts that may be read
    ranking: GivenRanking | None = None
    index: Index | None = None  # None where there is a ranking: then nothing is searched

    def open_search(self, embedder: Embedder | None, plan: Plan, listen: Listener) -> SearchFunction:
        """What searches for one worker, with an embedding model of its own."""
        if self.index is None:
            return lambda _query: ()
        return Searcher(open_retriever(self.index, embedder, plan), plan, listen).search


def open_evidence(origin: EvidenceFiles, topics: Topics, plan: Plan) -> Evidence:
    """Open and check everything that passages come from, before any work is done."""
    if origin.ranking is not None:
        return _from_ranking(origin.ranking, origin, topics, plan)
    index = open_index(origin.index or DEFAULT_INDEX)
    digest = hashlib.sha256(msgspec.json.encode(index.info) + msgspec.json.encode(index.vector_infos)).hexdigest()
    return Evidence(lambda hits: index.read([hit.id for hit in hits]), digest, index=index)


def _from_ranking(path: Path, origin: EvidenceFiles, topics: Topics, plan: Plan) -> Evidence:
    """Raises `InvalidInputError` with all that is missing, unless such turns and passages are to be skipped."""
    given, turn_ids = read_ranking(path), topics.turn_ids()
    ranking = replace(given, hits={turn_id: given.hits.get(turn_id, ())[: plan.k] for turn_id in turn_ids})
    if given.hits and not any(ranking.hits.values()):
        mine, theirs = next(iter(given.hits)), next(iter(turn_ids), "none")
        what = f"has none of the turns of these topics: it has {mine!r}, they have {theirs!r}"
        raise InvalidInputError(what, where=str(path), remedy="Is it a ranking for the topics of another year?")
    if extra := [id for id in given.hits if id not in ranking.hits]:
        log.warning("%s: %d of %d turns are none of these topics: %s", path, len(extra), len(given.hits), extra[0])
    problems = [Problem(f"turn {turn_id}", "has no ranking") for turn_id, hits in ranking.hits.items() if not hits]
    read = {id: hits[: plan.reading_depth] for id, hits in ranking.hits.items()}
    wanted = {hit.id for hits in read.values() for hit in hits}
    index = _open_text_index(origin, ranking)
    if not (origin.passages or index or ranking.texts):
        remedy = "Give the passages with --passages FILE, or an index with --index DIR."
        raise MissingError("the ranking comes without texts", remedy=remedy)
    texts, broken = find_texts(wanted, ranking.texts, origin.passages, index)
    problems += broken
    problems += [
        Problem(f"turn {turn_id}", f"passage {hit.id} (rank {rank}) is in none of the given texts")
        for turn_id, hits in read.items()
        for rank, hit in enumerate(hits, start=1)
        if texts.find(hit.id) is None
    ]
    if problems and origin.on_error == "stop":
        remedy = "Mend the files, or give --on-error skip to go on with what is there."
        raise InvalidInputError(list_problems("cannot be answered from", problems), where=str(path), remedy=remedy)
    if problems:
        log.warning("%s: %s", path, list_problems("is not all there", problems))
    digest = hashlib.sha256(b"".join(msgspec.json.encode(texts.find(id)) for id in sorted(wanted))).hexdigest()
    return Evidence(texts.read, digest, ranking)


def _open_text_index(origin: EvidenceFiles, ranking: GivenRanking) -> Index | None:
    """The index that was named; the one in `index` where there is no other source of texts."""
    if origin.index is None and (origin.passages or ranking.texts or not resolve_replaced(DEFAULT_INDEX).is_dir()):
        return None
    return open_index(origin.index or DEFAULT_INDEX)


@dataclass(frozen=True, slots=True)
class PassageTexts:
    """The passages that may be read, all with a text: given with the ranking, in passage files, or in an index."""

    passages: Mapping[str, Passage]  # by id
    index: Index | None = None

    def read(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """The passages of hits that somebody gave, in their order."""
        return tuple(passage for hit in hits if (passage := self.find(hit.id)))

    def find(self, id: str) -> Passage | None:
        """A passage, or None where nobody gave it."""
        return self.passages.get(id) or (self.index.find(id) if self.index else None)


def find_texts(
    wanted: Container[str], own: Mapping[str, Passage], files: Sequence[Path], index: Index | None
) -> tuple[PassageTexts, list[Problem]]:
    """The texts of passages, from what came with their ids (`own`), else the files; and every broken line of a file."""
    passages = {id: passage for id, passage in own.items() if id in wanted}
    problems = []
    for path, number, found in find_corpus(files) if files else ():
        if isinstance(found, str):
            problems.append(Problem(f"{path}:{number}", found))
        elif found.id in wanted:
            passages.setdefault(found.id, found)
    return PassageTexts(passages, index), problems
