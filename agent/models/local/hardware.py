"""What this machine has to compute with, and how much of it the models take."""

import logging
import os

from indexes.processors import logical_cores
from schemas.errors import UsageError

THREADS = "CONVAGENT_THREADS"  # a setting in the environment
MAX_THREADS = 512  # llama.cpp takes no more
GPU_LAYERS = "CONVAGENT_GPU_LAYERS"  # a setting in the environment, which `--gpu-layers` sets
ALL_LAYERS = 999  # more than any model has
log = logging.getLogger("convagent")


def stop_spinning_threads() -> str:
    """Limit how long OpenMP's threads spin while they wait, and return the limit; the environment's own goes first.

    Call it before llama.cpp is first loaded. A little spinning is fast, much starves other processes (docs/log.md).
    """
    return os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def threads_to_use() -> int:
    """How many threads a model computes with: `CONVAGENT_THREADS`, else one for each physical core.

    Raises `UsageError` where the setting is not a number of threads.
    """
    wanted = os.environ.get(THREADS, "").strip()
    if not wanted:
        return physical_cores()
    if not (wanted.isascii() and wanted.isdigit() and 1 <= int(wanted) <= MAX_THREADS):
        remedy = "Unset it for one thread a physical core; `convagent doctor` says how many that are."
        raise UsageError(f"{THREADS}={wanted!r} is no number from 1 to {MAX_THREADS}", remedy=remedy)
    return int(wanted)


def physical_cores() -> int:
    """The cores that a model should use: more threads than physical cores slow llama.cpp down."""
    import psutil

    return max(1, min(logical_cores(), psutil.cpu_count(logical=False) or logical_cores()))


def layers_to_offload() -> int:
    """How many layers of a model an accelerator computes: `CONVAGENT_GPU_LAYERS`, else all; 0 where there is none.

    An accelerator is used where llama.cpp was built for it. Raises `UsageError` where the setting is no number.
    """
    import llama_cpp

    wanted = os.environ.get(GPU_LAYERS, "").strip() or "auto"
    if wanted != "auto" and not (wanted.isascii() and wanted.isdigit() and int(wanted) <= ALL_LAYERS):
        remedy = "`convagent doctor` says what is used without it."
        raise UsageError(f"--gpu-layers {wanted} is neither auto nor a number up to {ALL_LAYERS}", remedy=remedy)
    if not llama_cpp.llama_supports_gpu_offload():
        if wanted not in ("auto", "0"):
            log.warning("--gpu-layers %s: this llama.cpp was built for no accelerator; the processor computes", wanted)
        return 0
    return ALL_LAYERS if wanted == "auto" else int(wanted)
