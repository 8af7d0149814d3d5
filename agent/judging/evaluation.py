"""`convagent eval nuggets` and `eval rubric`: from runs and criteria to verdicts, scores and agreement."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from agent.evaluation.scores import Scores, check_turns_shared, read_run_file
from agent.judging.agreement import Agreement, cohen_kappa, kendall_tau
from agent.judging.criteria import Criteria
from agent.judging.judging import J, Judge, address, judge_answers
from agent.tracks.oddities import report_oddities
from agent.tracks.topic_files import read_topics
from indexes.storage.files import check_writable, read_utf8
from schemas.errors import InvalidInputError, UsageError, format_count, list_with_limit
from schemas.progress import StageProgress

log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class JudgingRequest:
    """What is judged, by what, and by whom."""

    runs: tuple[Path, ...]
    criteria: Path  # nuggets or questions
    judge: str | None  # a model, or a file of verdicts; None: the criteria are one
    topics: Path | None = None  # what was asked, for criteria that do not say it
    human: Path | None = None  # verdicts of people
    output: Path | None = None
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class JudgedRuns:
    """What came of it."""

    scores: list[Scores]
    agreement: Agreement | None
    output: Path | None  # where the verdicts are, if they were made


def judge_runs(request: JudgingRequest, criteria: Criteria[J], progress: StageProgress) -> JudgedRuns:
    """Judge the answers of each run, or take the verdicts of a file, and score them.

    Raises before any work for what can be known to be wrong by then.
    """
    answers = _pair_answers(request, criteria)
    human = _take_verdicts(answers, request.human, criteria) if request.human else None
    output = None
    if request.judge is None:
        judged = _take_own_verdicts(answers, request.criteria, criteria)
    elif _is_file(request.judge):
        judged = _take_verdicts(answers, Path(request.judge), criteria)
    else:
        output = request.output or _name_output(request.runs[0], criteria.name)
        check_writable(output, request.overwrite)
        judge = _open_judge(request.judge, criteria)
        judged = judge_answers(answers, judge, criteria.form, output, progress, anew=request.overwrite)
    _report_missing(request.judge or str(request.criteria), judged, criteria)
    agreement = _compare(judged, human, criteria) if human else None
    return JudgedRuns(_score(judged, criteria, request.runs), agreement, output)


def _name_output(run: Path, kind: str) -> Path:
    return Path(f"{run.name.removesuffix('.jsonl').removesuffix('.json')}.{kind}.jsonl")


def _is_file(judge: str) -> bool:
    return Path(judge).is_file() and not judge.endswith(".gguf")


def _pair_answers(request: JudgingRequest, criteria: Criteria[J]) -> list[J]:
    """Each answer of each run with what it is judged by; an answer that a run lacks is empty."""
    names = [run.name for run in request.runs]
    if len(set(names)) < len(names):
        raise UsageError(f"two runs are called {names[0]}", remedy="Verdicts are kept by the name of the run's file.")
    wanted = criteria.read(request.criteria)
    queries = _read_queries(request.topics)
    paired = []
    for run in request.runs:
        _, turns = read_run_file(run)
        texts = {turn.turn_id: (turn.responses[0].text or "") if turn.responses else "" for turn in turns}
        check_turns_shared(run, texts, {found.turn_id: {} for found in wanted})
        paired += [
            address(found, run.name, queries.get(found.turn_id, ""), texts.get(found.turn_id, "")) for found in wanted
        ]
    return paired


def _read_queries(path: Path | None) -> Mapping[str, str]:
    """What was asked at each turn, as it stands alone where the topics say so."""
    if path is None:
        return {}
    topics = read_topics(path)
    asked = {turn.id: turn.utterance for topic in topics.topics for turn in topic.turns}
    return asked | {id: labels.human_rewrite for id, labels in topics.labels.items() if labels.human_rewrite}


def _open_judge(name: str, criteria: Criteria[J]) -> Judge[J]:
    judge = criteria.open_judge(name)
    if judge.rough:
        log.warning("%s: %s", name, judge.rough)
    return judge


def _report_missing(name: str, judged: Sequence[J], criteria: Criteria[J]) -> None:
    missing = sum(verdict is None for answer in judged for verdict in criteria.verdicts(answer).values())
    if missing:
        log.warning("%s: without %s, which count as not in the answer", name, format_count(missing, "verdict"))


def _take_own_verdicts(answers: Sequence[J], path: Path, criteria: Criteria[J]) -> list[J]:
    """The verdicts that stand in the file of criteria itself. Raises `UsageError` where there are none."""
    try:
        return _take_verdicts(answers, path, criteria)
    except InvalidInputError as error:
        remedy = "Give --judge: a model that is asked, minilm for a rough proxy, or a file with verdicts."
        raise UsageError(f"holds no verdicts on these runs ({error.what})", where=str(path), remedy=remedy) from error


def _take_verdicts(answers: Sequence[J], path: Path, criteria: Criteria[J]) -> list[J]:
    """The verdicts of a file on these answers. Raises `InvalidInputError` where it has none of them."""
    data = read_utf8(path)
    with report_oddities(path) as oddities:
        given = criteria.form.decode(data, oddities)
        runs = {verdict.run for verdict in given}
        lone = len(runs) == len({answer.run for answer in answers}) == 1  # then its name there does not matter
        found = {(not lone and verdict.run, verdict.turn_id): verdict for verdict in given}
        taken = [_take(found.get((not lone and answer.run, answer.turn_id)), answer, criteria) for answer in answers]
        if not any(verdict is not None for answer in taken for verdict in criteria.verdicts(answer).values()):
            others = ", ".join(list_with_limit(sorted(filter(None, runs)), 5)) or "none that it names"
            remedy = f"It is about these runs: {others}. --judge MODEL makes verdicts."
            raise InvalidInputError("has no verdicts on these runs", remedy=remedy)
    return taken


def _take(verdict: J | None, answer: J, criteria: Criteria[J]) -> J:
    """The verdict, or the answer without one. Raises `InvalidInputError` where it is on another answer."""
    if verdict is None:
        return answer
    if verdict.text and verdict.text.split() != answer.text.split():
        what = f"is about another answer than the one of {answer.run}"
        raise InvalidInputError(what, where=f"turn {answer.turn_id}")
    if criteria.verdicts(verdict).keys() != criteria.verdicts(answer).keys():
        what = "judges by other nuggets or questions than those that are given"
        raise InvalidInputError(what, where=f"turn {answer.turn_id}")
    return replace(verdict, run=answer.run, text=answer.text)


def _score(judged: Sequence[J], criteria: Criteria[J], runs: Sequence[Path]) -> list[Scores]:
    return [
        Scores(run.name, {answer.turn_id: criteria.score(answer) for answer in own}, sum(not a.text for a in own))
        for run in runs
        if (own := [answer for answer in judged if answer.run == run.name])
    ]


def _compare(judged: Sequence[J], human: Sequence[J], criteria: Criteria[J]) -> Agreement:
    """Verdicts on the same nuggets or questions, and the order of runs over the turns that both judged."""
    both = [
        (answer, other)
        for answer, other in zip(judged, human, strict=True)
        if any(verdict is not None for verdict in criteria.verdicts(other).values())
    ]
    pairs = [
        (verdict, others[text])
        for answer, other in both
        if (others := criteria.verdicts(other))
        for text, verdict in criteria.verdicts(answer).items()
        if verdict is not None and others.get(text) is not None
    ]
    equal = sum(one == other for one, other in pairs) / max(1, len(pairs))
    return Agreement(len(pairs), equal, cohen_kappa(pairs), _compare_orders(both, criteria))


def _compare_orders(both: Sequence[tuple[J, J]], criteria: Criteria[J]) -> dict[str, float]:
    runs = list(dict.fromkeys(answer.run for answer, _ in both))
    means = partial(_means_by_run, runs, criteria)
    ours, theirs = means([answer for answer, _ in both]), means([other for _, other in both])
    taus = {measure: kendall_tau(ours[measure], theirs[measure]) for measure in ours if measure in theirs}
    return {measure: tau for measure, tau in taus.items() if tau is not None}


def _means_by_run(runs: Sequence[str], criteria: Criteria[J], answers: Sequence[J]) -> dict[str, list[float]]:
    scores = [
        Scores(run, {answer.turn_id: criteria.score(answer) for answer in answers if answer.run == run}, 0)
        for run in runs
    ]
    measures = dict.fromkeys(measure for run in scores for turn in run.turns.values() for measure in turn)
    return {measure: [run.mean(measure) for run in scores] for measure in measures}
