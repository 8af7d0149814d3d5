"""An index that is not what was built is told, whatever happened to its files; nothing is ranked by nonsense."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from indexes.corpora.corpus import find_corpus
from indexes.index_builder import build_index
from indexes.index_vectors import embed_index
from indexes.passage_index import INFO_FILE, PassageIndex
from indexes.ranking.vectors import VECTOR_INFO_FILE, VECTORS_FILE
from indexes.sharding.sharded_index import verify_index
from indexes.storage import files
from schemas.errors import ConvagentError, InvalidInputError
from tests.conftest import EXAMPLES, no_progress
from tests.fuzz.byte_damage import damage_byte
from tests.test_embedder import Counted
from tests.within import convagent

DAMAGES_EACH = 12  # places of each file


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("built") / "index"
    build_index(find_corpus([EXAMPLES / "passages.jsonl"]), directory)
    embed_index(directory, Counted().embedder, no_progress)
    return directory


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(built, tmp_path / "index"))


def use(directory: Path) -> None:
    """All that an index is used for."""
    index = PassageIndex(directory)
    assert (index.vectors is not None) == (directory / VECTOR_INFO_FILE).exists()
    hits = index.search([("bread water plants cats", 1.0)], 72)
    index.read([hit.id for hit in hits])
    for number in range(len(index)):
        index.find(index.get_ids([number])[0])


def files_of(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.suffix != ".lock")


def test_what_was_built_is_whole(copy: Path) -> None:
    found = verify_index(copy)
    assert (found.passages, found.vectors) == (72, 72)
    assert found.files == len(files_of(copy)) - 3  # the manifest itself, and the vectors, which have their own
    use(copy)
    done = convagent("index", "verify", copy, cwd=copy.parent)
    assert done.returncode == 0
    assert "are as they were built" in done.stdout
    assert "72 vectors are whole" in done.stdout


@pytest.mark.parametrize("small_bytes", [files.SMALL_BYTES, 0], ids=["small", "large"])
def test_every_damaged_byte_is_told_once(
    small_bytes: int, copy: Path, built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of every file: changed, cut off, longer, empty, or gone. Always one kind of error, Tantivy's panics included.

    None goes unseen; of a large index sizes alone are compared when it is opened, and contents when it is verified.
    """
    monkeypatch.setattr(files, "SMALL_BYTES", small_bytes)
    unseen = []
    for name in files_of(copy):
        for number in range(DAMAGES_EACH):
            damage_byte(copy / name, number)
            error = None
            try:
                use(copy)
            except ConvagentError as caught:
                error = caught
            if error is None:
                unseen.append((name, number))
                if not small_bytes and unseen[-1] != (VECTOR_INFO_FILE, 1):
                    with pytest.raises(ConvagentError):
                        verify_index(copy)
            elif "is no index" not in error.what:  # where the file that says what it is was deleted
                assert error.exit_code == 5 or (error.exit_code == 4 and not small_bytes), (name, number)
                assert "convagent index" in error.remedy or not small_bytes
            (copy / name).unlink(missing_ok=True)
            shutil.copy(built / name, copy / name)
    # Without that file there are no vectors, as where making them was interrupted.
    assert unseen == [(VECTOR_INFO_FILE, 1)] or not small_bytes
    use(copy)


def test_a_damaged_index_ends_a_command_with_5(copy: Path) -> None:
    damage_byte(next(copy.glob("*.store")), 0)
    for command in (
        ["search", str(copy), "bread", "--embedder", "none"],
        ["index", "verify", str(copy)],
        ["index", "info", str(copy)],
    ):
        done = convagent(*command, cwd=copy.parent)
        assert done.returncode == 5
        assert "is a damaged index" in done.stderr
        assert "convagent index build" in done.stderr
        assert "Traceback" not in done.stderr


def test_vectors_of_other_passages_are_not_searched(copy: Path, tmp_path: Path) -> None:
    """As many passages, of the same ids, in another order or with other words."""
    lines = (EXAMPLES / "passages.jsonl").read_text().splitlines()
    for number, changed in enumerate(([*lines[::-1]], [lines[0].replace("the", "a"), *lines[1:]])):
        corpus = tmp_path / f"passages{number}.jsonl"
        corpus.write_text("\n".join(changed))
        other = tmp_path / f"other{number}"
        build_index(find_corpus([corpus]), other)
        for name in (VECTORS_FILE, VECTOR_INFO_FILE):
            shutil.copy(copy / name, other)
        with pytest.raises(InvalidInputError, match="those of other passages"):
            _ = PassageIndex(other).vectors


@pytest.mark.parametrize(("field", "value"), [("analyzer", "english: words, lower case"), ("format", 99)])
def test_an_index_that_is_made_otherwise_is_refused(field: str, value: object, copy: Path) -> None:
    info = json.loads((copy / INFO_FILE).read_text()) | {field: value}
    (copy / INFO_FILE).write_bytes(msgspec.json.encode(info))
    with pytest.raises(InvalidInputError, match="is an index of another version"):
        PassageIndex(copy)
