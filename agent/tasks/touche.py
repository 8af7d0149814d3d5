"""Touché, task 1 (CLEF 2020 and 2021): arguments for controversial questions, ranked from a directory as TIRA gives it.

The input is a directory with `topics.xml` and the files of args.me, the output is `run.txt`. Every run makes an index
of its own and deletes it afterwards, so that no run can rest on an index of other files. The topics are:

    <topics><topic><number>1</number><title>Should school uniforms be compulsory?</title> ... </topic></topics>

2020 has `<description>` and `<narrative>` too, which an automatic run must not use: they are not read.

Arguments are ranked by query likelihood with Dirichlet smoothing, the organisers' baseline in both years. Words find
candidates (Tantivy's BM25), which are scored anew with the statistics of the whole collection. It was also the core of
the best runs (overviews of Touché 2020 and 2021); nothing that was measured on the track's own labels speaks for more.
Source: Zhai and Lafferty, SIGIR 2001. Words are stems, scores are in nats.
"""

import logging
import math
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from xml.etree.ElementTree import ParseError

from agent.runs.given_ranking import format_trec_lines
from agent.tracks.lenient_reading import find_duplicates
from indexes.corpora.corpus import ArgumentCorpus, find_arguments
from indexes.index_builder import BuildReport, build_index
from indexes.passage_index import PassageIndex, build_searchable_text
from indexes.ranking.rankings import sort_best_first
from indexes.storage.atomic_files import scratch_directory
from indexes.storage.files import check_writable, explain_failed_writing, read_bytes, write_atomically
from indexes.text.analysis import extract_stems
from indexes.text.languages import weight_stems
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Hit, Passage

log = logging.getLogger("convagent")
TOPICS_FILE, RUN_FILE = "topics.xml", "run.txt"
MOST = 1000  # arguments of a topic that a run may hold (the task's page)
CANDIDATES = 3000  # arguments scored anew: three times what a run may hold
MU = 2000.0  # words of smoothing: Lucene's default; not tuned here
Progress = Callable[[ArgumentCorpus], AbstractContextManager[Callable[[], None]]]


@dataclass(frozen=True, slots=True)
class ToucheTask:
    directory: Path  # of the input
    k: int = MOST
    name: str = "convagent"
    skip_problems: bool = False  # leave bad arguments out


@dataclass(frozen=True, slots=True)
class ToucheReport:
    """A finished run: what was indexed, from what, and the ranking by topic number."""

    arguments: ArgumentCorpus
    built: BuildReport
    hits: Mapping[str, tuple[Hit, ...]]


def write_run(task: ToucheTask, output: Path, progress: Progress, *, overwrite: bool) -> ToucheReport:
    """Rank the arguments of the input for each of its topics, and write `output/run.txt` whole or not at all.

    Raises before any work where the run is there already, and `InvalidInputError` for bad topics or arguments;
    bad arguments can be skipped instead, and are listed then.
    """
    if output.exists() and not output.is_dir():
        raise UsageError("is no directory", where=str(output))
    arguments, questions = find_arguments(task.directory), read_questions(task.directory / TOPICS_FILE)
    with explain_failed_writing(output):
        output.mkdir(parents=True, exist_ok=True)
    check_writable(output / RUN_FILE, overwrite)
    with scratch_directory(output / RUN_FILE) as place:
        ranked = rank_topics(questions, arguments, task, place / "index", progress)
    lines = (format_trec_lines(number, hits, task.name).encode() for number, hits in ranked.hits.items())
    write_atomically(output / RUN_FILE, lines)
    return ranked


def rank_topics(
    questions: Mapping[str, str], arguments: ArgumentCorpus, task: ToucheTask, directory: Path, progress: Progress
) -> ToucheReport:
    """The rankings for questions by topic number, over an index that is made in the directory.

    The words of the questions are counted in the whole collection while it is indexed, so no text is read twice.
    """
    statistics = CollectionStatistics({word for title in questions.values() for word in extract_stems(title)})
    with progress(arguments) as tick:
        built = build_index(
            arguments, directory, skip_problems=task.skip_problems, progress=tick, on_passage=statistics.add_passage
        )
    log.info("%d arguments indexed; ranking them for %d topics", built.info.passages, len(questions))
    index = PassageIndex(directory)
    hits = {number: rank_arguments(title, index, statistics, task.k) for number, title in questions.items()}
    return ToucheReport(arguments, built, hits)


def read_questions(path: Path) -> dict[str, str]:
    """The questions of a topics file by number, in its order: what an automatic run may see of a topic.

    Raises `MissingError` where there is no such file, `InvalidInputError` where it is no XML, holds no topic, or has
    topics without a number or a title or two of the same number: all of them are listed.
    """
    from defusedxml import DefusedXmlException
    from defusedxml.ElementTree import fromstring

    try:
        root = fromstring(read_bytes(path))
    except (ParseError, DefusedXmlException, LookupError, ValueError) as error:
        raise InvalidInputError(f"is no XML that can be read ({error})", where=str(path)) from error
    fields = ([topic.findtext(tag) or "" for tag in ("number", "title")] for topic in root.iter("topic"))
    questions = [(" ".join(number.split()), " ".join(title.split())) for number, title in fields]
    if wrong := list(_find_problems(questions)):
        listed = "\n".join(f"  {problem}" for problem in wrong)
        remedy = "A topic is <topic><number>1</number><title>Should ...?</title></topic>."
        raise InvalidInputError(f"is no topics file of Touché:\n{listed}", where=str(path), remedy=remedy)
    return dict(questions)


def _find_problems(questions: Sequence[tuple[str, str]]) -> Iterator[str]:
    if not questions:
        yield "there is no <topic>"
    for place, (number, title) in enumerate(questions, start=1):
        if not number:
            yield f"topic {place} has no number"
        elif " " in number:
            yield f"topic {place} has white space in its number {number!r}"
        if not title:
            yield f"topic {place} has no title"
    yield from map(str, find_duplicates(("the number", number) for number, _ in questions if number))


class CollectionStatistics:
    """How often words occur in a whole collection, counted text by text. Only `wanted` words are counted one by one."""

    def __init__(self, wanted: Container[str]) -> None:
        self._wanted = wanted
        self.words = 0  # occurrences of all words
        self.times: Counter[str] = Counter()  # by wanted word

    def add_passage(self, passage: Passage) -> None:
        words = extract_stems(build_searchable_text(passage))
        self.words += len(words)
        self.times.update(word for word in words if word in self._wanted)


def rank_arguments(question: str, index: PassageIndex, statistics: CollectionStatistics, k: int) -> tuple[Hit, ...]:
    """The `k` best arguments for a question, scores strictly decreasing."""
    weights = weight_stems([(question, 1.0)])
    numbers = [number for number, _ in index.rank(weights, CANDIDATES)]
    texts = (extract_stems(build_searchable_text(argument)) for argument in index.read(index.get_ids(numbers)))
    scores = (query_likelihood(weights, words, statistics) for words in texts)
    return index.to_hits(sort_best_first(zip(numbers, scores, strict=True))[:k])


def query_likelihood(weights: Mapping[str, float], words: Sequence[str], collection: CollectionStatistics) -> float:
    """The log-likelihood of weighted words in a text's language model, smoothed by the collection's with `MU` words.

    What is the same for all texts is left out, and so are words that the collection does not have.
    """
    counted = Counter(words)
    return sum(
        weight * (math.log(1 + counted[word] * collection.words / (MU * times)) + math.log(MU / (len(words) + MU)))
        for word, weight in weights.items()
        if (times := collection.times[word])
    )
