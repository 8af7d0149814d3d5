"""A run's metadata, beside it: how it was made, in the form of ir_metadata 0.1 (Breuer, Keller, Schaer, SIGIR 2022).

The form's six components (platform, research goal, implementation, method, actor, data) with its field names; what it
has no name for stands under `resources` and in fields that say what they are.
"""

import platform
import shlex
import sys
from collections import defaultdict
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import prompts
from agent.models.registry import is_server_address
from agent.runs.evidence import EvidenceFiles
from agent.runs.trace import RunSettings, Trace, sum_server_usage
from indexes.storage.files import write_atomically
from schemas.records import RunInfo

BM25 = "BM25 by Tantivy: k1 1.2, b 0.75"
INDEXING = {"tokenizer": "tantivy simple", "stemmer": "Snowball English", "stopwords": "tantivy English"}
LIBRARIES = ("llama-cpp-python", "langchain-core", "rank-bm25", "spacy", "numpy", "msgspec")


def metadata_path(run: Path) -> Path:
    """`topics.run.json` has its metadata in `topics.run.ir_metadata.yml`."""
    return run.with_name(f"{run.name.removesuffix('.jsonl').removesuffix('.json')}.ir_metadata.yml")


def write_metadata(path: Path, topics: Path, origin: EvidenceFiles, trace: Trace, info: RunInfo) -> None:
    """Write what is known of a finished run over a topics file as YAML."""
    import yaml

    fields = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": info.name,
        "platform": _describe_platform(),
        "implementation": _describe_implementation(),
        "method": _describe_method(trace, info),
        "actor": {"team": info.team, "role": "experimenter"},
        "data": _describe_data(topics, origin, trace),
        "resources": _describe_resources(trace),
    }
    write_atomically(path, [yaml.safe_dump(fields, sort_keys=False, allow_unicode=True, width=100).encode()])


def _describe_platform() -> dict[str, Any]:
    import psutil

    return {
        "hardware": {
            "cpu": {
                "model": _cpu_name(),
                "architecture": platform.machine(),
                "operation mode": platform.architecture()[0].replace("bit", "-bit"),
                "number of cores": psutil.cpu_count(logical=False) or psutil.cpu_count(),
            },
            "ram": f"{psutil.virtual_memory().total / 2**30:.0f} GB",
        },
        "operating system": {"kernel": platform.release(), "distribution": _distribution_name()},
        "software": {
            "libraries": {"python": [f"{name}=={version(name)}" for name in LIBRARIES]},
            "retrieval toolkit": [f"tantivy=={version('tantivy')}"],
        },
    }


def _cpu_name() -> str:
    """The processor's name where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor() or platform.machine())


def _distribution_name() -> str:
    try:
        return platform.freedesktop_os_release()["PRETTY_NAME"]
    except (OSError, KeyError):
        return f"{platform.system()} {platform.version()}"


def _describe_implementation() -> dict[str, Any]:
    command = [Path(sys.argv[0]).name, *sys.argv[1:]]
    return {
        "executable": {"cmd": shlex.join(command)},
        "source": {"lang": ["python"], "name": "convagent", "version": version("convagent")},
    }


def _describe_method(trace: Trace, info: RunInfo) -> dict[str, Any]:
    settings = trace.settings
    plan = settings.plan
    model = {
        "name": settings.model,
        "sha256": settings.model_digest or None,
        "seed": plan.seed,
        "samples": plan.hyde_samples,
    }
    words = {
        "name": "words",
        "method": BM25,
        "documents": plan.retrieval_depth,
        "query": list(plan.query),
    }
    searched: list[dict[str, Any]] = [words]
    if settings.embedder and plan.retrieval_depth:
        model_of = {"method": settings.embedder, "sha256": settings.embedder_digest}
        searched.append({"name": "cosine", **model_of, "interpolates": ["words"]})
    chosen = settings.statements and settings.mode != "manual"
    given = [{"name": "given ranking", "sha256": settings.ranking, "documents": plan.retrieval_depth}]
    return {
        "automatic": not info.labels,
        "run type": info.type,
        "score ties": "corpus order; every score at least 0.0001 below the one before",
        **({} if settings.ranking else {"indexing": INDEXING}),
        "retrieval": given if settings.ranking else searched,
        "generation": {
            "model": model,
            "prompts": prompts.digests(),
            "passages": plan.reading_depth,
            "responses": plan.responses if plan.parts.answer else 0,
            **({"answer": _describe_answer(settings)} if plan.parts.answer else {}),
        },
        **({"personal statements": _describe_statements(settings)} if chosen else {}),
    }


def _describe_answer(settings: RunSettings) -> dict[str, Any]:
    """How it is made: as asked for, and by what sentences are chosen, or those replaced that no passage supports."""
    nearness = {"embedder": settings.embedder, "sha256": settings.embedder_digest} if settings.embedder else "words"
    return {"way": settings.plan.answer, "nearness": nearness, "support": "excerpts"}


def _describe_statements(settings: RunSettings) -> dict[str, Any]:
    """How they are chosen: by what evidence, and how sure of the best one."""
    words = "word overlap" if settings.model == "none" or is_server_address(settings.model) else "likelihood"
    evidence = [words, "cosine"] if settings.embedder else [words]
    return {"evidence": evidence, "embedder": settings.embedder or None, "sure": settings.plan.min_probability}


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
        "sha256": settings.passages,
    }
    return {
        "test collection": {
            "name": settings.edition,
            "topics": str(topics),
            "topics sha256": settings.topics,
            "turns": settings.turns,
        },
        "passages": {name: value for name, value in sources.items() if value is not None},
        "used of the topics": used,
    }


def _describe_resources(trace: Trace) -> dict[str, Any]:
    """Wall time by step, and tokens, summed over the lines of the trace."""
    seconds: defaultdict[str, float] = defaultdict(float)
    read = written = 0
    total = 0.0
    for line in trace.lines():
        total += line.seconds
        for call in line.calls:
            seconds[call.step] += call.seconds
            read += call.tokens_read
            written += call.tokens_written
    spent = seconds | {"reading and choosing sentences": total - sum(seconds.values()), "all turns": total}
    usage = sum_server_usage(trace.lines())
    server = {**asdict(usage), "repeated": usage.repeated, "seconds": round(usage.seconds, 2)}
    return {
        "wall time in seconds": {step: round(taken, 2) for step, taken in spent.items()},
        "tokens": {"read": read, "written": written},
        **({"server": {name.replace("_", " "): value for name, value in server.items()}} if usage.calls else {}),
        "turns answered without the model, which failed": len(trace.without_model),
    }
