"""A folder of a person's own documents: what its passages are, what is left out and why, and what is read again."""

import io
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pypdf
import pytest

from agent.chat.citations import cited_sources, shown_sources
from agent.chat.export import mark_in_markdown
from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import ChatTurn, Store
from agent.mcp.tools import to_ask_result
from agent.serve.v1.endpoints import list_citations
from benchmarks.office_files import make_docx
from indexes.documents.chunking import MAX_WORDS, escape_name
from indexes.documents.document_index import DocumentIndex, open_documents
from indexes.documents.reading import SETTLED_NS, parse_document
from indexes.ranking.vectors import Embedder
from indexes.text.units import split_units
from schemas.errors import ConvagentError, InvalidInputError, MissingError, RunError
from schemas.records import Passage
from tests.conftest import EXAMPLES, PATIENCE, ROOT, read_cases
from tests.test_embedder import Counted

OWN = EXAMPLES / "documents"
needs_permissions = pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")


def opened(
    folder: Path,
    tmp_path: Path,
    meanwhile: Callable[[], object] = lambda: None,
    embedder: Embedder | None = None,
    *,
    follow_links: bool = False,
) -> DocumentIndex:
    """The documents. `meanwhile` is done when the files are known and none is read yet."""

    @contextmanager
    def progress(doing: str, _total: int) -> Iterator[Callable[[int], None]]:
        if doing == "reading":
            meanwhile()
        yield lambda _done: None

    return open_documents(folder, tmp_path / "cache", embedder, progress, follow_links=follow_links)


def own(tmp_path: Path, files: Mapping[str, str | bytes]) -> Path:
    folder = tmp_path / "own"
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return folder


def passages(documents: DocumentIndex) -> dict[str, Passage]:
    index = documents.index
    return {passage.id: passage for passage in index.read(index.get_ids(range(len(index))))}


def skipped(documents: DocumentIndex) -> dict[str, str]:
    return {problem.where: problem.what for problem in documents.reading.skipped}


# What the passages are


def test_the_example_folder(tmp_path: Path) -> None:
    documents = opened(OWN, tmp_path)
    assert (len(documents.reading.read), documents.reading.skipped, documents.reading.notes) == (31, (), ())
    found = passages(documents)
    baking = found["recipes/rye-bread.md:25-29"]
    assert (baking.title, baking.url) == ("Rye bread: Baking", (OWN / "recipes" / "rye-bread.md").as_uri())
    assert baking.text.startswith("Shape two loaves and let them rise in floured baskets for ninety minutes. Bake them")
    assert found["house/kettle-manual.pdf:p3"].url.endswith("/house/kettle-manual.pdf#page=3")
    assert found["house/kettle-manual.pdf:p3"].title == "Instructions for the kettle Brio 17"
    assert found["work/expenses.csv:4"] == Passage(
        "work/expenses.csv:4",
        "date: 2025-02-06; purpose: Lunch with the joiners, four people; amount: 87.40; currency: EUR; paid by: Farah.",
        "expenses.csv",
        (OWN / "work" / "expenses.csv").as_uri(),
    )
    assert "drip_hose: true" in found["garden/beds.json:beds[3]"].text
    assert found["garden/beds.json:beds[3]"].title == "beds.json: beds"
    assert all(len(passage.text.split()) <= MAX_WORDS + 10 for passage in found.values())


CASES = read_cases("documents")
LETTER, HEADER = CASES["letter"], CASES["header"]


@pytest.mark.parametrize(("name", "text", "expected"), CASES["kinds"])
def test_every_kind(name: str, text: str, expected: list[list[str]]) -> None:
    found = parse_document(Path(name), name, text.encode()).passages
    assert [[passage.id.rpartition(":")[2], passage.title, passage.text] for passage in found] == expected


@pytest.mark.parametrize(("text", "units"), CASES["texts"])
@pytest.mark.parametrize("header", ["", HEADER], ids=["txt", "eml"])
def test_lines_of_text_are_units_of_their_own_unless_they_are_wrapped(header: str, text: str, units: list[str]) -> None:
    name, opening = ("a.eml", "Hello!\n\n") if header else ("a.txt", "About this\n\n")
    data = (header + opening + text).encode()
    (passage,) = parse_document(Path(name), name, data).passages
    told = [f"#{unit.text}" if unit.kind == "heading" else unit.text for unit in split_units(passage)]
    assert told[2 if header else 0 :] == units


def test_long_paragraphs_are_cut_between_sentences_and_keep_their_lines(tmp_path: Path) -> None:
    lines = [f"Sentence {n} is about owls, which hunt at night, and\nit takes two whole lines." for n in range(40)]
    folder = own(tmp_path, {"owls.txt": "\n".join(lines), "one.txt": "word " * 1000, "blob.txt": "x" * 5000})
    found = passages(opened(folder, tmp_path))
    first = found["owls.txt:1-20"]
    assert first.text.startswith("Sentence 0 is")
    assert first.text.endswith(" Sentence 9 is about owls, which hunt at night, and it takes two whole lines.")
    assert found["owls.txt:21-40"].text.startswith("Sentence 10 is")
    assert {id for id in found if id.startswith("one")} == {"one.txt:1", *(f"one.txt:1.{n}" for n in range(2, 10))}
    assert sum(len(found[id].text.split()) for id in found if id.startswith("one")) == 1000
    assert sum(found[id].text.count("x") for id in found if id.startswith("blob")) == 5000


SECTIONS = {
    "§ 4 Deposit": "The deposit is 1920 euros. It is paid in three parts.",
    "§ 6 Garden": "The lawn is mown by the tenants of the ground floor.",
    "§ 7 Pets": "Cats may be kept by all. Dogs need the written permission of the landlord.",
}
PETS = "Do dogs need permission?"
PLACES = [
    # a file, its text, a question, the name and the title of the source
    ("lease.md", "".join(f"# {name}\n{text}\n" for name, text in SECTIONS.items()), PETS, "6", "lease.md: § 7 Pets"),
    ("lease.md", "# Lease\n" + "".join(f"## {name}\n{text}\n" for name, text in SECTIONS.items()), PETS, "7",
     "Lease: § 7 Pets"),
    ("lease.txt", "Lease\n\n" + "\n\n".join(f"{name}\n{text}" for name, text in SECTIONS.items()), PETS, "10",
     "Lease: § 7 Pets"),
    ("lease.docx", make_docx("", [part for name in SECTIONS for part in (("Heading1", name), ("", SECTIONS[name]))]),
     PETS, "§ 7 Pets", "lease.docx: § 7 Pets"),
    ("letter.txt", LETTER, "What is the price?", "7", "letter.txt"),
    ("letter.eml", HEADER + LETTER, "What is the price?", "message", "Contract (from Mette)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "question", "place", "title"), PLACES)
def test_a_source_names_the_place_of_its_sentence(
    name: str, text: str | bytes, question: str, place: str, title: str, tmp_path: Path
) -> None:
    assistant = open_assistant(
        open_collection("lease", opened(own(tmp_path, {name: text}), tmp_path).index, None), "none"
    )
    session = Session(assistant, Store(None))
    answered = session.ask(question)
    (source, *_) = cited_sources(answered)
    assert (source.name, source.title) == (f"{name}:{place}", title)
    (mcp, *_) = to_ask_result(ChatTurn(question, answered), "1", "").citations
    (v1, *_) = list_citations(answered, "".join(mark_in_markdown(answered.response)))
    assert (mcp.place, mcp.title) == (v1["place"], v1["title"]) == (source.name, source.title)
    assert mcp.id == v1["id"] == source.passage.id


def test_a_title_of_a_hundred_kilobytes_is_cut(tmp_path: Path) -> None:
    title = "A very long title goes on " * 4000
    rows = [f"Pond {n} is cleaned in April, before the fish are fed again." for n in range(400)]
    contents = {
        "heading.md": f"# {title}\n\n" + "\n\n".join(rows),
        "table.csv": f"{title},b\n" + "\n".join(f'"{row}",pump' for row in rows),
        "keys.json": json.dumps({title: {row: {"pump": "yes"} for row in rows}}),
        "mail.eml": f"Subject: {title}\n\n" + "\n\n".join(rows),
    }
    documents = opened(own(tmp_path, contents), tmp_path)
    kept = sum(path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file())
    assert kept < 20 * sum(map(len, contents.values()))
    assert max(len(passage.title) for passage in passages(documents).values()) <= 500
    answered = Session(open_assistant(open_collection("pond", documents.index, None), "none"), Store(None)).ask(
        "When is it cleaned?"
    )
    shown = [answered.response.text, *(f"{source.name} {source.title}" for source in shown_sources(answered))]
    assert max(map(len, shown)) < 3000


def test_ids_are_one_line_and_lead_back_to_the_file(tmp_path: Path) -> None:
    names = ["a b.md", "a:b.md", "100%.md", "%0A.md", "a\nb.md", "\u202ename.md", "ü/ñ 面包.md", "n" * 250 + ".md"]
    found = passages(opened(own(tmp_path, {name: f"{name!r}." for name in names}), tmp_path))
    assert all(id.isprintable() for id in found)
    assert {*found} == {f"{escape_name(name)}:1" for name in names}
    assert escape_name("\udcff.md") == "%FF.md"  # a name that is no UTF-8
    for id, passage in found.items():
        assert Path(unquote(urlsplit(passage.url).path)).read_text() == passage.text
        assert id == f"{escape_name(eval(passage.text[:-1]))}:1"  # noqa: S307


# Encodings

ENCODINGS = {
    **dict.fromkeys(("utf-8", "utf-8-sig", "utf-16", "utf-32"), "Grüße aus Łódź"),
    "cp1252": "El señor García llegó mañana; très bien, bûche de Noël.",
    "cp1251": "Привет, как дела? Это небольшой текст о хлебе.",
    "cp932": "これは日本語の文章です。パンを焼きます。",
}


def test_encodings_are_known_or_guessed_and_told(tmp_path: Path) -> None:
    folder = own(tmp_path, {f"{encoding}.txt": text.encode(encoding) for encoding, text in ENCODINGS.items()})
    documents = opened(folder, tmp_path)
    found = {passage.document.removesuffix(".txt"): passage.text for passage in passages(documents).values()}
    assert found == ENCODINGS
    told = {note.where: note.what for note in documents.reading.notes}
    guessed = [encoding for encoding in ENCODINGS if not encoding.startswith("utf")]
    assert told == {f"{encoding}.txt": f"is not UTF-8; read as {encoding}, which is a guess" for encoding in guessed}


# What is left out, and why


def pdf(change: Callable[[pypdf.PdfWriter], object], source: Path | None = None) -> bytes:
    writer = pypdf.PdfWriter(clone_from=source) if source else pypdf.PdfWriter()
    change(writer)
    stream = io.BytesIO()
    writer.write(stream)
    return stream.getvalue()


KETTLE = OWN / "house" / "kettle-manual.pdf"
BAD = [
    # name, contents, the reason
    ("empty.txt", b"", "is empty"),
    ("empty.pdf", b"", "is empty"),
    ("white.md", b" \n\n ", "holds no text"),
    ("header.csv", b"name,age\n", "holds no text"),
    ("binary.txt", bytes(range(256)) * 20, "is no text, whatever its name says"),
    ("program.md", Path(sys.executable).read_bytes()[:20_000], "is no text, whatever its name says"),
    ("broken.json", b'{"a": 1,}', "is broken JSON ("),
    ("deep.json", b"[" * 100_000, "is JSON that is nested too deeply"),
    ("broken.jsonl", b"{oops\n", "holds no text; line 1 is broken JSON"),
    ("blank.pdf", pdf(lambda writer: writer.add_blank_page(100, 100)), "holds no text"),
    ("secret.pdf", pdf(lambda writer: writer.encrypt("secret", algorithm="RC4-128"), KETTLE), "is an encrypted PDF"),
    ("broken.pdf", KETTLE.read_bytes()[:700], "is a broken PDF ("),
    ("liar.pdf", b"not a PDF at all", "is a broken PDF ("),
    ("script.html", b"<script>var x = 'text'</script>", "holds no text"),
    ("film.mkv", b"\x1a\x45", "is of no kind that can be read (txt, md,"),
]


def test_what_cannot_be_read_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = own(tmp_path, {"good.txt": "Rye bread."} | {name: data for name, data, _ in BAD})
    documents = opened(folder, tmp_path)
    assert documents.reading.read == ("good.txt",)
    found = skipped(documents)
    assert {name: found[name][: len(reason)] for name, _, reason in BAD} == {name: reason for name, _, reason in BAD}
    again = opened(folder, tmp_path)
    assert (again.reading.unchanged, again.reading.skipped) == (("good.txt",), documents.reading.skipped)
    for name, _, _ in BAD[4:]:
        (folder / name).unlink()
    (folder / "good.txt").unlink()
    with pytest.raises(InvalidInputError, match="holds no document that can be read") as caught:
        opened(folder, tmp_path)
    assert all(f"{name}: {reason}" in str(caught.value) for name, _, reason in BAD[:4])
    assert "Put documents there, or name another folder. Expected txt, md" in str(caught.value)


def test_rows_that_are_ragged_are_read_and_told(tmp_path: Path) -> None:
    rows = ["name,age,town", "Ida,7,Harnby,extra", "Bo", "", *(["Cy,9"] * 6)]
    documents = opened(own(tmp_path, {"a.csv": "\n".join(rows), "b.csv": 'a,b\n"1,2\n'}), tmp_path)
    found = passages(documents)
    assert found["a.csv:2"].text == "name: Ida; age: 7; town: Harnby; column 4: extra."
    assert found["a.csv:3"].text == "name: Bo."
    notes = [str(note) for note in documents.reading.notes]
    assert notes[0] == "a.csv: line 2 has 4 values for 3 columns"
    assert notes[5] == "a.csv: 3 further rows have more or fewer values than there are columns"


@pytest.mark.skipif(sys.platform != "linux", reason="devices are Linux's")
def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    folder = own(tmp_path, {"good.txt": "Rye.", ".hidden.txt": "x", ".git/x.txt": "x", "deep/er/a.txt": "Oats."})
    (folder / "huge.txt").touch()
    os.truncate(folder / "huge.txt", 2 << 30)
    os.mkfifo(folder / "pipe.txt")
    for name, target in (
        ("deep/loop", folder),
        ("lost.txt", "nowhere"),
        ("self.txt", "self.txt"),
        ("zero.txt", "/dev/zero"),
    ):
        (folder / name).symlink_to(target)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(folder / "socket.txt"))
        documents = opened(folder, tmp_path, follow_links=True)
    assert [*passages(documents)] == ["deep/er/a.txt:1", "good.txt:1"]
    found = skipped(documents)
    assert [*found] == ["huge.txt", "lost.txt", "pipe.txt", "self.txt", "socket.txt", "zero.txt"]
    assert found["huge.txt"].startswith("is larger than 50 MB")
    assert {found[name] for name in ("pipe.txt", "socket.txt", "zero.txt")} == {"is no plain file"}


def make_linked_folder(tmp_path: Path) -> Path:
    """A folder with links to elsewhere (a file, a folder, and one over another link), inside, and to itself."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "deep").mkdir(parents=True)
    (elsewhere / "secret.txt").write_text("The key lies under the stone.")
    (elsewhere / "deep" / "more.txt").write_text("More of it.")
    (elsewhere / "back").symlink_to(tmp_path / "own")
    folder = own(tmp_path, {"good.txt": "Rye.", "sub/a.txt": "Oats."})
    (folder / "inside.txt").symlink_to("sub/a.txt")
    (folder / "file.txt").symlink_to("../elsewhere/secret.txt")
    (folder / "folder").symlink_to(elsewhere)
    (folder / "program.exe").symlink_to(elsewhere / "secret.txt")
    (folder / "sub" / "over.txt").symlink_to(folder / "file.txt")
    (folder / "sub" / "up").symlink_to(folder)
    (folder / "hard.txt").hardlink_to(elsewhere / "deep" / "more.txt")
    return folder


def test_links_out_of_the_folder_are_followed_only_if_asked_for(tmp_path: Path) -> None:
    folder = make_linked_folder(tmp_path)
    documents = opened(folder, tmp_path)
    assert documents.reading.read == ("good.txt", "hard.txt", "inside.txt", "sub/a.txt")
    said = "is a link that leads out of the folder and is not followed, as do 3 more; --follow-links reads them"
    assert skipped(documents) == {"file.txt": said}
    documents = opened(folder, tmp_path, follow_links=True)
    new = ("file.txt", "folder/deep/more.txt", "folder/secret.txt", "sub/over.txt")
    assert documents.reading.read == new
    assert [*skipped(documents)] == ["program.exe"]
    assert opened(folder, tmp_path).reading.gone == new


@needs_permissions
def test_what_may_not_be_read(tmp_path: Path) -> None:
    folder = own(tmp_path, {"good.txt": "Rye.", "closed.txt": "x", "shut/a.txt": "x", "half/a.txt": "x"})
    modes = {"closed.txt": 0, "shut": 0, "half": 0o444}
    for name, mode in modes.items():
        (folder / name).chmod(mode)
    found = skipped(opened(folder, tmp_path))
    for name in modes:
        (folder / name).chmod(0o755)
    assert found == dict.fromkeys(["closed.txt", "half/a.txt", "shut"], "cannot be read (Permission denied)")


def test_one_file_alone_and_what_is_no_folder(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "One.", "b.md": "Two.", "c.mkv": "x"})
    assert [*passages(opened(folder / "b.md", tmp_path))] == ["b.md:1"]
    (tmp_path / "empty").mkdir()
    cases: list[tuple[str, type[ConvagentError], str]] = [
        ("own/c.mkv", InvalidInputError, "is no document that can be read"),
        ("nowhere", MissingError, "no such folder or file"),
        ("empty", InvalidInputError, "holds no document that can be read"),
    ]
    for name, error, message in cases:
        with pytest.raises(error, match=message):
            opened(tmp_path / name, tmp_path)


# What changes meanwhile, and what is read again


def test_only_what_changed_is_read_again(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "Rye.", "b.md": "Oats.", "c.md": "Millet."})
    first = opened(folder, tmp_path)
    assert first.reading.read == ("a.md", "b.md", "c.md")
    same = opened(folder, tmp_path)
    assert (same.reading.read, same.reading.unchanged) == ((), ("a.md", "b.md", "c.md"))
    assert same.index.directory == first.index.directory, "an index of the same files is left alone"
    os.utime(folder / "a.md", (1, 1))
    assert opened(folder, tmp_path).reading.read == (), "the same bytes, written again"
    (folder / "b.md").write_text("Barley.")
    (folder / "c.md").unlink()
    (folder / "d.md").write_text("Spelt.")
    changed = opened(folder, tmp_path).reading
    assert (changed.read, changed.unchanged, changed.gone) == (("b.md", "d.md"), ("a.md",), ("c.md",))
    found = passages(opened(folder, tmp_path))
    assert {id: passage.text for id, passage in found.items()} == {
        "a.md:1": "Rye.", "b.md:1": "Barley.", "d.md:1": "Spelt.",
    }  # fmt: skip


def test_the_same_size_and_time_do_not_hide_other_contents(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "Rye bread.", "b.md": "Oat bread.", "c.md": "Bran bread"})
    for name in ("a.md", "b.md", "c.md"):
        os.utime(folder / name, (1, 1))
    opened(folder, tmp_path)
    time.sleep(SETTLED_NS / 1e9 + 0.1)  # from now on stamps are trusted
    opened(folder, tmp_path)
    (folder / "a.md").write_text("New bread.")  # in place
    (tmp_path / "other").write_text("Old bread.")
    (tmp_path / "other").replace(folder / "b.md")  # another file in its place
    for name in ("a.md", "b.md"):
        os.utime(folder / name, (1, 1))
    changed = opened(folder, tmp_path)
    assert (changed.reading.read, changed.reading.unchanged) == (("a.md", "b.md"), ("c.md",))
    assert [passage.text for passage in passages(changed).values()] == ["New bread.", "Old bread.", "Bran bread"]


def test_files_that_vanish_or_change_before_they_are_read(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "Rye.", "b.md": "Oats."})

    def meanwhile() -> None:
        (folder / "a.md").unlink()
        (folder / "b.md").write_text("Something else.")

    documents = opened(folder, tmp_path, meanwhile)
    assert skipped(documents) == {"a.md": "went away before it was read"}
    assert passages(documents)["b.md:1"].text == "Something else."


def test_a_broken_database_is_made_again(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "Rye.", "b.md": "Oats."})
    database = opened(folder, tmp_path).index.directory.parent / "files.sqlite"
    for damage in (b"no database at all", database.read_bytes()[:5000]):
        database.unlink()
        database.write_bytes(damage)
        assert opened(folder, tmp_path).reading.read == ("a.md", "b.md")
    with sqlite3.connect(database) as of_another_format:
        of_another_format.execute("UPDATE files SET incomplete_by = '9'")
    of_another_format.close()
    assert opened(folder, tmp_path).reading.read == ("a.md", "b.md")


def test_a_cache_that_cannot_be_made(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "Rye."})
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(RunError, match="CONVAGENT_CACHE"):
        opened(folder, tmp_path)


PROCESS = """
import sys
from pathlib import Path
from tests.test_documents import opened, passages
print(len(passages(opened(Path(sys.argv[1]), Path(sys.argv[2])))))
"""


def test_several_processes_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "own"
    shutil.copytree(OWN, folder)
    command = [sys.executable, "-c", PROCESS, str(folder), str(tmp_path)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=ROOT) for _ in range(2)]
    said = [process.communicate(timeout=PATIENCE)[0].decode().strip() for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert said == [str(len(passages(opened(folder, tmp_path))))] * 2
    assert len([*(tmp_path / "cache" / "documents").glob("*/*index-*")]) == 1


# Vectors


def test_no_text_is_embedded_twice(tmp_path: Path) -> None:
    folder = own(tmp_path, {"a.md": "Rye.", "b.md": "Oats."})
    first, second = Counted(), Counted()
    index = opened(folder, tmp_path, embedder=first.embedder).index
    assert (first.asked, bool(index.vector_infos)) == (["a.md\nRye.", "b.md\nOats."], True)
    (folder / "b.md").write_text("Barley.")
    index = opened(folder, tmp_path, embedder=second.embedder).index
    assert second.asked == ["b.md\nBarley."]
    (index.directory / "vectors.f16").write_bytes(b"xx")
    vectors = opened(folder, tmp_path, embedder=second.embedder).index.vectors
    assert vectors is not None
    assert vectors.shape == (2, 4)
    assert second.asked == ["b.md\nBarley."]
