"""Just before the n-th change that a process makes in a directory, it gets a signal.

FAULT_IN is the directory, FAULT_AT is n, FAULT_SIGNAL the signal's name, FAULT_EVENTS what counts (default: all).
"""

import os
import signal
import sys
from typing import Any

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
CHANGES = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree")
seen = 0


def changes(event: str, arguments: Any) -> bool:
    if event not in os.environ.get("FAULT_EVENTS", ",".join(CHANGES)).split(","):
        return False
    if event == "open" and not arguments[2] & WRITES:
        return False
    below = event in ("os.remove", "os.rmdir") and arguments[1] != -1  # relative to a directory that is being removed
    return below or str(arguments[0]).startswith(os.environ["FAULT_IN"])


def fault(event: str, arguments: Any) -> None:
    global seen
    if "." in event or event == "open":
        seen += changes(event, arguments)
        if seen == int(os.environ["FAULT_AT"]):
            seen += 1  # once is enough
            os.kill(os.getpid(), signal.Signals[os.environ["FAULT_SIGNAL"]])


def install() -> None:
    """From now on, in this process."""
    sys.addaudithook(fault)
