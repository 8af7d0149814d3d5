"""Documents and questions in other languages than English: found by their own stems, answered in their own words."""

from pathlib import Path

import pytest

from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.terminal.progress import stage_progress
from agent.turn.extractive_answer import says_not_found
from agent.turn.interface_sentences import SENTENCES, strip_not_found
from indexes.documents.document_index import open_documents
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from indexes.text.analysis import ANALYZER, extract_stems, load_stop_words, separate_pairs
from indexes.text.languages import KNOWN, find_document_language, find_question_language, rank_languages, stem_query
from schemas.records import Sentence, TurnResult
from tests.conftest import needs_embedder, read_cases

CASES = read_cases("languages")
DOCUMENTS: dict[str, list[str]] = CASES["documents"]
# Inflected as no document has the words, with what the sentence that answers has.
QUESTIONS = CASES["questions"]
# Each has a word that some document has, and nothing more.
UNANSWERED = CASES["unanswered"]
Folder = tuple[PassageIndex, Path]


def open_folder(folder: Path, languages: list[str], embedder: Embedder | None = None) -> PassageIndex:
    """The index of a folder with the documents in these languages."""
    folder.mkdir()
    for language in languages:
        for number, text in enumerate(DOCUMENTS[language]):
            (folder / f"{language}{number}.md").write_text(text)
    return open_documents(folder, folder.with_name("cache"), embedder, stage_progress).index


def ask(index: PassageIndex, folder: Path, question: str, embedder: Embedder | None = None) -> TurnResult:
    """What a new conversation over the folder answers."""
    assistant = open_assistant(open_collection(str(folder), index, embedder), "none")
    return Session(assistant, Store(folder.with_name("chats.sqlite"))).ask(question)


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    """A folder with documents in every language, without vectors."""
    folder = tmp_path_factory.mktemp("languages") / "notes"
    return open_folder(folder, list(DOCUMENTS)), folder


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory, minilm: Embedder) -> Folder:
    """The same with vectors."""
    folder = tmp_path_factory.mktemp("languages") / "notes"
    return open_folder(folder, list(DOCUMENTS), minilm), folder


def check_answer(answered: TurnResult, language: str, expected: str) -> None:
    first = next(sentence for sentence in answered.response.sentences if sentence.passage_ids)
    assert expected in first.text
    assert all(id.startswith(language) for id in first.passage_ids)
    assert not says_not_found(answered.response)


def test_inflected_words_find_the_document(everything: Folder) -> None:
    for language, question, expected in QUESTIONS:
        check_answer(ask(*everything, question), language, expected)


@needs_embedder
def test_inflected_words_find_the_document_beside_an_english_model(embedded: Folder, minilm: Embedder) -> None:
    """Nor does it take any sentence for an answer."""
    for language, question, expected in QUESTIONS:
        check_answer(ask(*embedded, question, minilm), language, expected)
    for language in ("de", "fr"):
        assert says_not_found(ask(*embedded, UNANSWERED[language], minilm).response)


@pytest.mark.parametrize("language", UNANSWERED)
def test_that_nothing_was_found_is_said_in_the_language_of_the_question(everything: Folder, language: str) -> None:
    response = ask(*everything, UNANSWERED[language]).response
    assert response.sentences[0] == Sentence(SENTENCES[language].not_found, ())
    assert says_not_found(response)
    assert strip_not_found(response.text) == response.cited_text != ""


def test_a_document_in_another_language_joins_a_folder_in_english(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "bread.md").write_text(
        "# Bread\n\nThe rye bread of the Müllers keeps for nine days. It is baked on Fridays.\n"
    )
    index = open_documents(folder, tmp_path / "cache", None, stage_progress).index
    assert (index.info.analyzer, index.languages) == (ANALYZER, ("en",))
    assert index.weigh([("Müllers' breads 鍵", 1.0)]) == {"muller": 1.0, "bread": 1.0, "鍵": 1.0}
    (folder / "miete.md").write_text(DOCUMENTS["de"][1])
    index = open_documents(folder, tmp_path / "cache", None, stage_progress).index
    assert index.languages == ("de", "en")
    assert {passage.document: passage.language for passage in index.read(index.get_ids(range(len(index))))} == {
        "bread.md": "en",
        "miete.md": "de",
    }
    for question, document in (("How long do rye breads keep?", "bread.md"), ("Was kosten die Mieten?", "miete.md")):
        assert index.search([(question, 1.0)], 1)[0].id.startswith(document)


def test_the_language_of_a_document_is_found_and_english_where_none_is_sure() -> None:
    for language, texts in DOCUMENTS.items():
        assert [find_document_language([text]) for text in texts] == [language] * 2
    assert [[text, find_document_language([text])] for text, _ in CASES["unsure"]] == CASES["unsure"]


def test_every_language_can_be_analysed() -> None:
    """Each has an analyzer, and words that the identifier and the lists of stop words know."""
    for language in KNOWN - {"en"}:
        assert extract_stems("IBAN 4711", language)[-1] == "4711"
        assert not set(load_stop_words(language)) <= set(load_stop_words("en"))
    assert set(KNOWN) <= dict(rank_languages("Text", KNOWN)).keys()


def test_the_language_of_a_question_is_found_where_it_is_sure() -> None:
    asked = CASES["questions_alone"]
    assert [[question, find_question_language(question)] for question, _ in asked] == asked


def test_stems_are_those_of_the_language() -> None:
    assert extract_stems("Die Häuser der Schlüssel", "de") == ["haus", "schlussel"]
    assert extract_stems("umowy najmu", "pl") == ["umowy", "najmu"]  # no stemmer: as they are
    assert separate_pairs("a鍵は赤b").split() == ["a", "鍵は", "は赤", "b"]
    assert extract_stems("東京の鍵", "ja") == ["東京", "京の", "の鍵"]
    assert stem_query("Wie hoch sind die Mieten?", ["de", "en"]) == ["hoch", "miet", "mieten"]
