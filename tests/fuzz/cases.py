"""A case: a seed file broken, a command given it, and what must hold of how that ends.

It ends in a whole result and exit code 0, or in an error that says what and where with 2, 4 or 5; never in a traceback
or after more than `PATIENCE`, and never with a file left behind that is none of the outputs, or half of one.
"""

import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from agent.runs.given_ranking import read_ranking
from agent.runs.validation import check_run
from agent.tasks.rcd import read_spans
from agent.tasks.rcd import read_topics as read_dialogues
from indexes.passage_index import PassageIndex
from indexes.text.control_characters import strip_control_characters
from schemas.errors import ConvagentError
from tests.fuzz.bench import Ended, HangError, call, settings, watched
from tests.fuzz.mutators import PACKED, broken, packed
from tests.fuzz.seeds import EDITIONS, name_files, plant

CLEAN = (0, 2, 4, 5)
MOST_SAID = 20_000  # characters of an error: more is no help
OWN = "own"  # the folder of documents that is asked
MADE = re.compile(r"(?:run\.json|run\.trace\.jsonl|out\.\w+|index|touche-out)(?:/.*)?")
ANSWER = "-o {out}/run.json -k 5 --context-passages 2"
SKIP = ("--on-error stop", "--on-error skip")
# What is broken, and the commands that it is given to, each as often as it stands here. A name in <> is a seed's file,
# or one of an edition that is drawn; {broken} is the broken one, {out} a directory of the case's own.
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...], int]] = {
    "topics": (
        ("topics",),
        tuple(
            f"answer {{broken}} -i <index> {ANSWER} {mode}"
            for mode in ("", "--mode manual", "--no-rewrite", "--query context,previous")
        ),
        12,
    ),
    "passages": (
        ("few.jsonl", "ikat.jsonl", "few.tsv", "few.xml"),
        (
            *(f"index build {{broken}} -o {{out}}/index {how}" for how in (*SKIP, "--segment --on-error skip")),
            *(
                f"answer <ikat-2024.json> --ranking <ikat-2024.trec> --passages {{broken}} {how} {ANSWER}"
                for how in SKIP
            ),
        ),
        8,
    ),
    "rankings": (
        ("trec", "trec", "run", "topics"),
        (
            "eval search {broken} --qrels <qrels.txt>",
            *(f"answer <topics> --ranking {{broken}} -i <index> {how} {ANSWER}" for how in SKIP),
        ),
        12,
    ),
    "traces": (
        ("trace",),
        (
            "show {broken}",
            "export {broken} --format <edition> -o {out}/out<ending>",
            "answer <topics> -i <index> -o {out}/run.json -k 6 --context-passages 5 --trace {broken} --resume",
        ),
        8,
    ),
    "runs": (
        ("run",),
        (
            "export {broken} --format trec -o {out}/out.trec",
            *("validate {broken} -t <topics>", "validate {broken} -t <topics> --json"),
            "eval ptkb {broken} -t <topics>",
            "eval answers {broken} -t <topics> -i <index> --json",
            "eval qrecc {broken} --truth <truth.json>",
        ),
        16,
    ),
    "dialogues": (
        ("rcd.xml",),
        (
            "spans {broken} -o {out}/out.tsv",
            "rank {broken} -i <index> -k 5 -o {out}/out.trec",
            "eval rcd-spans <spans.tsv> -t {broken}",
        ),
        9,
    ),
    "spans": (("spans.tsv",), ("rank <rcd.xml> -i <index> -k 5 --spans {broken} -o {out}/out.trec",), 3),
    "touche": (
        ("touche/topics.xml", "touche/portal.json"),
        tuple(f"touche --input {{folder}} -k 5 {how} -o {{out}}/touche-out" for how in SKIP),
        2,
    ),
    "qrels": (("qrels.txt",), ("eval search <ikat-2024.trec> --qrels {broken}",), 3),
    "statements": (("ptkb.qrels",), ("eval ptkb <ikat-2024.run.json> --qrels {broken}",), 3),
    "rcd labels": (("rcd.qrels",), ("eval rcd-passages <rcd.trec> --qrels {broken} -t <rcd.xml>",), 2),
    "touche labels": (("touche.qrels",), ("eval search <touche-out>/run.txt --qrels {broken} --json",), 2),
    "truth": (("truth.json",), ("eval qrecc <qrecc.run.json> --truth {broken}",), 2),
    "documents": (("documents",), ("chat --docs {folder} --incognito",), 12),
}


@contextmanager
def planted() -> Iterator[Path]:
    """The seeds in a directory that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="convagent-fuzz-") as place, settings(Path(place) / "cache"):
        plant(Path(place))
        yield Path(place)


def attempt(seed: int, seeds: Path) -> tuple[int, list[str]]:
    """Try the case of a number: its exit code, and what is wrong with how it ended, if anything."""
    rng = Random(seed)  # noqa: S311  (no secret)
    kind = rng.choices(list(KINDS), [often for *_, often in KINDS.values()])[0]
    place = seeds / f"case{seed}"  # of its own: Tantivy's threads may hold on to one for a moment
    place.mkdir()
    ended = _try(_prepare(kind, seeds, place, rng), seeds, place)
    shutil.rmtree(place, ignore_errors=True)
    return ended


def _prepare(kind: str, seeds: Path, place: Path, rng: Random) -> list[str]:
    """Break a seed, and give the command."""
    names, commands, _ = KINDS[kind]
    drawn = name_files(rng.choice(EDITIONS))
    name, command = rng.choice(names), rng.choice(commands)
    source = seeds / drawn.get(name, name)
    if kind == "documents":
        source = rng.choice(sorted(source.iterdir()))
    folder = place / OWN
    if kind == "touche":
        shutil.copytree(source.parent, folder)
    folder.mkdir(exist_ok=True)
    data = broken(rng, source.read_bytes(), source.suffix)
    suffix = rng.choice(("", "", *PACKED)) if kind == "passages" else ""
    found = folder / f"{source.name}{suffix}"
    found.write_bytes(packed(rng, data, suffix) if suffix else data)
    if kind == "documents" and rng.random() < 0.5:
        (folder / "good.txt").write_text("Rye bread keeps for nine days.", encoding="utf-8")

    def fill(found: re.Match[str]) -> str:
        named = drawn.get(found[1], found[1])
        return named if found[1] in ("edition", "ending") else str(seeds / named)

    filled = re.sub(r"<([\w.-]+)>", fill, command)
    return filled.format(broken=found, folder=folder, out=place).split()


def _try(arguments: list[str], seeds: Path, place: Path) -> tuple[int, list[str]]:
    before = set(place.rglob("*"))
    try:
        with watched():
            ended = call(*arguments, typed="How long does rye bread keep?\n/sources\n")
            found = [*_said_badly(ended, seeds), *(_not_whole(arguments, place) if not ended.code else ())]
    except HangError as late:
        return 1, [f"hangs: {late}"]
    left = [str(path.relative_to(place)) for path in set(place.rglob("*")) - before]
    found += [f"left behind: {name}" for name in left if not MADE.fullmatch(name)]
    return ended.code, [f"{' '.join(arguments)}\n{problem}" for problem in found]


def _said_badly(ended: Ended, place: Path) -> Iterator[str]:
    """What is wrong with how a command ended and what it said."""
    said = ended.out + ended.err
    if ended.crash:
        yield ended.crash
    elif ended.code not in CLEAN:
        yield f"ended with {ended.code}: {said[-1000:]}"
    elif ended.code and str(place) not in said and "turn " not in said:
        yield f"does not say where: {said[-1000:]}"
    if ended.code and not 0 < len(ended.err.strip()) <= MOST_SAID:
        yield f"says {len(ended.err)} characters: {said[:300]!r}"
    if strip_control_characters(said) != said:
        yield f"sends control characters to the terminal: {said[-1000:]!r}"


def _not_whole(arguments: list[str], place: Path) -> Iterator[str]:
    try:
        if arguments[0] == "answer":
            if problems := check_run(place / "run.json", Path(arguments[1])).problems:
                yield f"the run is not valid: {problems[0]}"
        elif arguments[0] == "index":
            index = PassageIndex(place / "index")
            ids = index.get_ids(range(len(index)))
            if len(set(ids)) != len(index.read(ids)):
                yield "an id is there twice"
        elif arguments[0] == "spans":
            known = read_dialogues(Path(arguments[1]))
            if len(read_spans(place / "out.tsv", known)) != len(known.dialogues):
                yield "a span is missing"
        for trec in (place / "out.trec", place / "touche-out" / "run.txt"):
            if trec.exists() and trec.read_bytes().strip():
                read_ranking(trec)
    except ConvagentError as error:
        yield f"the output is not whole: {error}"
