"""How many processors there are to compute on."""

import os


def logical_cores() -> int:
    """The logical cores that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
