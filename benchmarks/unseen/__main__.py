"""Questions over seven folders, written by others who had not seen the program: `python -m benchmarks.unseen`.

Each question is asked as in a chat, after the turns before it, over its own folder. README.md says when an answer is
right. The sealed half, and two further sealed sets, are graded in memory, and only totals are printed.
"""

import argparse
import lzma
import re
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

import msgspec

from agent.chat.session import Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.registry import open_embedder
from agent.turn.extractive_answer import says_not_found
from indexes.documents.document_index import open_documents
from schemas.records import Response

HERE = Path(__file__).parent
UNANSWERABLE = "unanswerable"
COLUMNS = ("first", "right", "wrong", "denied", "found")
FIRST_HITS = 5
LANGUAGES = ("english", "german", "french")  # the columns of the file; the first has the ids of English ones


class Question(msgspec.Struct, frozen=True):
    """A question and what its answer has to say. Patterns are searched for, in any case."""

    id: str
    folder: str
    conversation: tuple[str, ...]  # ids of the turns before it
    kind: str
    ask: str
    first: tuple[str, ...]  # all stand in the first sentence of an answer that answers at once
    right: tuple[str, ...]  # all stand in a right answer
    wrong: tuple[str, ...]  # none stands in the first sentence


class Questions(msgspec.Struct, frozen=True):
    """One half."""

    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Graded:
    """What came of a question. Of one without an answer, `denied` is right and all else wrong."""

    question: Question
    response: Response
    first: bool
    right: bool
    wrong: bool
    denied: bool
    found: bool  # whether all that a right answer says stands in one of the first passages


def read_questions(which: str = "open") -> tuple[Question, ...]:
    """The open half, the "sealed" one, or the "second" or "third" set, sealed as well."""
    if which == "open":
        data = (HERE / "open_questions.json").read_bytes()
    else:
        data = lzma.decompress((HERE / f"{which}_questions.json.xz").read_bytes())
    return msgspec.json.decode(data, type=Questions).questions


def translate_questions() -> dict[str, tuple[Question, ...]]:
    """Fifty questions of the open half, in each language."""
    questions = {question.id: question for question in read_questions()}
    rows = [row.split("\t") for row in (HERE / "german_and_french.tsv").read_text(encoding="utf-8").splitlines()]
    return {
        language: tuple(
            msgspec.structs.replace(questions[row[0]], ask=row[place] if place else questions[row[0]].ask)
            for row in rows
        )
        for place, language in enumerate(LANGUAGES)
    }


def ask_all(questions: Sequence[Question], model: str, embedder_name: str = "minilm") -> Iterator[Graded]:
    """Every question, graded."""
    by_folder = defaultdict[str, list[Question]](list)
    by_id = {question.id: question for question in questions}
    for question in questions:
        by_folder[question.folder].append(question)
    embedder = open_embedder(embedder_name)
    for name, asked in by_folder.items():
        folder = HERE / "documents" / name
        with tempfile.TemporaryDirectory() as cache:
            index = open_documents(folder, Path(cache), embedder, lambda *_: nullcontext(lambda _done: None)).index
            assistant = open_assistant(open_collection(str(folder), index, embedder), model)
            for question in asked:
                session = Session(assistant, Store(None))
                for turn in question.conversation:
                    session.ask(by_id[turn].ask)
                answered = session.ask(question.ask)
                with assistant.current.use() as searchable:
                    passages = searchable.retriever.read([hit.id for hit in answered.hits[:FIRST_HITS]])
                found = any(_has_all(question.right, passage.text) for passage in passages)
                yield grade(question, answered.response, found=found)


def grade(question: Question, response: Response, *, found: bool) -> Graded:
    """By the rules of README.md. A short answer in front and the sentence that it is from count as one."""
    denied = says_not_found(response) or not response.used
    lead = " ".join([response.direct, *(sentence.text for sentence in response.sentences[:1])])
    if question.kind == UNANSWERABLE:
        return Graded(question, response, denied, denied, not denied, denied, found)
    is_first = not denied and _has_all(question.first, lead)
    misleads = any(re.search(pattern, lead, re.IGNORECASE) for pattern in question.wrong)
    right = not denied and _has_all(question.right, f"{response.direct} {response.text}") and not misleads
    return Graded(question, response, is_first and not misleads, right, not right and not denied, denied, found)


def _has_all(patterns: Sequence[str], text: str) -> bool:
    return all(re.search(pattern, text, re.IGNORECASE) for pattern in patterns)


def print_totals(graded: Sequence[Graded]) -> None:
    """A row for each kind, one for all that can be answered."""
    _print_head()
    kinds = sorted({one.question.kind for one in graded} - {UNANSWERABLE})
    answerable = [one for one in graded if one.question.kind != UNANSWERABLE]
    rows = [(kind, [one for one in answerable if one.question.kind == kind]) for kind in kinds]
    for kind, ones in [*rows, ("answerable", answerable)]:
        _print_row(kind, ones)
    others = [one for one in graded if one.question.kind == UNANSWERABLE]
    print(f"{UNANSWERABLE:14}{len(others):5}  told {sum(one.denied for one in others)} of {len(others)}")


def _print_head() -> None:
    print(f"{'':14}{'n':>5}" + "".join(f"{column:>8}" for column in COLUMNS))


def _print_row(name: str, ones: Sequence[Graded]) -> None:
    shares = (mean(getattr(one, column) for one in ones) for column in COLUMNS)
    print(f"{name:14}{len(ones):5}" + "".join(f"{share:8.3f}" for share in shares))


def main() -> None:
    """Ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--sealed", dest="which", action="store_const", const="sealed", default="open", help="totals alone"
    )
    for which in ("second", "third"):
        told = f"the {which} set: totals alone"
        parser.add_argument(f"--{which}", dest="which", action="store_const", const=which, help=told)
    parser.add_argument("--model", default="none", help="default: none")
    parser.add_argument("--embedder", default="minilm", help="default: minilm")
    parser.add_argument("--languages", action="store_true", help="fifty questions in three languages, instead")
    parser.add_argument("--show", action="store_true", help="the answers of the open half, too")
    given = parser.parse_args()
    if given.languages:
        _print_head()
        for language, questions in translate_questions().items():
            _print_row(language, list(ask_all(questions, given.model, given.embedder)))
        return
    graded = list(ask_all(read_questions(given.which), given.model, given.embedder))
    for one in graded if given.show and given.which == "open" else ():
        verdict = "first" if one.first else "right" if one.right else "denied" if one.denied else "WRONG"
        print(f"[{verdict}] {one.question.kind}: {one.question.ask}\n    {one.response.direct} | {one.response.text}")
    print_totals(graded)


if __name__ == "__main__":
    main()
