"""How long a browser takes to open a report from disk: until something is seen, and until all of it is there.

    python -m benchmarks ikat --data DIR -o bench
    python benchmarks/report_opening.py bench/report.html [--times 7]

Chromium without a window, driven by its driver (extra dev); every time another page comes between.
"""

import argparse
import statistics
from pathlib import Path
from typing import Any

from selenium import webdriver

FLAGS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")
TIMES = """
const [navigation] = performance.getEntriesByType("navigation");
const [paint] = performance.getEntriesByType("paint");
return [paint.startTime, navigation.loadEventEnd];
"""  # in milliseconds


def open_report(browser: Any, report: Path) -> tuple[float, float]:
    """Seconds until it is painted and until it is loaded."""
    browser.get("about:blank")
    browser.get(report.absolute().as_uri())
    painted, loaded = browser.execute_script(TIMES)
    return painted / 1000, loaded / 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("--times", type=int, default=7)
    arguments = parser.parse_args()
    options = webdriver.ChromeOptions()
    for flag in FLAGS:
        options.add_argument(flag)
    browser = webdriver.Chrome(options=options)
    try:
        times = [open_report(browser, arguments.report) for _ in range(arguments.times)]
    finally:
        browser.quit()
    print(f"{arguments.report}: {arguments.report.stat().st_size / 1e6:.1f} MB, medians of {arguments.times}")
    for name, seconds in zip(("painted", "loaded"), zip(*times, strict=True), strict=True):
        print(f"{name} after {statistics.median(seconds):.2f} s ({max(seconds):.2f} at most)")


if __name__ == "__main__":
    main()
