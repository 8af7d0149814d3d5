"""Documents are read in a child process: what a file does to its reader costs that file alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from indexes.documents.isolation import process as reading
from indexes.documents.isolation.process import ProcessGuard, ReadingLimits, ReadingProcess, build_environment
from indexes.documents.reading import parse_document
from schemas.errors import RunError
from tests.conftest import EXAMPLES, PATIENCE, ROOT
from tests.make_hostile_documents import build_pdf_of_one_stream
from tests.processes import start
from tests.test_documents import opened, own, skipped

MEGABYTE = 1_000_000
WORDS = "The bread keeps for nine days. " * 400  # a paragraph that is cut into sentences
LONG = "\n\n".join(f"{number}. {WORDS}" for number in range(100))  # 1.2 MB: takes tenths of a second at least
SLOW = "\n\n".join(f"{number}. {WORDS}" for number in range(1000))  # 12 MB: takes three seconds on a fast machine
ENDLESS = build_pdf_of_one_stream(pages=10_000, lines=500)  # found by attack
LARGE = "\n\n".join([WORDS] * 2400)  # 30 MB


def set_limits(monkeypatch: pytest.MonkeyPatch, limits: ReadingLimits) -> None:
    monkeypatch.setattr(reading, "LIMITS", limits)


BREAKING = [
    # what is allowed, the file that is left out, why
    (ReadingLimits(seconds=3, seconds_per_megabyte=0), ("a.pdf", ENDLESS), "takes more than 3 seconds to read"),
    (ReadingLimits(memory_bytes=250 * MEGABYTE), ("a.txt", LARGE), "takes more than 250 MB of memory to read"),
    (ReadingLimits(reply_bytes=MEGABYTE), ("a.txt", LONG), "holds more than 1 MB of text"),
]


@pytest.mark.parametrize(("limits", "file", "reason"), BREAKING, ids=["time", "memory", "output"])
def test_a_file_that_breaks_a_limit_is_named_and_remembered(
    limits: ReadingLimits, file: tuple[str, str | bytes], reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_limits(monkeypatch, limits)
    name, text = file
    folder = own(tmp_path, {"0.txt": "Rye.", name: text, "good.txt": "Oats."})
    documents = opened(folder, tmp_path)
    assert documents.reading.read == ("0.txt", "good.txt")
    assert skipped(documents) == {name: f"{reason}, and is left out"}
    monkeypatch.setattr(reading, "_Child", None)  # so that starting one fails
    again = opened(folder, tmp_path)
    assert (again.reading.unchanged, skipped(again)) == (("0.txt", "good.txt"), skipped(documents))
    os.utime(folder / name, (1, 1))
    assert skipped(opened(folder, tmp_path)) == skipped(documents), "the same bytes, written again"


@pytest.mark.parametrize(
    ("does", "limits"),
    [("while True: pass", ReadingLimits(waiting=10_000)), ("input()", ReadingLimits(waiting=1))],
    ids=["computes", "waits"],
)
def test_a_process_is_ended_for_its_computing_and_for_its_waiting(does: str, limits: ReadingLimits) -> None:
    with subprocess.Popen([sys.executable, "-c", does], stdin=subprocess.PIPE) as process:
        guard = ProcessGuard(process.pid, process.kill, limits)
        guard.begin(0.5)
        assert process.wait(PATIENCE) == -signal.SIGKILL
        guard.end()
    assert guard.broken == "takes more than 0.5 seconds to read"


def test_it_is_tried_again_once_it_changes_or_the_readers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own(tmp_path, {"a.txt": LONG, "good.txt": "Oats."})
    with monkeypatch.context() as patch:
        set_limits(patch, ReadingLimits(reply_bytes=MEGABYTE))
        assert [*skipped(opened(folder, tmp_path))] == ["a.txt"]
    assert [*skipped(opened(folder, tmp_path))] == ["a.txt"]
    with monkeypatch.context() as patch:
        patch.setattr("indexes.documents.parse_cache.describe_readers", lambda: "other readers")
        assert opened(folder, tmp_path).reading.read == ("a.txt",)
    (folder / "a.txt").write_text("Rye.")
    assert opened(folder, tmp_path).reading.read == ("a.txt",)


# The child


def test_the_child_reads_what_this_process_reads(tmp_path: Path) -> None:
    paths = [path for path in sorted((EXAMPLES / "documents").rglob("*")) if path.is_file()]
    with ReadingProcess() as reader:
        for path in paths:
            data = path.read_bytes()
            assert reader.parse_document(path, path.name, data) == parse_document(path, path.name, data)


def test_a_child_that_is_killed_is_replaced_and_nothing_is_lost(tmp_path: Path) -> None:
    """By somebody else, in the middle of a file."""
    with ReadingProcess() as reader:
        assert reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.").passages
        [child] = find_children()
        killing = threading.Timer(0.3, child.kill)
        killing.start()
        assert len(reader.parse_document(Path("/b.txt"), "b.txt", SLOW.encode()).passages) > 10000
        killing.join()
        [other] = find_children()
        assert other.pid != child.pid
    assert find_children() == []


def test_a_file_that_its_reader_dies_of_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "striprtf").mkdir()
    (tmp_path / "striprtf" / "__init__.py").write_text("import os; os.kill(os.getpid(), 9)")
    monkeypatch.syspath_prepend(str(tmp_path))
    with ReadingProcess() as reader:
        found = reader.parse_document(Path("/c.rtf"), "c.rtf", b"{\\rtf1 Rye.}")
        assert (found.reason, found.broke_reader) == ("makes its reader crash (SIGKILL), and is left out", True)
        assert reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.").passages


def find_children(parent: int | None = None) -> list[psutil.Process]:
    """The reading processes of a process."""
    found = []
    for child in psutil.Process(parent).children():
        try:
            if reading.MODULE in child.cmdline():
                found.append(child)
        except psutil.Error:
            pass
    return found


CODE = """
from pathlib import Path
from indexes.documents.isolation.process import ReadingProcess
with ReadingProcess() as reader:
    print(reader.parse_document(Path("/a.txt"), "a.txt", b"Rye bread.").passages[0].text)
"""


def test_it_works_whatever_the_main_module_is_and_takes_no_code_from_where_one_works(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('code of the working directory was run')")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "main.py").write_text(CODE)
    for arguments in (["-P", "-c", CODE], [tmp_path / "elsewhere" / "main.py"]):
        command = [sys.executable, *map(str, arguments)]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert (result.stdout, result.stderr) == ("Rye bread.\n", "")


def test_a_child_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MODULE", "indexes.documents.nowhere")
    with pytest.raises(RunError, match=r"does not start .*No module named") as caught, ReadingProcess() as reader:
        reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.")
    assert "convagent doctor" in str(caught.value)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(RunError, match="does not start"), ReadingProcess() as reader:
        reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.")


def test_the_child_knows_no_secrets() -> None:
    secret = {
        "CONVAGENT_API_KEY": "1", "CONVAGENT_DATA": "1", "OPENAI_API_KEY": "1", "GITHUB_TOKEN": "1", "PGPASSWORD": "1",
        "AWS_SECRET_ACCESS_KEY": "1", "SSH_AUTH_SOCK": "1",
    }  # fmt: skip
    made = build_environment(secret | {"PATH": "/bin", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}, Path("/own"))  # noqa: S108
    assert {name: made[name] for name in ("PATH", "LANG", "TMPDIR")} == {
        "PATH": "/bin",
        "LANG": "C.UTF-8",
        "TMPDIR": "/own",
    }
    assert not secret.keys() & made.keys()


FALSE_REPLIES = [
    b"not JSON at all",
    b'{"kind": "document"}',
    b'{"kind": "document", "document": {"passages": [{"id": "other.txt:1", "text": "x", "url": "file:///a.txt"}]}}',
    b'{"kind": "document", "document": {"passages": [{"id": "a.txt:1", "text": "x", "url": "file:///other.txt"}]}}',
    b'{"kind": "document", "document": {"passages": [{"id": "a.txt:1", "text": 3, "url": "file:///a.txt"}]}}',
]
SUBVERTED = """
import os, struct, sys
from indexes.documents.isolation.worker import Reply, read_request, write_message
write_message(sys.stdout.buffer, Reply("ready"))
read_request(sys.stdin.buffer)
said = {said!r}
sys.stdout.buffer.write(struct.pack(">Q", len(said)) + said)
sys.stdout.buffer.flush()
read_request(sys.stdin.buffer)
"""


@pytest.mark.parametrize("said", FALSE_REPLIES)
def test_what_a_subverted_child_says_is_not_believed(
    said: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its libraries read hostile files: it may say of its own file what it likes, and no more."""
    (tmp_path / "subverted.py").write_text(SUBVERTED.format(said=said))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(reading, "MODULE", "subverted")
    with ReadingProcess() as reader:
        found = reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.")
    assert (found.passages, found.broke_reader) == ((), True)


def test_what_a_library_prints_or_asks_for_disturbs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "striprtf").mkdir()
    (tmp_path / "striprtf" / "__init__.py").write_text("")
    talking = "print('hello'); import os; os.write(1, b'x' * 10**6); os.write(2, b'y' * 10**6)\ninput()"
    (tmp_path / "striprtf" / "striprtf.py").write_text(talking)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ReadingProcess() as reader:
        found = reader.parse_document(Path("/a.rtf"), "a.rtf", rb"{\rtf1 Rye.}")
        assert found.reason == "makes its reader fail (EOFError), and is left out"
        assert reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.").passages


# The end


def wait_for(find: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not find():
        assert time.monotonic() < until
        time.sleep(0.02)


@contextmanager
def reading_for_long(folder: Path, tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """`chat` that is in the middle of reading a file, with its child."""
    with start(
        "chat", "--docs", folder, "-m", "none", "--embedder", "none", "--incognito",
        CONVAGENT_CACHE=str(tmp_path / "cache"), TMPDIR=str(tmp_path / "temporary"),
    ) as process:  # fmt: skip
        wait_for(lambda: find_children(process.pid) and find_children(process.pid)[0].cpu_times().user > 1)
        yield process


@pytest.fixture
def long_folder(tmp_path: Path) -> Path:
    (tmp_path / "temporary").mkdir()
    return own(tmp_path, {"a.txt": "Rye.", "b.txt": SLOW})


def test_ctrl_c_ends_program_and_child_without_a_word_of_the_child_and_keeps_what_was_read(
    long_folder: Path, tmp_path: Path
) -> None:
    with reading_for_long(long_folder, tmp_path) as process:
        [child] = find_children(process.pid)
        process.send_signal(signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert not child.is_running()
    assert [*(tmp_path / "temporary").iterdir()] == []
    (long_folder / "b.txt").unlink()
    assert opened(long_folder, tmp_path).reading.unchanged == ("a.txt",)


def test_a_killed_program_leaves_no_child(long_folder: Path, tmp_path: Path) -> None:
    with reading_for_long(long_folder, tmp_path) as process:
        [child] = find_children(process.pid)
        process.kill()
        process.communicate()
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    wait_for(lambda: not [*(tmp_path / "temporary").iterdir()])
