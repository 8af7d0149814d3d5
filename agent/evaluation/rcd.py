"""How good spans and passages of RCD-2020 are. Topics of one scene are judged together.

Sources: the track's page (Jaccard, mean average precision) and the script `equiv_treceval.sh` of its repository; that
spans are compared by BLEU over character 3-, 4- and 5-grams, longer ones weighing more, is the overview's (FIRE 2020).
How much they weigh is not published: here each weighs its length. Nothing is published about case and punctuation
either: the page compares 'fifth amendment' with text that has capitals, and one training reference ends in a full stop,
so neither counts here.

Of the script two versions are published. In one, passages of a scene stay relevant for all scenes after it; the other,
which is followed here, mends that and lets the first topic of a scene stand for it.
"""

import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.evaluation.scores import Scores, check_turns_shared, ranking_measures, read_qrels
from agent.runs.given_ranking import read_ranking
from agent.tasks.rcd import Group, RcdTopics, read_spans, read_topics
from schemas.errors import InvalidInputError

SPAN_MEASURES = ("BLEU", "Jaccard")
PASSAGE_MEASURES = ("AP", "P@5", "RR")
LENGTHS = (3, 4, 5)  # of character n-grams; what each weighs is its share of their sum


def evaluate_spans(files: Sequence[Path], topics: Path, equivalence: Path | None = None) -> list[Scores]:
    """The measures of each file of spans, a group a turn. Raises `InvalidInputError` where a reference is missing."""
    known = read_topics(topics)
    lacking = [dialogue.id for dialogue in known.dialogues if dialogue.id not in known.references]
    if lacking:
        remedy = "Test topics have no <title>; spans can be judged on topics that have."
        raise InvalidInputError(f"no reference span: topic {', '.join(lacking)}", where=str(topics), remedy=remedy)
    groups = known.groups(equivalence)
    return [measure_spans(file.name, read_spans(file, known), known, groups) for file in files]


def measure_spans(name: str, spans: Mapping[str, str], topics: RcdTopics, groups: Sequence[Group] = ()) -> Scores:
    """The references of a scene are compared with its spans, in the order of the topics."""
    scenes = [[dialogue.id for dialogue in group] for group in groups or topics.groups()]
    joined = [[" ".join(texts.get(id, "") for id in ids) for texts in (topics.references, spans)] for ids in scenes]
    found = {"+".join(ids): measure_span(*texts) for ids, texts in zip(scenes, joined, strict=True)}
    return Scores(name, found, sum(dialogue.id not in spans for dialogue in topics.dialogues))


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


def evaluate_passages(
    runs: Sequence[Path], qrels: Path, topics: Path | None, equivalence: Path | None = None
) -> list[Scores]:
    """The measures of each run, in any form that `--ranking` takes, a scene a turn: those of `equiv_treceval.sh`.

    What is relevant to any topic of a scene is relevant, with level 1, to its first topic, which stands for it. A scene
    without anything relevant is left out, and without topics every number that has labels is a scene. Raises
    `InvalidInputError` where nothing is relevant, and for a run of other topics.
    """
    judged = read_qrels(qrels)
    groups = read_topics(topics).groups(equivalence) if topics else ()
    scenes = {group[0].id: [dialogue.id for dialogue in group] for group in groups} or {id: [id] for id in judged}
    relevant = {topic: [id for id, level in found.items() if level > 0] for topic, found in judged.items()}
    merged = {number: {id: 1 for topic in scene for id in relevant.get(topic, ())} for number, scene in scenes.items()}
    merged = {number: found for number, found in merged.items() if found}
    if not merged:
        raise InvalidInputError("holds no relevant passage of these topics", where=str(qrels))
    scores = []
    for run in runs:  # as by trec_eval without `-c`: a topic that the run lacks has no measures
        found = read_ranking(run).scores
        check_turns_shared(run, found, scenes)
        turns = ranking_measures(PASSAGE_MEASURES, found, {id: merged[id] for id in merged if found.get(id)})
        scores.append(Scores(run.name, {id: turns.get(id, {}) for id in merged}, len(merged) - len(turns)))
    return scores
