"""Documents are read in a child process: what a file does to its reader costs that file alone."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from indexes.documents.isolation import process as reading
from indexes.documents.isolation.process import ProcessGuard, ReadingLimits, ReadingProcess, build_environment
from schemas.errors import RunError
from tests.conftest import PATIENCE, ROOT
from tests.fuzz.document_attacks import build_pdf_of_one_stream
from tests.processes import start
from tests.test_documents import opened, own, skipped

MEGABYTE = 1_000_000
WORDS = "The bread keeps for nine days. " * 400  # a paragraph that is cut into sentences
LONG = "\n\n".join(f"{number}. {WORDS}" for number in range(100))  # 1.2 MB: takes tenths of a second at least
SLOW = "\n\n".join(f"{number}. {WORDS}" for number in range(1000))  # 12 MB: takes three seconds on a fast machine
ENDLESS = build_pdf_of_one_stream(pages=10_000, lines=500)  # found by attack
LARGE = "\n\n".join([WORDS] * 2400)  # 30 MB


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
    monkeypatch.setattr(reading, "LIMITS", limits)
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


def test_a_process_that_only_waits_is_ended() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        guard = ProcessGuard(process.pid, process.kill, ReadingLimits(waiting=1))
        guard.begin(0.5)
        assert process.wait(PATIENCE) == -signal.SIGKILL
        guard.end()
    assert guard.broken == "takes more than 0.5 seconds to read"


def test_it_is_tried_again_once_it_changes_or_the_readers_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = own(tmp_path, {"a.txt": LONG, "good.txt": "Oats."})
    with monkeypatch.context() as patch:
        patch.setattr(reading, "LIMITS", ReadingLimits(reply_bytes=MEGABYTE))
        assert [*skipped(opened(folder, tmp_path))] == ["a.txt"]
    assert [*skipped(opened(folder, tmp_path))] == ["a.txt"]
    with monkeypatch.context() as patch:
        patch.setattr("indexes.documents.parse_cache.describe_readers", lambda: "other readers")
        assert opened(folder, tmp_path).reading.read == ("a.txt",)
    (folder / "a.txt").write_text("Rye.")
    assert opened(folder, tmp_path).reading.read == ("a.txt",)


# The child


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


TALKING = "print('hello'); import os; os.write(1, b'x' * 10**6); os.write(2, b'y' * 10**6)\ninput()"


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("import os; os.kill(os.getpid(), 9)", "makes its reader crash (SIGKILL), and is left out"),
        (TALKING, "makes its reader fail (EOFError), and is left out"),
    ],
    ids=["dies", "prints and asks"],
)
def test_a_file_whose_reader_misbehaves_is_left_out(
    code: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "striprtf").mkdir()
    (tmp_path / "striprtf" / "__init__.py").write_text("")
    (tmp_path / "striprtf" / "striprtf.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with ReadingProcess() as reader:
        assert reader.parse_document(Path("/c.rtf"), "c.rtf", b"{\\rtf1 Rye.}").reason == reason
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
from typing import Any
from indexes.documents.isolation.process import ReadingProcess
with ReadingProcess() as reader:
    print(reader.parse_document(Path("/a.txt"), "a.txt", b"Rye bread.").passages[0].text)
"""


def test_it_takes_no_code_from_where_one_works(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit('code of the working directory was run')")
    command, environment = [sys.executable, "-P", "-c", CODE], os.environ | {"PYTHONPATH": str(ROOT)}
    result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (result.stdout, result.stderr) == ("Rye bread.\n", "")


def test_a_child_that_does_not_start_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MODULE", "indexes.documents.nowhere")
    with pytest.raises(RunError, match=r"does not start .*No module named") as caught, ReadingProcess() as reader:
        reader.parse_document(Path("/a.txt"), "a.txt", b"Rye.")
    assert "convagent doctor" in str(caught.value)


def test_the_child_knows_no_secrets() -> None:
    secret = dict.fromkeys(("CONVAGENT_API_KEY", "CONVAGENT_DATA", "GITHUB_TOKEN", "PGPASSWORD", "SSH_AUTH_SOCK"), "1")
    made = build_environment(secret | {"PATH": "/bin", "LANG": "C.UTF-8", "TMPDIR": "/tmp"}, Path("/own"))  # noqa: S108
    assert (made["PATH"], made["LANG"], made["TMPDIR"]) == ("/bin", "C.UTF-8", "/own")
    assert not secret.keys() & made.keys()


FALSE_REPLIES = [
    b"not JSON at all",
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


# The end


def wait_for(find: Callable[[], object]) -> None:
    until = time.monotonic() + PATIENCE
    while not find():
        assert time.monotonic() < until
        time.sleep(0.02)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_the_child_ends_with_the_program_and_what_was_read_is_kept(sent: signal.Signals, tmp_path: Path) -> None:
    """In the middle of a file; of Ctrl-C the child says nothing."""
    folder, temporary = own(tmp_path, {"a.txt": "Rye.", "b.txt": SLOW}), tmp_path / "temporary"
    temporary.mkdir()
    settings: dict[str, Any] = {"CONVAGENT_CACHE": str(tmp_path / "cache"), "TMPDIR": str(temporary)}
    with start("chat", "--docs", folder, "-m", "none", "--embedder", "none", "--incognito", **settings) as process:
        wait_for(lambda: find_children(process.pid) and find_children(process.pid)[0].cpu_times().user > 2)
        [child] = find_children(process.pid)
        process.send_signal(sent)
        _, error = process.communicate(timeout=PATIENCE)
    assert process.returncode == (130 if sent == signal.SIGINT else -sent)
    assert "Traceback" not in error
    wait_for(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
    wait_for(lambda: not [*temporary.iterdir()])
    (folder / "b.txt").unlink()
    assert opened(folder, tmp_path).reading.unchanged == ("a.txt",)
