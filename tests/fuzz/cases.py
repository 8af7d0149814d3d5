"""A case: a seed file broken, commands given it, and what must hold of how each of them ends.

It ends in a whole result and exit code 0, or in an error that says what and where with 2, 4 or 5; never in a traceback
or after more than `PATIENCE`, and never with a file left behind that is none of the outputs, or half of one.
"""

import shutil
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from agent.runs.given_ranking import read_ranking
from agent.runs.validation import CheckRequest, check_run
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
    """A command, the files it may make, and how a finished one is seen to be whole (it raises where it is not)."""

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

    def broken(self, seed: str | Path, ways: Sequence[Mutator], suffix: str = "") -> Path:
        """A broken copy of a seed."""
        source = self.seeds[str(seed)]
        data = broken(self.rng, source.read_bytes(), tuple(ways))
        copy = self.place / f"{source.name}{suffix}"
        copy.write_bytes(packed(self.rng, data, suffix))
        return copy


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a case ended: a line a command, and what is wrong with it, if anything."""

    kind: str
    codes: tuple[int, ...]
    findings: tuple[str, ...]


def _answered(case: Case, topics: Path, *more: Argument) -> Step:
    run = case.place / "out.json"
    made = (run, case.place / "out.trace.jsonl", case.place / "out.ir_metadata.yml")
    arguments = ("answer", topics, "-o", run, *SHORT_RUN, *more)
    return Step(arguments, made, lambda: _valid(run, topics))


def _valid(run: Path, topics: Path, edition: str | None = None) -> None:
    if problems := check_run(run, topics, CheckRequest(edition)).problems:
        raise InvalidInputError(f"the run is not valid: {problems[0]}")


def topics(case: Case) -> Iterator[Step]:
    """Topics of the four editions."""
    found = case.broken(case.seeds.topics(case.rng.choice(EDITIONS)), [restructured])
    mode = case.rng.choice(((), ("--mode", "manual"), ("--no-rewrite",), ("--query", "context,previous")))
    yield _answered(case, found, "-i", case.seeds["index"], *mode)


def passages(case: Case) -> Iterator[Step]:
    """Passage files, plain and compressed."""
    name = case.rng.choice(("few.jsonl", "ikat.jsonl", "few.tsv", "few.xml"))
    ways = {"few.xml": [retagged], "few.tsv": LINE_WAYS}.get(name, [restructured, restructured, LINE_WAYS[0]])
    found = case.broken(name, ways, case.rng.choice(("", "", *PACKED)))
    out = case.place / "index"
    more = case.rng.choice(((), ("--on-error", "skip"), ("--segment", "--on-error", "skip")))
    yield Step(("index", "build", found, "-o", out, *more), (out,), lambda: _whole_index(out))


def _whole_index(directory: Path) -> None:
    index = PassageIndex(directory)
    ids = [index.get_id(number) for number in range(len(index))]
    if len(set(ids)) != len(ids):
        raise InvalidInputError("an id is there twice")
    index.read(ids)
    index.search([("bread keeps for a week", 1.0)], 5)


def given_passages(case: Case) -> Iterator[Step]:
    """Passage files as the texts of a ranking."""
    name = case.rng.choice(("few.jsonl", "ikat.jsonl", "few.tsv"))
    found = case.broken(name, LINE_WAYS if name == "few.tsv" else [restructured], case.rng.choice(("", "", *PACKED)))
    more = (
        "--ranking",
        case.seeds["ikat-2024.trec"],
        "--passages",
        found,
        "--on-error",
        case.rng.choice(("stop", "skip")),
    )
    yield _answered(case, case.seeds.topics("ikat-2024"), *more)


def rankings(case: Case) -> Iterator[Step]:
    """Rankings in every form, answered from and measured."""
    edition = case.rng.choice(EDITIONS)
    trec, run, candidates = f"{edition}.trec", case.seeds.run(edition), "candidates.jsonl"
    name = case.rng.choice((trec, trec, run, candidates, case.seeds.topics(edition)))
    edition = "ikat-2024" if name == candidates else edition
    found = case.broken(name, LINE_WAYS if name == trec else [restructured])
    if case.rng.random() < 0.4:
        yield Step(("eval", "search", found, "--qrels", case.seeds["qrels.txt"]))
        return
    more = ("--ranking", found, "-i", case.seeds["index"], "--on-error", case.rng.choice(("stop", "skip")))
    yield _answered(case, case.seeds.topics(edition), *more)


def traces(case: Case) -> Iterator[Step]:
    """Traces: shown, exported, gone on with."""
    edition = case.rng.choice(EDITIONS)
    found = case.broken(case.seeds.trace(edition), [restructured, restructured, LINE_WAYS[0]])
    way = case.rng.randrange(3)
    if way == 0:
        yield Step(("show", found))
    elif way == 1:
        to = case.rng.choice((edition, edition, *EDITIONS))
        out = case.place / f"exported{ENDINGS.get(to, '.json')}"
        yield Step(("export", found, "-o", out, "--format", to), (out,), lambda: _readable(out))
    else:
        more = ("-i", case.seeds["index"], "-k", "6", "--context-passages", "5", "--trace", found, "--resume")
        yield _answered(case, case.seeds.topics(edition), *more)


def _readable(run: Path) -> None:
    """A run that an edition can have; whether it is right depends on what the trace said."""
    if run.read_bytes().strip(b"\n []"):
        read_ranking(run)


def runs(case: Case) -> Iterator[Step]:
    """Run files: checked, mended, converted, measured."""
    edition = case.rng.choice(EDITIONS)
    known = case.seeds.topics(edition)
    found = case.broken(case.seeds.run(edition), [restructured])
    way = case.rng.randrange(6)
    if way == 0:
        yield Step(("validate", found, "-t", known, *case.rng.choice(((), ("--json",), ("--format", edition)))))
    elif way == 1:
        yield Step(("validate", found, "-t", known, "--strict"))
    elif way == 2:
        out = case.place / "out.trec"
        yield Step(("convert", found, "-o", out), (out,), lambda: _same_ranking(found, out))
    elif way == 3:
        yield Step(("eval", "ptkb", found, "-t", known, "--per-turn"))
    elif way == 4:
        yield Step(("eval", "answers", found, "-t", known, "-i", case.seeds["index"], "--json"))
    else:
        other = case.seeds.run("qrecc") if edition == "qrecc" else found
        yield Step(("eval", "qrecc", found, other, "--truth", case.seeds["truth.json"]))


def _same_ranking(run: Path, trec: Path) -> None:
    """Whoever reads the TREC run finds what the run ranks."""
    if not trec.read_bytes().strip():
        return
    before = {turn_id: sorted(hit.id for hit in hits) for turn_id, hits in read_ranking(run).hits.items() if hits}
    after = {turn_id: sorted(hit.id for hit in hits) for turn_id, hits in read_ranking(trec).hits.items()}
    if before != after:
        raise InvalidInputError("the TREC run ranks something else than the run")


def dialogues(case: Case) -> Iterator[Step]:
    """RCD-2020: topics and spans."""
    spans = case.seeds["spans.tsv"]
    if case.rng.random() < 0.25:
        found = case.broken("spans.tsv", LINE_WAYS)
        out = case.place / "out.trec"
        arguments = ("rank", case.seeds["rcd.xml"], "-i", case.seeds["index"], "-k", "5", "-o", out, "--spans", found)
        yield Step(arguments, (out,), lambda: _ranked(out))
        return
    found = case.broken("rcd.xml", [retagged])
    way = case.rng.randrange(3)
    if way == 0:
        out = case.place / "out.tsv"
        yield Step(("spans", found, "-o", out), (out,), lambda: _spans(found, out))
    elif way == 1:
        out = case.place / "out.trec"
        yield Step(("rank", found, "-i", case.seeds["index"], "-k", "5", "-o", out), (out,), lambda: _ranked(out))
    else:
        yield Step(("eval", "rcd-spans", spans, "-t", found))


def _ranked(trec: Path) -> None:
    if trec.read_bytes().strip():
        read_ranking(trec)


def _spans(found: Path, out: Path) -> None:
    from agent.tasks.rcd.spans import read_spans
    from agent.tasks.rcd.topics import read_topics

    known = read_topics(found)
    if len(read_spans(out, known)) != len(known.dialogues):
        raise InvalidInputError("a span is missing")


def touche(case: Case) -> Iterator[Step]:
    """Touché: topics and arguments."""
    given = case.place / "touche"
    shutil.copytree(case.seeds["touche"], given)
    name, way = case.rng.choice((("topics.xml", retagged), ("portal.json", restructured)))
    (given / name).write_bytes(broken(case.rng, (given / name).read_bytes(), (way,)))
    out = case.place / "out"
    arguments = (
        "touche",
        "--input",
        given,
        "-o",
        out,
        "-k",
        "5",
        "--on-error",
        case.rng.choice(("stop", "skip")),
    )
    yield Step(arguments, (out / "run.txt", out), lambda: _ranked(out / "run.txt"))


def labels(case: Case) -> Iterator[Step]:
    """Labels and truths, and what is measured by them."""
    way = case.rng.randrange(5)
    seeds = case.seeds
    if way == 0:
        yield Step(("eval", "search", seeds["ikat-2024.trec"], "--qrels", case.broken("qrels.txt", LINE_WAYS)))
    elif way == 1:
        yield Step(
            ("eval", "ptkb", seeds.run("ikat-2024"), "--qrels", case.broken("ptkb.qrels", LINE_WAYS), "--per-turn")
        )
    elif way == 2:
        found = case.broken("rcd.qrels", LINE_WAYS)
        yield Step(("eval", "rcd-passages", seeds["rcd.trec"], "--qrels", found, "-t", seeds["rcd.xml"]))
    elif way == 3:
        run = seeds["touche-out"] / "run.txt"
        yield Step(("eval", "touche", run, "--qrels", case.broken("touche.qrels", LINE_WAYS), "--json"))
    else:
        yield Step(("eval", "qrecc", seeds.run("qrecc"), "--truth", case.broken("truth.json", [restructured])))


def documents(case: Case) -> Iterator[Step]:
    """A person's own documents, one of them broken: asked about, alone or beside one that is whole."""
    name = case.rng.choice(case.seeds.documents)
    ways = {".md": LINE_WAYS, ".csv": LINE_WAYS, ".html": (retagged,), ".eml": LINE_WAYS, ".mbox": LINE_WAYS}
    archive = zipfile.is_zipfile(name)
    folder = case.place / "own"
    folder.mkdir()
    shutil.move(case.broken(name, [rezipped] if archive else ways.get(name.suffix, ())), folder)
    if case.rng.random() < 0.5:
        (folder / "good.txt").write_text("Rye bread keeps for nine days.", encoding="utf-8")
    yield Step(("chat", "--docs", folder, "--incognito"), typed="How long does rye bread keep?\n/sources\n")


Kind = Callable[[Case], Iterator[Step]]
KINDS: dict[Kind, int] = {  # and how often each is tried
    topics: 12,
    passages: 3,
    given_passages: 5,
    rankings: 12,
    traces: 8,
    runs: 16,
    dialogues: 12,
    touche: 2,
    labels: 12,
    documents: 12,
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
    codes: list[int] = []
    findings: list[str] = []
    for step in kind(Case(seeds, place, rng)):
        code, found = _tried(step, place)
        codes.append(code)
        findings += found
    if not keep:
        shutil.rmtree(place, ignore_errors=True)
    return Outcome(kind.__name__, tuple(codes), tuple(findings))


def read_hostile(seed: int, reader: GuardedReader, keep: Path | None = None) -> Outcome:
    """Try the document of a number, which is left in `keep`, where a directory is given."""
    suffix, data = reader.make_document(Random(seed))  # noqa: S311  (no secret)
    if keep:
        keep.mkdir(exist_ok=True)
        (keep / f"document{suffix}").write_bytes(data)
    code, findings = reader.read(suffix, data)
    return Outcome(f"reading {suffix}", (code,), tuple(findings))


def _tried(step: Step, place: Path) -> tuple[int, list[str]]:
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
