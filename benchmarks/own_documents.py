"""How well questions over a person's own documents are answered: 150 questions, graded by patterns alone.

    python benchmarks/own_documents.py [--model none] [--half open|kept|all] [--every N] [--verbose] [--json FILE]

With `--set further`: 107 others over the same documents, by somebody who had not seen these, all of them open.
With `--set more`: 80 others over files of every format in six languages (`more_documents`, `more_questions.json`).
With `--set newest`: 30 over `examples/documents` and `examples/scans`, written before the program was asked; all open.

The documents are in `benchmarks/own_documents/documents`, the conversations in `questions.json` beside them. Half of
the conversations are kept: they are asked when the answers are done, not while they are being changed.

| of an answer | |
|---|---|
| first | its first sentence answers: it has all patterns of `first`, and cites the source |
| right | all patterns of `anywhere` stand in it, and every source is cited; first ones are right, too |
| partly | some of these patterns, or all of them without the source |
| wrong | it has what it must not have, lacks a warning, or is about something else and does not say so |
| honest | it says that there is no answer, and there is none |
| false | it says that there is no answer before, or instead of, one that is there; never "first" |

An answer that is wrong is not right. The first sentence is the one after a bold direct answer ("**Nine days.**"),
together with it; a sentence that introduces a list counts with its list. What stands under "Also nearby" is not graded.
"""

import argparse
import json
import re
import shutil
import statistics
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import msgspec

from agent.chat.document_index import open_documents
from agent.chat.session import Assistant, Session, open_assistant
from agent.chat.store import Store
from agent.models.embedding.registry import open_embedder
from agent.turn.interface_sentences import NOT_FOUND_SENTENCES, starts_with_not_found, strip_not_found
from indexes.text.sentences import split_sentences
from schemas.records import Response

FOLDER = Path(__file__).parent / "own_documents"
DOCUMENTS, QUESTIONS = FOLDER / "documents", FOLDER / "questions.json"
MORE_DOCUMENTS, MORE_QUESTIONS = FOLDER / "more_documents", FOLDER / "more_questions.json"
EXAMPLES = FOLDER.parents[1] / "examples"
SETS = {
    "first": ((DOCUMENTS,), QUESTIONS),
    "further": ((DOCUMENTS,), FOLDER / "further_questions.json"),
    "more": ((MORE_DOCUMENTS,), MORE_QUESTIONS),
    "newest": ((EXAMPLES / "documents", EXAMPLES / "scans"), FOLDER / "newest_questions.json"),
}
Kind = Literal[
    "fact", "follow-up", "yes-no", "comparison", "not-there", "personal", "topic-switch", "small-talk",
    "summary", "listing", "computation", "scope", "date",
]  # fmt: skip
Half = Literal["open", "kept"]
MAX_DIRECT_WORDS = 15  # of a bold direct answer; longer bold text is a sentence like any other

# How an answer says that there is none: `NOT_FOUND_SENTENCES`, and what a model may write.
NOT_FOUND = re.compile(
    r"\W*(?:I (?:found|could find|can find|have found|find) (?:no|nothing)\b|I (?:could|can|did) ?(?:not|n't) find\b"
    r"|I (?:do not|don't) know\b|(?:The|Your) (?:documents|passages|sources)\b[^.]* (?:not|nothing|no)\b"
    r"|(?:There is|I see) nothing\b|None of (?:the|your) documents\b"
    r"|Ich (?:habe|konnte|kann) (?:dazu |dafür |darauf )?(?:keine?n?|nichts)\b|Je n'ai (?:rien|pas) trouvé\b"
    r"|No (?:he encontrado|encontré|encuentro)\b|Non (?:ho trovato|trovo)\b|Ik (?:heb|kon|kan|vind) (?:geen|niets)\b"
    rf"|{'|'.join(map(re.escape, NOT_FOUND_SENTENCES))})",
    re.IGNORECASE,
)
NEAREST = re.compile(r"^\W*(?:What comes nearest|The nearest)[^.:]*:\s*", re.IGNORECASE)
NEARBY = re.compile(r"(?:^|\n)\W*Also nearby\b", re.IGNORECASE)  # what follows is folded away
DIRECT = re.compile(r"\*\*(?P<answer>[^*]+)\*\*\s*")
LIST_LINE = re.compile(r"\s*(?:[-*•]|\d+[.)])\s")
# A remark on the person does not answer: it counts with the sentence after it, and may name what it leaves out.
REMARK = re.compile(r"^\W*(?:You (?:told me|said)|(?:Because|Since|As|Knowing that) you)\b", re.IGNORECASE)
LEFT_OUT = re.compile(r"\b(?:left out|leave out|leaving out|not for you|avoid|unsuitable)\b", re.IGNORECASE)
OPENING = re.compile(r"^\W*(?P<word>yes|no|ja|nein|oui|non|sí|sì|nee)\W*(?:[.,:;!*—–-]|$)", re.IGNORECASE)
AFFIRMATIVE = dict.fromkeys(("yes", "ja", "oui", "sí", "sì"), "yes") | dict.fromkeys(("no", "nein", "non", "nee"), "no")
# "am 3. | Mai", "Nr. | 5", "Dr. | Thoma": a sentence that is cut here goes on.
CUT_SHORT = re.compile(r"\b(?:Nr|No|Dr|Mr|Mrs|Ms|Hr|St|z|u|a|e|mind|vgl|ca|bzw|approx|Oct|Sept|Nov|Dec|Feb|Jan)\.$")
ORDINAL = re.compile(r"\b\d{1,2}\.$")
GOES_ON = re.compile(
    r"[a-zäöü(\d]|Jan|Feb|M[aä]r|Apr|Ma[iy]|Jun|Jul|Aug|Sep|O[ck]t|Nov|De[cz]|Vorsitzende"
)  # after an ordinal


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One turn of a conversation, and what its answer must and must not have. Patterns ignore case."""

    id: str
    kind: Kind
    ask: str
    asks: str = ""  # what for: number, date, duration, place, person, reason, how-to, definition, list, correction ...
    first: tuple[str, ...] = ()  # all of them in the first sentence
    anywhere: tuple[str, ...] = ()  # all of them in the answer; those of `first`, where there are none
    partly: tuple[str, ...] = ()  # any of them makes an answer partly right; so do those of `first` and `anywhere`
    source: tuple[str, ...] = ()  # files that must be cited; "a.md|b.md": one of them
    answer: Literal["", "yes", "no"] = ""  # an answer that opens with the opposite is wrong
    wrong: tuple[str, ...] = ()  # none of them in the answer
    wrong_first: tuple[str, ...] = ()  # none of them in the first sentence
    excluded: tuple[str, ...] = ()  # what must not be recommended
    warning: tuple[str, ...] = ()  # all of them in the answer: it is dangerous without

    @property
    def wanted(self) -> tuple[str, ...]:
        """The patterns that a right answer has."""
        return self.anywhere or self.first


class Conversation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Turns in order, and statements about the person that were made before (`/about-me add`)."""

    id: str
    half: Half
    about: tuple[str, ...]
    turns: tuple[Question, ...]


class Conversations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The file."""

    note: str
    conversations: tuple[Conversation, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as it is graded: without its opening that says that there is none, and without what is folded away."""

    text: str
    first: str  # its first sentence, with a direct answer before it
    not_found: bool  # whether it opens by saying that there is no answer
    cited: frozenset[str]  # files
    cited_first: frozenset[str]  # files that the first sentence cites
    words: int  # of all that is shown unfolded


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an answer is worth."""

    first: bool = False
    right: bool = False
    partly: bool = False
    wrong: str = ""  # why it is wrong; "" where it is not
    honest: bool = False  # says that there is no answer, where there is none
    false: bool = False  # says so where there is one
    words: int = 0


@dataclass(frozen=True, slots=True)
class Graded:
    """A question, its answer and the verdict."""

    question: Question
    response: Response
    verdict: Verdict


def read_conversations(half: str = "all", every: int = 1, questions: Path = QUESTIONS) -> tuple[Conversation, ...]:
    """Every n-th conversation of a half, or of both."""
    found = msgspec.json.decode(questions.read_bytes(), type=Conversations).conversations
    return tuple(conversation for conversation in found if half in ("all", conversation.half))[::every]


def read_answer(response: Response) -> Answer:
    """An answer taken apart."""
    pieces = [(sentence.text, frozenset(map(file_of, sentence.passage_ids))) for sentence in response.sentences]
    if response.direct and pieces:
        pieces[0] = (f"**{response.direct}** {pieces[0][0]}", pieces[0][1])
    shown = list(_cut_at_fold(pieces))
    words = sum(len(text.split()) for text, _ in shown)
    not_found = not shown or bool(NOT_FOUND.match(shown[0][0]))
    if not_found and shown:
        shown = [(_strip_not_found(shown[0][0]), shown[0][1]), *shown[1:]]
    text = " ".join(text for text, _ in shown).strip()
    first = find_first(text)
    files = frozenset(file for _, cited in shown for file in cited)
    return Answer(plain(text), plain(first), not_found, files, _cited_within(shown, first), words)


def gather_documents(folders: Sequence[Path], home: Path) -> Path:
    """The folder itself; of several one that has a copy of each under its own name."""
    if len(folders) == 1:
        return folders[0]
    for folder in folders:
        shutil.copytree(folder, home / folder.name)
    return home


def file_of(passage_id: str) -> str:
    """The file that a passage is from: `recipes/bread.md` of `recipes/bread.md:12-18`."""
    return passage_id.rsplit(":", 1)[0]


def plain(text: str) -> str:
    """Text on one line, without asterisks, and with plain quotation marks."""
    return " ".join(text.replace("*", "").replace("’", "'").split())


def _cut_at_fold(pieces: Iterable[tuple[str, frozenset[str]]]) -> Iterator[tuple[str, frozenset[str]]]:
    for text, cited in pieces:
        fold = NEARBY.search(text)
        if fold is None:
            yield text, cited
            continue
        if text[: fold.start()].strip():
            yield text[: fold.start()], cited
        return


def _strip_not_found(text: str) -> str:
    if starts_with_not_found(text):
        return strip_not_found(text)
    return NEAREST.sub("", " ".join(split_sentences(text)[1:]))


def find_first(text: str) -> str:
    """The first sentence: with a direct answer or a remark on the person before it, and with the list it introduces."""
    direct = DIRECT.match(text)
    start = direct.end() if direct and len(direct["answer"].split()) <= MAX_DIRECT_WORDS else 0
    head, *lines = text[start:].split("\n")
    sentences = list(join_cut_sentences(split_sentences(head)))
    taken = 2 if sentences and REMARK.match(sentences[0]) else 1
    found = " ".join(sentences[:taken])
    if len(sentences) <= taken:
        listed = next((n for n, line in enumerate(lines) if not LIST_LINE.match(line)), len(lines))
        found = "\n".join([found, *lines[:listed]])
    return text[:start] + found


def join_cut_sentences(sentences: Sequence[str]) -> Iterator[str]:
    """Sentences, put together again where they were cut after an abbreviation or an ordinal."""
    held = ""
    for sentence in sentences:
        if held and not (CUT_SHORT.search(held) or (ORDINAL.search(held) and GOES_ON.match(sentence))):
            yield held
            held = ""
        held = f"{held} {sentence}".strip()
    if held:
        yield held


def _cited_within(shown: Sequence[tuple[str, frozenset[str]]], first: str) -> frozenset[str]:
    """The files that the sentences of a response cite which begin within its first sentence."""
    length, start = len(plain(first)), 0
    files: set[str] = set()
    for text, cited in shown:
        if start < length:
            files |= cited
        start += len(plain(text)) + 1 if plain(text) else 0
    return frozenset(files)


def has(pattern: str, text: str) -> bool:
    return bool(re.search(pattern, text, re.IGNORECASE))


def has_source(source: str, files: Iterable[str]) -> bool:
    return not set(source.split("|")).isdisjoint(files)


def grade(question: Question, answer: Answer) -> Verdict:
    """The verdict on an answer."""
    if question.kind == "not-there":
        wrong = "" if answer.not_found else "answers what no document says"
        return Verdict(not wrong, not wrong, wrong=wrong, honest=not wrong, words=answer.words)
    wrong = find_fault(question, answer)
    if wrong:
        return Verdict(wrong=wrong, false=answer.not_found, words=answer.words)
    right = all(has(pattern, answer.text) for pattern in question.wanted)
    right = right and all(has_source(source, answer.cited) for source in question.source)
    sourced = not question.source or any(has_source(source, answer.cited_first) for source in question.source)
    first = sourced and all(has(pattern, answer.first) for pattern in question.first)
    partly = any(has(pattern, answer.text) for pattern in (*question.first, *question.anywhere, *question.partly))
    if not (right or partly or answer.not_found):
        return Verdict(wrong="is about something else", words=answer.words)
    first = right and first and not answer.not_found
    return Verdict(first, right, partly and not right, false=answer.not_found, words=answer.words)


def find_fault(question: Question, answer: Answer) -> str:
    """What an answer has that it must not have, or lacks though it is dangerous without; "" for neither."""
    return next(_list_faults(question, answer), "")


def _list_faults(question: Question, answer: Answer) -> Iterator[str]:
    if question.kind == "small-talk" and answer.cited:
        yield "cites documents"
    opening = OPENING.match(answer.text)
    if question.answer and opening and AFFIRMATIVE[opening["word"].lower()] != question.answer:
        yield f"says {opening['word']!r}"
    yield from (f"has {pattern!r}" for pattern in question.wrong if has(pattern, answer.text))
    yield from (f"begins with {pattern!r}" for pattern in question.wrong_first if has(pattern, answer.first))
    offered = " ".join(text for text in split_sentences(answer.text) if not is_remark(text))
    yield from (f"recommends {pattern!r}" for pattern in question.excluded if has(pattern, offered))
    if answer.text:
        yield from (f"lacks the warning {one!r}" for one in question.warning if not has(one, answer.text))


def is_remark(sentence: str) -> bool:
    """Whether a sentence says what was left out for this person, and so recommends nothing."""
    return bool(REMARK.match(sentence) or LEFT_OUT.search(sentence))


def ask_all(conversations: Iterable[Conversation], assistant: Assistant) -> Iterator[Graded]:
    """Each conversation with a person of its own; nothing is kept on disk."""
    for conversation in conversations:
        session = Session(assistant, Store(None))
        for statement in conversation.about:
            session.store.add_statement(statement)
        for question in conversation.turns:
            response = session.ask(question.ask).response
            yield Graded(question, response, grade(question, read_answer(response)))


def count(verdicts: Sequence[Verdict]) -> dict[str, float]:
    """How many answers are first, right and so on, and the mean of their words."""
    names = ("first", "right", "partly", "wrong", "honest", "false")
    counts = {name: sum(bool(getattr(verdict, name)) for verdict in verdicts) for name in names}
    return {"questions": len(verdicts), **counts, "words": statistics.mean(verdict.words for verdict in verdicts)}


def tabulate(graded: Sequence[Graded]) -> dict[str, dict[str, float]]:
    """The counts by kind, and in total."""
    kinds: dict[str, None] = dict.fromkeys(one.question.kind for one in graded)
    rows = {kind: count([one.verdict for one in graded if one.question.kind == kind]) for kind in kinds}
    return {**rows, "total": count([one.verdict for one in graded])}


def print_table(rows: dict[str, dict[str, float]]) -> None:
    columns = list(rows["total"])
    print(f"| {'':12} | " + " | ".join(f"{name:>9}" for name in columns) + " |")
    print(f"|{'---|' * (len(columns) + 1)}")
    for kind, row in rows.items():
        print(f"| {kind:12} | " + " | ".join(f"{row[name]:9.0f}" for name in columns) + " |")
    total = rows["total"]
    shares = " / ".join(f"{total[name] / total['questions']:.2f}" for name in ("first", "right", "wrong"))
    print(f"first sentence answers / right anywhere / wrong: {shares}")


def print_reasons(graded: Sequence[Graded]) -> None:
    """How many answers are wrong for which reason, without its pattern."""
    reasons = Counter(one.verdict.wrong.split(" '")[0] for one in graded if one.verdict.wrong)
    print(f"wrong: {', '.join(f'{number} {reason}' for reason, number in reasons.most_common()) or 'none'}")


def print_answer(graded: Graded) -> None:
    """A question with its answer, sentence by sentence with what it cites, and the verdict."""
    question, verdict = graded.question, graded.verdict
    values = [name if value is True else f"{name} ({value})" for name, value in asdict(verdict).items() if value]
    print(f"{question.id} [{question.kind}] {question.ask}")
    if graded.response.direct:
        print(f"    **{graded.response.direct}**")
    for sentence in graded.response.sentences:
        print(f"    {sentence.text}  [{', '.join(sentence.passage_ids)}]")
    print(f"  -> {', '.join(values) or 'nothing'}", flush=True)


def write_json(path: Path, asked: argparse.Namespace, graded: Sequence[Graded]) -> None:
    turns = [
        {
            "id": one.question.id,
            "kind": one.question.kind,
            "ask": one.question.ask,
            "sentences": [[sentence.text, sentence.passage_ids] for sentence in one.response.sentences],
            "verdict": asdict(one.verdict),
        }
        for one in graded
    ]
    run = {"model": asked.model, "half": asked.half, "every": asked.every, "table": tabulate(graded), "turns": turns}
    path.write_text(json.dumps(run, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="none")
    parser.add_argument("--set", choices=tuple(SETS), default="first", help="which documents and questions")
    parser.add_argument("--half", choices=("open", "kept", "all"), default="open")
    parser.add_argument("--every", type=int, default=1, help="every n-th conversation")
    parser.add_argument("--verbose", action="store_true", help="print each question with its answer and verdict")
    parser.add_argument("--json", type=Path, help="write all answers and verdicts to this file")
    asked = parser.parse_args()
    (folders, questions), embedder, graded = SETS[asked.set], open_embedder(None), list[Graded]()
    with tempfile.TemporaryDirectory() as cache:
        documents = gather_documents(folders, Path(cache) / "gathered")
        index = open_documents(
            documents, Path(cache), embedder, lambda _doing, _of: nullcontext(lambda _done: None)
        ).index
        assistant = open_assistant(str(documents), index, asked.model, embedder)
        start = time.perf_counter()
        for one in ask_all(read_conversations(asked.half, asked.every, questions), assistant):
            graded.append(one)
            if asked.verbose:
                print_answer(one)
    print_table(tabulate(graded))
    print_reasons(graded)
    print(f"{(time.perf_counter() - start) / len(graded):.2f} seconds a question")
    if asked.json:
        write_json(asked.json, asked, graded)


if __name__ == "__main__":
    main()
