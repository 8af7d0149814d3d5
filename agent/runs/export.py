"""Runs made from files: from a trace into any edition, from a run into TREC's six columns."""

import logging
from collections.abc import Iterator
from pathlib import Path

from agent.exchange.registry import EXCHANGE_NAMES, encode_turns
from agent.exchange.trec import format_trec_lines
from agent.runs.run import describe_run
from agent.runs.trace import read_trace
from agent.tracks.oddities import Oddities, report_oddities
from agent.tracks.run_files import encode_run, read_detected_run
from indexes.storage.files import check_writable, map_file, write_atomically
from schemas.errors import InvalidInputError
from schemas.records import Hit
from schemas.wire import Data

log = logging.getLogger("convagent")


def export_trace(path: Path, form: str | None, out: Path, name: str, team: str, *, overwrite: bool) -> int:
    """Write the run of a trace in the form of an edition (its own by default) or of another tool.

    No model is asked. Returns the number of turns. Raises `InvalidInputError` naming the turn that cannot be expressed.
    """
    check_writable(out, overwrite)
    trace = read_trace(path)
    settings = trace.settings
    if len(trace.places) < settings.turns:
        log.warning("%s: %d of %d turns; the run is incomplete", path, len(trace.places), settings.turns)
    answered = (line.answered for line in trace.lines())
    info, form = describe_run(settings, name, team), form or settings.edition
    encode = encode_turns if form in EXCHANGE_NAMES else encode_run
    write_atomically(out, encode(form, answered, info))
    return len(trace.places)


def convert_run(path: Path, out: Path, *, overwrite: bool) -> int:
    """Write the first ranking of every turn as a TREC run: `qid Q0 docid rank score tag`. Returns the number of turns.

    Scores keep all their digits. Raises `InvalidInputError` for a file that is no valid run.
    """
    check_writable(out, overwrite)
    data = map_file(path)
    with report_oddities(path) as oddities:
        rows = list(_format_turns(data, oddities))
    write_atomically(out, rows)
    return len(rows)


def _format_turns(data: Data, oddities: Oddities) -> Iterator[bytes]:
    """The lines of each turn in TREC's form."""
    _, info, turns = read_detected_run(data, oddities)
    seen: set[str] = set()
    for turn in turns:
        if turn.turn_id in seen:
            raise InvalidInputError(f"has turn {turn.turn_id} twice")
        seen.add(turn.turn_id)
        hits = (Hit(passage.id, passage.score) for passage in turn.responses[0].passages or ())
        yield format_trec_lines(turn.turn_id, hits, (turn.info or info).name).encode()
