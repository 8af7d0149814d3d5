"""What no track measures: how a run changes in the course of a conversation, and how much of it is said again.

Search by depth; sentences, sources and statements of earlier answers that come again. The topics' own replies, passages
and statements are measured beside it, as far as there are any: people repeat, too.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.evaluation.ptkb import rank_chosen
from agent.evaluation.scores import Scores, read_run_file
from agent.evaluation.search import measure_search, read_judgements, read_scores
from agent.tracks.registry import load_edition
from agent.tracks.topic_files import read_topics
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError
from schemas.records import Topics

SEARCH = "nDCG@5"
REPEATS = ("repeated sentences", "repeated sources", "repeated statements")
CANONICAL = "topics' own"
DEPTHS = {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4–5": (4, 5), "6–8": (6, 8), "9–12": (9, 12), "13 on": (13, 10_000)}
MEASURES = (SEARCH, *(f"{SEARCH}, turn {depth}" for depth in DEPTHS), *REPEATS)


@dataclass(frozen=True, slots=True)
class Said:
    """What one turn of a conversation came to."""

    turn_id: str
    text: str
    sources: tuple[str, ...] = ()  # passages that it cites
    statements: tuple[str, ...] = ()  # that were chosen for it


def evaluate_conversation(runs: Sequence[Path], topics: Path, qrels: Path | None) -> list[Scores]:
    """The measures of each run, in the order given, and of the topics' own labels where there are any."""
    known = read_topics(topics)
    has_labels = qrels or any(labels.passage_ids for labels in known.labels.values())
    judged = read_judgements(qrels, None if qrels else topics) if has_labels else {}
    measured = []
    for run in runs:
        search = measure_search(run.name, read_scores(run), judged).by_turn(SEARCH) if judged else {}
        measured.append(measure_conversations(run.name, known, list(_read_said(run, known)), search))
    own = [
        Said(turn_id, labels.reply, labels.passage_ids, labels.statement_ids)
        for turn_id, labels in known.labels.items()
        if labels.reply or labels.statement_ids
    ]
    return [*measured, measure_conversations(CANONICAL, known, own, {})] if own else measured


def _read_said(run: Path, topics: Topics) -> Iterator[Said]:
    edition, turns = read_run_file(run)
    chosen = rank_chosen(turns, topics) if load_edition(edition).limits.statements else {}
    for turn in turns:
        first = turn.responses[0] if turn.responses else None
        sources = tuple(hit.id for hit in first.used) if first else ()
        text = (first.text or "") if first else ""
        yield Said(turn.turn_id, text, sources, tuple(chosen.get(turn.turn_id, ())))


def measure_conversations(name: str, topics: Topics, said: Sequence[Said], search: Mapping[str, float]) -> Scores:
    """All measures. Raises `InvalidInputError` for a run that has none of the topics' turns."""
    by_turn = {each.turn_id: each for each in said}
    turns: dict[str, dict[str, float]] = {}
    for topic in topics.topics:
        answers: list[Said] = []
        for place, turn in enumerate(topic.turns, start=1):
            found = turns[turn.id] = {}
            if turn.id in by_turn:
                found |= measure_repeats(by_turn[turn.id], answers) if answers else {}
                answers.append(by_turn[turn.id])
            if turn.id in search:
                depth = next(depth for depth, (first, last) in DEPTHS.items() if first <= place <= last)
                found |= dict.fromkeys((SEARCH, f"{SEARCH}, turn {depth}"), search[turn.id])
    if not turns.keys() & by_turn.keys():
        raise InvalidInputError("has none of the turns of the topics", where=name)
    return Scores(name, turns, sum(turn_id not in by_turn for turn_id in turns))


def measure_repeats(answer: Said, earlier: Sequence[Said]) -> dict[str, float]:
    """The shares of an answer's sentences, sources and statements that earlier answers have, too."""
    found = {}
    for name, mine, known in (
        (REPEATS[0], _list_sentences(answer.text), [part for each in earlier for part in _list_sentences(each.text)]),
        (REPEATS[1], answer.sources, [part for each in earlier for part in each.sources]),
        (REPEATS[2], answer.statements, [part for each in earlier for part in each.statements]),
    ):
        if mine:
            found[name] = sum(part in known for part in mine) / len(mine)
    return found


def _list_sentences(text: str) -> list[str]:
    """In small letters and without punctuation."""
    return ["".join(c for c in sentence.lower() if c.isalnum() or c.isspace()) for sentence in split_sentences(text)]
