"""How well it is told that passages hold no answer: what an answer says, and what its score would allow."""

from collections.abc import Sequence
from statistics import mean

from agent.turn.quote_ranking import judge_quotes
from agent.turn.quotes import find_quotes
from indexes.ranking.vectors import Embedder
from schemas.records import Passage, Query
from schemas.tuning import Tuning

MAX_WRONGLY = 0.06  # share of what has an answer that may be told to have none
NOTHING_TO_QUOTE = -1.0


def judge_passages(passages: Sequence[Passage], query: Query, embedder: Embedder, tuning: Tuning) -> float:
    """What an answer decides by whether the passages hold one: the higher, the surer."""
    quotes = find_quotes(passages, tuning.answer)
    if not quotes:
        return NOTHING_TO_QUOTE
    return judge_quotes(quotes, query, embedder, tuning)[1]


def share_told(answerable: Sequence[float], unanswerable: Sequence[float]) -> tuple[float, float]:
    """The best threshold of a score by which at most `MAX_WRONGLY` of the answerable are told: what it tells.

    Shares of the unanswerable, and of the answerable, below it.
    """
    at = sorted(answerable)[int(MAX_WRONGLY * len(answerable))]
    return mean(score < at for score in unanswerable), mean(score < at for score in answerable)


def area_under_curve(answerable: Sequence[float], unanswerable: Sequence[float]) -> float:
    """How often something answerable has a higher score than something that is not; a tie counts half."""
    from scipy.stats import mannwhitneyu

    return float(mannwhitneyu(answerable, unanswerable).statistic) / (len(answerable) * len(unanswerable))
