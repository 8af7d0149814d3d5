"""Runs made from files: from a trace into any edition or a form of another tool, from any ranking into TREC's.

Other tools are Auto-Judge, Ragnarök and the Nuggetizer: a line of JSON a turn, with its first answer. Ragnarök writes
what TREC RAG 2024 took and the Nuggetizer reads, with citations as places in `references`; `response_length` is in
words, as the track's guidelines have it (Ragnarök itself writes characters). The Nuggetizer makes nuggets from queries
with candidate passages, which Ragnarök and RankLLM read, too.

source: `autojudge_base.report` of autojudge-base 1.0.0 (trec-auto-judge/auto-judge-base); `ragnarok.data` of pyragnarok
0.0.1 (castorini/ragnarok), and the README of nuggetizer 0.0.5.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from agent.runs.given_ranking import format_trec_lines, read_ranking
from agent.runs.trace import is_trace, read_trace
from agent.tracks.files import encode_run
from agent.tracks.lenient_reading import locate_errors
from indexes.storage.files import check_writable, write_atomically
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.records import Hit, RunInfo, TurnResult

log = logging.getLogger("convagent")
TREC = "trec"


def encode_autojudge(turn: TurnResult, info: RunInfo) -> bytes:
    """The line of a turn. Raises `InvalidInputError` for one without an answer."""
    metadata = {
        "team_id": info.team,
        "run_id": info.name,
        "topic_id": turn.turn_id,
        "narrative_id": turn.turn_id,
        "narrative": turn.query.standalone,
        "type": info.type,
    }
    references = _list_references(turn)
    said = [{"text": said.text, "citations": said.passage_ids} for said in turn.response.sentences]
    return msgspec.json.encode({"metadata": metadata, "responses": said, "references": references}) + b"\n"


def encode_ragnarok(turn: TurnResult, info: RunInfo) -> bytes:
    """The line of a turn. Raises `InvalidInputError` for one without an answer."""
    references, said = _list_references(turn), turn.response.sentences
    line = {
        "topic_id": turn.turn_id,
        "topic": turn.query.standalone,
        "references": references,
        "answer": [{"text": s.text, "citations": [references.index(id) for id in s.passage_ids]} for s in said],
        "response_length": sum(count_whitespace_words(sentence.text) for sentence in said),
        "run_id": info.name,
    }
    return msgspec.json.encode(line) + b"\n"


def encode_candidates(turn: TurnResult, _info: RunInfo) -> bytes:
    """The line of a turn: its passages whose text was read."""
    scores = {hit.id: hit.score for hit in turn.hits}
    docs = {p.id: {"segment": p.text, "title": p.title, "url": p.url} for p in turn.passages}
    candidates = [
        {"docid": id, "score": scores.get(id, 0.0), "doc": {name: value for name, value in doc.items() if value}}
        for id, doc in docs.items()
    ]
    query = {"qid": turn.turn_id, "text": turn.query.standalone}
    return msgspec.json.encode({"query": query, "candidates": candidates}) + b"\n"


def _list_references(turn: TurnResult) -> list[str]:
    """The passages that were read for an answer or cited."""
    if not turn.responses:
        raise InvalidInputError("has no response", where=f"turn {turn.turn_id}")
    return list(dict.fromkeys((*(passage.id for passage in turn.passages), *turn.response.used)))


# The forms that a trace can be written in beside those of the editions: a turn as its line or lines.
FOR_OTHER_TOOLS: Mapping[str, Callable[[TurnResult, RunInfo], bytes]] = {
    "autojudge": encode_autojudge,
    "nuggetizer": encode_candidates,
    "ragnarok": encode_ragnarok,
    TREC: lambda turn, info: format_trec_lines(turn.turn_id, turn.hits, info.name).encode(),
}


def export_run(path: Path, form: str | None, out: Path, name: str, team: str, *, overwrite: bool) -> int:
    """Write the run of a trace in the form of an edition (its own by default) or of another tool; no model is asked.

    A ranking in any form that `--ranking` takes can be written as a TREC run: the first of every turn, with all digits
    of its scores. Returns the number of turns. Raises `InvalidInputError` naming the turn that cannot be expressed.
    """
    check_writable(out, overwrite)
    if form == TREC and not is_trace(path):
        return _export_ranking(path, out)
    trace = read_trace(path)
    settings = trace.settings
    if len(trace.places) < settings.turns:
        log.warning("%s: %d of %d turns; the run is incomplete", path, len(trace.places), settings.turns)
    answered = (line.answered for line in trace.lines())
    info, form = settings.describe_run(name, team), form or settings.edition
    encode = FOR_OTHER_TOOLS.get(form)
    write_atomically(out, (encode(turn, info) for turn in answered) if encode else encode_run(form, answered, info))
    return len(trace.places)


def _export_ranking(path: Path, out: Path) -> int:
    ranking = read_ranking(path)
    found = ((id, [Hit(*scored) for scored in scores.items()]) for id, scores in ranking.scores.items())
    with locate_errors(path):
        write_atomically(out, [format_trec_lines(id, hits, ranking.name).encode() for id, hits in found])
    return len(ranking.scores)
