"""Questions over a person's own documents, asked as in a chat: `python -m benchmarks own`."""

import hashlib
import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

import msgspec

from agent.chat.session import Assistant, Session, open_assistant, open_collection
from agent.chat.store import Store
from agent.models.registry import open_embedder
from agent.runs.worker import hash_sources
from benchmarks.bed import (
    DEFAULT,
    NO_MODEL,
    WORDS_ONLY,
    BenchRequest,
    Progress,
    System,
    WantedFile,
    check_files,
    choose_evenly,
    choose_systems,
    prepare_folder,
)
from benchmarks.figures import Row, Table
from benchmarks.own_grading import Conversation, Halves, Verdict, count_verdicts, grade, read_answer, read_conversations
from indexes.documents.document_index import open_documents
from indexes.storage.files import hash_file, read_bytes
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Response
from schemas.wire import decode


@dataclass(frozen=True, slots=True)
class AnswerSettings:
    """What decides the answers: digests of the questions, of the documents, of the models and of the code."""

    questions: str
    documents: str
    model: str
    embedder: str
    sources: str


@dataclass(frozen=True, slots=True)
class AnsweredConversation:
    """The answers of one conversation, in order."""

    conversation: str  # its id
    responses: tuple[Response, ...]


def read_answers(path: Path, settings: AnswerSettings) -> dict[str, AnsweredConversation]:
    """What a file has, by conversation; a torn last line is left out.

    Raises `UsageError` where it was made under other settings, `InvalidInputError` where it is no such file.
    """
    if not path.exists():
        return {}
    first, *lines = read_bytes(path).splitlines(keepends=True) or [b""]
    try:
        if first.endswith(b"\n"):
            _check_same(decode(first, AnswerSettings), settings, path)
        whole = [decode(line, AnsweredConversation) for line in lines if line.endswith(b"\n")]
    except msgspec.DecodeError as error:
        raise InvalidInputError(f"holds no answers ({error})", where=str(path)) from error
    return {found.conversation: found for found in whole}


def _check_same(then: AnswerSettings, now: AnswerSettings, path: Path) -> None:
    different = [name for name, value in asdict(now).items() if asdict(then)[name] != value]
    if different:
        what = f"was made with other {', '.join(different)}, so it cannot be resumed"
        raise UsageError(what, where=str(path), remedy="Give --overwrite to start again.")


@contextmanager
def keep_answers(
    path: Path, settings: AnswerSettings, found: Mapping[str, AnsweredConversation]
) -> Iterator[IO[bytes]]:
    """The file opened to go on after what was found in it."""
    with path.open("wb") as file:
        append_line(file, settings)
        for answered in found.values():
            append_line(file, answered)
        yield file


def append_line(file: IO[bytes], line: AnswerSettings | AnsweredConversation) -> None:
    """Write one line and hand it to the disk."""
    file.write(msgspec.json.encode(line) + b"\n")
    file.flush()
    os.fsync(file.fileno())


log = logging.getLogger("convagent")
BENCHMARK = "benchmarks/own_documents"
ORIGIN = "convagent's source repository"
SYSTEMS_OF_OWN = (DEFAULT, NO_MODEL, WORDS_ONLY)
COLUMNS = ("questions", "first", "right", "partly", "wrong", "honest", "false", "words")


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Documents, and questions over them."""

    name: str
    about: str
    folders: tuple[str, ...]  # below the folder of `--data`
    questions: str


SETS = (
    QuestionSet(
        "household",
        "150 questions over the documents of a household",
        (f"{BENCHMARK}/documents",),
        f"{BENCHMARK}/questions.json",
    ),
    QuestionSet(
        "further",
        "107 others over the same, by somebody who had not seen these",
        (f"{BENCHMARK}/documents",),
        f"{BENCHMARK}/further_questions.json",
    ),
    QuestionSet(
        "formats",
        "80 over files of every format in six languages",
        (f"{BENCHMARK}/more_documents",),
        f"{BENCHMARK}/more_questions.json",
    ),
    QuestionSet(
        "examples",
        "30 over the examples, written before the program was asked",
        ("examples/documents", "examples/scans"),
        f"{BENCHMARK}/newest_questions.json",
    ),
)
WANTED = tuple(
    WantedFile(path, purpose, ORIGIN)
    for path, purpose in {
        **{each.questions: f"{each.about}, with what answers must have" for each in SETS},
        **{folder: "documents that the questions are over" for each in SETS for folder in each.folders},
    }.items()
)


@dataclass(frozen=True, slots=True)
class Graded:
    """The verdict on the answer to one question."""

    kind: str
    verdict: Verdict


def run_own(request: BenchRequest, progress: Progress, half: Halves = "open") -> tuple[Table, ...]:
    """Every system over every set, and the tables. Raises `MissingError` naming all files that are not there."""
    check_files(request.data, WANTED)
    systems = choose_systems(SYSTEMS_OF_OWN, request)
    prepare_folder(request.folder, resume=request.resume, overwrite=request.overwrite)
    found = {(system, each): run_set(each, system, request, progress, half) for system in systems for each in SETS}
    return _tabulate_sets(found, half), _tabulate_kinds(found, half)


def run_set(each: QuestionSet, system: System, request: BenchRequest, progress: Progress, half: Halves) -> list[Graded]:
    """The verdicts on one set's answers, those that are kept already and those that are asked for now."""
    chosen = choose_evenly(read_conversations(request.data / each.questions, half), request.limit)
    log.info("%s: %s", system.name, each.name)
    path = request.folder / f"{system.slug}-{each.name}-{half}.jsonl"
    with tempfile.TemporaryDirectory() as home:
        assistant = _open_assistant(each, system, request, Path(home))
        settings = _describe_settings(each, assistant, request)
        kept = read_answers(path, settings) if request.resume else {}
        left = [conversation for conversation in chosen if conversation.id not in kept]
        with keep_answers(path, settings, kept) as file, progress.stages("conversations", len(chosen)) as show:
            for number, answered in enumerate(ask_all(left, assistant), start=1 + len(chosen) - len(left)):
                append_line(file, answered)
                kept[answered.conversation] = answered
                show(number)
    return [graded for conversation in chosen for graded in grade_conversation(conversation, kept[conversation.id])]


def ask_all(conversations: Sequence[Conversation], assistant: Assistant) -> Iterator[AnsweredConversation]:
    """Each conversation with a person of its own; nothing of it is kept among a user's."""
    for conversation in conversations:
        session = Session(assistant, Store(None))
        for statement in conversation.about:
            session.store.add_statement(statement)
        responses = tuple(session.ask(question.ask).response for question in conversation.turns)
        yield AnsweredConversation(conversation.id, responses)


def grade_conversation(conversation: Conversation, answered: AnsweredConversation) -> Iterator[Graded]:
    """The verdicts on its answers."""
    for question, response in zip(conversation.turns, answered.responses, strict=True):
        yield Graded(question.kind, grade(question, read_answer(response)))


def _open_assistant(each: QuestionSet, system: System, request: BenchRequest, home: Path) -> Assistant:
    folders = [request.data / folder for folder in each.folders]
    documents = folders[0] if len(folders) == 1 else _gather(folders, home / "gathered")
    embedder = open_embedder(system.embedder)
    index = open_documents(documents, home, embedder, lambda _doing, _of: nullcontext(lambda _done: None)).index
    return open_assistant(
        open_collection(str(documents), index, embedder), request.model if system.asks_model else "none"
    )


def _gather(folders: Sequence[Path], home: Path) -> Path:
    """A folder with a copy of each under its own name."""
    for folder in folders:
        shutil.copytree(folder, home / folder.name)
    return home


def _describe_settings(each: QuestionSet, assistant: Assistant, request: BenchRequest) -> AnswerSettings:
    files = sorted(path for name in each.folders for path in (request.data / name).rglob("*") if path.is_file())
    documents = hashlib.sha256("".join(map(hash_file, files)).encode()).hexdigest()
    embedder = assistant.current.embedder
    return AnswerSettings(
        hash_file(request.data / each.questions),
        documents,
        assistant.llm.digest,
        embedder.digest if embedder else "",
        hash_sources(),
    )


GradedSets = Mapping[tuple[System, QuestionSet], Sequence[Graded]]


def _tabulate_sets(found: GradedSets, half: Halves) -> Table:
    rows = (
        Row(f"{system.name}: {each.name}", _format_command(system, half), _count(graded))
        for (system, each), graded in found.items()
    )
    listed = "; ".join(f"{each.name}: {each.about}" for each in SETS)
    return Table("sets", f"Own documents, {half} half ({listed}).", COLUMNS, tuple(rows))


def _tabulate_kinds(found: GradedSets, half: Halves) -> Table:
    kinds = dict.fromkeys(one.kind for graded in found.values() for one in graded)
    systems = dict.fromkeys(system for system, _ in found)
    rows = [
        Row(f"{system.name}: {kind}", _format_command(system, half), _count(of_kind))
        for system in systems
        for kind in kinds
        if (of_kind := [one for (by, _), graded in found.items() if by == system for one in graded if one.kind == kind])
    ]
    return Table("kinds", f"Own documents by kind of question, all sets together, {half} half.", COLUMNS, tuple(rows))


def _count(graded: Sequence[Graded]) -> tuple[float | int, ...]:
    counts = count_verdicts([one.verdict for one in graded])
    return tuple(counts[column] for column in COLUMNS)


def _format_command(system: System, half: Halves) -> str:
    return f"python -m benchmarks own --half {half} --only '{system.name}'"
