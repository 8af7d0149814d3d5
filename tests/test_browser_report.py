"""A report in a real browser, from disk: a bar opens its turn, nothing is fetched, and it fits a telephone."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.evaluation.report import ReportRequest, write_report
from tests.conftest import EXAMPLES, PATIENCE
from tests.test_browser import browser, needs_browser

webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed (extra dev)")
from selenium.webdriver.common.by import By  # noqa: E402
from selenium.webdriver.support.ui import WebDriverWait  # noqa: E402

__all__ = ["browser"]  # a fixture
pytestmark = needs_browser


def test_a_bar_leads_to_its_turn_and_nothing_is_fetched(browser: Any, example_runs: Path, tmp_path: Path) -> None:
    runs, texts = (example_runs / "automatic.json", example_runs / "manual.json"), EXAMPLES / "passages.jsonl"
    request = ReportRequest(runs, EXAMPLES / "topics.json", tmp_path / "report.html", passages=(texts,))
    address = write_report(request).as_uri()
    browser.get("about:blank")
    for log in ("browser", "performance"):
        browser.get_log(log)  # what an earlier page left there
    narrow = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", narrow)
    browser.get(address)
    bars = browser.find_elements(By.CSS_SELECTOR, "svg a")
    assert len(bars) == 15
    anchor = bars[0].get_dom_attribute("href")
    browser.execute_script("arguments[0].dispatchEvent(new MouseEvent('click', {bubbles: true}))", bars[0])
    WebDriverWait(browser, PATIENCE).until(
        lambda _: browser.find_elements(By.CSS_SELECTOR, f"details[open] > {anchor}")
    )
    assert browser.execute_script("return document.documentElement.scrollWidth") == 380
    assert not browser.find_elements(By.CSS_SELECTOR, "table:not(:has(th[scope]))")
    assert browser.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = [event["params"]["request"]["url"] for event in sent if event["method"] == "Network.requestWillBeSent"]
    assert {url.partition("#")[0] for url in urls} == {address}
