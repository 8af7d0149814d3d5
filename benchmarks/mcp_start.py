"""How soon `convagent mcp` answers the client that starts it.

    python benchmarks/mcp_start.py [--docs DIR] [--times N]

A process is started as an assistant does, and asked for its tools; then, in the same process, twice for passages, the
first time of which opens the documents. What was read of them is known (one process before has read them), and the
files of Python are in the system's cache. Seconds are the medians from the start of the process; `processor` is what it
took of the processor until the tools were there: about what seconds are on a machine that does nothing else.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import psutil

ROOT = Path(__file__).parent.parent
INFO = {"name": "benchmark", "version": "1"}
QUERY = {"name": "search_passages", "arguments": {"query": "How long may I keep the plum jam?"}}
REQUESTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("handshake", "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": INFO}),
    ("tools", "tools/list", {}),
    ("first passages", "tools/call", QUERY),
    ("next passages", "tools/call", QUERY),
)


@contextmanager
def start_server(docs: Path) -> Iterator["subprocess.Popen[bytes]"]:
    command = [sys.executable, str(ROOT / "cli.py"), "--quiet", "mcp", "--docs", str(docs)]
    pipe, nowhere = subprocess.PIPE, subprocess.DEVNULL
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=nowhere, env=env) as process:
        yield process
        process.stdin.close()  # type: ignore[union-attr]


def exchange(process: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, Any]) -> None:
    """Send a request and wait for its reply."""
    assert process.stdin
    assert process.stdout
    request = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
    process.stdin.write(msgspec.json.encode(request) + b"\n")
    process.stdin.flush()
    reply = msgspec.json.decode(process.stdout.readline())
    if reply["id"] != number or "error" in reply or reply["result"].get("isError"):
        raise SystemExit(f"{method}: {reply}")


def measure_once(docs: Path) -> dict[str, float]:
    """Seconds since the start, by what was answered then."""
    started, seconds = time.perf_counter(), dict[str, float]()
    with start_server(docs) as process:
        for number, (name, method, params) in enumerate(REQUESTS):
            exchange(process, number, method, params)
            seconds[name] = time.perf_counter() - started
            if name == "tools":
                times = psutil.Process(process.pid).cpu_times()
                seconds["processor"] = times.user + times.system
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, default=ROOT / "examples" / "documents")
    parser.add_argument("--times", type=int, default=15)
    arguments = parser.parse_args()
    measure_once(arguments.docs)
    runs = [measure_once(arguments.docs) for _ in range(arguments.times)]
    for name in runs[0]:
        print(f"{name:15} {statistics.median(run[name] for run in runs):5.2f} s")


if __name__ == "__main__":
    main()
