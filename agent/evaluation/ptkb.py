"""How well a run chooses personal statements, against relevance labels or the topics' own choice."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.evaluation.scores import Qrels, RankedScores, Scores, ranking_measures, read_qrels, read_run_file
from agent.tracks.registry import load_edition
from agent.tracks.run_records import RunStatement, RunTurn
from agent.tracks.topic_files import read_topics
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Topics

RANKING = ("nDCG@3", "P@3", "RR")
MEASURES = ("P", "R", "F1", *RANKING, "none")


def evaluate_ptkb(runs: Sequence[Path], qrels: Path | None, topics: Path | None) -> list[Scores]:
    """The measures of each run, in the order given.

    A run of iKAT 2025 gives its statements as texts, so that it takes the topics to know which they are; labels come
    from `qrels` if those are given, else from the topics.
    """
    known = read_topics(topics) if topics else None
    judged = read_qrels(qrels) if qrels else _gold_of_topics(known)
    if not judged:
        raise InvalidInputError("holds no judged turn", where=str(qrels or topics))
    return [measure_ptkb(run.name, _chosen_ids(run, known), judged) for run in runs]


def measure_ptkb(name: str, chosen: RankedScores, judged: Qrels) -> Scores:
    """The measures of chosen statements, by turn id; a turn for which none was chosen is there and empty.

    P, R, F1: of the set. A turn without a relevant statement counts 1 in all three where none was chosen, else 0; so
    F1 is the macro F1 of the track. nDCG@3, P@3, RR: of the order, for turns that have a relevant statement. `none`:
    the share of the other turns for which none was chosen.
    """
    order = ranking_measures(RANKING, chosen, judged)
    turns = {id: set_measures(chosen.get(id), found) | order.get(id, {}) for id, found in judged.items()}
    return Scores(name, turns, sum(id not in chosen for id in judged))


def set_measures(chosen: Mapping[str, float] | None, judged: Mapping[str, int]) -> dict[str, float]:
    """Precision, recall and F1 of one turn; None for a turn that is missing, which is always wrong."""
    relevant = {id for id, level in judged.items() if level > 0}
    if not relevant:
        right = float(chosen is not None and not chosen)
        return {"P": right, "R": right, "F1": right, "none": right}
    found = len(relevant & set(chosen or ()))
    if not found:
        return {"P": 0.0, "R": 0.0, "F1": 0.0}
    precision, recall = found / len(chosen or ()), found / len(relevant)
    return {"P": precision, "R": recall, "F1": 2 * precision * recall / (precision + recall)}


def _gold_of_topics(topics: Topics | None) -> Qrels:
    if topics is None:
        raise UsageError("--qrels or --topics is needed", remedy="Topics are judged by their own choice of statements.")
    own = {turn_id: dict.fromkeys(labels.statement_ids, 1) for turn_id, labels in topics.labels.items()}
    return own if any(own.values()) else {}  # topics without labels do not say that no statement matters


def _chosen_ids(path: Path, topics: Topics | None) -> RankedScores:
    """The first response's statements by turn id, scored by their place: the order is all that editions share."""
    edition, turns = read_run_file(path)
    if not load_edition(edition).limits.statements:
        raise UsageError(f"{path}: {edition} has no personal statements")
    ids = _statement_ids(topics)
    return {turn.turn_id: _rank_statements(turn, ids) for turn in turns}


def _statement_ids(topics: Topics | None) -> Mapping[str, Mapping[str, str]] | None:
    """Statement text to id, by turn id."""
    if topics is None:
        return None
    return {turn.id: {s.text: s.id for s in topic.ptkb} for topic in topics.topics for turn in topic.turns}


def _rank_statements(turn: RunTurn, ids: Mapping[str, Mapping[str, str]] | None) -> dict[str, float]:
    statements = turn.responses[0].statements if turn.responses else ()
    return {_statement_id(said, turn, ids): 1.0 / place for place, said in enumerate(statements, start=1)}


def _statement_id(said: RunStatement, turn: RunTurn, ids: Mapping[str, Mapping[str, str]] | None) -> str:
    if said.id is not None:
        return said.id
    if ids is None:
        raise UsageError("this run gives statements as texts", remedy="Give --topics too, to know which they are.")
    return ids.get(turn.turn_id, {}).get(said.text or "", said.text or "")
