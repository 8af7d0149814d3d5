"""Documents are cut as iKAT cuts them: windows of ten sentences, found by spaCy's `senter` or by a rule."""

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cli import app
from indexes.corpora.corpus import find_corpus
from indexes.passage_index import PassageIndex
from indexes.text.segmentation import PACKAGE, Segmentation, choose_segmentation, cut_into_windows
from schemas.errors import MissingError
from schemas.records import Passage
from tests.test_topics import write

SENTENCES = [f"Sentence number {n} is here." for n in range(1, 24)]
RULE = "windows of 10 sentences, a stride of 5; sentences by a rule (spaCy's sentencizer)"
SENTER = f"windows of 10 sentences, a stride of 5; sentences by the senter of {PACKAGE} 3.8.0"


def by_rule() -> Segmentation:
    found = choose_segmentation("rule")
    assert found
    return found


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, [(1, 1)]),
        (10, [(1, 10)]),
        (11, [(1, 10), (6, 11)]),
        (15, [(1, 10), (6, 15)]),
        (23, [(1, 10), (6, 15), (11, 20), (16, 23)]),
    ],
)
def test_documents_are_cut_as_the_track_cuts_them(count: int, expected: list[tuple[int, int]]) -> None:
    """Windows of ten sentences with a stride of five; the last one ends with the document."""
    document = Passage("doc", " ".join(SENTENCES[:count]), "A title")
    cut = list(cut_into_windows(document, by_rule().split))
    assert [passage.id for passage in cut] == [f"doc:{n}" for n in range(len(expected))]
    assert [passage.text for passage in cut] == [" ".join(SENTENCES[first - 1 : last]) for first, last in expected]
    assert {passage.title for passage in cut} == {"A title"}


def test_a_long_document_ends_after_ten_thousand_characters() -> None:
    cut = list(cut_into_windows(Passage("doc", "This is it. " * 2000), by_rule().split))
    assert sum(len(passage.text) for passage in cut) < 2 * 10_000 + 200


# With a real pipeline of spaCy's in the place of `en_core_web_sm`: its sentences end at a semicolon.


def write_package(folder: Path, *, senter: bool = True) -> None:
    """An installed package of a pipeline like the real one: a parser that cuts otherwise, and a senter switched off."""
    import spacy

    pipeline = spacy.blank("en")
    pipeline.meta |= {"name": "core_web_sm", "version": "3.8.0"}
    pipeline.add_pipe("sentencizer", name="parser")
    if senter:
        pipeline.add_pipe("sentencizer", name="senter", config={"punct_chars": [";"]})
        pipeline.disable_pipe("senter")
    data = folder / PACKAGE / f"{PACKAGE}-3.8.0"
    data.mkdir(parents=True)
    pipeline.to_disk(data)
    (folder / PACKAGE / "meta.json").write_bytes((data / "meta.json").read_bytes())
    loading = "from spacy.util import load_model_from_init_py\n\n\ndef load(**given):\n"
    (folder / PACKAGE / "__init__.py").write_text(f"{loading}    return load_model_from_init_py(__file__, **given)\n")
    listed = folder / f"{PACKAGE}-3.8.0.dist-info"
    listed.mkdir()
    (listed / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: 3.8.0\n")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are installed for this test."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, PACKAGE, raising=False)
    return folder


TEXT = "One. Two;  three and\nfour; Dr. Five; \n\n six"


def test_the_senter_finds_the_sentences_where_it_is_installed(installed: Path) -> None:
    """As in the track's script: line breaks become spaces, and other white space stays."""
    write_package(installed)
    chosen = choose_segmentation("auto")
    assert chosen
    assert str(chosen) == str(choose_segmentation("senter")) == SENTER
    assert list(chosen.split(TEXT)) == ["One. Two;", " three and four;", "Dr. Five;", "   six"]
    assert list(by_rule().split(TEXT)) == ["One.", "Two; three and four; Dr. Five; six"]


DOCUMENT = {"id": "doc", "contents": " ".join(f"Part {n}. It goes on;" for n in range(15))}
CHOICES = [
    # whether it is installed, the options, what the index says, passages
    (True, ["--segment"], SENTER, 2),
    (True, ["--segment", "--sentences", "senter"], SENTER, 2),
    (True, ["--segment", "--sentences", "rule"], RULE, 3),
    (False, ["--segment"], RULE, 3),
    (False, ["--segment", "--sentences", "rule"], RULE, 3),
    (False, [], "", 1),
]


@pytest.mark.parametrize(("package", "options", "says", "passages"), CHOICES)
def test_an_index_says_how_documents_were_cut(
    package: bool, options: list[str], says: str, passages: int, installed: Path, tmp_path: Path
) -> None:
    if package:
        write_package(installed)
    documents, index = write(tmp_path / "documents.jsonl", json.dumps(DOCUMENT)), tmp_path / "index"
    command = ["index", "build", str(documents), "-o", str(index), "--embedder", "none", *options]
    built = CliRunner().invoke(app, command)
    assert built.exit_code == 0, built.output
    assert says in " ".join(built.stderr.split())
    assert json.loads((index / "convagent-index.json").read_text())["segmentation"] == says
    assert PassageIndex(index).info.passages == passages
    told = " ".join(CliRunner().invoke(app, ["index", "info", str(index)]).stdout.split())
    assert (says or "segments none: the passages are as they came") in told
    assert json.loads(CliRunner().invoke(app, ["index", "info", str(index), "--json"]).stdout)["segmentation"] == says


def test_windows_follow_the_sentences_of_the_senter(installed: Path, tmp_path: Path) -> None:
    write_package(installed)
    documents = write(tmp_path / "documents.jsonl", json.dumps(DOCUMENT))
    texts = [
        found.text for _, _, found in find_corpus([documents], choose_segmentation()) if isinstance(found, Passage)
    ]
    assert [text[:8] for text in texts] == ["Part 0. ", "Part 5. "]
    assert [text[-20:] for text in texts] == [" Part 9. It goes on;", "Part 14. It goes on;"]


def test_what_is_missing_is_named(installed: Path, tmp_path: Path) -> None:
    documents = write(tmp_path / "documents.jsonl", json.dumps(DOCUMENT))
    command = ["index", "build", str(documents), "-o", str(tmp_path / "index"), "--sentences", "senter"]
    missing = CliRunner().invoke(app, [*command, "--segment"])
    assert missing.exit_code == 4
    for part in (f"{PACKAGE} is not installed", f"python -m spacy download {PACKAGE}", "--sentences rule"):
        assert part in missing.stderr
    useless = CliRunner().invoke(app, command)
    assert (useless.exit_code, "Give --segment too" in useless.stderr) == (2, True)
    assert not (tmp_path / "index").exists()


def test_a_package_without_a_senter_is_refused(installed: Path) -> None:
    write_package(installed, senter=False)
    with pytest.raises(MissingError, match=rf"{PACKAGE} cannot be loaded .*senter"):
        choose_segmentation("auto")
