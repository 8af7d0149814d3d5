"""A run's metadata, beside it: how it was made, in the form of ir_metadata 0.1 (Breuer, Keller, Schaer, SIGIR 2022).

The form's six components (platform, research goal, implementation, method, actor, data) with its field names; what it
has no name for stands under `settings`, which are those of the trace, and `resources`.
"""

import platform
import shlex
import sys
from collections import defaultdict
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import msgspec

from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import Trace, sum_server_usage
from indexes.storage.files import write_atomically
from schemas.records import RunInfo

LIBRARIES = ("llama-cpp-python", "langchain-core", "rank-bm25", "spacy", "numpy", "msgspec")


def metadata_path(run: Path) -> Path:
    """`topics.run.json` has its metadata in `topics.run.ir_metadata.yml`."""
    return run.with_name(f"{run.name.removesuffix('.jsonl').removesuffix('.json')}.ir_metadata.yml")


def write_metadata(path: Path, topics: Path, origin: EvidenceFiles, trace: Trace, info: RunInfo) -> None:
    """Write what is known of a finished run over a topics file as YAML."""
    import yaml

    command = shlex.join([Path(sys.argv[0]).name, *sys.argv[1:]])
    fields = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": info.name,
        "platform": _describe_platform(),
        "implementation": {
            "executable": {"cmd": command},
            "source": {"lang": ["python"], "name": "convagent", "version": version("convagent")},
        },
        "method": {
            "automatic": not info.labels,
            "run type": info.type,
            "score ties": "corpus order; every score at least 0.0001 below the one before",
            "settings": msgspec.to_builtins(trace.settings),
        },
        "actor": {"team": info.team, "role": "experimenter"},
        "data": _describe_data(topics, origin, trace),
        "resources": _describe_resources(trace),
    }
    write_atomically(path, [yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100).encode()])


def _describe_platform() -> dict[str, Any]:
    import psutil

    cores = psutil.cpu_count(logical=False) or psutil.cpu_count()
    return {
        "hardware": {
            "cpu": {"model": platform.processor() or platform.machine(), "number of cores": cores},
            "ram": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        },
        "operating system": {"kernel": platform.release(), "distribution": platform.platform()},
        "software": {
            "libraries": {"python": [f"{name}=={version(name)}" for name in LIBRARIES]},
            "retrieval toolkit": [f"tantivy=={version('tantivy')}"],
        },
    }


def _describe_data(topics: Path, origin: EvidenceFiles, trace: Trace) -> dict[str, Any]:
    settings = trace.settings
    used = ["utterances", "canonical replies to earlier turns"]
    used += ["personal statements"] if settings.statements else []
    used += ["human rewrites", "gold statements"] if settings.mode == "manual" else []
    used += ["gold passages"] if settings.ranking_of_labels else []
    sources = {
        "index": str(origin.index or "index") if origin.index or origin.ranking is None else None,
        "ranking": str(origin.ranking) if origin.ranking else None,
        "passages": [str(path) for path in origin.passages] or None,
    }
    return {
        "test collection": {"name": settings.edition, "topics": str(topics), "turns": settings.turns},
        "passages": {name: value for name, value in sources.items() if value is not None},
        "used of the topics": used,
    }


def _describe_resources(trace: Trace) -> dict[str, Any]:
    """Wall time by step, and tokens, summed over the lines of the trace."""
    seconds: defaultdict[str, float] = defaultdict(float)
    read = written = 0
    for line in trace.lines():
        seconds["all turns"] += line.seconds
        for call in line.calls:
            seconds[call.step] += call.seconds
            read, written = read + call.tokens_read, written + call.tokens_written
    usage = sum_server_usage(trace.lines())
    server = {**asdict(usage), "repeated": usage.repeated, "seconds": round(usage.seconds, 2)}
    return {
        "wall time in seconds": {step: round(taken, 2) for step, taken in seconds.items()},
        "tokens": {"read": read, "written": written},
        **({"server": {name.replace("_", " "): value for name, value in server.items()}} if usage.calls else {}),
        "turns answered without the model, which failed": len(trace.without_model),
    }
