"""From the topics of any iKAT edition to ours: what a run may see on one side, labels on the other.

The wire types of all editions have the names that 2023 gave to what they say.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from agent.tracks.edition import Edition
from agent.tracks.oddities import check_unique
from schemas.records import Message, Statement, Topic, Topics, Turn, TurnLabels


class IkatEdition(Edition, Protocol):
    """What all iKAT editions have in common: how their topics are read."""

    def read_topics(self, raw: Sequence[Any]) -> Topics:
        """Topics and labels. Raises `InvalidInputError` listing topics or turns that are there twice."""
        numbers = [("topic", str(topic.number)) for topic in raw]
        check_unique(numbers + [("turn", _turn_id(topic, turn)) for topic in raw for turn in topic.turns])
        topics = tuple(Topic(str(topic.number), _read_statements(topic), tuple(_read_turns(topic))) for topic in raw)
        labels = {_turn_id(topic, turn): _read_labels(topic, turn) for topic in raw for turn in topic.turns}
        given = {_turn_id(topic, t): getattr(t, "sample_passage_ranking", ()) for topic in raw for t in topic.turns}
        rankings = {id: tuple(ranking) for id, ranking in given.items() if ranking}
        return Topics(self.name, topics, labels, rankings)


def _turn_id(topic: Any, turn: Any) -> str:
    return f"{topic.number}_{turn.turn_id}"


def _read_statements(topic: Any) -> tuple[Statement, ...]:
    if isinstance(topic.ptkb, Mapping):
        return tuple(Statement(id, text) for id, text in topic.ptkb.items())
    return tuple(Statement(str(n), text) for n, text in enumerate(topic.ptkb, start=1))


def _read_turns(topic: Any) -> Iterator[Turn]:
    """Each turn with the canonical conversation before it, as long as every earlier reply is given."""
    history: tuple[Message, ...] | None = ()
    for turn in topic.turns:
        yield Turn(_turn_id(topic, turn), turn.utterance, history)
        if history is None or not (turn.response or "").strip():
            history = None
        else:
            history = (*history, Message("user", turn.utterance), Message("assistant", str(turn.response)))


def _read_labels(topic: Any, turn: Any) -> TurnLabels:
    ids = {statement.text: statement.id for statement in _read_statements(topic)}
    return TurnLabels(
        human_rewrite=turn.resolved_utterance,
        reply=turn.response or "",
        statement_ids=tuple(ids.get(str(given), str(given)) for given in turn.ptkb_provenance),
        passage_ids=tuple(turn.response_provenance),
    )
