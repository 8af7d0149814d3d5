"""The name of whoever asks: "my" vaccination is that of the person who said what they are called."""

import re
from collections.abc import Iterable
from dataclasses import replace

from agent.turn.spans.leaning import leans_on_conversation
from schemas.records import Query, Statement

_ASKS_OF_ONESELF = re.compile(r"\b(?:I|my|me|mine|myself|ich|mein\w*|mir|mich)\b", re.IGNORECASE)
_NAME = re.compile(
    r"\b(?:(?i:my (?:full |first )?name is|my name['’]s|i am called|i['’]m called|call me|people call me|ich heiße"
    r"|mein name ist))\s+(?P<name>[A-ZÄÖÜ][\w'’-]*(?: [A-ZÄÖÜ][\w'’-]*)*)"
)


def name_person(query: Query, ptkb: Iterable[Statement]) -> Query:
    """The query with the person's name beside a question about themselves, where a statement tells it."""
    names = (found["name"] for statement in ptkb if (found := _NAME.search(statement.text)))
    asked = query.utterance
    if query.earlier_utterances and leans_on_conversation(asked):
        asked = f"{query.earlier_utterances[-1]} {asked}"
    name = next(names, "") if _ASKS_OF_ONESELF.search(asked) else ""
    if not name:
        return query
    rewrite = f"{query.rewrite} ({name})" if query.rewrite else ""
    return replace(query, rewrite=rewrite, context=(*query.context, name))
