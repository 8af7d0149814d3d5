"""What is computed over all rows of a table, and above all what is not: a wrong result is the worst answer."""

from collections.abc import Sequence
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path

import openpyxl
import pytest

from agent.chat.session import Session, open_assistant
from agent.chat.store import Store
from agent.turn.tables.answer import compute_over_tables
from agent.turn.tables.cells import Period, read_dates, read_numbers, read_period
from agent.turn.tables.question import read_table_question
from agent.turn.tables.rows import list_tables
from indexes.documents.document_index import open_documents
from indexes.documents.whole_documents import WholeDocuments
from indexes.passage_index import PassageIndex

SALES = """date,product,bottles,price each,customer
2025-05-02,rhubarb,4,7.50,Inn at the Lock
2025-06-03,rhubarb,3,7.50,Tall Ship
2025-06-11,elderflower,6,6.00,Tall Ship
2025-06-18,rhubarb,5,7.50,Market
2025-06-28,rhubarb,2,7.50,Inn at the Lock
2025-07-01,pear juice,9,5.00,Market
2025-07-04,pear,1,5.00,Market
"""
EXPENSES = """date;what;category;amount EUR;who;receipt
2025-03-01;groceries;food;58.40;Ines;yes
2025-03-08;cinema;leisure;21.00;Tom;no
2025-03-15;market;food;12.30;Tom;yes
2025-04-02;market;food;9.80;Tom;yes
2025-04-04;train;travel;44.00;Ines;no
total;;;145.50;;
"""
CONTACTS = """name,phone,email,town,born
Ida Berg,0555 111,ida@x.org,Bonn,1980-03-04
Tom Rask,,tom@x.org,Köln,1975-05-06
Mira Holt,0555 333,,Bonn,1990-07-08
Paul Thoma,-,,Bonn,2001-01-01
"""
GARDEN = """# Garden 2025

We kept a record.

## Harvest

| date | crop | kg |
|---|---|---|
| 3 June | peas | 1.5 |
| 12 June | beans | 3.25 |
| 4 July | beans | 2 |

## Seeds

| seed | packets | price |
|---|---|---|
| peas | 2 | 3.20 EUR |
| beans | 1 | 4.10 EUR |
"""
BOATS = """<h1>Our boats</h1><table><tr><th>boat</th><th>built</th><th>weight</th></tr>
<tr><td>Heron</td><td>1998</td><td>27 kg</td></tr><tr><td>Otter</td><td>2011</td><td>14 kg</td></tr>
<tr><td>Teal</td><td>2004</td><td>33 kg</td></tr></table>"""
FOLDER = {
    "shop/sales.csv": SALES,
    "home/expenses.csv": EXPENSES,
    "contacts.csv": CONTACTS,
    "garden.md": GARDEN,
    "boats.html": BOATS,
    "notes.txt": "The cinema was full. We sold nothing on Sunday.",
}
REPAIRS = """date,shop,repair,bike,price,hours,paid
2025-01-10,Bike Barn,new chain,red,35,1,yes
2025-02-12,Spoke & Co,wheel trued,blue,20,0.5,no
2025-03-05,Bike Barn,brake pads,blue,28.5,1.5,no
2025-04-18,Wheelfix,bottom bracket,red,64,2,yes
"""
LOANS = """title,author,lent to
Moss,Tarvainen,Petr
Salt,Verhoeven,
Clock,Oyelaran,
"""
WORKSHOP = {
    "repairs.csv": REPAIRS,
    "books.csv": LOANS,
    "honey.csv": "date,hive,honey in kg\n2025-05-28,A,11.5\n2025-06-01,B,8\n2025-07-19,A,14\n",
}
FOREIGN = {
    "de.csv": "Datum;Aufgabe;wer;Stunden\n2025-03-15;Wege belegen;Lindner;3\n2025-04-12;Dach des Hauses;Lindner;2,5\n"
    "2025-05-24;Kompostplatz;Aksoy;5\n",
    "konzert.md": "# Konzert der Kantorei\n\nDas Konzert ist am Sonntag in der Kirche.\n\n## Karten\n\n"
    "| Platz | Preis | Anzahl |\n|---|---|---|\n| Schiff | 22 EUR | 180 |\n| Empore | 9 EUR | 60 |\n",
    "cave.csv": "vin;couleur;bouteilles\nClos Vermeil;rouge;9\nDomaine Lys;blanc;6\nCôte d'Aubry;rouge;14\n",
    "gastos.csv": "fecha;concepto;importe EUR;pagado por\n2025-09-08;libro de texto;34,9;Katrin\n"
    "2025-10-02;cuaderno;18,5;Bram\n2025-12-01;examen de septiembre;45;Bram\n",
    "uitgaven.csv": "datum;wat;kosten EUR;groep\n2025-09-18;museum voor kinderen;12,5;groep 6\n"
    "2026-01-22;theater;14;groep 6\n2026-03-12;fabriek;6,5;groep 7\n",
}
FOLDERS = {"home": FOLDER, "workshop": WORKSHOP, "foreign": FOREIGN}


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
    return {name: WholeDocuments(index(tmp_path_factory.mktemp(name), files)) for name, files in FOLDERS.items()}


@pytest.fixture
def documents(folders: dict[str, WholeDocuments]) -> WholeDocuments:
    return folders["home"]


ASKED = {  # "": nothing is computed, for it is in doubt
    "home": [
        ("How many bottles of rhubarb did we sell in June?", "3 + 5 + 2 = 10 bottles."),
        ("And how many bottles of rhubarb did we sell in June 2025?", "3 + 5 + 2 = 10 bottles."),
        ("How many bottles did we sell to the Tall Ship?", "3 + 6 = 9 bottles."),
        ("How many bottles of elderflower did we sell?", "6 bottles."),
        ("What is the total of bottles?", "Sum of 7 rows: 30 bottles."),
        ("How much did we spend on food in March?", "58.40 + 12.30 = 70.70 EUR."),
        ("How much did Tom spend on food?", "12.30 + 9.80 = 22.10 EUR."),
        ("How much did we spend in the first quarter of 2025?", "58.40 + 21.00 + 12.30 = 91.70 EUR."),
        ("What did we spend in total?", "58.40 + 21.00 + 12.30 + 9.80 + 44.00 = 145.50 EUR."),
        ("What is the sum of the amount in the expenses for food?", "58.40 + 12.30 + 9.80 = 80.50 EUR."),
        ("How many expenses were there in March?", "3 of 5 rows."),
        ("How many expenses have no receipt?", "2 of 5 rows."),
        ("Which expenses have a receipt?", "3 of 5 rows."),
        ("Which is the most expensive expense?", "Groceries: 58.40 EUR."),
        ("What was our cheapest purchase in March?", "Market: 12.30 EUR."),
        ("What is our latest expense?", "Train: 2025-04-04."),
        ("How many contacts have a phone number?", "2 of 4 rows."),
        ("How many contacts have no phone number?", "2 of 4 rows."),
        ("How many contacts do we have?", "4 rows."),
        ("How many people live in Bonn?", "3 of 4 rows."),
        ("List all contacts in Bonn", "3 of 4 rows."),
        ("Who is the oldest contact?", "Tom Rask: 1975-05-06."),
        ("How many kilos of beans did we harvest?", "3.25 + 2 = 5.25 kg."),
        ("How many kg of beans did we harvest in July 2025?", "2 kg."),
        ("How many packets of seeds do we have?", "2 + 1 = 3 packets."),
        ("Which is the most expensive seed?", "Beans: 4.10 EUR."),
        ("Which boat is the oldest?", "Heron: 1998."),
        ("Which boat is the heaviest?", "Teal: 33 kg."),
        ("How many bottles of pear did we sell?", ""),  # pear juice as well?
        ("How many bottles of quince did we sell?", ""),
        ("How many bottles of rhubarb did we sell in June 2024?", ""),
        ("How many bottles of rhubarb did we make in June?", ""),
        ("How many bottles of rhubarb did we not sell?", ""),
        ("How many bottles of rhubarb did we sell last month?", ""),
        ("How many bottles of rhubarb did we sell before June?", ""),
        ("How many bottles of rhubarb and pear did we sell?", ""),
        ("How many bottles of rhubarb did we sell from May to June?", ""),
        ("How many bottles of rhubarb did each customer buy?", ""),
        ("How many more bottles did we sell in June than in May?", ""),
        ("How many sales are above 5 bottles?", ""),
        ("How many customers did we have?", ""),
        ("Which product sold the most bottles?", ""),
        ("Which customer bought the most bottles?", ""),
        ("What is the average of bottles?", ""),
        ("What is the total of price each?", ""),
        ("What is the total?", ""),
        ("What is the total price of the seeds?", ""),
        ("How much did I spend on food?", ""),
        ("How much did she spend on food?", ""),
        ("How much did we spend on groceries and cinema?", ""),
        ("How much did we spend on drinks?", ""),
        ("How much did we spend on food in 2024?", ""),
        ("How much does the train cost?", ""),
        ("Who spent the most?", ""),
        ("Which is the newest contact?", ""),
        ("Which is the most expensive?", ""),
        ("How many of them have a phone number?", ""),
        ("How many contacts have a phone number or an email address?", ""),
        ("How many contacts do not have a phone number?", ""),
        ("How many rows are there?", ""),
        ("How many kilos of peas did we harvest in 2024?", ""),
        ("Was the cinema full?", ""),
        ("How long does the bread keep?", ""),
        ("How many expenses are by category?", ""),
        ("How many contacts are in town?", ""),
    ],
    "workshop": [
        ("How many repairs are not paid?", "2 of 4 rows."),
        ("How many repairs haven't been paid yet?", "2 of 4 rows."),
        ("Which repairs are unpaid?", "2 of 4 rows."),
        ("How many repairs are paid?", "2 of 4 rows."),
        ("How many books are not lent out?", "2 of 3 rows."),
        ("What did the repairs cost?", "35 + 20 + 28.5 + 64 = 147.5."),
        ("What is the total price of the repairs?", "35 + 20 + 28.5 + 64 = 147.5."),
        ("How many hours did the repairs take?", "1 + 0.5 + 1.5 + 2 = 5.0 hours."),
        ("How much honey did we harvest in 2025?", ""),  # "harvest" is no word of the table
        ("How much honey was there in 2025?", "11.5 + 8 + 14 = 33.5 kg."),
        ("How often was the red bike in the repairs?", "2 of 4 rows."),
        ("Which repair was the most expensive?", "Bottom bracket: 64."),
        ("Which repair has the highest price?", "Bottom bracket: 64."),
        ("How much did we pay for repairs?", ""),  # some are not paid
        ("How many repairs are not red?", ""),
        ("What did the red bike cost?", ""),  # it was repaired twice
        ("What did the repairs of the red bike cost?", "35 + 64 = 99."),
        ("How many bikes are not paid?", ""),
        ("How many books are not by Tarvainen?", ""),
    ],
    "foreign": [
        ("Wie viele Stunden hat Lindner?", "3 + 2.5 = 5.5 Stunden."),
        ("Wie viele Karten gibt es für das Konzert der Kantorei insgesamt?", "180 + 60 = 240."),
        ("Combien de bouteilles de vin rouge y a-t-il à la cave ?", "9 + 14 = 23 bouteilles."),
        ("Combien de bouteilles de vin rosé y a-t-il à la cave ?", ""),
        ("¿Cuánto ha pagado Bram en total?", "18.5 + 45 = 63.5 EUR."),
        ("¿Cuánto no ha pagado Bram?", ""),
        ("Hoeveel hebben we voor groep 6 uitgegeven?", "12.5 + 14 = 26.5 EUR."),
        ("Wat hebben we meer dan 10 EUR uitgegeven?", ""),
    ],
}


@pytest.mark.parametrize(
    ("folder", "question", "direct"), [(name, *case) for name, cases in ASKED.items() for case in cases]
)
def test_answers_are_computed_over_all_rows_or_not_at_all(
    folder: str, question: str, direct: str, folders: dict[str, WholeDocuments]
) -> None:
    assert compute(question, folders[folder]) == direct


COSTS = "How much did we spend on food?"
WINE = "Which wine is the most expensive?"
ALL_COSTS = "How much did we spend?"
IN_MARCH = "How much did we spend on food in March?"
APPLES = "How many apples did we order?"


SMALL_DIFFERENCES = [
    (COSTS, "expenses.csv", "what,amount\nfood,3 EUR\nfood,3 EUR\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,3 EUR\nTue,food,4 EUR\n", "3 + 4 = 7 EUR."),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,€3.50\nTue,food,€4\n", "3.50 + 4 = €7.50."),
    (
        COSTS,
        "expenses.csv",
        "day;what;amount\nMon;food;3,50 EUR\nTue;food;1.004,25 EUR\n",
        "3.50 + 1,004.25 = 1,007.75 EUR.",
    ),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,3 EUR\nTue,food,4 USD\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,3 EUR\nTue,food,4\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,3-4 EUR\nTue,food,4 EUR\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,about 3 EUR\nTue,food,4 EUR\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,\nTue,food,4 EUR\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,-3 EUR\nTue,food,4 EUR\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,1.500\nTue,food,4\n", ""),
    (COSTS, "expenses.csv", "day,what,amount\nMon,food,3\nTue,pet food,4\n", ""),
    (COSTS, "expenses.csv", "day,what,amount,currency\nMon,food,3,EUR\nTue,food,4,GBP\n", ""),
    (COSTS, "expenses.csv", "day,what,amount,currency\nMon,food,3,EUR\nTue,food,4,EUR\n", "3 + 4 = 7 EUR."),
    (COSTS, "expenses.csv", "day,what,amount,tip\nMon,food,3 EUR,1 EUR\nTue,food,4 EUR,1 EUR\n", ""),
    (COSTS, "expenses.csv", "day,what,amount,status\nMon,food,3,paid\nTue,food,4,cancelled\n", ""),
    (COSTS, "expenses.csv", "day,what,price,quantity\nMon,food,3,2\nTue,food,4,1\n", ""),
    (COSTS, "expenses.csv", "day,what,balance EUR\nMon,food,3\nTue,food,4\n", ""),
    (COSTS, "expenses.csv", "day,what,price,billing\nMon,food,3,monthly\nTue,food,4,yearly\n", ""),
    (COSTS, "income.csv", "day,what,amount\nMon,food,3 EUR\nTue,food,4 EUR\n", ""),
    (ALL_COSTS, "expenses.csv", "day,what,amount\nMon,a,3\nTue,b,4\nTotal,,8\n", ""),
    (ALL_COSTS, "expenses.csv", "day,what,amount\nMon,a,3\nTue,b,4\nTotal,,7\n", "3 + 4 = 7."),
    (ALL_COSTS, "expenses.csv", "day,what,amount\nMon,a,3\nTue,b,4\n,,7\n", ""),
    (IN_MARCH, "expenses.csv", "day,what,amount\n2024-03-01,food,3 EUR\n2025-03-02,food,4 EUR\n", ""),
    (
        "How much did we spend on food in March 2025?",
        "expenses.csv",
        "day,what,amount\n2024-03-01,food,3 EUR\n2025-03-02,food,4 EUR\n",
        "4 EUR.",
    ),
    (IN_MARCH, "expenses.csv", "day,what,amount\n03/04/2025,food,3 EUR\n04/03/2025,food,4 EUR\n", ""),
    (IN_MARCH, "expenses.csv", "day,what,amount\n2025-03-02,food,4 EUR\n,food,3 EUR\n", ""),
    (WINE, "wine.csv", "wine,price\nA,12 EUR\nB,18 EUR\nC,18 EUR\n", ""),
    (WINE, "wine.csv", "wine,price\nA,12 EUR\nB,18 EUR\nC,about 20 EUR\n", ""),
    (WINE, "wine.csv", "wine,price\nA,12 EUR\nB,18 EUR\nC,\n", ""),
    (WINE, "wine.csv", "wine,price\nA,12 EUR\nB,18 GBP\n", ""),
    (WINE, "wine.csv", "wine,price\nA,12.50\nB,18.00\nC,9.00\n", "B: 18.00."),
    ("Which wine is the oldest?", "wine.csv", "wine,price,drink until\nA,12,2024\nB,18,2030\n", ""),
    ("How many dogs does Ida have?", "pets.csv", "Rex,dog,Ida\nMimi,cat,Tom\nBello,dog,Ida\n", ""),
    ("How many members have a boat?", "members.csv", "name,boat\nIda,?\nTom,yes\nMira,no\n", ""),
    ("How many members have a boat?", "members.csv", "name,boat\nIda,no\nTom,yes\nMira,no\n", "1 of 3 rows."),
    ("How many members have no boat?", "members.csv", "name,boat\nIda,Heron\nTom,\nMira,\n", "2 of 3 rows."),
    (APPLES, "orders.csv", "day,item,quantity\nMon,apples,3\nTue,apples,4\n", "3 + 4 = 7."),
    (APPLES, "orders.csv", "day,item,quantity\nMon,apples,3 kg\nTue,apples,4 kg\n", ""),
    (
        "How many kilometres did the car do in 2024?",
        "car.csv",
        "date,km,garage\n2023-04-01,20100,Jansen\n2024-04-02,31200,Jansen\n2025-04-03,44000,Krenz\n",
        "",
    ),
    (
        "How many expenses are approved?",
        "expenses.csv",
        "day,what,amount,approved by\nMon,food,3 EUR,Noor\nTue,food,4 EUR,not yet\n",
        "",
    ),
    (
        "How many expenses were approved by Noor?",
        "expenses.csv",
        "day,what,amount,approved by\nMon,food,3 EUR,Noor\nTue,food,4 EUR,not yet\n",
        "1 of 2 rows.",
    ),
    (COSTS, "expenses.csv", "day,what,amount,paid by\nMon,food,3 EUR,Ida\nTue,food,4 EUR,Tom\n", "3 + 4 = 7 EUR."),
    (
        "How many hours did Ana work in March?",
        "timesheet.csv",
        "date,who,hours\n2025-03-03,Ana,6.5\n2025-03-05,Ana,3\n2025-04-01,Ana,2\n",
        "6.5 + 3 = 9.5 hours.",
    ),
    (
        "How many nights did Ida book?",
        "bookings.csv",
        "guest,nights,price per night\nIda,3,80 EUR\nTom,1,70 EUR\nMira,2,90 EUR\n",
        "3 nights.",
    ),
    ("How many contacts do we have?", "contacts.csv", "name,phone\nIda,1\nTom,2\nIda,3\n", ""),
    ("How many orders did we have?", "orders.csv", "day,item,quantity\nMon,apples,3\nTue,apples,4\n", ""),
    (APPLES, "orders.csv", "day,item\nMon,apples\nTue,apples\n", ""),
]


@pytest.fixture(scope="module")
def differing(tmp_path_factory: pytest.TempPathFactory) -> PassageIndex:
    """All small tables, each in a folder of its own."""
    files = {f"case{n}/{name}": text for n, (_, name, text, _) in enumerate(SMALL_DIFFERENCES)}
    return index(tmp_path_factory.mktemp("differing"), files)


@pytest.mark.parametrize("case", range(len(SMALL_DIFFERENCES)))
def test_small_differences_decide(case: int, differing: PassageIndex) -> None:
    question, name, _, direct = SMALL_DIFFERENCES[case]
    ids = differing.get_ids(range(len(differing)))
    own = tuple(number for number, id in enumerate(ids) if id.startswith(f"case{case}/{name}:"))
    assert compute(question, WholeDocuments(differing, own)) == direct


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


def test_tables_of_one_document_stay_apart(documents: WholeDocuments) -> None:
    tables = [table for table in list_tables(documents) if table.document == "garden.md"]
    assert [(table.name, len(table.rows), table.is_doubtful) for table in tables] == [
        ("Harvest", 3, False),
        ("Seeds", 2, False),
    ]


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3", "4"], ["3", "4"]),
        (["58,40 €", "1.200,00 €"], ["58.40", "1200.00"]),
        (["58.40", "1,200.00"], ["58.40", "1200.00"]),
        (["2.5 kg"], ["2.5"]),
        (["58,40", "58.40"], None),
        (["1.200"], None),
        (["3 (large)"], None),
        (["2025-03-01"], None),
        (["3 or 4"], None),
        (["none"], None),
    ],
)
def test_numbers_of_a_column(cells: list[str], values: list[str] | None) -> None:
    numbers = read_numbers(cells)
    expected = None if values is None else [Decimal(value) for value in values]
    assert (None if numbers is None else [number.value for number in numbers]) == expected


@pytest.mark.parametrize(
    ("cells", "dates"),
    [
        (["2025-03-01", "2025-03-01 10:15"], [(2025, 3, 1), (2025, 3, 1)]),
        (["3. März 2025", "March 3, 2025"], [(2025, 3, 3), (2025, 3, 3)]),
        (["13/04/2025", "03/04/2025"], [(2025, 4, 13), (2025, 4, 3)]),
        (["04/13/2025", "03/04/2025"], [(2025, 4, 13), (2025, 3, 4)]),
        (["03/04/2025"], None),
        (["31.12.2024"], [(2024, 12, 31)]),
        (["12 June"], [(0, 6, 12)]),
        (["autumn 2025"], None),
    ],
)
def test_dates_of_a_column(cells: list[str], dates: list[tuple[int, int, int]] | None) -> None:
    found = read_dates(cells)
    assert (None if found is None else [(date.year, date.month, date.day) for date in found]) == dates


@pytest.mark.parametrize(
    ("words", "period"),
    [
        ("June", (Period(month=6), 1)),
        ("June 2025 then", (Period(2025, month=6), 2)),
        ("12 of March 2025", (Period(2025, month=3, day=12), 4)),
        ("first quarter of 2025", (Period(2025, quarter=1), 4)),
        ("Q3 2024", (Period(2024, quarter=3), 2)),
        ("2025 03 12", (Period(2025, month=3, day=12), 3)),
        ("may we", None),
        ("first", None),
    ],
)
def test_periods_of_a_question(words: str, period: tuple[Period, int] | None) -> None:
    assert read_period(words.split()) == period


@pytest.mark.story
def test_a_chat_computes_shows_its_rows_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    session = Session(open_assistant(str(folder), index(tmp_path, FOLDER), "none", None), Store(None))
    answered = session.ask("How many bottles of rhubarb did we sell in June?")
    assert answered.response.direct == "3 + 5 + 2 = 10 bottles."
    assert answered.response.used == tuple(f"shop/sales.csv:{line}" for line in (3, 5, 6))
    assert {passage.id for passage in answered.passages} == set(answered.response.used)
    assert session.ask("And in July?").response.direct == ""  # of rhubarb none
    assert not session.ask("Was the cinema full?").response.direct.startswith("3")


@pytest.mark.parametrize("asked", ["What is the phone number of the plumber?", "What was the price of the tent?"])
def test_one_value_of_one_row_is_asked_of_no_whole_table(asked: str) -> None:
    assert read_table_question(asked) is None


@pytest.mark.parametrize(
    ("earlier", "question", "direct"),
    [
        (["What did the repairs cost?"], "And at Bike Barn?", "35 + 28.5 = 63.5."),
        (["What did the repairs cost?", "And at Bike Barn?"], "And at Wheelfix?", "64."),
        (["What did the repairs cost?", "And at Bike Barn?"], "What about March?", "28.5."),
        (["How many repairs are not paid?"], "And at Bike Barn?", "1 of 4 rows."),
        (["What did the repairs cost?"], "And the lamp?", ""),
        (["What did the repairs cost?"], "And when?", ""),
        (["Who is Petr?"], "And at Bike Barn?", ""),
        ([], "And at Bike Barn?", ""),
    ],
)
def test_a_sum_goes_on_with_the_question_before(
    folders: dict[str, WholeDocuments], earlier: list[str], question: str, direct: str
) -> None:
    assert compute(question, folders["workshop"], earlier) == direct


def test_a_sheet_is_called_by_its_own_name(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    for name, rows in (
        ("Repairs", [["shop", "amount"], ["Bike Barn", 35], ["Wheelfix", 64]]),
        ("Rides", [["place", "km"]]),
    ):
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    (tmp_path / "docs").mkdir()
    book.save(tmp_path / "docs" / "bikes.xlsx")
    documents = WholeDocuments(index(tmp_path, {}))
    assert compute("How much did I spend on repairs?", documents) == "35 + 64 = 99."
    assert compute("How much did the bikes cost?", documents) == ""
