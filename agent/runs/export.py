"""Runs made from files: from a trace into any edition or a form of another tool, from any ranking into TREC's.

Other tools are Auto-Judge, Ragnarök and the Nuggetizer: a line a turn, with its first answer.

Auto-Judge reads sentences with the ids that they cite:

    {"metadata": {"team_id": "us", "run_id": "ours", "topic_id": "9-1_1", "narrative_id": "9-1_1",
                  "narrative": "How long does rice bread keep?", "type": "automatic"},
     "responses": [{"text": "Rice bread keeps for two days.", "citations": ["bread:1"]}],
     "references": ["bread:1", "bread:2"]}

Ragnarök writes what TREC RAG 2024 took and the Nuggetizer reads, with citations as places in `references`:

    {"topic_id": "9-1_1", "topic": "How long does rice bread keep?", "references": ["bread:1", "bread:2"],
     "answer": [{"text": "Rice bread keeps for two days.", "citations": [0]}], "response_length": 6, "run_id": "ours"}

`response_length` is in words, as the track's guidelines have it (Ragnarök itself writes characters). The Nuggetizer
makes nuggets from queries with candidate passages, which Ragnarök and RankLLM read, too:

    {"query": {"qid": "9-1_1", "text": "How long does rice bread keep?"},
     "candidates": [{"docid": "bread:1", "score": 9.5, "doc": {"segment": "Rice bread keeps ..."}}]}

source: `autojudge_base.report` of autojudge-base 1.0.0 (trec-auto-judge/auto-judge-base); `ragnarok.data` of pyragnarok
0.0.1 (castorini/ragnarok), and the README of nuggetizer 0.0.5.
"""

import logging
from pathlib import Path
from typing import Any

import msgspec

from agent.runs.given_ranking import read_ranking
from agent.runs.run import describe_run
from agent.runs.trace import read_trace
from agent.runs.trec import format_trec_lines
from agent.tracks.oddities import locate_errors
from agent.tracks.run_files import encode_run
from indexes.storage.files import check_writable, write_atomically
from indexes.text.response_length import count_whitespace_words
from schemas.errors import InvalidInputError
from schemas.records import Hit, Passage, RunInfo, TurnResult

log = logging.getLogger("convagent")


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
    responses = [{"text": said.text, "citations": said.passage_ids} for said in turn.response.sentences]
    return _encode_line({"metadata": metadata, "responses": responses, "references": _list_references(turn)})


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
    return _encode_line(line)


def encode_candidates(turn: TurnResult, _info: RunInfo) -> bytes:
    """The line of a turn: its passages whose text was read."""
    scores = {hit.id: hit.score for hit in turn.hits}
    candidates = [{"docid": p.id, "score": scores.get(p.id, 0.0), "doc": _to_doc(p)} for p in turn.passages]
    query = {"qid": turn.turn_id, "text": turn.query.standalone}
    return _encode_line({"query": query, "candidates": candidates})


def encode_ranking(turn: TurnResult, info: RunInfo) -> bytes:
    """The lines of a turn's ranking, as trec_eval reads them."""
    return format_trec_lines(turn.turn_id, turn.hits, info.name).encode()


def _list_references(turn: TurnResult) -> list[str]:
    """The passages that were read for an answer or cited."""
    if not turn.responses:
        raise InvalidInputError("has no response", where=f"turn {turn.turn_id}")
    return list(dict.fromkeys((*(passage.id for passage in turn.passages), *turn.response.used)))


def _to_doc(passage: Passage) -> dict[str, str]:
    more = {"title": passage.title, "url": passage.url}
    return {"segment": passage.text} | {name: value for name, value in more.items() if value}


def _encode_line(line: dict[str, Any]) -> bytes:
    return msgspec.json.encode(line) + b"\n"


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
