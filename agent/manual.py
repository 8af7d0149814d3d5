"""What a manual run is handed: human rewrites and gold statements, of the current turn and of those before it."""

from collections.abc import Mapping
from dataclasses import replace

from schemas.errors import InvalidInputError
from schemas.records import Chosen, Given, Message, Topic, Topics, Turn

GOLD = 1.0  # the score of a statement that a person chose


def manual(topics: Topics) -> tuple[Topics, Mapping[str, Given]]:
    """The topics with every earlier turn as a person spells it out, and what each current turn is handed.

    An earlier utterance becomes its human rewrite with its gold statements. Raises `InvalidInputError` naming the
    turns that have no human rewrite.
    """
    missing = [id for id, labels in topics.labels.items() if not labels.resolved.strip()]
    if missing:
        listed = ", ".join(missing[:20]) + (f" and {len(missing) - 20} more" if len(missing) > 20 else "")
        remedy = "A manual run needs the topics with their labels; `--mode automatic` does not."
        raise InvalidInputError(f"no human rewrite of turn {listed}", remedy=remedy)
    given = {turn.id: _given(topic, turn, topics) for topic in topics.topics for turn in topic.turns}
    spelled_out = tuple(_spelled_out(topic, given) for topic in topics.topics)
    return replace(topics, topics=spelled_out), given


def _given(topic: Topic, turn: Turn, topics: Topics) -> Given:
    labels = topics.labels[turn.id]
    statements = {statement.id: statement for statement in topic.ptkb}
    gold = tuple(Chosen(statements[id], GOLD) for id in dict.fromkeys(labels.statement_ids) if id in statements)
    return Given(labels.resolved, gold)


def _spelled_out(topic: Topic, given: Mapping[str, Given]) -> Topic:
    said = [" ".join([given[t.id].resolved, *_texts(given[t.id])]) for t in topic.turns]
    turns = []
    for number, turn in enumerate(topic.turns):
        heard = turn.heard
        if heard is not None and len(heard) == 2 * number:  # one utterance and one reply for every earlier turn
            heard = tuple(message if n % 2 else Message("user", said[n // 2]) for n, message in enumerate(heard))
        turns.append(replace(turn, heard=heard))
    return replace(topic, turns=tuple(turns))


def _texts(given: Given) -> list[str]:
    return [chosen.statement.text for chosen in given.statements or ()]
