"""What a manual run gets from the labels: human rewrites and gold statements of each turn and of those before it."""

import logging
from collections.abc import Mapping
from dataclasses import replace

from schemas.errors import list_with_limit
from schemas.records import Message, Provided, ScoredStatement, Topic, Topics, Turn

log = logging.getLogger("convagent")
GOLD_SCORE = 1.0  # the score of a statement that a person chose


def provide_labels(topics: Topics) -> tuple[Topics, Mapping[str, Provided]]:
    """The topics with the earlier turns as a person rewrote them, and what each turn itself is given.

    An earlier utterance becomes its human rewrite with its gold statements. A turn whose rewrite is empty, of which the
    organisers' own files have some, is asked as it was uttered; that is said once.
    """
    missing = [id for id, labels in topics.labels.items() if not labels.human_rewrite.strip()]
    if missing:
        listed = ", ".join(list_with_limit(missing, 3, "and {} more"))
        log.warning("no human rewrite of turn %s: the utterance is taken as it is", listed)
    given = {turn.id: _provide_turn(topic, turn, topics) for topic in topics.topics for turn in topic.turns}
    rewritten = tuple(_rewrite_history(topic, given) for topic in topics.topics)
    return replace(topics, topics=rewritten), given


def _provide_turn(topic: Topic, turn: Turn, topics: Topics) -> Provided:
    labels = topics.labels[turn.id]
    statements = {statement.id: statement for statement in topic.ptkb}
    gold = tuple(
        ScoredStatement(statements[id], GOLD_SCORE) for id in dict.fromkeys(labels.statement_ids) if id in statements
    )
    return Provided(labels.human_rewrite.strip() or turn.utterance, gold)


def _rewrite_history(topic: Topic, given: Mapping[str, Provided]) -> Topic:
    rewritten = [" ".join([given[t.id].human_rewrite, *_statement_texts(given[t.id])]) for t in topic.turns]
    turns = []
    for number, turn in enumerate(topic.turns):
        history = turn.history
        if history is not None and len(history) == 2 * number:  # one utterance and one reply for every earlier turn
            history = tuple(
                message if n % 2 else Message("user", rewritten[n // 2]) for n, message in enumerate(history)
            )
        turns.append(replace(turn, history=history))
    return replace(topic, turns=tuple(turns))


def _statement_texts(given: Provided) -> list[str]:
    return [chosen.statement.text for chosen in given.statements or ()]
