"""Where a run's passages come from: searched in an index, or a given ranking and the texts that were given with it."""

import hashlib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import msgspec

from agent.llm.seam import Listener
from agent.rankings import Ranking, for_topics, read_ranking
from agent.search import Searcher, open_finder
from indexes.corpus import Corpus, find_corpus
from indexes.finder import Finder
from indexes.passages import PassageIndex
from indexes.vectors import Embedder
from indexes.whole import in_place
from schemas.errors import InvalidInputError, MissingError
from schemas.records import Hit, Passage, Plan, Problem, Query, Topics

log = logging.getLogger("convagent")
DEFAULT_INDEX = Path("index")
Search = Callable[[Query], tuple[Hit, ...]]
MAX_LISTED = 50


@dataclass(frozen=True, slots=True)
class Origin:
    """The files that passages come from. Without a ranking they are searched in the index."""

    index: Path | None = None
    ranking: Path | None = None
    passages: tuple[Path, ...] = ()
    on_error: Literal["stop", "skip"] = "stop"
    embedder: str | None = None  # its name; None: the embedded one where it is installed


@dataclass(frozen=True, slots=True)
class Sources:
    """Opened and checked, for any number of workers."""

    read: Callable[[Sequence[Hit]], tuple[Passage, ...]]
    digest: str  # SHA-256 of the index's own description, or of the texts that may be read
    ranking: Ranking | None = None
    finder: Finder | None = None  # None where there is a ranking: then nothing is searched

    def search(self, embedder: Embedder | None, plan: Plan, listen: Listener) -> Search:
        """What searches for one worker, with an embedding model of its own."""
        if self.finder is None:
            return lambda _query: ()
        finder = replace(self.finder, embed=embedder.embed if embedder else None)
        return Searcher.over(finder, plan, listen).search


def open_sources(origin: Origin, topics: Topics, plan: Plan, embedder: Embedder | None) -> Sources:
    """Open and check everything that passages come from, before any work is done."""
    if origin.ranking is not None:
        return _given(read_ranking(origin.ranking), origin, topics, plan)
    index = PassageIndex(origin.index or DEFAULT_INDEX)
    digest = _digest([msgspec.json.encode(index.info), msgspec.json.encode(index.embedded)])
    finder = open_finder(index, embedder, plan)
    return Sources(lambda hits: finder.read([hit.id for hit in hits]), digest, finder=finder)


def _given(ranking: Ranking, origin: Origin, topics: Topics, plan: Plan) -> Sources:
    """Raises `InvalidInputError` with all that is missing, unless such turns and passages are to be skipped."""
    ranking, problems = for_topics(ranking, topics, plan.k)
    corpus = find_corpus(origin.passages) if origin.passages else None
    texts, broken = collect_texts(ranking, plan.read, corpus, _index(origin, ranking, corpus))
    problems += [*broken, *unread(ranking, texts, plan.read)]
    if problems and origin.on_error == "stop":
        remedy = "Mend the files, or give --on-error skip to go on with what is there."
        raise InvalidInputError(_listing(problems), where=str(origin.ranking), remedy=remedy)
    for problem in problems:
        log.warning("%s", problem)
    if unknown := unknown_below(ranking, texts, plan.read):
        log.info("%d passages below rank %d, where none is read, are in no given text", len(unknown), plan.read)
    readable = {hit.id for hits in ranking.hits.values() for hit in hits[: plan.read]}
    digest = _digest(msgspec.json.encode(texts.find(id)) for id in sorted(readable))
    return Sources(texts.read, digest, ranking)


def _index(origin: Origin, ranking: Ranking, corpus: Corpus | None) -> PassageIndex | None:
    """The index that was named; the one in `index` where there is no other source of texts."""
    if origin.index is None and (corpus is not None or ranking.texts or not in_place(DEFAULT_INDEX).is_dir()):
        return None
    return PassageIndex(origin.index or DEFAULT_INDEX)


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _listing(problems: Sequence[Problem]) -> str:
    more = [f"  ... and {len(problems) - MAX_LISTED} more"] if len(problems) > MAX_LISTED else []
    listed = [f"  {problem}" for problem in problems[:MAX_LISTED]]
    return "\n".join([f"cannot be answered from: {len(problems)} problems", *listed, *more])


@dataclass(frozen=True, slots=True)
class Texts:
    """The passages that may be read: given with the ranking or in passage files, or those of an index."""

    passages: Mapping[str, Passage]  # by id; of a passage that is not to be read, only that it is there
    index: PassageIndex | None = None

    def read(self, hits: Sequence[Hit]) -> tuple[Passage, ...]:
        """The passages of hits that have a text, in their order."""
        return tuple(passage for hit in hits if (passage := self.find(hit.id)) and passage.text)

    def find(self, id: str) -> Passage | None:
        """A passage, or None where nobody gave it."""
        return self.passages.get(id) or (self.index.find(id) if self.index else None)


def collect_texts(
    ranking: Ranking, read: int, corpus: Corpus | None, index: PassageIndex | None
) -> tuple[Texts, list[Problem]]:
    """The texts of the first `read` passages of every turn, and every broken line met on the way.

    Where several sources have a text, the ranking's own comes first, then the files. Of the files only what is to be
    read stays in memory. Raises `MissingError` where nobody could give a text.
    """
    if corpus is None and index is None and not ranking.texts:
        remedy = "Give the passages with --passages FILE, or an index with --index DIR."
        raise MissingError("the ranking comes without texts", remedy=remedy)
    listed = {hit.id for hits in ranking.hits.values() for hit in hits}
    wanted = {hit.id for hits in ranking.hits.values() for hit in hits[:read]}
    passages = {id: passage for id, passage in ranking.texts.items() if id in listed}
    problems = []
    for path, number, found in corpus or ():
        if isinstance(found, str):
            problems.append(Problem(f"{path}:{number}", found))
        elif found.id in listed:
            passages.setdefault(found.id, found if found.id in wanted else Passage(found.id, ""))
    return Texts(passages, index), problems


def unread(ranking: Ranking, texts: Texts, read: int) -> Iterator[Problem]:
    """The passages that an answer should be built from and cannot be."""
    for turn_id, hits in ranking.hits.items():
        for rank, hit in enumerate(hits[:read], start=1):
            passage = texts.find(hit.id)
            if passage is None:
                yield Problem(f"turn {turn_id}", f"passage {hit.id} (rank {rank}) is in none of the given texts")
            elif not passage.text:
                yield Problem(f"turn {turn_id}", f"passage {hit.id} (rank {rank}) has no text")


def unknown_below(ranking: Ranking, texts: Texts, read: int) -> set[str]:
    """Ids that are in none of the given texts and need not be: they are listed, and not read."""
    below = {hit.id for hits in ranking.hits.values() for hit in hits[read:]}
    return {id for id in below if texts.find(id) is None}
