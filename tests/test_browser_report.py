"""A report in a real browser, from disk: filters, links, the keyboard, passages, and no request to anywhere."""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from agent.evaluation.answers import PassageSource
from agent.evaluation.report.page import write_report
from agent.evaluation.report.reading import ReportRequest, pair_files
from tests.conftest import EXAMPLES, PATIENCE
from tests.test_browser import browser, needs_browser

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra dev)")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

__all__ = ["browser"]  # a fixture
pytestmark = needs_browser


@pytest.fixture(scope="module")
def report_file(example_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    runs = pair_files([example_runs / "automatic.json", example_runs / "manual.json"])
    output = tmp_path_factory.mktemp("report") / "report.html"
    passages = PassageSource((EXAMPLES / "passages.jsonl",))
    return write_report(ReportRequest(runs, EXAMPLES / "topics.json", output, texts=passages))


@pytest.fixture
def report(browser: Any, report_file: Path) -> Iterator["Report"]:
    """The report, opened; afterwards: nothing in the console, and no request but for the file itself."""
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)  # what an earlier page left there
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride", {"width": 1280, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    )
    browser.get(report_file.as_uri())
    yield Report(browser)
    assert browser.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in sent if event["method"] == "Network.requestWillBeSent"]
    assert {url.partition("#")[0] for url in urls} == {report_file.as_uri()}


class Report:
    """What a reader does with it."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def all(self, selector: str) -> list[Any]:
        return list(self.driver.find_elements(By.CSS_SELECTOR, selector))

    def click(self, selector: str) -> None:
        self.driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", self.all(selector)[0])
        self.all(selector)[0].click()

    def type(self, *keys: str) -> None:
        for key in keys:  # each to what has the focus by then
            self.driver.switch_to.active_element.send_keys(key)

    def choose(self, id: str, label: str) -> None:
        [option] = [each for each in self.all(f"#{id} option") if each.text == label]
        option.click()

    def shown(self) -> list[str]:
        """The ids of the turns that are listed, in their order."""
        script = "return [...document.querySelectorAll('.turn:not([hidden])')].map((turn) => turn.id.slice(5))"
        return list(self.driver.execute_script(script))

    def opened(self) -> list[str]:
        script = "return [...document.querySelectorAll('.turn[open]')].map((turn) => turn.id.slice(5))"
        return list(self.driver.execute_script(script))

    def until(self, holds: Callable[[], object]) -> None:
        WebDriverWait(self.driver, PATIENCE).until(lambda _: holds())


def test_turns_are_filtered_and_ordered(report: Report) -> None:
    assert len(report.shown()) == 15
    report.choose("topic", "1")
    assert report.shown() == [f"1_{number}" for number in range(1, 6)]
    report.choose("topic", "all")
    report.choose("kind", "first")
    assert report.shown() == ["0_1", "1_1", "2_1"]
    assert report.all("#count")[0].text == "3 of 15 turns"
    report.choose("kind", "all")
    report.all("#words")[0].send_keys("sourdough neighbour")
    assert report.shown() == ["0_5"]
    report.all("#words")[0].send_keys(" quixotic")
    report.click("#clear")
    assert len(report.shown()) == 15
    report.choose("order", "most better first")
    assert report.shown()[0] != "0_1"


def test_wins_and_losses_lead_to_their_turns(report: Report) -> None:
    [wins] = report.all('[data-measure="0"][data-outcome="win"]')
    number = int(wins.text)
    report.click('[data-measure="0"][data-outcome="win"]')
    assert len(report.shown()) == number > 0
    script = "return getComputedStyle(arguments[0]).display"
    bars = report.all(".m-0 .bars a")
    assert len(bars) == 15
    first = bars[0].get_dom_attribute("href").partition("#turn-")[2]
    report.driver.execute_script("arguments[0].focus()", bars[0])
    report.type(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_LEFT, Keys.ARROW_LEFT, Keys.ENTER)
    report.until(lambda: report.opened() == [first])
    assert report.driver.current_url.endswith(f"#turn-{first}")
    report.click('label:has(> [name="measure"][value="2"])')
    assert [report.driver.execute_script(script, each) for each in report.all(".for-measure")].count("none") == len(
        report.all(".for-measure")
    ) - 1


def test_everything_by_keyboard(report: Report) -> None:
    report.all("body")[0].send_keys("/")
    assert report.driver.switch_to.active_element.get_attribute("id") == "words"
    report.type("Lindenau", Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB, Keys.TAB)
    report.type("j", "j", "k", Keys.ENTER)
    assert report.opened() == report.shown()[1:2]
    tabs = 0  # through the earlier questions to the first citation
    while "cite" not in report.driver.switch_to.active_element.get_attribute("class"):
        report.type(Keys.TAB)
        assert (tabs := tabs + 1) < 10
    report.type(Keys.ENTER)
    assert report.all("dialog[open] mark")
    report.type(Keys.ESCAPE)
    assert not report.all("dialog[open]")
    assert "cite" in report.driver.switch_to.active_element.get_attribute("class")


def test_a_passage_is_shown_with_what_an_answer_took_from_it(report: Report) -> None:
    report.driver.execute_script("location.hash = 'turn-0_1'")
    report.until(lambda: report.all("#turn-0_1 .snippet"))
    cite = report.all("#turn-0_1 .cite")[0]
    sentence = cite.find_element(By.XPATH, "preceding-sibling::span[1]").text
    report.click("#turn-0_1 .cite")
    assert sentence in [mark.text for mark in report.all("#passage mark")]
    report.click("#passage button")
    assert report.all("#turn-0_1 td.relevant button .snippet")


def test_dark_narrow_and_on_paper(report: Report) -> None:
    driver = report.driver
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    light = driver.execute_script(background)
    media = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    assert driver.execute_script(background) != light
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": media["features"]})
    assert driver.execute_script(background) == "rgb(255, 255, 255)"
    assert not report.all("#filters")[0].is_displayed()
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})
    narrow = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    driver.execute_script("location.hash = 'turn-0_1'")
    report.until(lambda: report.opened() == ["0_1"])
    assert driver.execute_script("return document.documentElement.scrollWidth") == 380


def test_headings_tables_and_charts_have_names(report: Report) -> None:
    driver = report.driver
    levels = [
        int(tag[1])
        for tag in driver.execute_script(
            "return [...document.querySelectorAll('h1, h2, h3, h4')].map((each) => each.tagName)"
        )
    ]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert not report.all("table:not(:has(th[scope]))")
    assert not report.all("main svg:not([aria-hidden]):not([aria-label])")
    ids = driver.execute_script("return [...document.querySelectorAll('[id]')].map((each) => each.id)")
    assert len(ids) == len(set(ids))
