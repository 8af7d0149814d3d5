"""Questions over folders that the reader did not learn: `python -m benchmarks.written_folders`.

Written, like twelve that it learned, by others who had not seen the program, with follow-ups and questions without an
answer (`training/held_out_documents.jsonl`). Each is asked as in a chat, after the turns before it. *first*: one of the
marked answers stands in the first sentence; *right*: anywhere in the answer; *denied*: it is said that there is none;
*of these, not sure*: those with an answer of which it is said that they may not be answered.
With `--languages`: three folders of documents in English and in German, French or Italian, asked in both languages;
with `--languages sealed` three others, in German or French, which nobody who works on it reads.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import mean
from typing import Any

from agent.chat.session import Session, open_assistant
from agent.chat.store import Store
from agent.models.registry import open_embedder
from agent.turn.extractive_answer import says_not_found
from training.reading import open_folder, says_any

TRAINING = Path(__file__).parent.parent / "training"
DOCUMENTS = TRAINING / "held_out_documents.jsonl"
COLUMNS = ("first", "right", "denied")
Verdict = tuple[bool, bool, bool]  # by the columns
NOT_SURE = "of these, not sure"


def ask_all(
    folder: Sequence[dict[str, Any]], model: str, embedder_name: str, every: int
) -> Iterator[tuple[str, Verdict]]:
    """The kind of each question, and the verdict on its answer."""
    embedder = open_embedder(embedder_name)
    with open_folder(folder, embedder) as current:
        assistant = open_assistant(current, model)
        asked = [(question, each.get("language")) for each in folder for question in each["questions"]]
        for question, language in asked[every - 1 :: every]:
            kind = "follow-up" if "after" in question else "alone" if question["answers"] else "unanswerable"
            kind = f"{question['language']} over {language}" if language else kind
            verdict, is_unsure = _ask(Session(assistant, Store(None)), question)
            yield kind, verdict
            if is_unsure and question["answers"]:
                yield NOT_SURE, verdict


def _ask(session: Session, question: dict[str, Any]) -> tuple[Verdict, bool]:
    for before in question.get("after", ()):
        session.ask(before)
    response = session.ask(question["question"]).response
    denied = says_not_found(response) or not response.used
    lead = " ".join([response.direct, *(sentence.text for sentence in response.sentences[:1])])
    whole = f"{response.direct} {response.text}"
    is_first, is_right = (says_any(text, question["answers"]) and not denied for text in (lead, whole))
    return (is_first, is_right, denied), response.is_unsure


def main() -> None:
    """Ask, and print a row for each kind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="none", help="default: none")
    parser.add_argument("--every", type=int, default=1, help="only each so many-th question")
    parser.add_argument("--languages", nargs="?", const="held_out", choices=("held_out", "sealed"), help="others")
    given = parser.parse_args()
    languages = TRAINING / f"{given.languages}_languages.jsonl"
    source, embedder = (languages, "multilingual") if given.languages else (DOCUMENTS, "minilm")
    folders, verdicts = defaultdict[str, list[dict[str, Any]]](list), defaultdict[str, list[Verdict]](list)
    for line in source.read_text(encoding="utf-8").splitlines():
        folders[json.loads(line)["folder"]].append(json.loads(line))
    for folder in folders.values():
        for kind, verdict in ask_all(folder, given.model, embedder, given.every):
            verdicts[kind].append(verdict)
    print(f"{'':18}{'n':>5}" + "".join(f"{column:>8}" for column in COLUMNS))
    for kind, found in sorted(verdicts.items()):
        print(f"{kind:18}{len(found):5}" + "".join(f"{mean(column):8.3f}" for column in zip(*found, strict=True)))


if __name__ == "__main__":
    main()
