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
    with planted() as seeds, guarded_reader(seeds.documents) as reader:
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
    _show(outcomes, time.perf_counter() - started)
    return int(any(outcome.findings for outcome in outcomes))


def _show(outcomes: list[Outcome], seconds: float) -> None:
    """A row a kind: how many cases, and how many ended in which way."""
    kinds = list(dict.fromkeys(outcome.kind for outcome in outcomes))
    rows = [(kind, [outcome for outcome in outcomes if outcome.kind == kind]) for kind in sorted(kinds)]
    print(f"{'':16}{'cases':>8}{'done (0)':>10}{'2':>8}{'4':>8}{'5':>8}{'other':>8}{'findings':>10}")
    for kind, found in [*rows, ("all", outcomes)]:
        codes = Counter(code for outcome in found for code in outcome.codes)
        other = sum(codes.values()) - sum(codes[code] for code in (0, 2, 4, 5))
        counted = "".join(f"{codes[code]:>8}" for code in (2, 4, 5))
        wrong = sum(map(bool, (outcome.findings for outcome in found)))
        print(f"{kind:16}{len(found):>8}{codes[0]:>10}{counted}{other:>8}{wrong:>10}")
    print(f"{seconds:.0f} seconds, {1000 * seconds / max(1, len(outcomes)):.1f} ms a case")


if __name__ == "__main__":
    sys.exit(main())
