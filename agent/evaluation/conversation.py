"""What no track measures: how a run changes in the course of a conversation, and how much of it is said again.

Search by depth; sentences, phrases and sources of earlier answers that come again; statements chosen again and again.
The topics' own replies, passages and statements are measured beside it, as far as there are any: people repeat, too.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import mean

from agent.evaluation.ptkb import rank_chosen
from agent.evaluation.scores import Scores, read_run_file
from agent.evaluation.search import measure_search, read_judgements, read_scores
from agent.evaluation.significance import Interval, bootstrap_interval
from agent.tracks.registry import load_edition
from agent.tracks.topic_files import read_topics
from indexes.text.sentences import split_sentences
from schemas.errors import InvalidInputError
from schemas.records import Topics

PHRASE = 4  # words of a phrase that may come again
OFTEN = 3  # turns at which a statement is chosen often
SEARCH = "nDCG@5"
LATER = f"{SEARCH}, 2nd less 1st half"
REPEATS = ("repeated sentences", "repeated phrases", "repeated sources")
CONCENTRATION, CHOSEN_OFTEN = "statement concentration", f"statements in {OFTEN}+ turns"
CANONICAL = "topics' own"
DEPTHS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 12), (13, 10_000))  # the first and the last turn of each group


@dataclass(frozen=True, slots=True)
class Said:
    """What one turn of a conversation came to."""

    turn_id: str
    text: str
    sources: tuple[str, ...] = ()  # passages that it cites
    statements: tuple[str, ...] = ()  # that were chosen for it


@dataclass(frozen=True, slots=True)
class Measured:
    """A mean with its interval by conversations, over so many turns or conversations."""

    interval: Interval
    count: int


@dataclass(frozen=True, slots=True)
class ConversationMeasures:
    """The measures of one run; those of turns and those of conversations, each by id, and their means."""

    name: str
    means: Mapping[str, Measured]
    values: Mapping[str, Mapping[str, float]]  # by measure, then by turn, or by conversation with "_" at its end


def evaluate_conversation(runs: Sequence[Path], topics: Path, qrels: Path | None) -> list[ConversationMeasures]:
    """The measures of each run, in the order given, and of the topics' own labels where there are any."""
    known = read_topics(topics)
    has_labels = qrels or any(labels.passage_ids for labels in known.labels.values())
    judged = read_judgements(qrels, None if qrels else topics) if has_labels else {}
    measured = []
    for run in runs:
        search = measure_search(run.name, read_scores(run), judged) if judged else None
        measured.append(measure_conversations(run.name, known, list(_read_said(run, known)), search))
    own = [
        Said(turn_id, labels.reply, labels.passage_ids, labels.statement_ids)
        for turn_id, labels in known.labels.items()
        if labels.reply or labels.statement_ids
    ]
    return [*measured, measure_conversations(CANONICAL, known, own)] if own else measured


def _read_said(run: Path, topics: Topics) -> Iterator[Said]:
    edition, turns = read_run_file(run)
    limits = load_edition(edition).limits
    chosen = rank_chosen(turns, topics) if limits.statements else {}
    for turn in turns:
        first = turn.responses[0] if turn.responses else None
        sources = tuple(hit.id for hit in first.used) if first else ()
        text = (first.text or "") if first else ""
        yield Said(turn.turn_id, text, sources, tuple(chosen.get(turn.turn_id, ())))


def measure_conversations(
    name: str, topics: Topics, said: Sequence[Said], search: Scores | None = None
) -> ConversationMeasures:
    """All measures. Raises `InvalidInputError` for a run that has none of the topics' turns."""
    by_turn = {each.turn_id: each for each in said}
    conversations = {
        topic.id: [by_turn[turn.id] for turn in topic.turns if turn.id in by_turn] for topic in topics.topics
    }
    if not any(conversations.values()):
        raise InvalidInputError("has none of the turns of the topics", where=name)
    values: dict[str, dict[str, float]] = {}
    for topic_id, answers in conversations.items():
        for place, answer in enumerate(answers[1:], start=1):
            for measure, value in measure_repeats(answer, answers[:place]).items():
                values.setdefault(measure, {})[answer.turn_id] = value
        for measure, value in measure_choices([answer.statements for answer in answers]).items():
            values.setdefault(measure, {})[f"{topic_id}_"] = value
    found = search.by_turn(SEARCH) if search else {}
    by_depth = {
        f"{SEARCH}, turn {depth}": {turn_id: found[turn_id] for turn_id in ids if turn_id in found}
        for depth, ids in group_by_depth(topics).items()
    }
    later = {SEARCH: found, LATER: compare_halves(topics, found)}
    values = {measure: each for measure, each in (by_depth | values | later).items() if each}
    means = {measure: Measured(bootstrap_interval(each), len(each)) for measure, each in values.items()}
    return ConversationMeasures(name, means, values)


def measure_repeats(answer: Said, earlier: Sequence[Said]) -> dict[str, float]:
    """The shares of an answer's sentences, phrases of four words and sources that earlier answers have, too."""
    before = [each.text for each in earlier]
    parts = (
        (_list_sentences(answer.text), {part for text in before for part in _list_sentences(text)}),
        (_list_phrases(answer.text), {part for text in before for part in _list_phrases(text)}),
        (list(answer.sources), {source for each in earlier for source in each.sources}),
    )
    return {
        name: sum(part in known for part in mine) / len(mine)
        for name, (mine, known) in zip(REPEATS, parts, strict=True)
        if mine
    }


def _list_sentences(text: str) -> list[str]:
    return [" ".join(_list_words(sentence)) for sentence in split_sentences(text)]


def _list_phrases(text: str) -> list[str]:
    words = _list_words(text)
    return [" ".join(words[start : start + PHRASE]) for start in range(len(words) - PHRASE + 1)]


def _list_words(text: str) -> list[str]:
    """The words in small letters, without punctuation around them."""
    stripped = ("".join(character for character in word if character.isalnum()) for word in text.lower().split())
    return [word for word in stripped if word]


def measure_choices(chosen: Sequence[Iterable[str]]) -> dict[str, float]:
    """How the statements chosen at the turns of a conversation gather on a few.

    Concentration: how likely two choices made at different turns name the same statement. And of the statements that
    were chosen at all, the share chosen at `OFTEN` turns or more. Nothing where there are no choices to compare.
    """
    turns = [set(each) for each in chosen]
    counts = Counter(statement for turn in turns for statement in turn)
    if not counts:
        return {}
    often = {CHOSEN_OFTEN: sum(count >= OFTEN for count in counts.values()) / len(counts)}
    pairs = sum(len(one) * len(other) for one, other in combinations(turns, 2))
    same = sum(count * (count - 1) // 2 for count in counts.values())
    return often | ({CONCENTRATION: same / pairs} if pairs else {})


def compare_halves(topics: Topics, values: Mapping[str, float]) -> dict[str, float]:
    """By how much the mean of each conversation's later half is above that of its earlier half."""
    differences = {}
    for topic in topics.topics:
        half = len(topic.turns) // 2
        halves = topic.turns[:half], topic.turns[len(topic.turns) - half :]  # a turn between them is in neither
        earlier, later = ([values[turn.id] for turn in turns if turn.id in values] for turns in halves)
        if earlier and later:
            differences[f"{topic.id}_"] = mean(later) - mean(earlier)
    return differences


def group_by_depth(topics: Topics) -> dict[str, tuple[str, ...]]:
    """The turns by how deep they stand in their conversation: "1", "4–5", "13 and on"."""
    groups: dict[str, tuple[str, ...]] = {}
    for first, last in DEPTHS:
        name = str(first) if first == last else f"{first}–{last}" if last < DEPTHS[-1][1] else f"{first} and on"
        if ids := tuple(turn.id for topic in topics.topics for turn in topic.turns[first - 1 : last]):
            groups[name] = ids
    return groups
