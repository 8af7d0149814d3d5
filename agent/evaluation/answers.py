"""How good a run's answers are: close to the canonical reply, supported by the passages they cite, and how long.

A sentence is supported as in `agent/turn/attribution.py`: it must be an excerpt. So a system that says the same
in other words is measured as worse than it is.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from agent.evaluation.scores import Scores, read_run_file, rouge_scorer
from agent.runs.evidence import PassageTexts, find_texts
from agent.tracks.files import read_topics
from agent.tracks.registry import load_edition
from agent.tracks.run_records import RunTurn
from agent.turn.attribution import supporting_ids
from agent.turn.interface_sentences import starts_with_not_found, strip_not_found
from indexes.sharding.sharded_index import open_index
from indexes.text.response_length import count_whitespace_words
from indexes.text.units import split_units
from schemas.errors import InvalidInputError, MissingError, list_with_limit
from schemas.records import Passage

ROUGE = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
MEASURES = (*ROUGE.values(), "words", "supported", "wholly supported", "citations right", "answered")


def evaluate_answers(
    runs: Sequence[Path], topics: Path, passages: Sequence[Path] = (), index: Path | None = None
) -> list[Scores]:
    """The measures of each run's first responses.

    Raises `InvalidInputError` listing cited passages without a text: in the run, passage files and an index.
    """
    replies = {turn_id: known.reply for turn_id, known in read_topics(topics).labels.items()}
    scores = []
    for run in runs:
        edition, turns = read_run_file(run)
        texts = None
        if load_edition(edition).rules.cites:
            cited, texts = find_cited(turns.values(), passages, index)
            if missing := sorted(id for id in cited if texts.find(id) is None):
                what = f"cites passages without a text: {', '.join(list_with_limit(missing, 10))}"
                remedy = "Give the passages with --passages FILE, or an index with --index DIR."
                kind = InvalidInputError if passages or index else MissingError
                raise kind(what, where=str(run), remedy=remedy)
        measured = {id: measure_turn(turns.get(id), reply, texts) for id, reply in replies.items()}
        scores.append(Scores(run.name, measured, sum(id not in turns for id in replies)))
    return scores


def measure_turn(
    turn: RunTurn | None, reply: str, texts: PassageTexts | None, rouge: Sequence[str] = tuple(ROUGE)
) -> dict[str, float]:
    """The measures of one turn's first response. A turn that the run lacks has ROUGE 0 and is not answered.

    `texts` is None for a run of an edition that cannot cite: support is not measured then.
    """
    text = (turn and turn.responses[0].text) or ""
    close = rouge_f1(reply, strip_not_found(text), rouge) if reply.strip() else {}
    answered = float(bool(text.strip()) and not starts_with_not_found(text))
    if not text.strip():
        return {**close, "answered": answered}
    support = supported_share(text, texts.read(turn.responses[0].used)) if turn and texts else {}
    return {**close, "words": float(count_whitespace_words(text)), **support, "answered": answered}


def rouge_f1(reply: str, text: str, measures: Sequence[str] = tuple(ROUGE)) -> dict[str, float]:
    """F of ROUGE-1, -2 and -L, or of some of them, without stemming, by `rouge-score`."""
    return {ROUGE[name]: float(score.fmeasure) for name, score in rouge_scorer(*measures).score(reply, text).items()}


def supported_share(text: str, cited: Sequence[Passage]) -> dict[str, float]:
    """Shares of sentences that a cited passage supports, and of cited passages that support a sentence."""
    answer = Passage("", strip_not_found(text))
    sentences = [unit.text for unit in split_units(answer) if unit.is_statement]
    found = [_find_support(sentences, place, cited) for place in range(len(sentences))]
    right = {id for ids in found for id in ids}
    return {
        "supported": sum(map(bool, found)) / len(found) if found else 0.0,
        "wholly supported": float(bool(found) and all(found)),
        **({"citations right": sum(passage.id in right for passage in cited) / len(cited)} if cited else {}),
    }


def _find_support(sentences: Sequence[str], place: int, cited: Sequence[Passage]) -> tuple[str, ...]:
    """The passages that support a sentence, alone or with its neighbour: it may be cut where the passage's is not."""
    pairs = (" ".join(sentences[start : start + 2]) for start in (place, place - 1) if start >= 0)
    tried = (supporting_ids(text, cited) for text in (sentences[place], *pairs))
    return next(filter(None, tried), ())


def find_cited(turns: Iterable[RunTurn], passages: Sequence[Path], index: Path | None) -> tuple[set[str], PassageTexts]:
    """The ids that first responses cite, and their texts: the runs' own, those of passage files, of an index."""
    responses = [turn.responses[0] for turn in turns]
    cited = {hit.id for response in responses for hit in response.used}
    own = {p.id: Passage(p.id, p.text) for each in responses for p in each.passages or () if p.text.strip()}
    return cited, find_texts(cited, own, passages, open_index(index) if index else None)[0]
