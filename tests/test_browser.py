"""The page in a real browser, as a person uses it: by mouse, by keyboard, in the dark, on a phone.

With `CONVAGENT_SCREENSHOTS=1` the pictures of the README are made anew.
"""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.terminal.reports import write_redirection
from indexes.passage_index import PassageIndex
from tests.conftest import PATIENCE, ROOT, needs_embedder
from tests.serving import SHADE, Server, serving

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

    def enter(self, server: Server, token: str = "") -> None:
        """Open a new conversation, signed in, on a desktop."""
        self.size(*DESKTOP)
        self.driver.get(f"{server.address}?token={token or server.token}")

    def scrolls_sideways(self) -> bool:
        return bool(self.driver.execute_script("return document.documentElement.scrollWidth > innerWidth"))

    def size(self, width: int, height: int) -> None:
        screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)

    def prefers(self, theme: str) -> None:
        media = {"features": [{"name": "prefers-color-scheme", "value": theme}]}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def background(self) -> str:
        return str(self.driver.execute_script("return getComputedStyle(document.documentElement).backgroundColor"))


def test_a_conversation_from_signing_in_to_deleting_it(browser: Any, server: Server) -> None:
    """The token leaves the address and goes into no Referer, and nothing is asked of anybody else."""
    page = Page(browser, server.address)
    page.size(*DESKTOP)
    browser.get(server.address)
    page.until(lambda: "convagent serve" in page.text("main"))
    for log in ("browser", "performance"):
        browser.get_log(log)  # the refusal
    page.enter(server)
    assert browser.current_url == server.address
    page.ask(SHADE)
    assert SHADE in page.text("h2")
    page.ask("How often do they need water in summer?")
    permalink = browser.current_url.partition("#")[0]
    assert permalink.startswith(f"{server.address}chats/")
    assert "(" in page.text("#latest .how dd").partition("summer?")[2]  # what "they" are
    cite = page.all("#latest .answer .cite")[-1]
    cite.click()
    opened = page.all("#latest .sources details[open]")
    assert [source.text.split()[0] for source in opened] == [cite.text]
    marked = page.all("#latest .sources details[open] mark")
    assert marked
    assert all(mark.text in page.text("#latest .answer") for mark in marked)
    answers = page.text(".answer")
    browser.refresh()
    assert page.text(".answer") == answers

    page.click(".new")
    page.all("#q")[0].send_keys("nowhere said")
    page.until(lambda: "No conversation has these words" in page.text("#chats"))
    page.all("#q")[0].clear()
    page.all("#q")[0].send_keys("SHADY pots water")
    page.until(lambda: page.all("#chats a"))
    page.click("#chats a")
    page.until(lambda: browser.current_url == permalink)
    assert page.text(".answer") == answers
    page.click(".more summary")
    page.click(".more .danger")
    browser.switch_to.alert.dismiss()
    assert browser.current_url == permalink
    page.click(".more .danger")
    assert browser.switch_to.alert.text == "Delete this conversation with its 2 turns?"
    browser.switch_to.alert.accept()
    page.until(lambda: browser.current_url == server.address)
    assert permalink not in [link.get_attribute("href") for link in page.all("#chats a")]

    cookies = browser.get_cookies()
    assert [(cookie["httpOnly"], cookie["sameSite"]) for cookie in cookies] == [(True, "Strict")]
    assert browser.execute_script("return document.cookie") == ""
    assert server.token not in browser.page_source
    assert browser.get_log("browser") == []
    logged = browser.get_log("performance")
    sent = [json.loads(entry["message"])["message"] for entry in logged]
    urls = [each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"]
    extra = [each["params"]["headers"] for each in sent if each["method"] == "Network.requestWillBeSentExtraInfo"]
    assert (bool(urls), bool(extra)) == (True, True)
    assert [url for url in urls if not url.startswith((server.address, "data:"))] == []
    assert [headers for headers in extra if server.token in headers.get("Referer", "")] == []

    browser.delete_all_cookies()  # and as `--open` does it: no process has the token among its arguments
    browser.get(write_redirection(f"{server.address}?token={server.token}"))
    page.until(lambda: page.all("#question"))
    assert browser.current_url == server.address


def test_the_keyboard_is_enough_in_the_dark_and_on_a_phone(browser: Any, server: Server) -> None:
    page = Page(browser, server.address)
    page.prefers("light")
    page.enter(server)
    assert page.focused() == "question"
    page.type(SHADE, Keys.ENTER)
    page.until(lambda: page.all(".cite") and page.focused() == "question")
    browser.refresh()
    page.type(Keys.TAB)
    assert page.focused() == "skip"
    page.type(Keys.ENTER)
    for _ in range(12):
        page.type(Keys.TAB)
        if page.focused() == "cite":
            break
    number = browser.switch_to.active_element.text
    page.type(Keys.ENTER)
    assert browser.switch_to.active_element.tag_name == "summary"
    assert page.text(".sources details[open] .number") == number
    page.type(Keys.SPACE)
    assert not page.all(".sources details[open]")

    light = page.background()
    page.prefers("dark")
    assert page.background() != light
    page.click("#theme")  # the person's word counts more than the system's
    browser.refresh()
    assert page.background() == light
    page.prefers("light")
    browser.execute_script("localStorage.clear()")

    page.size(*PHONE)
    browser.refresh()
    page.ask(f"Which plants? {'Averylongword' * 20}")
    page.click("#menu")
    page.until(lambda: page.all("#statement")[0].is_displayed())
    for _ in ("with the drawer open", "and with every source"):
        assert not page.scrolls_sideways()
        browser.execute_script("document.querySelectorAll('details').forEach(it => it.removeAttribute('name'))")
        browser.execute_script("document.querySelectorAll('details').forEach(it => it.open = true)")


def test_nothing_is_remembered_unasked_and_a_mistake_loses_nothing(browser: Any, server: Server) -> None:
    page = Page(browser, server.address)
    page.enter(server)
    page.ask("I have two cats. Which plants are safe?")
    assert "cats" not in page.text("#about")
    page.ask("thanks!")
    assert page.text("#latest .answer") == "You are welcome."
    assert not page.all("#latest .how")
    for size in (PHONE, DESKTOP):  # above the bar, and in sight
        page.size(*size)
        offer, bar = page.all(".offer")[0].rect, page.all(".ask")[0].rect
        assert offer["y"] + offer["height"] <= bar["y"]
        assert page.all(".offer button")[0].is_displayed()
    page.click(".offer button")
    page.until(lambda: "I have two cats." in page.text("#about") and not page.all(".offer"))
    browser.refresh()
    assert page.text("#about").count("I have two cats.") == 1

    page.click(".new")
    page.until(lambda: page.all(".welcome"))
    browser.get_log("browser")
    page.all("#question")[0].send_keys("   ", Keys.ENTER)
    page.until(lambda: "There is nothing to answer" in page.text("#problem"))
    long = "long " * 1000
    browser.execute_script("document.getElementById('question').value = arguments[0]", long)
    page.click(".ask button")
    page.until(lambda: "too long" in page.text("#problem"))
    assert page.all("#question")[0].get_property("value") == long
    assert {entry["source"] for entry in browser.get_log("browser")} == {"network"}  # the two refusals


@pytest.mark.soak
@needs_embedder
def test_sources_near_and_beside_and_a_statement_that_counts(
    browser: Any, tmp_path: Path, example_index: PassageIndex
) -> None:
    arguments = ("--model", "none", "--embedder", "minilm")
    with serving(example_index.directory, tmp_path / "data", *arguments) as server:
        page = Page(browser, server.address)
        page.enter(server)
        page.ask("How long does sourdough bread keep?")
        fold = page.all("#latest .nearby")[0]
        assert fold.text == "Also nearby"
        fold.find_element("tag name", "summary").click()
        cite = page.all("#latest .nearby .cite")[0]
        cite.click()
        opened = page.all("#latest .sources details[open]")
        assert [source.text.split()[0] for source in opened] == [cite.text]
        page.all("#statement")[0].send_keys("I have two cats that chew on plants.", Keys.ENTER)
        page.until(lambda: "two cats" in page.text("#about"))
        page.click(".new")
        page.ask(SHADE)
        page.ask("And which plants are non-toxic to cats?")
        assert "two cats" in page.text("#latest .how")
        page.click("#latest .cite")
        folder = ROOT / "docs" if os.environ.get("CONVAGENT_SCREENSHOTS") == "1" else tmp_path
        for name, theme, size in (("", "light", DESKTOP), ("-dark", "dark", DESKTOP), ("-phone", "light", PHONE)):
            page.prefers(theme)
            page.size(*size)
            left = [page.all(f"#latest {part}")[0].rect["x"] for part in (".answer", ".sources")]
            assert (left[0] == left[1]) == (size == PHONE)
            assert browser.save_screenshot(str(folder / f"serve{name}.png"))
