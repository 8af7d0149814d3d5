"""`convagent eval nuggets`: from runs and nuggets to verdicts and scores.

Whoever is killed and begins again goes on: what a model replied is in the cache of replies.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agent.evaluation.judges import open_nugget_judge
from agent.evaluation.nuggets import (
    NO_VERDICT,
    JudgedAnswer,
    decode_nuggets,
    encode_nuggets,
    read_nuggets,
    score_nuggets,
)
from agent.evaluation.scores import Scores, check_turns_shared, read_run_file
from agent.tracks.oddities import report_oddities
from agent.tracks.topic_files import read_topics
from indexes.storage.files import check_writable, read_utf8, write_atomically
from schemas.errors import InvalidInputError, UsageError, format_count, list_with_limit
from schemas.progress import StageProgress

log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class JudgingRequest:
    """What is judged, by what, and by whom."""

    runs: tuple[Path, ...]
    nuggets: Path
    judge: str  # a model, or a file of verdicts
    topics: Path | None = None  # what was asked, for nuggets that do not say it
    output: Path | None = None
    overwrite: bool = False


def judge_runs(request: JudgingRequest, progress: StageProgress) -> tuple[list[Scores], Path | None]:
    """Judge the answers of each run, or take the verdicts of a file, and score them.

    Returns the scores, and where the verdicts are, if they were made. Raises before any work for what can be known to
    be wrong by then.
    """
    answers = _pair_answers(request)
    output = None
    if Path(request.judge).is_file() and not request.judge.endswith(".gguf"):
        judged = _take_verdicts(answers, Path(request.judge))
    else:
        stem = request.runs[0].name.removesuffix(".jsonl").removesuffix(".json")
        output = request.output or Path(f"{stem}.nuggets.jsonl")
        check_writable(output, request.overwrite)
        judge = open_nugget_judge(request.judge)
        if judge.rough:
            log.warning("%s: %s", request.judge, judge.rough)
        judged = []
        with progress("judging", len(answers)) as tick:
            for answer in answers:
                judged.append(judge.judge(answer))
                tick(len(judged))
        write_atomically(output, map(encode_nuggets, judged))
    if missing := sum(nugget.verdict in NO_VERDICT for answer in judged for nugget in answer.nuggets):
        log.warning("%s: without %s, which count as not in the answer", request.judge, format_count(missing, "verdict"))
    return [_score(run.name, judged) for run in request.runs], output


def _pair_answers(request: JudgingRequest) -> list[JudgedAnswer]:
    """Each answer of each run with what it is judged by; an answer that a run lacks is empty."""
    names = [run.name for run in request.runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs are called {names[0]}", remedy="Verdicts are kept by the name of the run's file.")
    wanted = [
        replace(found, nuggets=tuple(replace(nugget, verdict=None) for nugget in found.nuggets))
        for found in read_nuggets(request.nuggets)
    ]
    queries = _read_queries(request.topics)
    paired = []
    for run in request.runs:
        _, turns = read_run_file(run)
        texts = {turn.turn_id: (turn.responses[0].text or "") if turn.responses else "" for turn in turns}
        check_turns_shared(run, texts, {found.turn_id: {} for found in wanted})
        for found in wanted:
            query = found.query or queries.get(found.turn_id, "")
            paired.append(replace(found, run=run.name, query=query, text=texts.get(found.turn_id, "")))
    return paired


def _read_queries(path: Path | None) -> Mapping[str, str]:
    """What was asked at each turn, as it stands alone where the topics say so."""
    if path is None:
        return {}
    topics = read_topics(path)
    asked = {turn.id: turn.utterance for topic in topics.topics for turn in topic.turns}
    return asked | {id: labels.human_rewrite for id, labels in topics.labels.items() if labels.human_rewrite}


def _take_verdicts(answers: Sequence[JudgedAnswer], path: Path) -> list[JudgedAnswer]:
    """The verdicts of a file on these answers. Raises `InvalidInputError` where it has none of them."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        given = decode_nuggets(data, oddities)
        runs = {verdict.run for verdict in given}
        lone = len(runs) == len({answer.run for answer in answers}) == 1  # then its name there does not matter
        found = {(not lone and verdict.run, verdict.turn_id): verdict for verdict in given}
        taken = [_take(found.get((not lone and answer.run, answer.turn_id)), answer) for answer in answers]
        if all(verdict in NO_VERDICT for answer in taken for verdict in answer.verdicts.values()):
            others = ", ".join(list_with_limit(sorted(filter(None, runs)), 5)) or "none that it names"
            remedy = f"It is about these runs: {others}. --judge MODEL makes verdicts."
            raise InvalidInputError("has no verdicts on these runs", remedy=remedy)
    return taken


def _take(verdict: JudgedAnswer | None, answer: JudgedAnswer) -> JudgedAnswer:
    """The verdict, or the answer without one. Raises `InvalidInputError` where it is on another answer."""
    if verdict is None:
        return answer
    if verdict.text and verdict.text.split() != answer.text.split():
        what = f"is about another answer than the one of {answer.run}"
        raise InvalidInputError(what, where=f"turn {answer.turn_id}")
    if verdict.verdicts.keys() != answer.verdicts.keys():
        what = "judges by other nuggets than those that are given"
        raise InvalidInputError(what, where=f"turn {answer.turn_id}")
    return replace(verdict, run=answer.run, text=answer.text)


def _score(run: str, judged: Sequence[JudgedAnswer]) -> Scores:
    own = [answer for answer in judged if answer.run == run]
    scores = {answer.turn_id: score_nuggets(answer.nuggets) for answer in own}
    return Scores(run, scores, sum(not answer.text for answer in own))
