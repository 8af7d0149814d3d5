"""The page in a real browser, as a person uses it: by mouse, by keyboard, in the dark, on a phone.

With `CONVAGENT_SCREENSHOTS=1` the pictures of the README are made anew.
"""

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.serve.users import add_user
from agent.terminal.reports import write_redirection
from indexes.passage_index import PassageIndex
from tests.conftest import PATIENCE, ROOT, needs_embedder
from tests.serving import Server, serving

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra dev)")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(
    not (BROWSER and DRIVER), reason="no browser (apt-get install chromium chromium-driver)"
)
pytestmark = needs_browser
DESKTOP, PHONE = (1280, 860), (360, 740)
SHADE = "Which plants grow well in pots on a shady balcony?"


@pytest.fixture(scope="module")
def server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, example_index: PassageIndex
) -> Iterator[Server]:
    """One for all tests that want the same; `page` forgets what an earlier test said."""
    embedder, data = getattr(request, "param", "none"), tmp_path_factory.mktemp("data")
    with serving(example_index.directory, data, "--model", "none", "--embedder", embedder) as running:
        yield running


def forget(server: Server) -> None:
    """All conversations and statements."""
    with server.open_client() as client:
        page = client.get("/").text
        for chat in set(re.findall(r"/chats/(\d+)", page)):
            client.post(f"/chats/{chat}/delete")
        for statement in set(re.findall(r"/statements/(\w+)", page)):
            client.post(f"/statements/{statement}", data={"do": "forget"})


with_embedder = pytest.mark.parametrize("server", ["minilm"], indirect=True)


def start_browser() -> Any:
    """A browser with cookies of its own, which finds no host but this one."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"):
        options.add_argument(argument)
    options.add_argument("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    return webdriver.Chrome(options, webdriver.ChromeService(DRIVER))


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    driver = start_browser()
    yield driver
    driver.quit()


@pytest.fixture
def page(browser: Any, server: Server) -> Iterator["Page"]:
    """The page of a new conversation; afterwards: nothing in the console, and no request to elsewhere."""
    browser.get("about:blank")
    forget(server)
    for log in ("browser", "performance"):
        browser.get_log(log)  # what an earlier page left there
    opened = Page(browser, server.address)
    opened.size(*DESKTOP)
    opened.prefers("light")
    browser.get(f"{server.address}?token={server.token}")
    yield opened
    assert browser.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in sent if event["method"] == "Network.requestWillBeSent"]
    assert urls
    assert [url for url in urls if not url.startswith((server.address, "data:"))] == []


class Page:
    """What a person does with it."""

    def __init__(self, driver: Any, address: str) -> None:
        self.driver, self.address = driver, address

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def text(self, selector: str) -> str:
        return "\n".join(element.text for element in self.all(selector))

    def click(self, selector: str) -> None:
        self.all(selector)[0].click()

    def type(self, *keys: str) -> None:
        self.driver.switch_to.active_element.send_keys(*keys)

    def focused(self) -> str:
        return str(self.driver.execute_script("return document.activeElement.id || document.activeElement.className"))

    def until(self, holds: Callable[[], object]) -> None:
        WebDriverWait(self.driver, PATIENCE, ignored_exceptions=[Exception]).until(lambda _: holds())

    def ask(self, question: str) -> None:
        answers = len(self.all(".answer"))
        self.all("#question")[0].send_keys(question, Keys.ENTER)
        self.until(lambda: len(self.all(".answer")) == answers + 1 and self.focused() == "question")

    def until_answered(self) -> None:
        self.until(lambda: self.all(".answer"))

    def know(self, statement: str) -> None:
        self.all("#statement")[0].send_keys(statement, Keys.ENTER)
        self.until(lambda: statement in self.text("#about"))

    def size(self, width: int, height: int) -> None:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def prefers(self, theme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def is_uncovered(self, selector: str) -> bool:
        """Whether a click in the middle of an element hits it."""
        script = "const b = arguments[0].getBoundingClientRect();"
        script += "return document.elementFromPoint(b.x + b.width / 2, b.y + b.height / 2) === arguments[0]"
        return bool(self.driver.execute_script(script, self.all(selector)[0]))

    def left(self, selector: str) -> int:
        return int(self.all(f"#latest {selector}")[0].rect["x"])

    def background(self) -> str:
        return str(self.driver.execute_script("return getComputedStyle(document.documentElement).backgroundColor"))

    def picture(self, name: str, folder: Path) -> None:
        docs = ROOT / "docs" if os.environ.get("CONVAGENT_SCREENSHOTS") == "1" else folder
        assert self.driver.save_screenshot(str(docs / name))


def test_a_conversation_with_its_sources(page: Page) -> None:
    page.ask(SHADE)
    assert SHADE in page.text("h2")
    page.ask("How often do they need water in summer?")
    assert page.driver.current_url.startswith(f"{page.address}chats/")
    assert "(" in page.text("#latest .how dd").partition("summer?")[2]  # what "they" are
    cite = page.all("#latest .answer .cite")[-1]
    cite.click()
    opened = page.all("#latest .sources details[open]")
    assert [source.text.split()[0] for source in opened] == [cite.text]
    marked = page.all("#latest .sources details[open] mark")
    assert marked
    assert all(mark.text in page.text("#latest .answer") for mark in marked)


@pytest.mark.soak
@needs_embedder
@with_embedder
def test_what_comes_near_is_folded_away(page: Page) -> None:
    page.ask(SHADE)
    fold = page.all("#latest .nearby")[0]
    assert fold.text == "Also nearby"
    fold.find_element("tag name", "summary").click()
    cite = page.all("#latest .nearby .cite")[0]
    cite.click()
    opened = page.all("#latest .sources details[open]")
    assert [source.text.split()[0] for source in opened] == [cite.text]
    assert page.all("#latest .sources details[open] mark")


@pytest.mark.soak
@needs_embedder
@with_embedder
def test_sources_stand_beside_the_answer_where_there_is_room(page: Page, tmp_path: Path) -> None:
    page.know("I have two cats that chew on plants.")
    page.ask(SHADE)
    page.ask("Which of them are safe for my cats?")
    page.click("#latest .cite")
    assert page.left(".answer") < page.left(".sources")
    page.picture("serve.png", tmp_path)
    page.prefers("dark")
    page.picture("serve-dark.png", tmp_path)
    page.prefers("light")
    page.size(*PHONE)
    page.driver.refresh()
    assert page.left(".answer") == page.left(".sources")
    page.picture("serve-phone.png", tmp_path)


@pytest.mark.soak
@needs_embedder
@with_embedder
def test_a_statement_changes_the_next_answer(page: Page) -> None:
    page.ask("Which bread can I eat?")
    before = page.text("#latest .answer")
    page.know("I have coeliac disease and cannot eat bread with gluten.")
    page.click(".new")
    page.ask("Which bread can I eat?")
    assert "coeliac" in page.text("#latest .how")
    assert page.text("#latest .answer") != before
    page.click("#about summary")
    page.click("#about [value=forget]")
    page.until(lambda: not page.all("#about li"))


def test_nothing_is_remembered_unasked(page: Page) -> None:
    page.ask("I have two cats. Which plants are safe?")
    assert not page.all("#about li")
    page.ask("thanks!")
    assert page.text("#latest .answer") == "You are welcome."
    assert not page.all("#latest .how")
    for size in (PHONE, DESKTOP):  # above the bar, and in sight
        page.size(*size)
        offer, bar = page.all(".offer")[0].rect, page.all(".ask")[0].rect
        assert offer["y"] + offer["height"] <= bar["y"]
        assert page.all(".offer button")[0].is_displayed()
        assert page.is_uncovered(".offer button")
    page.click(".offer button")
    page.until(lambda: page.text("#about li") == "I have two cats." and not page.all(".offer"))
    page.driver.refresh()
    assert len(page.all("#about li")) == 1


@pytest.mark.soak
def test_reloading_and_coming_back_show_everything_again(page: Page) -> None:
    page.ask(SHADE)
    permalink, answer = page.driver.current_url, page.text(".answer")
    page.driver.refresh()
    assert page.text(".answer") == answer
    page.click(".new")
    page.all("#q")[0].send_keys("nowhere said")
    page.until(lambda: "No conversation has these words" in page.text("#chats"))
    page.all("#q")[0].clear()
    page.all("#q")[0].send_keys("SHADY")
    page.until(lambda: page.all("#chats a"))
    page.click("#chats a")
    page.until(lambda: page.driver.current_url == permalink)
    assert page.text(".answer") == answer
    page.click(".more summary")
    page.click(".more .danger")
    page.until(lambda: page.driver.current_url == page.address)
    assert not page.all("#chats a")


def test_dark_is_what_the_system_says_until_the_person_does(page: Page) -> None:
    light = page.background()
    page.prefers("dark")
    dark = page.background()
    assert dark != light
    page.click("#theme")
    assert page.background() == light
    page.driver.refresh()
    assert page.background() == light
    page.prefers("light")
    page.driver.execute_script("localStorage.clear()")


def test_a_phone_needs_no_sideways_scrolling(page: Page) -> None:
    page.size(*PHONE)
    page.driver.refresh()
    page.ask(f"Which plants? {'Averylongword' * 20}")
    page.click("#menu")
    page.until(lambda: page.all("#statement")[0].is_displayed())
    for _ in ("with the drawer open", "and with every source"):
        assert page.driver.execute_script("return document.documentElement.scrollWidth") <= PHONE[0]
        page.driver.execute_script("document.querySelectorAll('details').forEach(it => it.removeAttribute('name'))")
        page.driver.execute_script("document.querySelectorAll('details').forEach(it => it.open = true)")


def test_the_keyboard_is_enough(page: Page) -> None:
    assert page.focused() == "question"
    page.type(SHADE, Keys.ENTER)
    page.until(lambda: page.all(".cite") and page.focused() == "question")
    page.driver.refresh()
    page.type(Keys.TAB)
    assert page.focused() == "skip"
    page.type(Keys.ENTER)
    for _ in range(12):
        page.type(Keys.TAB)
        if page.focused() == "cite":
            break
    number = page.driver.switch_to.active_element.text
    page.type(Keys.ENTER)
    assert page.driver.switch_to.active_element.tag_name == "summary"
    assert page.text(".sources details[open] .number") == number
    page.type(Keys.SPACE)
    assert not page.all(".sources details[open]")


def test_a_mistake_loses_nothing(page: Page) -> None:
    page.type("   ", Keys.ENTER)
    page.until(lambda: "There is nothing to answer" in page.text("#problem"))
    long = "long " * 1000
    page.driver.execute_script("document.getElementById('question').value = arguments[0]", long)
    page.click(".ask button")
    page.until(lambda: "too long" in page.text("#problem"))
    assert page.all("#question")[0].get_property("value") == long
    assert {entry["source"] for entry in page.driver.get_log("browser")} == {"network"}  # the two refusals


# Signing in


@pytest.fixture
def newcomer() -> Iterator[Any]:
    driver = start_browser()
    yield driver
    driver.quit()


def test_the_token_leaves_the_address_and_goes_into_no_referer(newcomer: Any, server: Server) -> None:
    newcomer.get(server.address)
    assert "convagent serve" in newcomer.find_element(By.TAG_NAME, "main").text
    opened = Page(newcomer, server.address)
    newcomer.get(f"{server.address}?token={server.token}")
    assert newcomer.current_url == server.address
    opened.ask(SHADE)
    newcomer.refresh()
    assert opened.all(".answer")
    cookies = newcomer.get_cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert newcomer.execute_script("return document.cookie") == ""
    sent = [json.loads(entry["message"])["message"] for entry in newcomer.get_log("performance")]
    extra = [event["params"]["headers"] for event in sent if event["method"] == "Network.requestWillBeSentExtraInfo"]
    assert extra
    assert not [headers for headers in extra if server.token in headers.get("Referer", "")]
    assert server.token not in newcomer.page_source


def test_a_file_that_open_gives_to_the_browser_signs_in(newcomer: Any, server: Server) -> None:
    """As `--open` does it: no process has the token among its arguments."""
    newcomer.get(write_redirection(f"{server.address}?token={server.token}"))
    Page(newcomer, server.address).until(lambda: newcomer.find_elements(By.ID, "question"))
    assert newcomer.current_url == server.address


@pytest.mark.soak
def test_two_users_side_by_side(browser: Any, newcomer: Any, tmp_path: Path, example_index: PassageIndex) -> None:
    file = tmp_path / "users.json"
    tokens = [add_user(file, name, anew=False) for name in ("ana", "ben")]
    arguments = ("--model", "none", "--embedder", "none", "--users", str(file))
    with serving(example_index.directory, tmp_path, *arguments) as shared:
        ana, ben = Page(browser, shared.address), Page(newcomer, shared.address)
        for page, token in zip((ana, ben), tokens, strict=True):
            page.size(*DESKTOP)
            page.driver.get(f"{shared.address}?token={token}")
        ana.know("I have two cats.")
        ben.know("I bake bread.")
        for page, question in ((ana, SHADE), (ben, "How long does bread keep?")):
            page.all("#question")[0].send_keys(question, Keys.ENTER)  # both at once
        for page in (ana, ben):
            page.until_answered()
            page.driver.refresh()
        for page, own, others in ((ana, SHADE, "bread"), (ben, "How long does bread keep?", "cats")):
            assert own in page.text("#chats")
            assert len(page.all("#chats a")) == 1
            assert others not in page.text("#drawer")
        theirs = ana.driver.current_url
        ben.driver.get(theirs)
        assert "There is no conversation" in ben.text("#problem")
        assert SHADE not in ben.driver.page_source
        assert "Signed in as ben" in ben.text(".who")
        ben.click(".who button")
        ben.until(lambda: "signed out" in ben.text("[role=alert]"))
        ben.driver.get(shared.address)
        assert not ben.all("#question")
        ana.ask("How often do they need water?")
        ana.driver.delete_all_cookies()
