"""The rules that a run must keep, such as the limit of 250 tokens: one function a rule, each checking one turn.

They are stricter than the organisers' validators, whose gaps `docs/data-model.md` lists. A rule gets a turn and what it
is checked against, and yields problems; `convagent validate` shows them all. How a response's length is counted is in
`response_length.py`, how long it may be is part of an edition's limits.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

from agent.tracks.response_length import MAX_TOKENS, count_spacy_tokens, count_whitespace_words
from agent.tracks.run_records import RunResponse, RunTurn
from schemas.records import Problem, Statement, Topics

MAX_PASSAGES = 1000
# What passage ids look like. ClueWeb22-B, English part: `CLUEWEB_PATTERN` of the 2025 validator.
COLLECTIONS = {"any": re.compile(r".+"), "clueweb22": re.compile(r"clueweb22-en\d{4}-\d{2}-\d{5}:\d+")}


@dataclass(frozen=True, slots=True)
class EditionLimits:
    """What the rules ask of a run of an edition; None where there is no limit."""

    tokens: int | None = MAX_TOKENS  # of a response: both tokens by spaCy and words by white space
    together: bool = False  # whether the responses of a turn are counted together
    passages: int | None = MAX_PASSAGES
    cites: bool = True  # whether a run says which passages a text is drawn from
    statements: bool = True  # whether a run says which personal statements were chosen
    responses: int | None = None  # answers a turn


@dataclass(frozen=True, slots=True)
class CheckContext:
    """What a turn's responses are checked against."""

    limits: EditionLimits
    judged: bool  # whether there must be a text
    ids: re.Pattern[str]
    ptkb: Mapping[str, tuple[Statement, ...]]  # by turn id


def check_response_ranks(turn: RunTurn, _asked: CheckContext) -> Iterator[Problem]:
    """Responses are ranked 1, 2, 3 (2023 and 2024: `check_response`)."""
    ranks = [response.rank for response in turn.responses]
    if ranks != list(range(1, len(ranks) + 1)):
        yield Problem(f"turn {turn.turn_id} {turn.where}", f"ranks are {ranks}, expected 1 to {len(ranks)}")


def check_text_not_empty(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """A response says something, except in a run whose responses are not judged."""
    for response in turn.responses:
        if asked.limits.cites and asked.judged and not (response.text or "").strip():
            yield _response_problem(turn, response, "text", "is empty")


def check_text_length(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """At most 250 tokens of spaCy's tokenizer (2023, 2024) and 250 words by white space after NFKC (2025)."""
    if (most := asked.limits.tokens) is None:
        return
    for response in turn.responses:
        tokens, words = count_spacy_tokens(response.text or ""), count_whitespace_words(response.text or "")
        if tokens > most:
            yield _response_problem(turn, response, "text", f"has {tokens} tokens by spaCy, at most {most} are allowed")
        if words > most:
            yield _response_problem(turn, response, "text", f"has {words} words, at most {most} are allowed")


def check_total_length(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """The 2025 validator deletes responses from the last one on until all together have 250 words, if need be all."""
    counts = [count_whitespace_words(response.text or "") for response in turn.responses]
    kept = len(counts)
    while asked.limits.together and sum(counts[:kept]) > MAX_TOKENS:
        kept -= 1
    if kept < len(counts):
        what = f"the responses have {sum(counts)} words together: the official fixer deletes {len(counts) - kept} of "
        yield Problem(f"turn {turn.turn_id} {turn.where}", f"{what}{len(counts)}")


def check_passage_count(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """At most 1,000 passages, none twice, at least one."""
    most = asked.limits.passages
    for response in turn.responses:
        passages = response.passages or ()
        if most and len(passages) > most:
            yield _response_problem(turn, response, "passages", f"are {len(passages)}, at most {most} are allowed")
        if most and not passages:
            yield _response_problem(turn, response, "passages", "are none")
        for id, times in Counter(passage.id for passage in passages).items():
            if times > 1:
                yield _response_problem(turn, response, "passages", f"list {id} {times} times")


def check_passage_ids(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """Ids have the form of the collection's (`--collection`)."""
    for response in turn.responses:
        for passage in response.passages or ():
            if not asked.ids.fullmatch(passage.id):
                yield _response_problem(turn, response, "passages", f"{passage.id} is no id of the collection")


def check_scores_decrease(turn: RunTurn, _asked: CheckContext) -> Iterator[Problem]:
    """TREC tools sort by score, so equal scores lose the ranking."""
    for response in turn.responses:
        for before, after in pairwise(response.passages or ()):
            if not after.score < before.score:
                what = f"{after.id} scores {after.score}, not below {before.id} with {before.score}"
                yield _response_problem(turn, response, "passages", what)
                break


def check_some_passage_used(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """A response that says something names where it is from (2024 only warns, and then takes the first five)."""
    for response in turn.responses:
        if asked.limits.cites and (response.text or "").strip() and not response.used:
            yield _response_problem(turn, response, "passages", "has no passage marked used, or cited")


def check_citations_listed(turn: RunTurn, _asked: CheckContext) -> Iterator[Problem]:
    """Citations are among the references (2025: `validate_entry`)."""
    for response in turn.responses:
        listed = {passage.id for passage in response.passages or ()}
        for hit in response.used:
            if hit.id not in listed:
                yield _response_problem(turn, response, "citations", f"{hit.id} is not among the references")


def check_statements_known(turn: RunTurn, asked: CheckContext) -> Iterator[Problem]:
    """Statement ids and texts are those of the topic's PTKB, each at most once (the 2024 validator accepts id 0)."""
    texts = {known.id: known.text for known in asked.ptkb.get(turn.turn_id, ())}
    for response in turn.responses:
        for statement in response.statements:
            if statement.id is not None and statement.id not in texts:
                yield _response_problem(
                    turn, response, "ptkb_provenance", f"id {statement.id} is not in the topic's PTKB"
                )
            elif statement.text is not None and statement.text not in (
                [texts[statement.id]] if statement.id else texts.values()
            ):
                yield _response_problem(
                    turn, response, "ptkb_provenance", f"{statement.text!r} is no statement of the topic's PTKB"
                )
        if len({(statement.id, statement.text) for statement in response.statements}) < len(response.statements):
            yield _response_problem(turn, response, "ptkb_provenance", "lists a statement twice")


def check_statement_order(turn: RunTurn, _asked: CheckContext) -> Iterator[Problem]:
    """Statements are listed best first (2023: `check_ptkb_provenance`)."""
    for response in turn.responses:
        scores = [statement.score for statement in response.statements if statement.score is not None]
        if any(after > before for before, after in pairwise(scores)):
            yield _response_problem(turn, response, "ptkb_provenance", "is not ordered by score")


Rule = Callable[[RunTurn, CheckContext], Iterator[Problem]]
RULES: tuple[Rule, ...] = (
    check_response_ranks,
    check_text_not_empty,
    check_text_length,
    check_total_length,
    check_passage_count,
    check_passage_ids,
    check_scores_decrease,
    check_some_passage_used,
    check_citations_listed,
    check_statements_known,
    check_statement_order,
)


class RunChecker:
    """Checks a run that is read turn by turn: each turn by all rules, and at the end that every turn was there."""

    def __init__(self, topics: Topics, asked: CheckContext) -> None:
        self._asked = asked
        self._known = dict.fromkeys(topics.turn_ids())
        self._seen: set[str] = set()
        self._first: RunTurn | None = None

    def check_turn(self, turn: RunTurn) -> Iterator[Problem]:
        """What is wrong with one turn, by itself and beside those before it."""
        place = f"turn {turn.turn_id} {turn.where}"
        self._first = self._first or turn
        if turn.info != self._first.info:
            yield Problem(place, f"metadata differ from those of {self._first.where}")
        if turn.turn_id not in self._known:
            yield Problem(place, "is not a turn of these topics")
        if turn.turn_id in self._seen:
            yield Problem(place, "is there already")
        self.mark_seen(turn.turn_id)
        for rule in RULES:
            yield from rule(turn, self._asked)

    def mark_seen(self, turn_id: str) -> None:
        """The run has this turn, whatever is wrong with it."""
        self._seen.add(turn_id)

    def check_all_seen(self) -> Iterator[Problem]:
        """Which turns the run lacks."""
        for turn_id in self._known:
            if turn_id not in self._seen:
                yield Problem(f"turn {turn_id}", "is missing from the run")


def _response_problem(turn: RunTurn, response: RunResponse, field: str, what: str) -> Problem:
    return Problem(f"turn {turn.turn_id} {response.where}", f"{field} {what}")
