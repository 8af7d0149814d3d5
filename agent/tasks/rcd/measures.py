"""How good the spans and the passages of RCD-2020 are. Topics that share a scene are judged together.

Which do is told by the organisers' file of them, or else by the text of their dialogues, which must be the same.

Sources: the track's page (Jaccard, mean average precision) and the script `equiv_treceval.sh` of its repository; that
spans are compared by BLEU over character 3-, 4- and 5-grams, longer ones weighing more, is the overview's (FIRE 2020).
How much they weigh is not published: here each weighs its length. Nothing is published about case and punctuation
either: the page compares 'fifth amendment' with text that has capitals, and one training reference ends in a full stop,
so neither counts here.

Of the script two versions are published. In one, passages of a scene stay relevant for all scenes after it; the other,
which is followed here, mends that and lets the first topic of a scene stand for it.
"""

import logging
import math
import string
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path

from agent.evaluation.scores import (
    Qrels,
    RankedScores,
    Scores,
    ranking_measures,
    read_qrels,
    turns_with_relevant,
)
from agent.runs.given_ranking import read_ranking
from agent.tasks.rcd.spans import read_spans
from agent.tasks.rcd.topics import RcdTopics, read_topics
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError

log = logging.getLogger("convagent")
Scene = tuple[str, ...]  # topic numbers


def read_equivalence(path: Path) -> tuple[Scene, ...]:
    """The scenes of a file, whose lines are topic numbers between white space or commas, or comments after `#`.

    Lines with a number in common are one scene, and a topic in no line stands alone. Raises `InvalidInputError` for a
    file without a number.
    """
    lines = read_utf8(path).decode("utf-8", "replace").splitlines()
    listed = [line.replace(",", " ").split() for line in lines if not line.lstrip().startswith("#")]
    if not any(listed):
        raise InvalidInputError("holds no topic number", where=str(path), remedy="A line is `27 28` or `27,28`.")
    scene_of: dict[str, Scene] = {}
    for numbers in listed:
        met = dict.fromkeys(scene_of[number] for number in numbers if number in scene_of)
        scene = tuple(dict.fromkeys((*chain.from_iterable(met), *numbers)))
        scene_of |= dict.fromkeys(scene, scene)
    return tuple(dict.fromkeys(scene_of.values()))


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
    scenes = _group_topics(known, equivalence)
    return [measure_spans(file.name, read_spans(file, known), known, scenes) for file in files]


def measure_spans(name: str, spans: Mapping[str, str], topics: RcdTopics, scenes: Sequence[Scene] = ()) -> Scores:
    """The references of a scene (by default a dialogue) are compared with its spans, in the order of the topics."""
    found = {
        "+".join(scene): measure_span(_join_scene(scene, topics.references), _join_scene(scene, spans))
        for scene in scenes or _group_topics(topics, None)
    }
    return Scores(name, found, sum(dialogue.id not in spans for dialogue in topics.dialogues))


def _group_topics(topics: RcdTopics, equivalence: Path | None) -> list[Scene]:
    """The topics of a file that share a scene together, in their own order; every other one alone."""
    if equivalence is None:
        return [tuple(dialogue.id for dialogue in group) for group in topics.groups()]
    scenes, numbers = read_equivalence(equivalence), [dialogue.id for dialogue in topics.dialogues]
    _check_topics_known(list(chain.from_iterable(scenes)), numbers, equivalence)
    scene_of = {number: scene for scene in scenes for number in scene}
    found: dict[Scene, list[str]] = {}
    for number in numbers:
        found.setdefault(scene_of.get(number, (number,)), []).append(number)
    return [tuple(group) for group in found.values()]


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


def _join_scene(scene: Scene, texts: Mapping[str, str]) -> str:
    return " ".join(texts.get(number, "") for number in scene)


def evaluate_passages(
    runs: Sequence[Path], qrels: Path, topics: Path | None, equivalence: Path | None = None
) -> list[Scores]:
    """The measures of each run, in any form that `--ranking` takes, a scene a turn: those of `equiv_treceval.sh`.

    Without topics every number that has labels is a topic. Raises `InvalidInputError` where nothing is relevant.
    """
    judged = read_qrels(qrels)
    known = read_topics(topics) if topics else None
    scenes = _find_scenes(list(judged), known, equivalence)
    topics_here = {number for scene in scenes.values() for number in scene}
    _check_topics_known(judged, topics_here, qrels)
    merged = _merge_labels(judged, scenes)
    if not merged:
        raise InvalidInputError("holds no relevant passage", where=str(qrels))
    ranked = {run: read_ranking(run).scores for run in runs}
    for run, found in ranked.items():
        _check_topics_known(found, topics_here, run)
    return [_measure_passages(run.name, ranked[run], merged) for run in runs]


def _find_scenes(labelled: Sequence[str], known: RcdTopics | None, equivalence: Path | None) -> dict[str, Scene]:
    """The scenes that have a topic here, each whole, under its first topic that is one here.

    Without topics those are here that have labels, and those that share a scene with one of them.
    """
    scenes = read_equivalence(equivalence) if equivalence else _group_topics(known, None) if known else ()
    scene_of = {number: scene for scene in scenes for number in scene}
    met = chain(labelled, *(scene for scene in scenes if not {*scene}.isdisjoint(labelled)))
    numbers = [dialogue.id for dialogue in known.dialogues] if known else list(dict.fromkeys(met))
    if equivalence:
        _check_topics_known(list(scene_of), numbers, equivalence)
    found = dict.fromkeys(scene_of.get(number, (number,)) for number in numbers)
    return {next(number for number in scene if number in numbers): scene for scene in found}


def _merge_labels(judged: Qrels, scenes: Mapping[str, Scene]) -> Qrels:
    """What is relevant to any topic of a scene, with level 1, under the one topic that stands for the scene.

    A scene without anything relevant is left out, as by the track's `equiv_treceval.sh`.
    """
    merged = {
        number: {id: 1 for topic in scene for id, level in judged.get(topic, {}).items() if level > 0}
        for number, scene in scenes.items()
    }
    return turns_with_relevant(merged)


def _measure_passages(name: str, ranked: RankedScores, judged: Qrels) -> Scores:
    """As by trec_eval without `-c`, which the script calls: a topic that the run lacks has no measures."""
    turns = ranking_measures(PASSAGE_MEASURES, ranked, {id: judged[id] for id in judged if ranked.get(id)})
    return Scores(name, {id: turns.get(id, {}) for id in judged}, len(judged) - len(turns))


def _check_topics_known(found: Iterable[str], topics: Container[str], path: Path) -> None:
    """Raise `InvalidInputError` where a file has none of the topics; warn where it has others, too."""
    numbers = list(found)
    unknown = sorted(id for id in numbers if id not in topics)
    if unknown and len(unknown) == len(numbers):
        raise InvalidInputError(f"has none of these topics: it has {unknown[0]!r}", where=str(path))
    if unknown:
        log.warning("%s: %d of %d topics are none of these: %s", path, len(unknown), len(numbers), unknown[0])
