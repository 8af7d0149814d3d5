"""What this machine has to compute with, and how much of it the models take."""

import os

from schemas.errors import UsageError

THREADS = "CONVAGENT_THREADS"  # a setting in the environment
MAX_THREADS = 512  # llama.cpp takes no more


def stop_spinning_threads() -> str:
    """How long OpenMP's waiting threads spin, unless the environment says so; read when llama.cpp is first loaded.

    They spin while they wait: a little is fast, much starves other processes (docs/log.md).
    """
    return os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def threads_to_use() -> int:
    """Those that a model computes with: `CONVAGENT_THREADS`, else one for each physical core.

    Raises `UsageError` where the setting is no number of threads.
    """
    wanted = os.environ.get(THREADS, "").strip()
    if not wanted:
        return physical_cores()
    if not (wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= MAX_THREADS):
        remedy = "Unset it for one thread a physical core; `convagent doctor --bench` measures others."
        raise UsageError(f"{THREADS}={wanted!r} is no number from 1 to {MAX_THREADS}", remedy=remedy)
    return int(wanted)


def physical_cores() -> int:
    """The cores that a model should use: more threads than physical cores slow llama.cpp down."""
    import psutil

    return max(1, min(usable_cores(), psutil.cpu_count(logical=False) or usable_cores()))


def usable_cores() -> int:
    """The logical cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
