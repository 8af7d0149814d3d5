"""What went wrong when a newcomer asked their own documents: each case stays right, on other processors too."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agent.chat.session import Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.registry import open_embedder
from agent.turn.extractive_answer import says_not_found
from indexes.documents.document_index import open_documents
from indexes.index_vectors import cache_vectors
from schemas.records import Response
from tests.conftest import needs_embedder, no_progress, read_cases

DOCUMENTS = {
    "recipes/satay.md": "# Satay noodles\n\nBoil the noodles and stir in the peanut butter. Ready in 20 minutes.\n\n"
    "Warning: dangerous for people who are allergic to peanuts.\n",
    "recipes/lentil-soup.md": "# Lentil soup\n\nA warm dinner for four: cook the lentils for 25 minutes.\n\n"
    "Contains celery.\n",
    "recipes/rye-bread.md": "# Rye bread\n\nBake it for an hour. Wrapped in a cloth, the rye bread keeps nine days.\n",
    "recipes/plum-jam.md": "# Plum jam\n\nBoil the plums with sugar. In a cool cellar the jam keeps for a year.\n",
    "home/lease.txt": "LEASE\n\nPets\n\nDogs may be kept only with written permission of the landlord.\n",
    "home/insurance.txt": "HOUSEHOLD INSURANCE\n\nNatural hazards: flood and backwater. It was not agreed in this "
    "contract.\n",
    "home/boiler.md": "# Boiler\n\nInstalled in May 2016.\n\n## Displays\n\nF.22 means that the water pressure is too "
    "low.\n"
    "To top up: open the black valve until the needle stands at 1.5 bar.\n",
    "health/vaccinations.csv": "vaccine,year,doctor\nInfluenza,2022,Rosa Tamm\nTetanus,2019,Rosa Tamm\n",
    "work/plan.md": "# Release plan\n\nHeron gets released on 14 October. It is so late because the new payment "
    "service has to be "
    "certified first.\n",
    "travel/harnby.md": "# Weekend in Harnby\n\n## Getting there\n\nThe night train to Harnby costs 61 EUR.\n\n"
    "## Hotel\n\nThe hotel in Harnby costs 94 EUR per night.\n\n## Hut\n\nThe hut in Harnby costs 52 EUR per night.\n",
    "garden/sales.csv": "date,what,bottles,price\n2024-06-02,rhubarb juice,3,4.50 EUR\n"
    "2024-06-16,rhubarb juice,5,7.50 EUR\n"
    "2024-07-01,elder syrup,2,6.00 EUR\n",
    "club/boat-fees-2023.md": "# Boat fees 2023\n\nAn hour in the canoe costs 9 EUR.\n",
    "club/boat-fees-2025.md": "# Boat fees 2025\n\nAn hour in the canoe costs 12 EUR.\n",
    "club/allotment.md": "# Allotment rules\n\nA lost key costs 40 pounds. The gate is locked at nine in the evening.\n"
    "Dev, the caretaker, opens the shed on Saturdays.\n"
    "The water tank holds 1,200 litres and stands behind the shed. Bicycles may be left in the rack by the gate.\n",
    "home/contacts.csv": "name,role,phone\nRosa Tamm,plumber,0555 238 41\nHalvorsen,chimney sweep,0555 660 17\n",
    "haus/garten.txt": "Pachtvertrag über den Garten am Mühlbach\n\nDie Jahrespacht beträgt 180 Euro und ist am "
    "1. November fällig. Der Pächter hält die Hecke unter 1,20 Metern.\n",
    "haus/heizung.md": "# Heizung\n\nDie Wartung der Heizung macht Firma Brandl jedes Jahr im September. "
    "Sie kostet 140 Euro.\nDer Schlüssel zum Keller hängt im Flur.\n",
    "haus/hausordnung.md": "# Hausordnung\n\nDer Fahrradkeller ist im Hof. Die Mülltonnen werden am Dienstag geleert. "
    "Bei einem Wasserrohrbruch ist Herr Petersen anzurufen.\n",
    "club/sauna.txt": "The sauna of the rowing club is closed on Mondays.\n",
}
Ask = Callable[..., Response]


@pytest.fixture(scope="module")
def assistants() -> dict[int, Assistant]:
    """An assistant for each processor that is simulated, opened by its first test."""
    return {}


@pytest.fixture
def ask(assistants: dict[int, Assistant], tmp_path: Path, jitter: int) -> Ask:
    """Asks questions one after the other, of a person who made some statements; gives the last answer."""
    if jitter not in assistants:
        folder, opened = tmp_path / "documents", open_embedder("minilm")
        assert opened is not None
        embedder = cache_vectors(opened)
        for name, text in DOCUMENTS.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        index = open_documents(folder, tmp_path / "cache", embedder, no_progress).index
        assistants[jitter] = open_assistant(open_collection(str(folder), index, embedder), "none")

    def converse(*utterances: str, about: str = "") -> Response:
        session = Session(assistants[jitter], Store(None))
        if about:
            session.store.add_statement(about)
        return [session.ask(utterance) for utterance in utterances][-1].response

    return converse


pytestmark = [pytest.mark.story, needs_embedder]


def test_what_is_dangerous_is_no_dinner_and_its_warning_is_not_cut_out_of_it(ask: Ask) -> None:
    allergic = ask("What could I cook tonight?", about="I am allergic to peanuts.")
    assert "peanut butter" not in allergic.text
    assert "dangerous for people" in ask("How do I make the satay noodles?", about="I am allergic to peanuts.").text


FIRST = read_cases("first_sentences")["cases"]
NEVER = ("not agreed", "peanut", "jam", "Influenza", "I found no answer")  # in the answers to the first five


def test_the_sentence_that_answers_stands_first(ask: Ask) -> None:
    for number, (asked, first) in enumerate(FIRST):
        response = ask(asked)
        assert first in f"{response.direct} {response.sentences[0].text}", asked
        assert number >= len(NEVER) or NEVER[number] not in response.text, asked


def test_noise_of_an_earlier_answer_does_not_come_back(ask: Ask) -> None:
    response = ask("When was the boiler installed?", "And what should I do when it shows F.22?")
    assert ("F.22" in response.sentences[0].text, "Influenza" in response.text) == (True, False)


def test_both_halves_of_a_question_are_answered(ask: Ask) -> None:
    assert "certified first" in ask("When does Heron get released, and why so late?").text
    response = ask("Was kostet die Heizungswartung?")  # stands in the sentence after what it is
    assert (says_not_found(response), "140 Euro" in response.text) == (False, True)


def test_what_is_said_of_another_thing_is_no_answer(ask: Ask) -> None:
    for asked in ("How big is the bathtub?", "Wie teuer war das Dach?", "Wann kommt der Gärtner?"):
        assert says_not_found(ask(asked)), asked
