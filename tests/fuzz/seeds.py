"""The files that are broken: small ones, so that thousands of cases take minutes."""

import json
import shutil
from pathlib import Path

from tests.conftest import EXAMPLES
from tests.fuzz.bench import call
from tests.test_rcd import TOPICS as DIALOGUES
from tests.test_topics import EDITIONS as TOPICS

EDITIONS = tuple(TOPICS)
ENDINGS = {"ikat-2025": ".jsonl"}
TRUTH = {"Truth_rewrite": "Is rye bread gluten free?", "Truth_passages": ["p:1"], "Truth_answer": "It is not."}
LABELS = {  # by file
    "qrels.txt": [f"0_{turn} 0 p:{n} {n % 3}" for turn in (1, 2) for n in range(9)],
    "ptkb.qrels": [f"0_{turn} 0 {id} {id % 2}" for turn in (1, 2) for id in (1, 2)],
    "rcd.qrels": ["1\tQ0\tp:1\t1", "2\tQ0\tp:2\t1"],
    "truth.json": [json.dumps([{"Conversation_no": 1, "Turn_no": n, **TRUTH} for n in (1, 2)])],
}
DOCUMENTS = ("recipes/rye-bread.md", "recipes/pancakes.html", "contacts.csv", "bicycle/trailer-manual.pdf")


def name_files(edition: str) -> dict[str, str]:
    """The topics of an edition, and a run over them with its trace and ranking."""
    ending = ENDINGS.get(edition, ".json")
    run = f"{edition}.run{ending}"
    trace, trec = f"{edition}.run.trace.jsonl", f"{edition}.trec"
    return {"edition": edition, "ending": ending, "topics": f"{edition}.json", "run": run, "trace": trace, "trec": trec}


def plant(seeds: Path) -> None:
    """All seeds in a directory."""

    def invoke(*arguments: object) -> None:
        ended = call(*arguments)
        assert (ended.code, ended.crash) == (0, ""), ended.err

    for name, lines in (LABELS | _write_passages()).items():
        (seeds / name).write_text("\n".join(lines) + "\n", encoding="utf-8")
    (seeds / "rcd.xml").write_text(DIALOGUES, encoding="utf-8")
    _copy_examples(seeds)
    invoke("index", "build", seeds / "few.jsonl", "-o", seeds / "index")
    for edition, topics in TOPICS.items():
        names = name_files(edition)
        (seeds / names["topics"]).write_text(json.dumps(topics, indent=1), encoding="utf-8")
        where = ("-i", seeds / "index", "-o", seeds / names["run"])
        invoke("answer", seeds / names["topics"], *where, "-k", "6", "--format", edition)
        invoke("export", seeds / names["run"], "--format", "trec", "-o", seeds / names["trec"])
    invoke("spans", seeds / "rcd.xml", "-o", seeds / "spans.tsv")
    invoke("rank", seeds / "rcd.xml", "-i", seeds / "index", "-k", "5", "-o", seeds / "rcd.trec")
    invoke("touche", "--input", seeds / "touche", "-o", seeds / "touche-out", "-k", "5")


def _write_passages() -> dict[str, list[str]]:
    """The same dozen passages in every form that is read, by file."""
    lines = (EXAMPLES / "passages.jsonl").read_text(encoding="utf-8").splitlines()[::6]
    rows = [json.loads(line) for line in lines]
    told = [(str(n), row.get("title") or "A title", row.get("contents") or row["text"]) for n, row in enumerate(rows)]
    doc = '<doc>\n<docno>p</docno>\n<title>{title}</title>\n<p pno="{n}">{text}</p>\n</doc>'
    return {
        "few.jsonl": [json.dumps({"id": f"p:{n}", "title": title, "contents": text}) for n, title, text in told],
        "ikat.jsonl": [json.dumps({"doc_id": "p", "passage_id": n, "passage_text": text}) for n, _, text in told],
        "few.tsv": ["id\ttext\ttitle", *(f"p:{n}\t{' '.join(text.split())}\t{title}" for n, title, text in told)],
        "few.xml": [doc.format(n=n, title=title, text=text) for n, title, text in told],
    }


def _copy_examples(seeds: Path) -> None:
    """Arguments with their labels; of office files all, of text, web pages, PDFs and pictures one each."""
    (seeds / "touche").mkdir()
    shutil.copy(EXAMPLES / "touche" / "topics.xml", seeds / "touche")
    portal = json.loads((EXAMPLES / "touche" / "debatewise.json").read_text(encoding="utf-8"))
    (seeds / "touche" / "portal.json").write_text(json.dumps({"arguments": portal["arguments"][:4]}), encoding="utf-8")
    shutil.copy(EXAMPLES / "touche" / "relevance.qrels", seeds / "touche.qrels")
    own = EXAMPLES / "documents"
    (seeds / "documents").mkdir()
    for path in (*(own / "office").iterdir(), *(own / name for name in DOCUMENTS), *(EXAMPLES / "scans").iterdir()):
        shutil.copy(path, seeds / "documents")
