"""multilingual-e5-small: a question in one language, documents in another."""

import shutil
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from agent.chat.interactive import Terminal
from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.catalogue import list_models
from agent.models.embedding import multilingual
from agent.models.registry import open_embedder
from agent.terminal.doctor import examine_machine
from agent.turn.extractive_answer import says_not_found
from indexes.documents.document_index import open_documents
from indexes.ranking.vectors import Embedder
from schemas.errors import InvalidInputError, MissingError
from tests.conftest import needs_embedder, needs_multilingual, no_progress

pytestmark = [needs_embedder, needs_multilingual]
SAME = [  # the same in English, German, French and Spanish
    ("How long does the jam keep?", "Wie lange hält die Marmelade?", "¿Cuánto dura la mermelada?"),
    ("Who owns the fence?", "Wem gehört der Zaun?", "¿De quién es la valla?"),
    ("The ferry leaves at seven.", "Die Fähre fährt um sieben ab.", "El ferry sale a las siete."),
]
DOCUMENTS = {
    "ferry.txt": "The ferry to the island leaves the north quay at 7:40 every morning. Bicycles cost three euros.",
    "garden.txt": "The fence on the east side belongs to the neighbours at number 12. They painted it green.",
    "kitchen.txt": "Jars of plum jam keep for two years in the cellar. Label them with the month.",
    "club.txt": "The members meet on the first Tuesday of the month. The treasurer is Olga Brandt.",
}
QUESTIONS = [
    ("Wann fährt die Fähre zur Insel?", "7:40"),
    ("Wem gehört der Zaun auf der Ostseite?", "number 12"),
    ("Combien de temps se conserve la confiture de prunes ?", "two years"),
    ("¿Quién es la tesorera?", "Olga Brandt"),
]


@pytest.fixture(scope="module")
def knows_languages() -> Embedder:
    found = open_embedder("multilingual")
    assert found
    return found


def test_what_means_the_same_is_near_in_every_language(knows_languages: Embedder) -> None:
    rows = knows_languages.embed([text for same in SAME for text in same])
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    cosines = rows @ rows.T
    meaning = np.arange(len(rows)) // len(SAME[0])
    same = meaning[:, None] == meaning[None, :]
    off_diagonal = ~np.eye(len(rows), dtype=bool)
    assert cosines[same & off_diagonal].min() > cosines[~same].max()
    assert np.array_equal(knows_languages.embed([SAME[1][1]])[0], rows[4])
    assert knows_languages.count_tokens("") > 0


def test_documents_in_english_answer_questions_in_other_languages(knows_languages: Embedder, tmp_path: Path) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in DOCUMENTS.items():
        (folder / name).write_text(text, encoding="utf-8")
    index = open_documents(folder, tmp_path / "cache", knows_languages, no_progress).index
    assistant = open_assistant(open_collection(str(folder), index, knows_languages), "none")
    for question, expected in QUESTIONS:
        response = Session(assistant, Store(None)).ask(question).response
        assert (question, says_not_found(response)) == (question, False)
        assert expected in response.sentences[0].text
    assert says_not_found(Session(assistant, Store(None)).ask("Wie hoch ist der Eiffelturm?").response)


def test_the_reader_finds_answers_across_languages(knows_languages: Embedder) -> None:
    read, texts = knows_languages.read, list(DOCUMENTS.values())
    assert read
    for question, expected in (QUESTIONS[0], QUESTIONS[1], QUESTIONS[3]):  # it does not know the jam
        found = [read(question, text, False)[0] for text in texts]
        margins = [float(each.starts.max() + each.ends.max()) - each.nothing for each in found]
        assert sorted(margins)[-2] < 0 < max(margins)
        assert expected in texts[int(np.argmax(margins))]


def test_who_asks_in_another_language_is_told_once_how(minilm: Embedder, tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / "garden.txt").write_text(DOCUMENTS["garden.txt"], encoding="utf-8")
    index = open_documents(tmp_path / "documents", tmp_path / "cache", minilm, no_progress).index
    said = StringIO()
    session = Session(open_assistant(open_collection("documents", index, minilm), "none"), Store(None))
    terminal = Terminal(session, Console(file=said, soft_wrap=True))
    for line in ("Who owns the fence?", "Wem gehört der Zaun auf der Ostseite?", "Und wem gehört die Hecke?"):
        terminal.handle(line)
    assert terminal.exit_code == 0
    assert said.getvalue().count("convagent model pull multilingual") == 1


def test_a_centre_that_is_missing_is_told_with_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multilingual, "MULTILINGUAL_CENTRE", tmp_path / "gone.json")
    with pytest.raises(MissingError, match="is not there"):
        open_embedder("multilingual")


def test_doctor_knows_the_embedding_model_of_other_languages() -> None:
    found = examine_machine("none", "multilingual", {})
    assert not any("multilingual" in trouble.what for trouble in found.troubles)


def test_weights_that_are_missing_or_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = multilingual.find_weights()
    monkeypatch.setattr("agent.models.bundled.find_spec", lambda _package: None)
    monkeypatch.setenv("CONVAGENT_DATA", str(tmp_path))
    with pytest.raises(MissingError, match="not installed") as caught:
        open_embedder("multilingual")
    assert "convagent model pull multilingual" in caught.value.remedy
    assert "model pull multilingual" in {entry.name: entry.remedy for entry in list_models()}["multilingual"]
    folder = multilingual.WEIGHTS.pulled_folder
    folder.mkdir(parents=True)
    shutil.copy(source, folder)
    assert multilingual.find_weights().parent == folder
    with (folder / source.name).open("r+b") as file:
        file.write(b"x")
    with pytest.raises(InvalidInputError, match="SHA-256 differs"):
        multilingual.find_weights()
