"""How long one waits for the first answers after a start: `python -m benchmarks.first_start [FOLDER] [--typing S]`.

`convagent chat` with the bundled models at a terminal of its own: twice with nothing prepared, each followed by a start
with what that one prepared. A question and a follow-up are typed, each for so many seconds (0: at once), and answered
when the place of the first source is shown.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path

import pexpect

from benchmarks.many_documents import ROOT, own_environment

FOLDER, ASKED = ROOT / "examples" / "documents", ("How long may I keep the plum jam?", "And how many jars do I get?")
PROMPT, SOURCE = "\x1b[6n", "  [1] "  # the terminal is asked where its cursor is; a source below an answer
LONGEST = 120  # seconds until an answer


def measure_start(folder: Path, home: Path, typing: float) -> list[float]:
    """Seconds from the start to the prompt, and from each question to its answer."""
    began = time.perf_counter()
    command = [str(ROOT / "cli.py"), "chat", "--docs", str(folder)]
    child = pexpect.spawn(
        sys.executable, command, env=own_environment(home), dimensions=(50, 200), encoding="utf-8", timeout=LONGEST
    )
    try:
        child.expect_exact(PROMPT)
        waited = [time.perf_counter() - began]
        for question in ASKED:
            time.sleep(typing)
            began = time.perf_counter()
            child.send(f"\x1b[3;1R{question}\r")
            child.expect_exact(SOURCE)
            waited.append(time.perf_counter() - began)
            child.expect_exact(PROMPT)
        return waited
    finally:
        child.close(force=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER)
    parser.add_argument("--typing", type=float, default=3.0, help="seconds; default: 3")
    given = parser.parse_args()
    for _ in range(2):
        with tempfile.TemporaryDirectory() as home:
            for start in ("first", "later"):
                prompt, *answers = measure_start(given.folder, Path(home), given.typing)
                told = ", ".join(f"{seconds:.2f}" for seconds in answers)
                print(f"{start} start: prompt after {prompt:.2f} s, answers {told} s after they were asked", flush=True)


if __name__ == "__main__":
    main()
