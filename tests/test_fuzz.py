"""Some dozens of broken files; `make soak` tries twenty thousand."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.fuzz.cases import attempt, planted
from tests.fuzz.reading import GuardedReader, guarded_reader


@pytest.fixture(scope="module")
def seeds() -> Iterator[Path]:
    with planted() as found:
        yield found


@pytest.fixture(scope="module")
def reader(seeds: Path) -> Iterator[GuardedReader]:
    with guarded_reader(sorted((seeds / "documents").iterdir())) as found:
        yield found


@pytest.mark.parametrize("cases", [50, pytest.param(20_000, marks=pytest.mark.soak)])
def test_a_broken_file_ends_in_an_error_or_a_whole_result(cases: int, seeds: Path) -> None:
    check({number: attempt(number, seeds) for number in range(cases)})


@pytest.mark.parametrize("cases", [50, pytest.param(3000, marks=pytest.mark.soak)])
def test_a_hostile_document_is_read_or_left_out_and_reaches_for_nothing(cases: int, reader: GuardedReader) -> None:
    check({number: reader.read(*reader.make_document(Random(number))) for number in range(cases)})  # noqa: S311


def check(ended: dict[int, tuple[int, list[str]]]) -> None:
    """None of the cases has a finding; some end well, and some in an error of the input."""
    assert {number: findings for number, (_, findings) in ended.items() if findings} == {}
    assert {0, 5} <= {code for code, _ in ended.values()}


def test_the_guard_notices_what_a_reader_reaches_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "striprtf").mkdir()
    (tmp_path / "striprtf" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    for code in (
        "open('/etc/passwd')",
        "import socket; socket.create_connection(('127.0.0.1', 9))",
        "import socket; socket.getaddrinfo('example.org', 80)",
        "import subprocess; subprocess.run(['ls'])",
        "import os; os.system('ls')",
    ):
        (tmp_path / "striprtf" / "striprtf.py").write_text(code)
        with guarded_reader([]) as reaching:
            _, [finding] = reaching.read(".rtf", b"{\\rtf1 Rye.}")
        assert "exit code 99" in finding, code
