"""Try many cases, or one again: `python -m tests.fuzz --cases 20000`, `python -m tests.fuzz --seed 1234`."""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from tests.fuzz.cases import READ_EVERY, Outcome, attempt, planted, read_hostile
from tests.fuzz.reading import guarded_reader


def main() -> int:
    """1 where anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=1000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the number of the first")
    parser.add_argument("--seed", type=int, help="try this one alone, and tell all of it")
    parser.add_argument("--readers", action="store_true", help="documents alone, given to their readers")
    parser.add_argument("--keep", type=Path, help="with --seed: where its files are left")
    options = parser.parse_args()
    numbers = [options.seed] if options.seed is not None else range(options.first, options.first + options.cases)
    outcomes: list[Outcome] = []
    started = time.perf_counter()
    with planted() as seeds, guarded_reader(sorted((seeds / "documents").iterdir())) as reader:
        for number in numbers:
            print(f"\r{number}", end="", file=sys.stderr, flush=True)
            begun = time.perf_counter()
            is_reading = options.readers or number % READ_EVERY == 0
            outcome = read_hostile(number, reader, options.keep) if is_reading else attempt(number, seeds, options.keep)
            took = time.perf_counter() - begun
            outcomes.append(outcome)
            for finding in outcome.findings:
                print(f"--seed {number} ({outcome.kind}, {took:.1f} s): {finding}\n", flush=True)
            if took > 5 and not outcome.findings:
                print(f"--seed {number} ({outcome.kind}): slow, {took:.1f} s", flush=True)
    print(f"\n{reader.stopped} documents broke a limit of time, memory or output")
    codes = Counter((outcome.kind, outcome.code) for outcome in outcomes)
    for (kind, code), times in sorted(codes.items()):
        print(f"{kind:16}{times:>7} cases ended with {code}")
    wrong = sum(bool(outcome.findings) for outcome in outcomes)
    print(f"{len(outcomes)} cases in {time.perf_counter() - started:.0f} seconds, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
