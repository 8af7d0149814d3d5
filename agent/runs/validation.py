"""`convagent validate`: a run file checked against the topics that it answers, and mended where that is safe."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent.runs.given_ranking import describe_ranking, read_ranking
from agent.tracks.oddities import Oddities
from agent.tracks.registry import load_edition
from agent.tracks.rules import Checks, EditionLimits
from agent.tracks.run_files import read_run, run_problems, write_run
from agent.tracks.run_records import RunResponse, RunTurn, as_32_bits, separate_32_bit_scores
from agent.tracks.topic_files import read_topics
from indexes.sharding.sharded_index import open_index
from indexes.storage.files import check_writable, map_file, write_atomically
from indexes.text.response_length import leading_within_limit, response_length
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError
from schemas.records import Hit, Problem, RunInfo, Statement, Topics
from schemas.wire import Data


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What a run is to be checked against, beside its topics."""

    edition: str | None = None  # None: that of the topics
    collection: Literal["any", "clueweb22"] | None = None  # None: the edition's
    index: Path | None = None  # that its passages must be in
    ranking: Path | None = None  # that its answers must be built from
    strict: bool = False  # whether our own rules are errors, too


@dataclass(frozen=True, slots=True)
class Verdict:
    """Everything that is wrong with a run, and the number of turns in its topics."""

    run: Path
    turns: int
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...] = ()


def check_run(run: Path, topics_file: Path, request: CheckRequest = CheckRequest()) -> Verdict:
    """Everything wrong with a run file. Raises `InvalidInputError` for a ranking alone, which no edition's run is."""
    data = _map_run(run)
    topics = read_topics(topics_file)
    edition = request.edition or topics.edition
    checks = Checks(
        request.collection or load_edition(edition).limits.collection,
        request.strict,
        _open_lookup(request.index) if request.index else None,
        {turn_id: [hit.id for hit in hits] for turn_id, hits in read_ranking(request.ranking).hits.items()}
        if request.ranking
        else None,
    )
    found = run_problems(data, topics, edition, checks)
    problems, warnings = (tuple(p for p in found if p.severity == severity) for severity in ("error", "warning"))
    return Verdict(run, len(topics.turn_ids()), problems, warnings)


def _map_run(path: Path) -> Data:
    data = map_file(path)
    if kind := describe_ranking(data):
        what = f"is {kind}: a ranking, without answers to check"
        remedy = "`convagent eval search` measures it, and `convagent answer --ranking` answers from it."
        raise InvalidInputError(what, where=str(path), remedy=remedy)
    return data


def _open_lookup(directory: Path) -> Callable[[str], bool]:
    """Whether a passage is in an index, looked up once for each."""
    index = open_index(directory)
    return cache(lambda id: index.find(id) is not None)


def repair_run(run: Path, topics_file: Path, edition: str | None, out: Path, *, overwrite: bool) -> list[Problem]:
    """Write a copy with what can be mended without guessing, and return every change.

    Mended: all that readers are lenient about, a name with spaces, equal scores (lowered by a step, the order stays),
    passages and statements listed twice, statements that are not the person's, citations of passages that are not
    listed (while one is left), ranks, texts too long (cut after a sentence), statements out of the order of their
    scores, metadata that differ, turns that are not asked for. Left: missing turns, empty texts, scores that rise, too
    many passages, nothing used. Raises `InvalidInputError` for what cannot be understood.
    """
    check_writable(out, overwrite)
    data = _map_run(run)
    topics = read_topics(topics_file)
    try:
        chunks, changes = _repair_turns(data, topics, edition or topics.edition)
    except msgspec.DecodeError as error:
        remedy = "Without --repair, `convagent validate` lists all that is wrong with it."
        raise InvalidInputError(f"cannot be mended ({error})", where=str(run), remedy=remedy) from error
    write_atomically(out, chunks)
    return changes


def _repair_turns(data: Data, topics: Topics, edition: str) -> tuple[Iterator[bytes], list[Problem]]:
    """The run with all that is safe to mend mended, and what was changed.

    Raises `msgspec.DecodeError` for what cannot be understood.
    """
    oddities = Oddities()
    info, turns = read_run(edition, data, oddities)
    limits = load_edition(edition).limits
    ptkb = {turn.id: topic.ptkb for topic in topics.topics for turn in topic.turns}
    changes: list[Problem] = []
    found: dict[str, RunTurn] = {}
    kept: list[RunTurn] = []
    first_info: RunInfo | None = None
    for turn in turns:
        place = f"turn {turn.turn_id} {turn.where}"
        if turn.turn_id not in ptkb:
            changes.append(Problem(place, "left out: it is not a turn of these topics"))
        elif turn == found.get(turn.turn_id):
            changes.append(Problem(place, "left out: it is there already, word for word"))
        else:
            found[turn.turn_id] = turn
            first_info = first_info or turn.info
            if turn.info != first_info:
                changes.append(Problem(place, "metadata made those of the first turn"))
            kept.append(_repair_turn(turn, limits, ptkb[turn.turn_id], changes))
    info = first_info or info
    if (name := "_".join(info.name.split())) != info.name:
        changes.append(Problem("$", "spaces of the run's name made `_`"))
    read = [oddity.to_problem(is_error=False) for oddity in oddities]
    return write_run(edition, kept, replace(info, name=name)), read + changes


def _repair_turn(turn: RunTurn, limits: EditionLimits, ptkb: tuple[Statement, ...], changes: list[Problem]) -> RunTurn:
    responses = []
    for rank, response in enumerate(turn.responses, start=1):
        mended = replace(response, rank=rank)
        done = ["ranks counted from 1"] if mended != response else []
        for change, fields in _mend_response(mended, limits, ptkb):
            before, mended = mended, replace(mended, **fields)
            done += [change] if mended != before else []
        changes += [Problem(f"turn {turn.turn_id} {response.where}", change) for change in done]
        responses.append(mended)
    return replace(turn, responses=tuple(responses))


def _mend_response(
    response: RunResponse, limits: EditionLimits, ptkb: tuple[Statement, ...]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What may be changed in a response, and its fields as they then are."""
    passages, used = response.passages, response.used
    if passages is not None:
        first = {passage.id: passage for passage in reversed(passages)}
        passages = tuple(first[id] for id in dict.fromkeys(passage.id for passage in passages))
        yield "Passages listed twice left out", {"passages": passages}
        steps = list(pairwise(as_32_bits(passage.score) for passage in passages))
        if all(after <= before for before, after in steps) and any(after == before for before, after in steps):
            lowered = {hit.id: hit.score for hit in separate_32_bit_scores((p.id, p.score) for p in passages)}
            used = tuple(Hit(hit.id, lowered.get(hit.id, hit.score)) for hit in used)
            passages = tuple(replace(passage, score=lowered[passage.id]) for passage in passages)
            yield "Equal scores lowered by a step each", {"passages": passages, "used": used}
    listed = {passage.id for passage in passages or ()}
    if cited := tuple(hit for hit in used if hit.id in listed):
        yield "Citations of passages that are not listed left out", {"used": cited}
    texts = {statement.id: statement.text for statement in ptkb}
    known = {
        (statement.id, statement.text): statement
        for statement in response.statements
        if (statement.id is None or statement.id in texts)
        and (statement.text is None or statement.text in texts.values())
    }
    what = "Statements that are not the person's, or there twice, left out; the others in the order of their scores"
    yield what, {"statements": tuple(sorted(known.values(), key=lambda statement: -(statement.score or 0.0)))}
    text = response.text or ""
    if limits.tokens and response_length(text) > limits.tokens:
        kept = leading_within_limit(split_sentences(text), limits.tokens)
        yield "Text cut at the end of the last sentence that fits", {"text": " ".join(kept) or text}
