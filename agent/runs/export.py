"""Runs made from files: from a trace into any edition, from any ranking into TREC's six columns."""

import logging
from pathlib import Path

from agent.exchange.other_tools import encode_autojudge, encode_candidates, encode_ragnarok
from agent.exchange.trec import encode_ranking, format_trec_lines
from agent.runs.given_ranking import read_ranking
from agent.runs.run import describe_run
from agent.runs.trace import read_trace
from agent.tracks.oddities import locate_errors
from agent.tracks.run_files import encode_run
from indexes.storage.files import check_writable, write_atomically
from schemas.records import Hit

log = logging.getLogger("convagent")
FOR_OTHER_TOOLS = {  # the forms that a trace can be written in beside those of the editions
    "autojudge": encode_autojudge,
    "nuggetizer": encode_candidates,
    "ragnarok": encode_ragnarok,
    "trec": encode_ranking,
}


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
    encode = FOR_OTHER_TOOLS.get(form)
    write_atomically(out, (encode(turn, info) for turn in answered) if encode else encode_run(form, answered, info))
    return len(trace.places)


def convert_run(path: Path, out: Path, *, overwrite: bool) -> int:
    """Write the first ranking of every turn as a TREC run: `qid Q0 docid rank score tag`. Returns the number of turns.

    The file is of any form that `--ranking` takes. Scores keep all their digits.
    """
    check_writable(out, overwrite)
    ranking = read_ranking(path)
    with locate_errors(path):
        rows = [
            format_trec_lines(turn_id, (Hit(id, score) for id, score in scores.items()), ranking.name).encode()
            for turn_id, scores in ranking.scores.items()
        ]
    write_atomically(out, rows)
    return len(rows)
