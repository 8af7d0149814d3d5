"""How good a run of SCAI-QReCC 2021 is: its rewrites, passages and answers, as the organisers' evaluator measures them.

Source: `code/evaluation-script/scai-qrecc21-evaluator.py` of 2021-07-20 in the organisers' repository, with the metrics
`rouge` and `squad_v2` of Hugging Face `datasets` that it calls. It has no ROUGE of answers; later tables of the
organisers do, and that is measured here like the rewrites. Where they print a ROUGE, it is the median of a thousand
resampled means, another one at each call; ours is the plain mean, which it comes close to.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from agent.evaluation.scores import Scores, ranking_measures, read_run_file, rouge_scorer
from agent.tracks.lenient_reading import check_unique, convert_to_shape, list_problems, locate_errors
from agent.tracks.qrecc import EDITION, Truth, turn_id
from agent.tracks.run_records import RunTurn
from indexes.storage.files import read_utf8
from schemas.errors import InvalidInputError
from schemas.records import Problem
from schemas.wire import decode

REWRITE, RR, EXACT, F1, ANSWER = "rewrite ROUGE1-R", "RR", "EM", "F1", "answer ROUGE1-R"
MEASURES = (REWRITE, RR, EXACT, F1, ANSWER)
NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
ARTICLE = re.compile(r"\b(?:a|an|the)\b")

Turns = Mapping[str, RunTurn]  # by turn id
Truths = Mapping[str, Truth]  # by turn id


def evaluate_qrecc(runs: Sequence[Path], truth: Path) -> list[Scores]:
    """The measures of each run, in the order given. Raises `InvalidInputError` for a truth or a run that is none."""
    known = read_truth(truth)
    return [measure_qrecc(run.name, _turns_by_id(run, known), known) for run in runs]


def measure_qrecc(name: str, turns: Turns, truth: Truths) -> Scores:
    """ROUGE-1 recall of rewrites, reciprocal rank, and the measures of answers.

    A part that the run left out in every turn is not measured. In a single turn, a rewrite or an answer that is not
    there is empty. Rewrites of first turns, which mostly need none, do not count.
    """
    rewrites = {id: turn.rewrite for id, turn in turns.items() if turn.rewrite is not None}
    answers = {id: text for id, turn in turns.items() if (text := turn.responses[0].text) is not None}
    ranked, has_answers = measure_rankings(turns, truth), any(truth[id].truth_answer for id in answers)
    found: dict[str, dict[str, float]] = {}
    for id, known in truth.items():
        rewritten = rewrites and known.turn_no > 1 and known.truth_rewrite
        recall = {REWRITE: unigram_recall(known.truth_rewrite, rewrites.get(id, ""))} if rewritten else {}
        found[id] = recall | ranked.get(id, {})
        if has_answers and known.truth_answer:
            found[id] |= answer_measures(known.truth_answer, answers.get(id, ""))
    return Scores(name, found, sum(id not in turns for id in truth))


def measure_rankings(turns: Turns, truth: Truths) -> dict[str, dict[str, float]]:
    """Reciprocal rank of the first true passage, by `ir_measures`; among equal scores the greater id comes first.

    Oddly, a turn for which the run has no ranking does not count, where one with an empty ranking has 0: a run gains by
    leaving out what it is bad at.
    """
    found = {id: turn.responses[0].passages for id, turn in turns.items()}
    ranked = {id: {p.id: p.score for p in passages} for id, passages in found.items() if passages is not None}
    judged = {
        id: dict.fromkeys(known.truth_passages, 1)
        for id, known in truth.items()
        if id in ranked and known.truth_passages
    }
    return ranking_measures([RR], ranked, judged)


def answer_measures(truth: str, text: str) -> dict[str, float]:
    """Exact match, F1 and ROUGE-1 recall of one answer."""
    right, given = answer_words(truth), answer_words(text)
    return {EXACT: float(right == given), F1: word_overlap(right, given), ANSWER: unigram_recall(truth, text)}


def answer_words(text: str) -> list[str]:
    """SQuAD's: lower case, ASCII punctuation deleted (`rice-bread` is one word), and `a`, `an`, `the` after that."""
    return ARTICLE.sub(" ", text.lower().translate(NO_PUNCTUATION)).split()


def word_overlap(right: Sequence[str], given: Sequence[str]) -> float:
    """F1 of words, each counted as often as it stands. Where a side has none, 1 if neither has any, else 0."""
    if not right or not given:
        return float(right == given)
    shared = (Counter(right) & Counter(given)).total()
    return 2 * shared / (len(right) + len(given))


def unigram_recall(truth: str, text: str) -> float:
    """ROUGE-1 recall without stemming: the share of the truth's words, as often as they stand there, in the text."""
    return float(rouge_scorer("rouge1").score(truth, text)["rouge1"].recall)


def read_truth(path: Path) -> Truths:
    """The truth by turn id. Raises `InvalidInputError` with every problem of shape, or every turn there twice."""
    data = read_utf8(path)
    with locate_errors(path):
        try:
            raw = decode(data)
        except msgspec.DecodeError as error:
            remedy = "Expected the organisers' ground-truth.json."
            raise InvalidInputError(f"is not JSON ({error})", remedy=remedy) from error
        rows: list[Truth] = convert_to_shape(raw, list[Truth], f"{EDITION.name} truth file")
        if not rows:
            raise InvalidInputError("holds no turn")
        check_unique(("turn", turn_id(row)) for row in rows)
    return {turn_id(row): row for row in rows}


def _turns_by_id(path: Path, truth: Truths) -> Turns:
    """What a run says by turn id. The organisers pass over turns without a truth."""
    edition, turns = read_run_file(path)
    if edition != EDITION.name:
        remedy = "`convagent eval search` and `convagent eval answers` measure runs of all editions."
        raise InvalidInputError(f"is a run of {edition}, not of {EDITION.name}", where=str(path), remedy=remedy)
    if problems := [Problem(f"turn {id}", "is not in the truth") for id in turns if id not in truth]:
        remedy = "Is it a run over the questions of this truth?"
        raise InvalidInputError(list_problems("has wrong turns", problems), where=str(path), remedy=remedy)
    return turns
