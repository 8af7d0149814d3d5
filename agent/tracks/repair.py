"""Mends what can be mended in a run without guessing what was meant, and lists every change.

Mended: all that readers are lenient about (`lenient_reading.py`), a name with spaces, equal scores (lowered by a step,
the order stays), passages and statements listed twice, statements that are not the person's, citations of passages that
are not listed (while one is left), ranks, a text that is too long (cut at the end of a sentence), statements out of the
order of their scores, metadata that differ from line to line, and turns that are not asked for. Left as they are:
missing turns, empty texts, scores that rise, too many passages, nothing used.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from agent.tracks.oddities import Oddities
from agent.tracks.registry import load_edition
from agent.tracks.rules import EditionLimits
from agent.tracks.run_files import read_run, write_run
from agent.tracks.run_records import RunPassage, RunResponse, RunTurn, as_32_bits, separate_32_bit_scores
from indexes.text.response_length import leading_within_limit, response_length
from indexes.text.sentences import split_sentences
from schemas.records import Hit, Problem, RunInfo, Statement, Topics
from schemas.wire import Data

Mend = Callable[[RunResponse, EditionLimits, dict[str, str]], RunResponse]


def repair_turns(data: Data, topics: Topics, edition: str) -> tuple[Iterator[bytes], list[Problem]]:
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
    texts = {statement.id: statement.text for statement in ptkb}
    responses = []
    for rank, response in enumerate(turn.responses, start=1):
        mended = replace(response, rank=rank)
        done = ["ranks counted from 1"] if mended != response else []
        for mend in MENDS:
            before, mended = mended, mend(mended, limits, texts)
            done += [(mend.__doc__ or "").strip().rstrip(".")] if mended != before else []
        changes += [Problem(f"turn {turn.turn_id} {response.where}", change) for change in done]
        responses.append(mended)
    return replace(turn, responses=tuple(responses))


def _drop_repeated_passages(response: RunResponse, _limits: EditionLimits, _texts: dict[str, str]) -> RunResponse:
    """Passages listed twice left out."""
    if response.passages is None:
        return response
    once: dict[str, RunPassage] = {}
    for passage in response.passages:
        once.setdefault(passage.id, passage)
    return replace(response, passages=tuple(once.values()))


def _lower_scores(response: RunResponse, _limits: EditionLimits, _texts: dict[str, str]) -> RunResponse:
    """Equal scores lowered by a step each."""
    passages = response.passages or ()
    steps = list(pairwise(as_32_bits(passage.score) for passage in passages))
    if any(after > before for before, after in steps) or not any(after == before for before, after in steps):
        return response
    lowered = {hit.id: hit.score for hit in separate_32_bit_scores((p.id, p.score) for p in passages)}
    used = tuple(Hit(hit.id, lowered.get(hit.id, hit.score)) for hit in response.used)
    return replace(response, passages=tuple(replace(p, score=lowered[p.id]) for p in passages), used=used)


def _drop_unlisted_citations(response: RunResponse, _limits: EditionLimits, _texts: dict[str, str]) -> RunResponse:
    """Citations of passages that are not listed left out."""
    listed = {passage.id for passage in response.passages or ()}
    used = tuple(hit for hit in response.used if hit.id in listed)
    return replace(response, used=used) if used else response


def _drop_unknown_statements(response: RunResponse, _limits: EditionLimits, texts: dict[str, str]) -> RunResponse:
    """Statements that are not the person's, or there twice, left out; the others in the order of their scores."""
    known = {
        (statement.id, statement.text): statement
        for statement in response.statements
        if (statement.id is None or statement.id in texts)
        and (statement.text is None or statement.text in texts.values())
    }
    return replace(response, statements=tuple(sorted(known.values(), key=lambda statement: -(statement.score or 0.0))))


def _shorten_text(response: RunResponse, limits: EditionLimits, _texts: dict[str, str]) -> RunResponse:
    """Text cut at the end of the last sentence that fits."""
    if not limits.tokens or not response.text or response_length(response.text) <= limits.tokens:
        return response
    kept = leading_within_limit(split_sentences(response.text), limits.tokens)
    return replace(response, text=" ".join(kept)) if kept else response


MENDS: tuple[Mend, ...] = (
    _drop_repeated_passages,
    _lower_scores,
    _drop_unlisted_citations,
    _drop_unknown_statements,
    _shorten_text,
)
