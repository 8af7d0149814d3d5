"""How well a run chooses personal statements, against relevance labels or the topics' own choice."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from agent.evaluation.scores import (
    Qrels,
    RankedScores,
    Scores,
    check_turns_shared,
    ranking_measures,
    read_qrels,
    read_run_file,
    turns_with_relevant,
)
from agent.tracks.files import read_topics
from agent.tracks.registry import load_edition
from agent.tracks.run_records import RunTurn
from schemas.errors import InvalidInputError, UsageError
from schemas.records import Topics

RANKING = ("AP", "nDCG", "nDCG@3", "P@3", "RR")
MEASURES = ("P", "R", "F1", *RANKING, "none")
LABEL_OF_2025 = re.compile(r"ptkb-(?P<topic>.+)-(?P<place>\d+)", re.ASCII)  # the place in the topic's list, from 0


def evaluate_ptkb(runs: Sequence[Path], qrels: Path | None, topics: Path | None) -> list[Scores]:
    """The measures of each run, in the order given.

    A run of iKAT 2025 gives its statements as texts, so that it takes the topics to know which they are; labels come
    from `qrels` if those are given, else from the topics. Raises `InvalidInputError` for labels of which none is of a
    turn of the runs, or of a statement of the topics.
    """
    known = read_topics(topics) if topics else None
    judged = read_statement_labels(qrels) if qrels else labels_of_topics(known)
    if not judged:
        raise InvalidInputError("holds no judged turn", where=str(qrels or topics))
    chosen: dict[Path, RankedScores] = {}
    for run in runs:
        edition, turns = read_run_file(run)
        if not load_edition(edition).rules.statements:
            raise UsageError(f"{run}: {edition} has no personal statements")
        chosen[run] = rank_chosen(turns.values(), known)
        check_turns_shared(run, chosen[run], judged)
    if qrels and known:
        _check_labels_known(qrels, judged, known)
    return [measure_ptkb(run.name, chosen[run], judged) for run in runs]


def read_statement_labels(path: Path) -> Qrels:
    """Labels of statements with ids as topics have them: `ptkb-1-1-15` (2025) is the sixteenth of topic 1-1, `16`."""
    return {
        turn_id: {_to_statement_id(id, turn_id): level for id, level in labels.items()}
        for turn_id, labels in read_qrels(path).items()
    }


def _to_statement_id(label: str, turn_id: str) -> str:
    found = LABEL_OF_2025.fullmatch(label)
    ours = found and found["topic"] == turn_id.rpartition("_")[0]
    return str(int(found["place"]) + 1) if found and ours else label


def _check_labels_known(qrels: Path, judged: Qrels, topics: Topics) -> None:
    """Raises `InvalidInputError` where no label is of a statement that a topic has."""
    known = {turn.id: {s.id for s in topic.ptkb} for topic in topics.topics for turn in topic.turns}
    labels = [(turn_id, id) for turn_id, found in judged.items() for id in found]
    if not any(id in known.get(turn_id, ()) for turn_id, id in labels):
        what = "no label is of a statement of the topics: the labels have turn {}, statement {}".format(*labels[0])
        raise InvalidInputError(what, where=str(qrels), remedy="Are these the labels of another year?")


def measure_ptkb(name: str, chosen: RankedScores, judged: Qrels) -> Scores:
    """The measures of chosen statements, by turn id; a turn for which none was chosen is there and empty.

    P, R, F1: of the set. A turn without a relevant statement counts 1 in all three where none was chosen, else 0; so
    F1 is the macro F1 of the track. AP, nDCG, nDCG@3, P@3, RR: of the order, for turns that have a relevant statement.
    `none`: the share of the other turns for which none was chosen.
    """
    order = ranking_measures(RANKING, chosen, turns_with_relevant(judged))
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


def labels_of_topics(topics: Topics | None) -> Qrels:
    """The topics' own choice of statements, by turn id; empty where they were published without labels."""
    if topics is None:
        raise UsageError("--qrels or --topics is needed", remedy="Topics are judged by their own choice of statements.")
    own = {turn_id: dict.fromkeys(labels.statement_ids, 1) for turn_id, labels in topics.labels.items()}
    return own if any(own.values()) else {}  # topics without labels do not say that no statement matters


def rank_chosen(turns: Iterable[RunTurn], topics: Topics | None) -> RankedScores:
    """The ids of the first response's statements by turn id, scored by their place: the order is all editions share.

    Raises `UsageError` for a run of iKAT 2025, which gives texts, without topics.
    """
    given = topics.topics if topics else ()
    known = {turn.id: {s.text: s.id for s in topic.ptkb} for topic in given for turn in topic.turns}
    ranked: dict[str, dict[str, float]] = {}
    for turn in turns:
        statements = turn.responses[0].statements
        if topics is None and any(said.id is None for said in statements):
            raise UsageError("this run gives statements as texts", remedy="Give --topics too, to know which they are.")
        ids = known.get(turn.turn_id, {})
        found = (ids.get(said.text or "", said.text or "") if said.id is None else said.id for said in statements)
        ranked[turn.turn_id] = {id: 1.0 / place for place, id in enumerate(found, start=1)}
    return ranked
