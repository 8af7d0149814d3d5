"""Sixty questions over six sheets beside three texts, asked through a chat: `python -m benchmarks.tables.folder`.

Somebody who had not seen the program wrote them (a language model), and nobody who works on it reads them: it says how
many are right, and not which. Right is an answer that has, with its result and rows, all that a right one has.
"""

import json
import tempfile
from contextlib import nullcontext
from pathlib import Path

from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.registry import open_embedder
from benchmarks.tables.__main__ import is_right
from indexes.documents.document_index import open_documents

SHEETS = Path(__file__).with_name("sheets")


def main() -> None:
    """Ask each by itself, and print how many are right."""
    embedder = open_embedder("minilm")
    assert embedder
    asked = [json.loads(line) for line in (SHEETS / "questions.jsonl").read_text(encoding="utf-8").splitlines()]
    folder = SHEETS / "documents"
    with tempfile.TemporaryDirectory() as cache:
        index = open_documents(folder, Path(cache), embedder, lambda *_: nullcontext(lambda _done: None)).index
        assistant = open_assistant(open_collection(str(folder), index, embedder), "none")
        answers = [Session(assistant, Store(None)).ask(each["ask"]).response for each in asked]
    right = [is_right(f"{said.direct} {said.text}", each["right"]) for said, each in zip(answers, asked, strict=True)]
    print(f"{len(right)} questions: {sum(right)} right, {sum(bool(said.direct) for said in answers)} with a result")


if __name__ == "__main__":
    main()
