"""What is computed over all rows of a table, and above all what is not: a wrong result is the worst answer."""

import re
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import pytest

from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.turn.tables.answer import compute_over_tables
from indexes.documents.collection import WholeDocuments
from indexes.documents.document_index import open_documents
from indexes.documents.tables.table import list_tables
from indexes.passage_index import PassageIndex
from indexes.ranking.vectors import Embedder
from tests.conftest import needs_embedder, read_cases

# Documents and questions with what is said, nothing where it is in doubt.
FOLDERS = read_cases("table_questions")


def index(folder: Path, files: dict[str, str]) -> PassageIndex:
    for name, text in files.items():
        (folder / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "docs" / name).write_text(text, encoding="utf-8")
    return open_documents(folder / "docs", folder, None, lambda _doing, _of: nullcontext(lambda _done: None)).index


def compute(question: str, documents: WholeDocuments, earlier: Sequence[str] = ()) -> str:
    computed = compute_over_tables(question, documents, earlier)
    return computed.response.direct if computed else ""


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, WholeDocuments]:
    return {
        name: WholeDocuments(index(tmp_path_factory.mktemp(name), folder["documents"]))
        for name, folder in FOLDERS.items()
    }


@pytest.mark.parametrize("name", FOLDERS)
def test_answers_are_computed_over_all_rows_or_not_at_all(name: str, folders: dict[str, WholeDocuments]) -> None:
    asked = dict(FOLDERS[name]["questions"])
    assert {question: compute(question, folders[name]) for question in asked} == asked


@pytest.mark.story
@needs_embedder
@pytest.mark.parametrize(("name", "least", "most_wrong"), [("first", 31, 1), ("second", 30, 1), ("third", 38, 6)])
def test_words_are_told_by_what_they_mean(
    name: str, least: int, most_wrong: int, minilm: Embedder, tmp_path: Path
) -> None:
    """Questions by somebody who had not seen the rules: most are answered, and hardly one wrongly."""
    folder = read_cases("table_meanings")[name]
    documents = WholeDocuments(index(tmp_path, folder["documents"]))
    asked = [(wanted, compute_over_tables(ask, documents, (), minilm.embed)) for ask, wanted in folder["questions"]]
    answered = [(wanted, found.response) for wanted, found in asked if found]
    right = [bool(re.search(wanted, f"{said.direct} {said.text}", re.DOTALL)) for wanted, said in answered]
    assert sum(right) >= least
    assert right.count(False) <= most_wrong


@needs_embedder
def test_a_limit_is_never_read_as_another(minilm: Embedder, folders: dict[str, WholeDocuments]) -> None:
    for ask, said in {
        "which boats have at least 3 seats?": "",
        "which boats have no more than 2 seats?": "",
        "which invoices are over 1.5 euros?": "",
        "which invoices are over 1,000 euros?": "1 of 6 rows: repair of Gannet's keel.",
    }.items():
        found = compute_over_tables(ask, folders["club"], (), minilm.embed)
        assert (found.response.direct if found else "") == said, ask


COSTS = "How much did we spend on food?"
# A question, the table's name, its lines, and what is said: nothing where it is in doubt.
SMALL_DIFFERENCES = read_cases("table_differences")["cases"]


def test_small_differences_decide(tmp_path: Path) -> None:
    files = {f"case{n}/{name}.csv": text.replace("|", "\n") for n, (_, name, text, _) in enumerate(SMALL_DIFFERENCES)}
    differing, said = index(tmp_path, files), []
    ids = differing.get_ids(range(len(differing)))
    for n, (question, name, text, _) in enumerate(SMALL_DIFFERENCES):
        own = tuple(number for number, id in enumerate(ids) if id.startswith(f"case{n}/{name}.csv:"))
        said.append([question, name, text, compute(question, WholeDocuments(differing, own))])
    assert said == SMALL_DIFFERENCES


def test_two_tables_must_say_the_same(tmp_path: Path) -> None:
    files = {
        "expenses-2024.csv": "day,what,amount\nMon,food,3 EUR\nTue,food,4 EUR\n",
        "expenses-2025.csv": "day,what,amount\nMon,food,5 EUR\nTue,food,4 EUR\n",
    }
    documents = WholeDocuments(index(tmp_path / "a", files))
    assert compute(COSTS, documents) == ""
    assert compute("How much did we spend on food in 2025?", documents) == "5 + 4 = 9 EUR."
    copied = {"expenses.csv": files["expenses-2024.csv"], "copy/expenses.csv": files["expenses-2024.csv"]}
    assert compute(COSTS, WholeDocuments(index(tmp_path / "b", copied))) == "3 + 4 = 7 EUR."


def test_a_long_table_is_counted_whole_and_a_few_rows_are_shown(tmp_path: Path) -> None:
    """The rows are in several passages, each found or not by a search."""
    lines = [f"| 2025-01-{day:02} | walk {day} | {day % 7}.5 |" for day in range(1, 31)]
    table = "\n".join(["# Walks", "", "| date | where | km |", "|---|---|---|", *lines])
    found = WholeDocuments(index(tmp_path, {"walks.md": table}))
    assert len(found) > 1
    assert [len(table.rows) for table in list_tables(found)] == [30]
    computed = compute_over_tables("How many km did the walks have in January 2025?", found)
    assert computed
    assert computed.response.direct == "Sum of 30 rows: 102.0 km."
    assert [bool(sentence.passage_ids) for sentence in computed.response.sentences] == [True] * 5 + [False]
    assert computed.response.sentences[-1].text == "And 25 more rows."
    assert set(computed.response.used) == {passage.id for passage in computed.passages}


def test_a_table_with_a_row_that_was_cut_is_not_counted(tmp_path: Path) -> None:
    note = "One sentence of several words that goes on for a while without an end in sight. " * 20
    table = f"name,town,note\nIda,Bonn,short\nTom,Bonn,{note}\nMira,Bonn,short\nPaul,Bonn,short\n"
    found = WholeDocuments(index(tmp_path, {"contacts.csv": table}))
    assert len(found) > 4
    assert compute("How many contacts are there in Bonn?", found) == ""


@pytest.mark.story
def test_a_chat_computes_shows_its_rows_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    session = Session(
        open_assistant(open_collection(str(folder), index(tmp_path, FOLDERS["home"]["documents"]), None), "none"),
        Store(None),
    )
    answered = session.ask("How many bottles of rhubarb did we sell in June?")
    assert answered.response.direct == "3 + 5 + 2 = 10 bottles."
    assert answered.response.used == tuple(f"shop/sales.csv:{line}" for line in (3, 5, 6))
    assert {passage.id for passage in answered.passages} == set(answered.response.used)
    assert session.ask("And in July?").response.direct == ""  # of rhubarb none
    assert not session.ask("Was the cinema full?").response.direct.startswith("3")


@pytest.mark.parametrize(
    ("earlier", "question", "direct"),
    [
        (["What did the repairs cost?"], "And at Bike Barn?", "35 + 28.5 = 63.5."),
        (["What did the repairs cost?", "And at Bike Barn?"], "And at Wheelfix?", "64."),
        (["What did the repairs cost?", "And at Bike Barn?"], "What about March?", "28.5."),
        (["How many repairs are not paid?"], "And at Bike Barn?", "1 of 4 rows: brake pads."),
        (["Who is Petr?"], "And at Bike Barn?", ""),
        ([], "And at Bike Barn?", ""),
    ],
)
def test_a_sum_goes_on_with_the_question_before(
    folders: dict[str, WholeDocuments], earlier: list[str], question: str, direct: str
) -> None:
    assert compute(question, folders["workshop"], earlier) == direct


def test_titles_empty_cells_and_ways_of_writing_are_read(tmp_path: Path) -> None:
    html = "<table><tr><th>Place</th><th>Name</th><th>Club</th></tr><tr><td>1</td><td>Ida</td><td></td></tr>"
    html += "<tr><td>2</td><td>Mia</td><td>TV</td></tr>"
    files = {
        "run.html": f"{html}<tr><td></td><td>Tom</td><td><p>LG</p><p>Nord</p></td></tr></table>",
        "bills.csv": 'Bills of 2024\n\nFirm,Amount,Day\nOtt,"CHF 1\'200",Wed 11 June\nKern,CHF 900,Thu 12 June\n',
    }
    tables = {table.name: table for table in list_tables(WholeDocuments(index(tmp_path, files)))}
    assert [dict(row.cells) for row in tables["run"].rows] == [
        {"Place": "1", "Name": "Ida"},
        {"Place": "2", "Name": "Mia", "Club": "TV"},
        {"Name": "Tom", "Club": "LG Nord"},
    ]
    firm, amount, day = tables["bills"].columns
    assert (firm.name, [number and number.value for number in amount.numbers]) == ("Firm", [1200, 900])
    assert [date and (date.month, date.day) for date in day.dates] == [(6, 11), (6, 12)]
