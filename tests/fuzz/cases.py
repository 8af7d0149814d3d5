"""A case: a seed file broken, commands given it, and what must hold of how each of them ends.

It ends in a whole result and exit code 0, or in an error that says what and where with 2, 4 or 5; never in a traceback
or after more than `PATIENCE`, and never with a file left behind that is none of the outputs, or half of one.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from agent.runs.given_ranking import read_ranking
from agent.runs.validation import CheckRequest, check_run
from agent.tasks.rcd.spans import read_spans
from agent.tasks.rcd.topics import read_topics as read_dialogues
from indexes.passage_index import PassageIndex
from indexes.text.control_characters import strip_control_characters
from schemas.errors import ConvagentError, InvalidInputError
from tests.fuzz.bench import Ended, HangError, call, settings, watched
from tests.fuzz.mutators import LINE_WAYS, PACKED, Mutator, broken, packed, restructured, retagged, rezipped
from tests.fuzz.reading import GuardedReader
from tests.fuzz.seeds import EDITIONS, ENDINGS, Seeds, plant

READ_EVERY = 20  # of all cases, one is a hostile document given to its reader
CLEAN = (0, 2, 4, 5)
MOST_SAID = 20_000  # characters of an error: more is no help
SHORT_RUN = ("-k", "5", "--context-passages", "2")
Argument = str | Path


@dataclass(frozen=True, slots=True)
class Step:
    """A command, the file that it may make, and how a finished one is seen to be whole (it raises where it is not)."""

    arguments: tuple[Argument, ...]
    made: tuple[Path, ...] = ()
    check: Callable[[], object] = lambda: None
    typed: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """What is at hand: the seeds, a directory of its own, a source of randomness."""

    seeds: Seeds
    place: Path
    rng: Random

    def broken(self, seed: str | Path, *ways: Mutator, suffix: str = "") -> Path:
        """A broken copy of a seed."""
        source = self.seeds[str(seed)]
        copy = self.place / f"{source.name}{suffix}"
        copy.write_bytes(packed(self.rng, broken(self.rng, source.read_bytes(), ways), suffix))
        return copy

    def answered(self, topics: Path, *more: Argument) -> Step:
        """Topics answered, to a run that is valid."""
        run = self.place / "out.json"
        made = (run, self.place / "out.trace.jsonl")
        return Step(("answer", topics, "-o", run, *SHORT_RUN, *more), made, lambda: _valid(run, topics))

    def ranked(self, *command: Argument, made: str = "out.trec", check: Callable[[Path], object] | None = None) -> Step:
        """A command that makes a file, by default a ranking."""
        out = self.place / made
        return Step((*command, "-o", out), (out,), lambda: (check or _readable)(out))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended: the exit code, and what is wrong with it, if anything."""

    kind: str
    code: int
    findings: tuple[str, ...]


def _valid(run: Path, topics: Path) -> None:
    if problems := check_run(run, topics, CheckRequest(None)).problems:
        raise InvalidInputError(f"the run is not valid: {problems[0]}")


def _readable(run: Path) -> None:
    if run.read_bytes().strip(b"\n []"):
        read_ranking(run)


def _whole_index(directory: Path) -> None:
    index = PassageIndex(directory)
    ids = [index.get_id(number) for number in range(len(index))]
    if len(set(ids)) != len(ids):
        raise InvalidInputError("an id is there twice")
    index.read(ids)
    index.search([("bread keeps for a week", 1.0)], 5)


def _same_ranking(run: Path, trec: Path) -> None:
    """Whoever reads the TREC run finds what the run ranks."""
    if not trec.read_bytes().strip():
        return
    before = {turn_id: sorted(hit.id for hit in hits) for turn_id, hits in read_ranking(run).hits.items() if hits}
    after = {turn_id: sorted(hit.id for hit in hits) for turn_id, hits in read_ranking(trec).hits.items()}
    if before != after:
        raise InvalidInputError("the TREC run ranks something else than the run")


def _all_spans(topics: Path, spans: Path) -> None:
    known = read_dialogues(topics)
    if len(read_spans(spans, known)) != len(known.dialogues):
        raise InvalidInputError("a span is missing")


def topics(case: Case) -> Step:
    """Topics of the four editions."""
    found = case.broken(case.seeds.topics(case.rng.choice(EDITIONS)), restructured)
    mode = case.rng.choice(((), ("--mode", "manual"), ("--no-rewrite",), ("--query", "context,previous")))
    return case.answered(found, "-i", case.seeds["index"], *mode)


def passages(case: Case) -> Step:
    """Passage files, plain and compressed, indexed or as the texts of a ranking."""
    name = case.rng.choice(("few.jsonl", "ikat.jsonl", "few.tsv", "few.xml"))
    ways = {"few.xml": (retagged,), "few.tsv": LINE_WAYS}.get(name, (restructured, restructured, LINE_WAYS[0]))
    found = case.broken(name, *ways, suffix=case.rng.choice(("", "", *PACKED)))
    if name != "few.xml" and case.rng.random() < 0.6:
        more = ("--passages", found, "--on-error", case.rng.choice(("stop", "skip")))
        return case.answered(case.seeds.topics("ikat-2024"), "--ranking", case.seeds["ikat-2024.trec"], *more)
    skip = case.rng.choice(((), ("--on-error", "skip"), ("--segment", "--on-error", "skip")))
    return case.ranked("index", "build", found, *skip, made="index", check=_whole_index)


def rankings(case: Case) -> Step:
    """Rankings in every form, answered from and measured."""
    edition = case.rng.choice(EDITIONS)
    trec = f"{edition}.trec"
    name = case.rng.choice((trec, trec, case.seeds.run(edition), case.seeds.topics(edition)))
    found = case.broken(name, *(LINE_WAYS if name == trec else (restructured,)))
    if case.rng.random() < 0.4:
        return Step(("eval", "search", found, "--qrels", case.seeds["qrels.txt"]))
    more = ("--ranking", found, "-i", case.seeds["index"], "--on-error", case.rng.choice(("stop", "skip")))
    return case.answered(case.seeds.topics(edition), *more)


def traces(case: Case) -> Step:
    """Traces: shown, exported, gone on with."""
    edition = case.rng.choice(EDITIONS)
    found = case.broken(case.seeds.trace(edition), restructured, restructured, LINE_WAYS[0])
    to = case.rng.choice((edition, edition, *EDITIONS))
    more = ("-i", case.seeds["index"], "-k", "6", "--context-passages", "5", "--trace", found, "--resume")
    ways = (
        lambda: Step(("show", found)),
        lambda: case.ranked("export", found, "--format", to, made=f"exported{ENDINGS.get(to, '.json')}"),
        lambda: case.answered(case.seeds.topics(edition), *more),
    )
    return case.rng.choice(ways)()


def runs(case: Case) -> Step:
    """Run files: checked, converted, measured."""
    edition = case.rng.choice(EDITIONS)
    known, found = case.seeds.topics(edition), case.broken(case.seeds.run(edition), restructured)
    other = case.seeds.run("qrecc") if edition == "qrecc" else found
    way = case.rng.randrange(5)
    if way == 0:
        return case.ranked("convert", found, check=lambda out: _same_ranking(found, out))
    measured: tuple[tuple[Argument, ...], ...] = (
        ("validate", found, "-t", known, *case.rng.choice(((), ("--json",), ("--format", edition)))),
        ("eval", "ptkb", found, "-t", known, "--per-turn"),
        ("eval", "answers", found, "-t", known, "-i", case.seeds["index"], "--json"),
        ("eval", "qrecc", found, other, "--truth", case.seeds["truth.json"]),
    )
    return Step(measured[way - 1])


def dialogues(case: Case) -> Step:
    """RCD-2020: topics and spans."""
    index = ("-i", case.seeds["index"], "-k", "5")
    if case.rng.random() < 0.25:
        return case.ranked("rank", case.seeds["rcd.xml"], *index, "--spans", case.broken("spans.tsv", *LINE_WAYS))
    found = case.broken("rcd.xml", retagged)
    ways = (
        lambda: case.ranked("spans", found, made="out.tsv", check=lambda out: _all_spans(found, out)),
        lambda: case.ranked("rank", found, *index),
        lambda: Step(("eval", "rcd-spans", case.seeds["spans.tsv"], "-t", found)),
    )
    return case.rng.choice(ways)()


def touche(case: Case) -> Step:
    """Touché: topics and arguments."""
    given = case.place / "touche"
    shutil.copytree(case.seeds["touche"], given)
    name, way = case.rng.choice((("topics.xml", retagged), ("portal.json", restructured)))
    (given / name).write_bytes(broken(case.rng, (given / name).read_bytes(), (way,)))
    more = ("-k", "5", "--on-error", case.rng.choice(("stop", "skip")))
    return case.ranked("touche", "--input", given, *more, made="out", check=lambda out: _readable(out / "run.txt"))


def labels(case: Case) -> Step:
    """Labels and truths, and what is measured by them."""
    seeds = case.seeds
    name = case.rng.choice(("qrels.txt", "ptkb.qrels", "rcd.qrels", "touche.qrels", "truth.json"))
    found = case.broken(name, *(LINE_WAYS if name != "truth.json" else (restructured,)))
    measured: dict[str, tuple[Argument, ...]] = {
        "qrels.txt": ("search", seeds["ikat-2024.trec"], "--qrels", found),
        "ptkb.qrels": ("ptkb", seeds.run("ikat-2024"), "--qrels", found, "--per-turn"),
        "rcd.qrels": ("rcd-passages", seeds["rcd.trec"], "--qrels", found, "-t", seeds["rcd.xml"]),
        "touche.qrels": ("touche", seeds["touche-out"] / "run.txt", "--qrels", found, "--json"),
        "truth.json": ("qrecc", seeds.run("qrecc"), "--truth", found),
    }
    return Step(("eval", *measured[name]))


def documents(case: Case) -> Step:
    """A person's own documents, one of them broken: asked about, alone or beside one that is whole."""
    name = case.rng.choice(case.seeds.documents)
    ways: dict[str, tuple[Mutator, ...]] = {".html": (retagged,), ".pdf": (), ".png": (), ".rtf": ()}
    folder = case.place / "own"
    folder.mkdir()
    kinds = (rezipped,) if zipfile.is_zipfile(name) else ways.get(name.suffix, LINE_WAYS)
    shutil.move(case.broken(name, *kinds), folder)
    if case.rng.random() < 0.5:
        (folder / "good.txt").write_text("Rye bread keeps for nine days.", encoding="utf-8")
    return Step(("chat", "--docs", folder, "--incognito"), typed="How long does rye bread keep?\n/sources\n")


KINDS: dict[Callable[[Case], Step], int] = {  # and how often each is tried
    **dict.fromkeys((topics, rankings, dialogues, labels, documents), 12),
    passages: 8,
    traces: 8,
    runs: 16,
    touche: 2,
}


@contextmanager
def planted() -> Iterator[Seeds]:
    """The seeds in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="convagent-fuzz-") as place, settings(Path(place) / "cache"):
        yield plant(Path(place), _made)


def _made(*arguments: object) -> None:
    ended = call(*arguments)
    if ended.code:
        raise RuntimeError(f"{arguments} ended with {ended.code}: {ended.err}{ended.crash}")


def attempt(seed: int, seeds: Seeds, keep: Path | None = None) -> Outcome:
    """Try the case of a number. Its files are left in `keep`, where one is given."""
    rng = Random(seed)  # noqa: S311  (no secret)
    kind = rng.choices(list(KINDS), list(KINDS.values()))[0]
    place = keep or seeds.place / f"case{seed}"  # of its own: Tantivy's threads may hold on to one for a moment
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    code, findings = _try(kind(Case(seeds, place, rng)), place)
    if not keep:
        shutil.rmtree(place, ignore_errors=True)
    return Outcome(kind.__name__, code, tuple(findings))


def read_hostile(seed: int, reader: GuardedReader, keep: Path | None = None) -> Outcome:
    """Try the document of a number, which is left in `keep`, where a directory is given."""
    suffix, data = reader.make_document(Random(seed))  # noqa: S311  (no secret)
    if keep:
        keep.mkdir(exist_ok=True)
        (keep / f"document{suffix}").write_bytes(data)
    code, findings = reader.read(suffix, data)
    return Outcome(f"reading {suffix}", code, tuple(findings))


def _try(step: Step, place: Path) -> tuple[int, list[str]]:
    before = set(place.rglob("*"))
    try:
        with watched():
            ended = call(*step.arguments, typed=step.typed)
            found = [*_said_badly(ended, place.parent), *(_not_whole(step) if not ended.code else ())]
    except HangError as late:
        return 1, [f"hangs: {late}"]
    left = [path for path in set(place.rglob("*")) - before if not any(path.is_relative_to(made) for made in step.made)]
    told = " ".join(str(argument) for argument in step.arguments)
    found += [f"left behind: {path.name}" for path in left]
    return ended.code, [f"{told}\n{problem}" for problem in found]


def _said_badly(ended: Ended, place: Path) -> Iterator[str]:
    """What is wrong with how a command ended and what it said."""
    said = ended.out + ended.err
    if ended.crash:
        yield ended.crash
    elif ended.code not in CLEAN:
        yield f"ended with {ended.code}: {said[-1000:]}"
    elif ended.code and not ended.err.strip():
        yield f"ended with {ended.code} and said nothing"
    elif ended.code and str(place) not in said and "turn " not in said:
        yield f"does not say where: {said[-1000:]}"
    if ended.code and len(ended.err) > MOST_SAID:
        yield f"says {len(ended.err)} characters: {said[:300]!r}"
    if strip_control_characters(said) != said:
        yield f"sends control characters to the terminal: {said[-1000:]!r}"


def _not_whole(step: Step) -> Iterator[str]:
    try:
        step.check()
    except ConvagentError as error:
        yield f"the output is not whole: {error}"
