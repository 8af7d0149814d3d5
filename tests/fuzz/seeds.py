"""The real files that are broken: small ones, so that thousands of cases take minutes.

They are made of `examples/`, and of the tracks' own files where those are at hand (../shared/data).
"""

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conftest import EXAMPLES, SHARED

EDITIONS = ("ikat-2023", "ikat-2024", "ikat-2025", "qrecc")
ENDINGS = {"ikat-2025": ".jsonl"}
DATA = SHARED.parent
RCD = """<topics>
<top>
<num> 1 </num>
<title> rye bread</title>
<movie>The Baker</movie>
<desc>
<p>What would you like?</p>
<p>A loaf of rye bread, please. Or is there Pumpernickel left, Mister Miller?</p>
</desc>
</top>
<top>
<num> 2 </num>
<title>Balcony</title>
<desc>
<p>The tomatoes on the Balcony froze.</p>
</desc>
</top>
</topics>
"""
Invoke = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Seeds:
    """A directory of whole files, each of a name that says what it is."""

    place: Path

    def __getitem__(self, name: str) -> Path:
        return self.place / name

    @property
    def documents(self) -> list[Path]:
        """A file of each format that a person's own documents may have."""
        return sorted(self["documents"].iterdir())

    def topics(self, edition: str) -> Path:
        return self.place / f"{edition}.json"

    def run(self, edition: str) -> Path:
        return self.place / f"{edition}.run{ENDINGS.get(edition, '.json')}"

    def trace(self, edition: str) -> Path:
        return self.place / f"{edition}.run.trace.jsonl"


def plant(place: Path, invoke: Invoke) -> Seeds:
    """All seeds in a directory; `invoke` runs a command, and raises where it fails."""
    seeds = Seeds(place)
    _topics(seeds)
    _passages(seeds)
    invoke("index", "build", seeds["few.jsonl"], "-o", seeds["index"])
    for edition in EDITIONS:
        where = ("-i", seeds["index"], "-o", seeds.run(edition))
        invoke("answer", seeds.topics(edition), *where, "-k", "6", "--format", edition)
        invoke("convert", seeds.run(edition), "-o", seeds[f"{edition}.trec"])
    _rankings(seeds)
    _other_tasks(seeds)
    _documents(seeds)
    invoke("spans", seeds["rcd.xml"], "-o", seeds["spans.tsv"])
    invoke("rank", seeds["rcd.xml"], "-i", seeds["index"], "-k", "5", "-o", seeds["rcd.trec"])
    invoke("touche", "--input", seeds["touche"], "-o", seeds["touche-out"], "-k", "5")
    return seeds


def _topics(seeds: Seeds) -> None:
    """Two turns of each edition."""
    example = json.loads((EXAMPLES / "topics.json").read_text(encoding="utf-8"))[0]
    example["turns"] = example["turns"][:2]
    of_2023 = _first("2023_train_topics.json", "turns") or example | {"number": "1-1"}
    of_2025 = _first("2025_test_topics.blind.json", "responses") or _as_2025(example)
    rows = [
        {"Conversation_no": 1, "Turn_no": n, "Context": ["What is rye?", "A grain."] * (n - 1), "Question": question}
        for n, question in enumerate(("Is rye bread gluten free?", "And how long does it keep?"), start=1)
    ]
    truth = [
        {"Conversation_no": 1, "Turn_no": n, "Truth_rewrite": "Is rye bread gluten free?", "Truth_passages": ["a-1"]}
        | {"Truth_answer": "It is not."}
        for n in (1, 2)
    ]
    for name, value in (("ikat-2024", [example]), ("ikat-2023", [of_2023]), ("ikat-2025", [of_2025]), ("qrecc", rows)):
        seeds.topics(name).write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")
    seeds["truth.json"].write_text(json.dumps(truth), encoding="utf-8")


def _first(name: str, turns: str) -> Any:
    """The first topic of a track's file, cut to two turns; None where the file is not at hand."""
    if not (SHARED / name).is_file():
        return None
    topic = json.loads((SHARED / name).read_text(encoding="utf-8"))[0]
    return topic | {turns: topic[turns][:2]}


def _as_2025(topic: Any) -> Any:
    responses = [
        {"turn_id": turn["turn_id"], "user_utterance": turn["utterance"], "response": turn.get("response")}
        for turn in topic["turns"]
    ]
    return {"number": "1-1", "ptkb": list(topic["ptkb"].values()), "responses": responses}


def _passages(seeds: Seeds) -> None:
    """The same dozen passages in every form that is read."""
    lines = (EXAMPLES / "passages.jsonl").read_text(encoding="utf-8").splitlines()[::6]
    rows = [json.loads(line) for line in lines]
    told = [(str(n), row.get("title") or "A title", row.get("contents") or row["text"]) for n, row in enumerate(rows)]
    forms = {
        "few.jsonl": [json.dumps({"id": f"p:{n}", "title": title, "contents": text}) for n, title, text in told],
        "ikat.jsonl": [json.dumps({"doc_id": "p", "passage_id": n, "passage_text": text}) for n, _, text in told],
        "few.tsv": ["id\ttext\ttitle", *(f"p:{n}\t{' '.join(text.split())}\t{title}" for n, title, text in told)],
        "few.xml": [
            f'<doc>\n<docno>p</docno>\n<title>{title}</title>\n<p pno="{n}">{text}</p>\n</doc>'
            for n, title, text in told
        ],
    }
    for name, content in forms.items():
        seeds[name].write_text("\n".join(content) + "\n", encoding="utf-8")


def _rankings(seeds: Seeds) -> None:
    """Queries with candidates, and labels for turns and statements."""
    lines = seeds["ikat-2024.trec"].read_text(encoding="utf-8").splitlines()
    ranked: dict[str, list[tuple[str, str]]] = {}
    for line in lines:
        qid, _, id, _, score, _ = line.split()
        ranked.setdefault(qid, []).append((id, score))
    rows = [
        {"query": {"qid": qid}, "candidates": [_candidate(id, score) for id, score in found]}
        for qid, found in ranked.items()
    ]
    seeds["candidates.jsonl"].write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    qrels = [f"{qid} 0 {id} {level}" for qid, found in ranked.items() for level, (id, _) in enumerate(found)]
    seeds["qrels.txt"].write_text("\n".join(qrels) + "\n", encoding="utf-8")
    ptkb = [f"{qid} 0 {id} {id % 2}" for qid in ranked for id in (1, 2, 3)]
    seeds["ptkb.qrels"].write_text("\n".join(ptkb) + "\n", encoding="utf-8")


def _candidate(id: str, score: str) -> dict[str, object]:
    return {"docid": id, "score": float(score), "doc": {"segment": f"Passage {id} says that bread keeps for a week."}}


def _other_tasks(seeds: Seeds) -> None:
    real = DATA / "rcd" / "train_topics.xml"
    text = real.read_text(encoding="utf-8", errors="replace") if real.is_file() else RCD
    cut = "".join(f"{top}</top>\n" for top in text.split("</top>")[:2]) + "</topics>\n"
    seeds["rcd.xml"].write_text(cut, encoding="utf-8")
    seeds["rcd.qrels"].write_text("1\tQ0\tp:1\t1\n2\tQ0\tp:2\t1\n", encoding="utf-8")
    seeds["touche"].mkdir()
    shutil.copy(EXAMPLES / "touche" / "topics.xml", seeds["touche"])
    portal = json.loads((EXAMPLES / "touche" / "debatewise.json").read_text(encoding="utf-8"))
    portal["arguments"] = portal["arguments"][:4]
    (seeds["touche"] / "portal.json").write_text(json.dumps(portal), encoding="utf-8")
    shutil.copy(EXAMPLES / "touche" / "relevance.qrels", seeds["touche.qrels"])


def _documents(seeds: Seeds) -> None:
    """The examples of office files; of text, web pages, PDFs and pictures one each."""
    own = EXAMPLES / "documents"
    others = ("recipes/rye-bread.md", "recipes/pancakes.html", "contacts.csv", "bicycle/trailer-manual.pdf")
    seeds["documents"].mkdir()
    for path in (*(own / "office").iterdir(), *(own / name for name in others), *(EXAMPLES / "scans").iterdir()):
        shutil.copy(path, seeds["documents"])
