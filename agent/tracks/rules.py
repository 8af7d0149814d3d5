"""The rules that a run must keep, one function a rule, each listing every turn that breaks it.

Stricter than the organisers' validators, whose gaps `docs/data-model.md` lists. A rule gets the run and the topics and
yields problems; `convagent validate` shows them all.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise

from agent.sentences import MAX_TOKENS, spacy_tokens, whitespace_words
from agent.tracks.run_view import RunResponse, RunTurn, RunView
from schemas.records import Problem, Topics

MAX_PASSAGES = 1000


def turns_are_those_of_the_topics(run: RunView, topics: Topics) -> Iterator[Problem]:
    """Every turn once, none missing, none extra (all three validators)."""
    expected = dict.fromkeys(topics.turn_ids())
    found = Counter(turn.turn_id for turn in run.turns)
    for turn_id in expected:
        if turn_id not in found:
            yield Problem(f"turn {turn_id}", "is missing from the run")
    for turn in run.turns:
        if turn.turn_id not in expected:
            yield Problem(f"turn {turn.turn_id} {turn.where}", "is not a turn of these topics")
        elif found[turn.turn_id] > 1:
            yield Problem(f"turn {turn.turn_id} {turn.where}", f"stands {found[turn.turn_id]} times")


def ranks_count_from_one(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """Responses are ranked 1, 2, 3 (2023 and 2024: `check_response`)."""
    for turn in run.turns:
        ranks = [response.rank for response in turn.responses]
        if ranks != list(range(1, len(ranks) + 1)):
            yield Problem(f"turn {turn.turn_id} {turn.where}", f"ranks are {ranks}, expected 1 to {len(ranks)}")


def text_is_there(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """A response says something, except in a run whose responses are not judged."""
    for turn, response in _responses(run):
        if run.text_needed and not response.text.strip():
            yield _problem(turn, response, "text", "is empty")


def text_is_short_enough(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """At most 250 tokens of spaCy's tokenizer (2023, 2024) and 250 words by white space after NFKC (2025)."""
    for turn, response in _responses(run):
        tokens, words = spacy_tokens(response.text), whitespace_words(response.text)
        if tokens > MAX_TOKENS:
            yield _problem(turn, response, "text", f"has {tokens} tokens by spaCy, at most {MAX_TOKENS} are allowed")
        if words > MAX_TOKENS:
            yield _problem(turn, response, "text", f"has {words} words, at most {MAX_TOKENS} are allowed")


def passages_are_few_and_different(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """At most 1,000 passages, none twice, at least one."""
    for turn, response in _responses(run):
        if len(response.passages) > MAX_PASSAGES:
            yield _problem(turn, response, "passages", f"are {len(response.passages)}, at most {MAX_PASSAGES}")
        if not response.passages:
            yield _problem(turn, response, "passages", "are none")
        for id, times in Counter(hit.id for hit in response.passages).items():
            if times > 1:
                yield _problem(turn, response, "passages", f"list {id} {times} times")


def scores_fall_strictly(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """TREC tools sort by score, so equal scores lose the ranking."""
    for turn, response in _responses(run):
        for before, after in pairwise(response.passages):
            if not after.score < before.score:
                what = f"{after.id} scores {after.score}, not below {before.id} with {before.score}"
                yield _problem(turn, response, "passages", what)
                break


def some_passage_is_used(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """A response that says something names where it is from (2024 only warns, and then takes the first five)."""
    for turn, response in _responses(run):
        if response.text.strip() and not response.used:
            yield _problem(turn, response, "passages", "has no passage marked used, or cited")


def used_passages_are_listed(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """Citations are among the references (2025: `validate_entry`)."""
    for turn, response in _responses(run):
        listed = {hit.id for hit in response.passages}
        for id in response.used:
            if id not in listed:
                yield _problem(turn, response, "citations", f"{id} is not among the references")


def statements_are_the_persons(run: RunView, topics: Topics) -> Iterator[Problem]:
    """Statement ids and texts are those of the topic's PTKB, each at most once (the 2024 validator accepts id 0)."""
    known = {turn.id: topic.ptkb for topic in topics.topics for turn in topic.turns}
    for turn, response in _responses(run):
        ptkb = known.get(turn.turn_id, ())
        texts = {statement.id: statement.text for statement in ptkb}
        for id, text in response.statements:
            if id is not None and id not in texts:
                yield _problem(turn, response, "ptkb_provenance", f"id {id} is not in the topic's PTKB")
            elif text is not None and text not in ([texts[id]] if id is not None else texts.values()):
                yield _problem(turn, response, "ptkb_provenance", f"{text!r} is no statement of the topic's PTKB")
        if len(set(response.statements)) < len(response.statements):
            yield _problem(turn, response, "ptkb_provenance", "lists a statement twice")


def statement_scores_never_rise(run: RunView, _topics: Topics) -> Iterator[Problem]:
    """Statements are listed best first (2023: `check_ptkb_provenance`)."""
    for turn, response in _responses(run):
        if any(after > before for before, after in pairwise(response.statement_scores)):
            yield _problem(turn, response, "ptkb_provenance", "is not ordered by score")


Rule = Callable[[RunView, Topics], Iterator[Problem]]
RULES: tuple[Rule, ...] = (
    turns_are_those_of_the_topics,
    ranks_count_from_one,
    text_is_there,
    text_is_short_enough,
    passages_are_few_and_different,
    scores_fall_strictly,
    some_passage_is_used,
    used_passages_are_listed,
    statements_are_the_persons,
    statement_scores_never_rise,
)


def check(run: RunView, topics: Topics) -> list[Problem]:
    """Everything that is wrong with a run, rule by rule."""
    return [problem for rule in RULES for problem in rule(run, topics)]


def _responses(run: RunView) -> Iterator[tuple[RunTurn, RunResponse]]:
    for turn in run.turns:
        for response in turn.responses:
            yield turn, response


def _problem(turn: RunTurn, response: RunResponse, field: str, what: str) -> Problem:
    return Problem(f"turn {turn.turn_id} {response.where}", f"{field} {what}")
