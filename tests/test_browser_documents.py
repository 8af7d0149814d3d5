"""What the page does with a folder of documents: the whole document behind a source, files left out, and the like."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from agent.chat.store import ChatTurn, Store
from agent.models.bundled import find_bundled_gguf
from agent.serve.users import add_user
from schemas.errors import MissingError
from tests import within
from tests.conftest import EXAMPLES, needs_model
from tests.serving import NO_MODELS, Server, ask, serving_source
from tests.stand_in import WORKING, StandIn, standing_in
from tests.test_hub import downloads, serving_hub
from tests.test_serve_users import many_sources

pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra dev)")
from selenium.webdriver.common.keys import Keys

from tests.test_browser import DESKTOP, PHONE, Page, browser, needs_browser

__all__ = ["browser"]  # a fixture
GUARANTEE = "How long is the guarantee of the kettle?"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, folder: Path) -> Iterator[Server]:
    with serving_source("--docs", folder, tmp_path_factory.mktemp("data"), *NO_MODELS) as running:
        yield running


@pytest.fixture
def client(server: Server) -> Iterator[httpx.Client]:
    with server.open_client() as opened:
        yield opened


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example documents, which a test may change, and one of many passages."""
    copied = tmp_path_factory.mktemp("own") / "documents"
    shutil.copytree(EXAMPLES / "documents", copied)
    rows = "".join(f"2024-01-01,item {number},{number}.50\n" for number in range(450))
    (copied / "a & b#1?.csv").write_text(f"date,thing,price\n{rows}2024-02-02,zeppelin,77.00\n")
    (copied / "letter.html").write_text(
        "<p>The <b>password</b> of Ina &lt;img src=x onerror=alert(1)&gt; is kolibri\u202e.</p>"
    )
    return copied


def is_in_sight(page: Page, selector: str) -> bool:
    """Whether an element is within the window."""
    script = "const b = arguments[0].getBoundingClientRect(); return b.top >= 0 && b.bottom <= innerHeight"
    return bool(page.driver.execute_script(script, page.all(selector)[0]))


def press(page: Page, selector: str) -> None:
    """Scroll to an element, and click it."""
    page.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", page.all(selector)[0])
    page.click(selector)


@needs_browser
def test_sources_as_whole_documents_and_files_left_out(browser: Any, server: Server, folder: Path) -> None:
    page = Page(browser, server.address)
    page.enter(server)
    assert "left out" not in page.text(".source summary")
    page.ask(GUARANTEE)
    chat = browser.current_url
    page.size(*PHONE)
    press(page, "#latest .whole")
    page.until(lambda: page.all(".document"))
    assert page.text("h1") == "house/kettle-manual.pdf"
    assert page.text(".piece .note") == "page 1\npage 2\npage 3"
    assert page.text("#cited .note") == "page 3"
    assert page.all("#cited .note a")[0].get_attribute("href").endswith("/pages/house/kettle-manual.pdf#page=3")
    assert "The guarantee runs for thirty-six months." in page.text("mark")
    assert is_in_sight(page, "mark")
    browser.refresh()
    assert is_in_sight(page, "mark")
    assert not page.scrolls_sideways()
    press(page, ".bar a")
    page.until(lambda: page.all(".answer"))
    assert browser.current_url.startswith(chat.partition("#")[0])

    page.size(*DESKTOP)
    page.ask("What is the price of the zeppelin?")  # a row of a long table
    assert page.text("#latest .sources details[open] th") == "date\nthing\nprice"
    assert page.text("#latest .sources details[open] .taken td") == "2024-02-02\nzeppelin\n77.00"
    press(page, "#latest .whole")
    page.until(lambda: page.all(".document"))
    assert page.text("h1") == "a & b#1?.csv"
    assert len(page.all(".piece")) == 51
    assert is_in_sight(page, "#cited .taken")
    press(page, ".document > .note a")
    page.until(lambda: len(page.all(".piece")) == 200)
    assert "Passages 201 to 400 of 451" in page.text(".document > .note")
    browser.get(server.address)

    (folder / "broken <b>.pdf").write_bytes(b"%PDF-1.7 broken")
    (folder / "photo.psd").write_bytes(b"8BPS")
    page.until(lambda: browser.refresh() or "left out" in page.text(".source summary"))
    page.click(".source summary")
    page.click(".left-out summary")
    assert "broken <b>.pdf: " in page.text(".left-out li")
    assert page.text(".source > summary .note").endswith(page.text(".left-out summary"))
    (folder / "broken <b>.pdf").unlink()
    (folder / "photo.psd").unlink()
    page.until(lambda: browser.refresh() or "left out" not in page.text(".source summary"))
    assert browser.get_log("browser") == []


def test_documents_are_those_of_the_index_alone(client: httpx.Client, folder: Path) -> None:
    (folder.parent / "secret.md").write_text("The safe opens with 4711.")
    secret = folder.parent / "secret.md"
    for name in ("../secret.md", "..%2Fsecret.md", "%2e%2e/secret.md", str(secret), "", "nothing.md"):
        found = client.get(f"/documents/{name}")
        assert found.status_code == 404, name
        assert "4711" not in found.text
    assert client.get("/documents/house/heating.md?at=7-7&chat=99999&turn=1").status_code == 404
    assert client.get("/documents/house/heating.md?from=-1&at=%00").status_code == 200
    pages = client.get("/pages/house/kettle-manual.pdf")
    assert (pages.headers["content-type"], pages.content[:5]) == ("application/pdf", b"%PDF-")
    for name in ("house/heating.md", "../secret.pdf", "..%2Fsecret.md", "nothing.pdf"):
        assert client.get(f"/pages/{name}").status_code == 404, name
    text = client.get("/documents/letter.html").text
    assert "<img" not in text.partition("<main")[2]
    assert "&lt;img src=x" in text
    assert "\u202e" not in text


def test_users_see_nothing_of_each_other(tmp_path: Path, folder: Path) -> None:
    file = tmp_path / "users.json"
    tokens = [add_user(file, name, anew=False) for name in ("ana", "ben")]
    with serving_source("--docs", folder, tmp_path, *NO_MODELS, "--users", str(file)) as shared:
        ana, ben = (shared.open_client(headers={"Authorization": f"Bearer {token}"}) for token in tokens)
        with ana, ben:
            chat = ask(ana, GUARANTEE).url.path.removeprefix("/chats/")
            link = f"/documents/house/kettle-manual.pdf?at=p3&chat={chat}&turn=1"
            assert "<mark>" in ana.get(link).text
            assert ben.get(link).status_code == 404
            assert "thirty-six" in ben.get("/documents/house/kettle-manual.pdf").text
        with shared.open_client() as stranger:
            assert "thirty-six" not in stranger.get(link).text


# Asking again


@needs_browser
def test_a_question_that_waits_is_stopped_and_the_model_shown(browser: Any, tmp_path: Path, folder: Path) -> None:
    with (
        standing_in() as address,
        serving_source("--docs", folder, tmp_path, "--model", f"{address}#big", "--embedder", "none") as server,
        server.open_client() as client,
    ):
        StandIn.replies = [WORKING] * 100
        held = client.post("/ask", data={"question": GUARANTEE})  # and so the next one waits
        page = Page(browser, server.address)
        page.enter(server)
        page.until(lambda: page.focused() == "question")
        page.type("Which bread", Keys.ENTER)
        page.until(lambda: page.all(".pending"))
        page.click(".pending button")
        page.until(lambda: "stopped" in page.text("#problem") and page.focused() == "question")
        page.type(" keeps?")
        assert page.all("#question")[0].get_property("value") == "Which bread keeps?"
        client.post(f"{held.url.path}/stop")
        page.size(*PHONE)
        browser.get(server.address)
        page.click(".source summary")
        assert f"Model: {address}#big" in page.text(".source .card")
        assert "on this machine" in page.text(".source .card")
        assert not page.scrolls_sideways()


@needs_browser
def test_the_last_question_is_edited_and_asked_again(browser: Any, server: Server) -> None:
    page = Page(browser, server.address)
    page.enter(server)
    page.ask(GUARANTEE)
    page.ask("When do I descale it?")
    chat, edited = browser.current_url.partition("#")[0], "When do I descale it? And how often?"
    press(page, "#latest .again a")
    page.until(lambda: page.focused() == "question" and "takes the place" in page.text(".ask"))
    page.type(" And how often?")
    assert page.all("#question")[0].get_property("value") == edited
    page.type(Keys.ENTER)
    page.until(lambda: page.text("#latest h2") == edited and page.all("#latest .answer"))
    answer = page.text("#latest .answer")
    assert (len(page.all("h2[id^=asked]")), len(page.all(".again form"))) == (2, 1)
    browser.execute_script("document.getElementById('latest').className += ' earlier'")
    press(page, ".again button")
    page.until(lambda: page.all("#latest .answer") and not page.all(".earlier"))
    browser.get(chat)
    assert page.text("#latest .answer") == answer
    assert [each.text for each in page.all("h2[id^=asked]")] == [GUARANTEE, edited]
    page.size(*PHONE)
    press(page, "#latest .again a")
    page.until(lambda: "takes the place" in page.text(".ask"))
    assert not page.scrolls_sideways()
    press(page, ".replaces a")
    page.until(lambda: "takes the place" not in page.text(".ask") and page.all("#latest .answer"))
    press(page, ".again a")
    page.until(lambda: page.focused() == "question" and "another conversation" in page.text(".ask"))
    page.type(" And of the boiler?", Keys.ENTER)
    page.until(lambda: page.text("#latest h2") == f"{GUARANTEE} And of the boiler?" and page.all("#latest .answer"))
    assert len(page.all("h2[id^=asked]")) == 1
    browser.get(chat)
    assert [each.text for each in page.all("h2[id^=asked]")] == [GUARANTEE, edited]


def test_an_answer_that_fails_replaces_nothing(client: httpx.Client) -> None:
    page = ask(client, GUARANTEE)
    chat = page.url.path.removeprefix("/chats/")
    refused = client.post("/ask", data={"question": " ", "chat": chat, "replaces": "1"})
    assert 'name="replaces" value="1"' in refused.text
    assert "thirty-six" in client.get(page.url).text
    replaced = ask(client, "When does the frost come?", chat=chat, replaces="1")
    assert GUARANTEE not in replaced.text.partition("<main")[2]
    assert "19 May" in replaced.text
    ask(client, GUARANTEE, chat=chat)
    other = ask(client, "Who wrote The Salt Road?", chat=chat, replaces="1")
    assert other.url.path not in ("/", page.url.path)  # a conversation of its own
    assert "19 May" in client.get(page.url).text
    assert "no question 3" in ask(client, GUARANTEE, chat=chat, replaces="3").text
    assert ask(client, GUARANTEE, chat="99999", replaces="1").status_code == 404


def test_an_edited_question_leaves_nothing_in_the_file(tmp_path: Path) -> None:
    store = Store(tmp_path / "convagent.sqlite")
    chat = store.start_chat("notes")
    for question in ("Which plants?", "Is Zanzibar far away?"):
        store.add_turn(chat, ChatTurn(question, many_sources(1)))
    edited = replace(store.read_turns(chat)[1], utterance="Is Bergen far away?")
    for user, number in (("", 1), ("ben", 2), ("", 3)):
        with pytest.raises(MissingError, match="not kept"):
            store.for_user(user).replace_turn(chat, number, edited)
    store.replace_turn(chat, 2, edited)
    assert [turn.utterance for turn in store.read_turns(chat)] == ["Which plants?", "Is Bergen far away?"]
    assert not [file for file in tmp_path.iterdir() if b"Zanzibar" in file.read_bytes()]


@needs_browser
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_questions_to_begin_with_ratings_titles_and_all_documents(
    browser: Any, server: Server, size: tuple[int, int]
) -> None:
    page = Page(browser, server.address)
    page.enter(server)
    page.size(*size)
    assert len(page.all(".starters button")) == 3
    press(page, ".starters button")
    page.until(lambda: "house/kettle-manual.pdf" in page.text("#latest .answer"))
    page.ask(GUARANTEE)
    assert not page.all("#latest .how div")  # searched for as it was asked
    chat = browser.current_url.partition("#")[0]
    press(page, "#rating-2 [value=bad]")
    page.until(lambda: page.text("#rating-2 [aria-pressed=true]") == "Bad")
    assert not page.scrolls_sideways()
    press(page, ".more summary")
    page.all("#title")[0].send_keys("The <kettle>", Keys.ENTER)
    page.until(lambda: "The <kettle>" in page.driver.page_source.replace("&lt;", "<").replace("&gt;", ">"))
    exported = server.get(f"{chat.removeprefix(server.address)}/conversation.md").text
    assert exported.endswith("*Rated bad.*\n")
    page.ask("When are the radiators bled?")
    press(page, "main .starters button")  # what else the document says
    page.until(
        lambda: page.text("#latest h2") == "Summarise “Wood stove” (house/heating.md)" and page.all("#latest .answer")
    )
    if size == PHONE:
        page.click(".fresh")
        page.until(lambda: page.all(".welcome"))
        page.click("#menu")
    press(page, ".all")
    page.until(lambda: page.all("#files-list a"))
    assert "house/kettle-manual.pdf" in page.text("#files-list")
    listed = page.text("#files-list").replace("\n", " ")
    assert "office/aquarium.eml 4 March 2025" in listed  # sent then
    assert "work/meeting-2025-03-11.md 11 March 2025" in listed
    page.all("#q")[0].send_keys("KETTLE")
    page.until(lambda: len(page.all("#files-list a")) == 1)
    assert not page.scrolls_sideways()
    page.click("#files-list a")
    page.until(lambda: page.text("h1") == "house/kettle-manual.pdf")
    assert browser.get_log("browser") == []


@needs_browser
@needs_model
@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_a_larger_model_is_fetched_stopped_fetched_on_and_answers(
    browser: Any, folder: Path, tmp_path: Path, size: tuple[int, int]
) -> None:
    """The hub has the bundled model under the name of a larger one."""
    name = "Qwen/Qwen2.5-1.5B-Instruct-GGUF"
    with (
        serving_hub(name, find_bundled_gguf(), seconds=0.03) as hub,
        serving_source(
            "--docs", folder, tmp_path, *NO_MODELS, settings=hub | {"HF_HOME": str(tmp_path / "hf")}
        ) as server,
    ):
        page = Page(browser, server.address)
        page.enter(server)
        page.size(*size)
        if size == PHONE:
            page.click("#menu")
        press(page, "a[href='/models']")
        page.until(lambda: page.all(".models"))
        press(page, f".models [value='hf:{name}'] ~ button")
        page.until(lambda: any(f" {share} %" in page.text(".fetch") for share in range(2, 9)))  # of what it should be
        assert not page.scrolls_sideways()
        press(page, ".fetch button")
        page.until(lambda: not page.all(".fetch"))
        press(page, f".models [value='hf:{name}'] ~ button")
        page.until(lambda: f"hf:{name} finds what answers" in page.text("h1 + p"))
        assert [len(range_) > 0 for range_ in downloads()] == [False, True]
        browser.get(server.address)
        page.ask(GUARANTEE)
        assert "thirty-six" in page.text("#latest .answer")
        page.click(".source summary")
        assert f"Model: hf:{name}" in page.text(".source .card")
        assert json.loads((tmp_path / "chosen-models.json").read_text()) == {"model": f"hf:{name}"}


# Adding documents

DROP = """
const files = new DataTransfer();
files.items.add(new File(["# Bees\\n\\nThe bees of the roof need 14 litres of syrup.\\n"], "bees.md"));
files.items.add(new File(["x"], "tool.exe"));
for (const type of ["dragover", "drop"])
  document.querySelector("main").dispatchEvent(
    new DragEvent(type, {dataTransfer: files, bubbles: true, cancelable: true}));
"""


@pytest.fixture
def uploading(tmp_path: Path) -> Iterator[tuple[Server, Path]]:
    """A server, and its folder, which documents may be added to."""
    (open_folder := tmp_path / "notes").mkdir()
    (open_folder / "wall.md").write_text("The wall is painted in Chalk.\n")
    with serving_source("--docs", open_folder, tmp_path, *NO_MODELS) as running:
        yield running, open_folder


@needs_browser
def test_documents_are_added_by_dropping_them_or_by_the_form(
    browser: Any, uploading: tuple[Server, Path], tmp_path: Path
) -> None:
    running, open_folder = uploading
    page = Page(browser, running.address)
    page.enter(running)
    browser.execute_script(DROP)
    page.until(lambda: page.text("#added").startswith("Added: bees.md."))
    assert "tool.exe: is of no kind that can be read" in page.text("[role=alert]")
    assert browser.current_url == running.address
    page.click(".all")
    page.until(lambda: page.driver.refresh() or "2 documents" in page.text("h1"))
    browser.get(running.address)
    page.ask("How many litres of syrup do the bees need?")
    assert "14 litres" in page.text("#latest .answer")
    (tmp_path / "frost.txt").write_text("The last frost comes around 19 May.\n")
    page.size(*PHONE)
    assert (page.text(".add"), page.text(".fresh")) == ("Add documents", "+ New")
    assert not page.scrolls_sideways()
    page.click(".add")
    page.until(lambda: page.all("#files-list"))
    page.all("#files")[0].send_keys(str(tmp_path / "frost.txt"))
    page.click("#upload button")
    page.until(lambda: page.text("#added").startswith("Added: frost.txt."))
    page.until(lambda: "frost.txt" in page.text("#files-list"))  # which is shown anew by itself
    assert page.text("h1") == "3 documents in notes"
    assert sorted(path.name for path in open_folder.iterdir()) == ["bees.md", "frost.txt", "wall.md"]
    assert not page.scrolls_sideways()
    assert browser.get_log("browser") == []


def test_an_upload_replaces_nothing_and_stays_in_the_folder(uploading: tuple[Server, Path]) -> None:
    running, open_folder = uploading
    with running.open_client() as client:

        def add(name: str, content: bytes = b"Other text.", **headers: str) -> httpx.Response:
            return client.post("/upload", files={"file": (name, content)}, headers=headers)

        assert "stays as it is" in add("wall.md").text
        assert (open_folder / "wall.md").read_text() == "The wall is painted in Chalk.\n"
        for name in (".hidden.md", "..", "a.exe", "x" * 300 + ".md"):
            assert add(name).status_code == 400, name
        for name in ("../../outside.md", "C:\\notes\\inside.md", "/etc/absolute.md", "<b>.md"):
            assert add(name).status_code == 200, name
        (open_folder / "away.md").symlink_to(open_folder.parent / "target.md")
        assert add("away.md").status_code == 400
        assert add("evil.md", Origin="https://elsewhere.example").status_code == 403
        assert add("large.md", b"x" * 300_000).status_code == 200
        assert add("huge.md", b"x" * 50_000_001).status_code == 413
        assert client.post("/ask", data={"question": "x" * 300_000}).status_code == 413
        assert client.post("/upload", content=b"no form").status_code == 400
        stranger = httpx.post(f"{running.address}upload", files={"file": ("z.md", b"x")}, trust_env=False)
        assert stranger.status_code == 401
    added = {"outside.md", "inside.md", "absolute.md", "_b_.md", "large.md"}
    assert {path.name for path in open_folder.iterdir()} == added | {"wall.md", "away.md"}
    assert not (open_folder.parent / "outside.md").exists()
    assert not (open_folder.parent / "target.md").exists()


def test_several_add_nothing_unless_that_is_allowed(folder: Path, tmp_path: Path) -> None:
    for flags in (("--no-token",), ("--host", "0.0.0.0")):  # noqa: S104 - others reach it, which is the point
        with serving_source("--docs", folder, tmp_path, *NO_MODELS, *flags) as running, running.open_client() as client:
            assert "upload" not in client.get("/").text
            assert client.post("/upload", files={"file": ("new.md", b"x")}).status_code == 404
    assert not (folder / "new.md").exists()
    called = ("serve", "--docs", folder / "books.json", "--allow-upload", "--port", "0", *NO_MODELS)
    ended = within.convagent(*called, CONVAGENT_DATA=str(tmp_path))
    assert (ended.returncode, "--allow-upload needs a folder" in ended.stderr) == (2, True)
