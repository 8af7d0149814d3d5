"""Some dozens of broken files; `make soak` tries twenty thousand."""

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.fuzz.cases import attempt, planted, read_hostile
from tests.fuzz.mutators import LINE_WAYS, bytewise, restructured, retagged
from tests.fuzz.reading import GuardedReader, guarded_reader

FEW_OR_MANY = [50, pytest.param(300, marks=pytest.mark.soak)]


@pytest.fixture(scope="module")
def seeds() -> Iterator[Path]:
    with planted() as found:
        yield found


@pytest.fixture(scope="module")
def reader(seeds: Path) -> Iterator[GuardedReader]:
    with guarded_reader(sorted((seeds / "documents").iterdir())) as found:
        yield found


@pytest.mark.parametrize("cases", FEW_OR_MANY)
@pytest.mark.parametrize("kind", ["a broken file", "a hostile document"])
def test_it_ends_in_an_error_or_a_whole_result(kind: str, cases: int, seeds: Path, reader: GuardedReader) -> None:
    """A hostile document, too, is read or left out, and reaches for nothing."""
    hostile = kind == "a hostile document"
    outcomes = {number: read_hostile(number, reader) if hostile else attempt(number, seeds) for number in range(cases)}
    assert {number: outcome.findings for number, outcome in outcomes.items() if outcome.findings} == {}
    assert {0, 5} <= {outcome.code for outcome in outcomes.values()}


REACHING = [
    ("a file", "open('/etc/passwd')"),
    ("a file elsewhere", "open('/root/.ssh/id_rsa')"),
    ("a server", "import socket; socket.create_connection(('127.0.0.1', 9))"),
    ("a name", "import socket; socket.getaddrinfo('example.org', 80)"),
    ("a program", "import subprocess; subprocess.run(['ls'])"),
    ("a shell", "import os; os.system('ls')"),
]


@pytest.mark.parametrize("code", [row[1] for row in REACHING], ids=[row[0] for row in REACHING])
def test_the_guard_notices_what_a_reader_reaches_for(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "striprtf").mkdir()
    (tmp_path / "striprtf" / "__init__.py").write_text("")
    (tmp_path / "striprtf" / "striprtf.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with guarded_reader([]) as reaching:
        _, [finding] = reaching.read(".rtf", b"{\\rtf1 Rye.}")
    assert "exit code 99" in finding


@examples(50)
@given(st.binary(max_size=300), st.integers(0, 2**32))
def test_any_bytes_can_be_broken_and_the_same_seed_breaks_them_the_same(data: bytes, seed: int) -> None:
    for way in {bytewise, *LINE_WAYS, restructured, retagged}:
        assert way(Random(seed), data) == way(Random(seed), data)  # noqa: S311
