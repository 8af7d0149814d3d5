"""A whole run: every turn of a topics file answered, traced as it goes, and written in the form of its edition."""

import hashlib
import logging
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

import msgspec

from agent.flow import NOTHING
from agent.runs.backends.local import Backend, TopicTask
from agent.runs.given_ranking import GivenRanking
from agent.runs.trace import RunSettings, Trace, WorkerDescription, append_line, open_for_append, read_trace
from agent.tracks.rules import STRICT, Checks
from agent.tracks.run_files import encode_run, make_checker
from agent.tracks.run_records import RunTurn
from indexes.storage.files import write_atomically
from schemas.errors import list_with_limit
from schemas.records import (
    Message,
    Mode,
    Plan,
    Problem,
    Provided,
    RunInfo,
    ScoredStatement,
    Topic,
    Topics,
    Turn,
    TurnResult,
)

OnTurn = Callable[[TurnResult, float], None]  # is handed a turn and its seconds


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A run about to be made."""

    topics: Topics
    given: Mapping[str, Provided]  # by turn id
    settings: RunSettings


def prepare_run(
    topics: Topics, ranking: GivenRanking | None, made_by: WorkerDescription, mode: Mode, plan: Plan
) -> PreparedRun:
    """What the flow will see of the topics in this mode, and all that decides the run."""
    shown, given = provide_labels(topics) if mode == "manual" else (topics, {})
    if ranking is not None:
        given = {id: replace(given.get(id, NOTHING), hits=ranking.hits[id]) for id in topics.turn_ids()}
    settings = RunSettings(
        edition=topics.edition,
        topics=_sha256(shown.topics),
        turns=len(topics.turn_ids()),
        mode=mode,
        labels=_sha256(topics.labels) if mode == "manual" else "",
        ranking=ranking.digest if ranking else "",
        ranking_of_labels=bool(ranking and ranking.labels),
        plan=plan,
        **{field.name: getattr(made_by, field.name) for field in fields(made_by)},
    )
    return PreparedRun(shown, given, settings)


def _sha256(record: object) -> str:
    return hashlib.sha256(msgspec.json.encode(record)).hexdigest()


def answer_remaining(job: PreparedRun, backend: Backend, before: Trace, on_turn: OnTurn) -> Trace:
    """Answer what `before` has not, each turn traced at once, as many topics at a time as the backend has workers."""
    tasks = [_make_task(topic, job, before) for topic in job.topics.topics]
    with open_for_append(before) as file:
        for line in backend.answer(tasks, before.lines(before.replies)):
            append_line(file, line)
            on_turn(line.answered, line.seconds)
    return read_trace(before.path)


def _make_task(topic: Topic, job: PreparedRun, before: Trace) -> TopicTask:
    ids = [turn.id for turn in topic.turns]
    given = {id: job.given[id] for id in ids if id in job.given}
    return TopicTask(topic, given, {id: before.replies[id] for id in ids if id in before.replies})


def describe_run(settings: RunSettings, name: str, team: str) -> RunInfo:
    """What a run made under these settings says about itself."""
    labels = settings.mode == "manual" or settings.ranking_of_labels
    return RunInfo(name, settings.mode, team, settings.plan.parts, labels)


def write_run(path: Path, trace: Trace, topics: Topics, info: RunInfo, edition: str) -> list[Problem]:
    """Write the run (to stdout where the path is `-`) and return the rules that it breaks: ours too are errors.

    A turn for which there was no passage at all, which was said before it was answered, keeps the official rules alone.
    """
    answered = (line.answered for line in trace.lines(topics.turn_ids()))
    checker, official = make_checker(edition, info, topics, STRICT), make_checker(edition, info, topics, Checks())
    problems: list[Problem] = []

    def check(turn: RunTurn) -> None:
        has_passages = any(response.passages is None or response.passages for response in turn.responses)
        problems.extend((checker if has_passages else official).check_turn(turn))
        checker.mark_seen(turn.turn_id)

    chunks = encode_run(edition, answered, info, check)
    if str(path) == "-":
        sys.stdout.buffer.writelines(chunks)
    else:
        write_atomically(path, chunks)
    return [problem for problem in (*problems, *checker.check_all_seen()) if problem.severity == "error"]


log = logging.getLogger("convagent")
GOLD_SCORE = 1.0  # the score of a statement that a person chose


def provide_labels(topics: Topics) -> tuple[Topics, Mapping[str, Provided]]:
    """The topics with the earlier turns as a person rewrote them, and what each turn itself is given.

    An earlier utterance becomes its human rewrite with its gold statements. A turn whose rewrite is empty, of which the
    organisers' own files have some, is asked as it was uttered; that is said once.
    """
    missing = [id for id, labels in topics.labels.items() if not labels.human_rewrite.strip()]
    if missing:
        listed = ", ".join(list_with_limit(missing, 3, "and {} more"))
        log.warning("no human rewrite of turn %s: the utterance is taken as it is", listed)
    given = {turn.id: _provide_turn(topic, turn, topics) for topic in topics.topics for turn in topic.turns}
    rewritten = tuple(_rewrite_history(topic, given) for topic in topics.topics)
    return replace(topics, topics=rewritten), given


def _provide_turn(topic: Topic, turn: Turn, topics: Topics) -> Provided:
    labels = topics.labels[turn.id]
    statements = {statement.id: statement for statement in topic.ptkb}
    gold = tuple(
        ScoredStatement(statements[id], GOLD_SCORE) for id in dict.fromkeys(labels.statement_ids) if id in statements
    )
    return Provided(labels.human_rewrite.strip() or turn.utterance, gold)


def _rewrite_history(topic: Topic, given: Mapping[str, Provided]) -> Topic:
    rewritten = [" ".join([given[t.id].human_rewrite, *_statement_texts(given[t.id])]) for t in topic.turns]
    turns = []
    for number, turn in enumerate(topic.turns):
        history = turn.history
        if history is not None and len(history) == 2 * number:  # one utterance and one reply for every earlier turn
            history = tuple(
                message if n % 2 else Message("user", rewritten[n // 2]) for n, message in enumerate(history)
            )
        turns.append(replace(turn, history=history))
    return replace(topic, turns=tuple(turns))


def _statement_texts(given: Provided) -> list[str]:
    return [chosen.statement.text for chosen in given.statements or ()]
