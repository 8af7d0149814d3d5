"""What kind of turn a turn is: where it stands in its conversation, and what it asks of a system."""

from collections.abc import Mapping

from agent.evaluation.scores import Qrels
from indexes.text.analysis import extract_stems
from schemas.records import Topic, Topics

FIRST, FOLLOW_UP, SWITCH, PERSONAL = "first", "follow-up", "topic switch", "needs a statement"
KINDS = (FIRST, FOLLOW_UP, SWITCH, PERSONAL)
FEWEST_WORDS = 3  # that say something, in a turn that can open a subject
SHARED_WITH_REPLY = 1 / 3  # of its words, at most, in a turn that leaves a subject
DEPTHS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 12), (13, 10_000))  # the first and the last turn of each group


def find_kinds(topics: Topics, statement_labels: Qrels) -> Mapping[str, tuple[str, ...]]:
    """The kinds of every turn, by its id. Every turn is one of the first three; it may need a statement besides."""
    kinds: dict[str, tuple[str, ...]] = {}
    for topic in topics.topics:
        switches = set(_find_switches(topic, topics))
        for place, turn in enumerate(topic.turns):
            position = FIRST if place == 0 else SWITCH if turn.id in switches else FOLLOW_UP
            needs = any(level > 0 for level in statement_labels.get(turn.id, {}).values())
            kinds[turn.id] = (position, PERSONAL) if needs else (position,)
    return kinds


def _find_switches(topic: Topic, topics: Topics) -> list[str]:
    """The turns that leave what was spoken of, by their words alone: topics files do not say it.

    Such a turn, as it stands alone, shares no word with the one before and few with the reply that it follows.
    """
    found: list[str] = []
    before: set[str] = set()
    for place, turn in enumerate(topic.turns):
        labels = topics.labels.get(turn.id)
        words = set(extract_stems(labels.human_rewrite if labels and labels.human_rewrite else turn.utterance))
        heard = set(extract_stems(turn.history[-1].text)) if turn.history else set()
        few = len(words & heard) < SHARED_WITH_REPLY * len(words)
        if place and len(words) >= FEWEST_WORDS and few and not words & before:
            found.append(turn.id)
        before = words
    return found


def group_by_depth(topics: Topics) -> dict[str, tuple[str, ...]]:
    """The turns by how deep they stand in their conversation: "1", "4-5", "13 and on"."""
    groups: dict[str, list[str]] = {}
    for topic in topics.topics:
        for number, turn in enumerate(topic.turns, start=1):
            groups.setdefault(_name_depth(number), []).append(turn.id)
    names = [_name_depth(first) for first, _ in DEPTHS]
    return {name: tuple(groups[name]) for name in names if name in groups}


def _name_depth(number: int) -> str:
    first, last = next(group for group in DEPTHS if number <= group[1])
    if first == last:
        return str(first)
    return f"{first}–{last}" if last < DEPTHS[-1][1] else f"{first} and on"
