"""How good the spans and the passages of RCD-2020 are. Topics that share one dialogue are judged together.

Sources: the track's page (Jaccard, mean average precision) and the script `equiv_treceval.sh` of its repository; that
spans are compared by BLEU over character 3-, 4- and 5-grams, longer ones weighing more, is the overview's (FIRE 2020).
How much they weigh is not published: here each weighs its length. Nothing is published about case and punctuation
either: the page compares 'fifth amendment' with text that has capitals, and one training reference ends in a full stop,
so neither counts here.
"""

import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.evaluation.scores import Qrels, Scores, ranking_measures, read_qrels, turns_with_relevant
from agent.evaluation.search import read_scores
from agent.tasks.rcd.spans import read_spans
from agent.tasks.rcd.topics import Group, RcdTopics, read_topics
from schemas.errors import InvalidInputError

SPAN_MEASURES = ("BLEU", "Jaccard")
PASSAGE_MEASURES = ("AP", "P@5", "RR")
LENGTHS = (3, 4, 5)  # of character n-grams; what each weighs is its share of their sum


def evaluate_spans(files: Sequence[Path], topics: Path) -> list[Scores]:
    """The measures of each file of spans, a group a turn. Raises `InvalidInputError` where a reference is missing."""
    known = read_topics(topics)
    lacking = [dialogue.id for dialogue in known.dialogues if dialogue.id not in known.references]
    if lacking:
        remedy = "Test topics have no <title>; spans can be judged on topics that have."
        raise InvalidInputError(f"no reference span: topic {', '.join(lacking)}", where=str(topics), remedy=remedy)
    return [measure_spans(file.name, read_spans(file, known), known) for file in files]


def measure_spans(name: str, spans: Mapping[str, str], topics: RcdTopics) -> Scores:
    """The references of a group are compared with its spans, both joined in the order of the topics."""
    groups = {
        _group_id(group): measure_span(_join_group(group, topics.references), _join_group(group, spans))
        for group in topics.groups()
    }
    return Scores(name, groups, sum(dialogue.id not in spans for dialogue in topics.dialogues))


def measure_span(reference: str, span: str) -> dict[str, float]:
    """Character BLEU and word-level Jaccard of one reference and one span."""
    wanted, found = _split_words(reference), _split_words(span)
    either = set(wanted) | set(found)
    jaccard = len(set(wanted) & set(found)) / len(either) if either else 0.0
    return {"BLEU": _bleu(" ".join(wanted), " ".join(found)), "Jaccard": jaccard}


def _bleu(reference: str, span: str) -> float:
    """BLEU (Papineni and others 2002) over characters: a weighted geometric mean of precisions, times the brevity
    penalty, unsmoothed. A length that neither text has is left out, so that a short span can be right.
    """
    if reference == span:
        return float(bool(span))
    precisions = {n: _ngram_precision(reference, span, n) for n in LENGTHS if n <= max(len(reference), len(span))}
    if not all(precisions.values()) or not precisions:
        return 0.0
    mean = sum(n * math.log(precision) for n, precision in precisions.items()) / sum(precisions)
    return math.exp(mean + min(0.0, 1 - len(reference) / len(span)))


def _ngram_precision(reference: str, span: str, n: int) -> float:
    """The share of a span's n-grams that the reference has, each as often as it has it."""
    wanted, found = (
        Counter(text[start : start + n] for start in range(len(text) - n + 1)) for text in (reference, span)
    )
    return (wanted & found).total() / found.total() if found else 0.0


def _split_words(text: str) -> list[str]:
    """Lower-case words without the punctuation around them."""
    stripped = (word.strip(string.punctuation + "“”‘’…—–") for word in text.lower().split())
    return [word for word in stripped if word]


def _group_id(group: Group) -> str:
    return "+".join(dialogue.id for dialogue in group)


def _join_group(group: Group, texts: Mapping[str, str]) -> str:
    return " ".join(texts.get(dialogue.id, "") for dialogue in group)


def evaluate_passages(runs: Sequence[Path], qrels: Path, topics: Path | None) -> list[Scores]:
    """The measures of each run, in any form that `--ranking` takes; labels are shared in groups if topics are given."""
    judged = read_qrels(qrels)
    known = read_topics(topics) if topics else None
    if known:
        _check_topics_known(judged, known, qrels)
        judged = share_labels(judged, known.groups())
    if not turns_with_relevant(judged):
        raise InvalidInputError("holds no relevant passage", where=str(qrels))
    return [_measure_passages(run, judged, known) for run in runs]


def share_labels(judged: Qrels, groups: Sequence[Group]) -> Qrels:
    """What is relevant to one topic of a group is relevant to each, with level 1 (the track's `equiv_treceval.sh`).

    The published script keeps the passages of one group when it goes on to the next. We take that for a mistake.
    """
    found: dict[str, dict[str, int]] = {}
    for group in groups:
        relevant = {id: 1 for topic in group for id, level in judged.get(topic.id, {}).items() if level > 0}
        found |= {topic.id: dict.fromkeys(judged.get(topic.id, {}), 0) | relevant for topic in group}
    return found


def _measure_passages(run: Path, judged: Qrels, known: RcdTopics | None) -> Scores:
    ranked = read_scores(run)
    if known:
        _check_topics_known(ranked, known, run)
    turns = ranking_measures(PASSAGE_MEASURES, ranked, judged)
    return Scores(run.name, turns, sum(not ranked.get(id) for id in turns))


def _check_topics_known(found: Mapping[str, object], known: RcdTopics, path: Path) -> None:
    unknown = sorted(set(found) - {dialogue.id for dialogue in known.dialogues})
    if unknown:
        raise InvalidInputError(f"has what is no topic of these: {', '.join(unknown)}", where=str(path))
