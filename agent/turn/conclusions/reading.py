"""What is read for a comparison: the best passages of each side, and not only those that name both."""

from collections.abc import Callable
from itertools import chain, zip_longest

from agent.turn.conclusions.sides import find_sides
from schemas.records import Hit, Query


def put_sides_first(query: Query, hits: tuple[Hit, ...], search: Callable[[Query], tuple[Hit, ...]]) -> tuple[Hit, ...]:
    """The hits in the order they are read in: for a question with sides, the best of each side in turn."""
    sides = find_sides(query.utterance, query.earlier_utterances)
    if sides is None:
        return hits
    found = {hit.id: hit for hit in hits}
    of_each = [[hit.id for hit in search(Query(asked)) if hit.id in found] for asked in sides.questions]
    alternating = (id for id in chain.from_iterable(zip_longest(*of_each)) if id)
    return tuple(found[id] for id in dict.fromkeys((*alternating, *found)))
