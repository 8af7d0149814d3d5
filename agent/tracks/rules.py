"""The rules that a run must keep, such as the limit of 250 tokens: one function a rule, each checking one turn.

They are stricter than the organisers' validators, whose gaps `docs/data-model.md` lists: a rule that the official
validator of the edition does not refuse is a warning of `convagent validate`, and an error only where it is asked to be
strict, as for all that we write. A rule gets a response and what it is checked against, and yields problems. How a
response's length is counted is in `response_length.py`, how long it may be is part of an edition's limits.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from ctypes import c_float
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from agent.tracks.lenient_reading import OddityKind
from agent.tracks.run_records import RunResponse, RunTurn
from indexes.text.response_length import MAX_TOKENS, count_spacy_tokens, count_whitespace_words
from schemas.records import Problem, RunInfo, Topics

MAX_RESPONSES = 1000
MIN_TOKENS = 25  # of a response that says something
# What passage ids look like. ClueWeb22-B, English part: `CLUEWEB_PATTERN` of the 2025 validator.
COLLECTIONS = {"any": re.compile(r".+"), "clueweb22": re.compile(r"clueweb22-en\d{4}-\d{2}-\d{5}:\d+")}
# Marks of sources such as [1], [2, 3] or [clueweb22-en0035-25-01897:1], which say nothing by themselves.
CITATION = re.compile(r"\[\s*[\w:.-]+(?:\s*[,;]\s*[\w:.-]+)*\s*\]")


@dataclass(frozen=True, slots=True)
class EditionRules:
    """What the rules ask of a run of an edition; None where there is no limit.

    The organisers' validator takes what is not among `refused`, some of it with a warning.
    """

    together: bool = False  # whether the responses of a turn are counted together
    cites: bool = True  # whether a run says which passages a text is drawn from; then both are asked for and limited
    statements: bool = True  # whether a run says which personal statements were chosen
    responses: int | None = None  # answers a turn
    collection: str = "clueweb22"  # whose ids the passages have
    refused_oddities: frozenset[OddityKind] = frozenset({"no JSON"})
    refused: "frozenset[Rule]" = frozenset()
    refuses_repeated_turns: bool = True

    def response_tokens(self, responses: int) -> int:
        """How long each of so many responses to a turn may be: 250 tokens, or its share of them (2025)."""
        return MAX_TOKENS // responses if self.together else MAX_TOKENS

    def most_responses(self) -> int:
        """How many responses to a turn can be written: where they share their length, each needs some of it."""
        return min(self.responses or MAX_RESPONSES, MAX_TOKENS // MIN_TOKENS if self.together else MAX_RESPONSES)


@dataclass(frozen=True, slots=True)
class Checks:
    """What is to be checked beside the rules of an edition."""

    collection: str = "any"  # a key of `COLLECTIONS`
    strict: bool = False  # whether our own rules are errors, too
    exists: Callable[[str], bool] | None = None  # whether there is a passage of that id
    ranking: Mapping[str, Sequence[str]] | None = None  # that the answers are built from: ids by turn id, best first


STRICT = Checks(strict=True)


def says_something(text: str | None) -> bool:
    """Whether a text holds more than white space, characters without width, and marks of sources."""
    rest = CITATION.sub("", text or "")
    return any(unicodedata.category(character)[0] not in "ZC" for character in rest)


def check_whole_turn(turn: RunTurn, rules: EditionRules) -> Iterator[str]:
    """What holds of a turn's responses together.

    They are ranked 1, 2, 3 (2023 and 2024: `check_response`) and at most 1,000 (2024, guidelines). The 2025 validator
    deletes responses from the last one on until all together have 250 words, if need be all.
    """
    ranks = [response.rank for response in turn.responses]
    if ranks != list(range(1, len(ranks) + 1)):
        yield f"ranks are {ranks}, expected 1 to {len(ranks)}"
    if rules.responses and len(ranks) > rules.responses:
        yield f"has {len(ranks)} responses, at most {rules.responses} are allowed"
    counts = [count_whitespace_words(response.text or "") for response in turn.responses]
    if rules.together and (deleted := sum(words > MAX_TOKENS for words in accumulate(counts))):
        yield f"the responses have {sum(counts)} words together: the official fixer deletes {deleted} of {len(counts)}"


def check_text(_turn_id: str, response: RunResponse, asked: "RunChecker") -> Iterator[str]:
    """A response says something, except in a run whose responses are not judged, and not too much.

    At most 250 tokens of spaCy's tokenizer (2023, 2024) and 250 words by white space after NFKC (2025). What says
    something names where it is from (2024 only warns, and then takes the first five).
    """
    if not asked.rules.cites:
        return
    if says_something(response.text):
        if not response.used:
            yield "passages has no passage marked used, or cited"
    elif asked.judged:
        yield "text is empty"
    tokens, words = count_spacy_tokens(response.text or ""), count_whitespace_words(response.text or "")
    for count, unit in ((tokens, "tokens by spaCy"), (words, "words")):
        if count > MAX_TOKENS:
            yield f"text has {count} {unit}, at most {MAX_TOKENS} are allowed"


def check_ranking(_turn_id: str, response: RunResponse, asked: "RunChecker") -> Iterator[str]:
    """At least one passage, none twice; ids have the form of the collection's (`--collection`).

    TREC tools sort by score, as 32-bit floats, so equal scores lose the ranking.
    """
    passages = response.passages or ()
    if asked.rules.cites and not passages:
        yield "passages are none"
    for id, times in Counter(passage.id for passage in passages).items():
        if times > 1:
            yield f"passages list {id} {times} times"
    form = COLLECTIONS[asked.checks.collection]
    yield from _name_ids([each.id for each in passages if not form.fullmatch(each.id)], "is no id of the collection")
    for before, after in pairwise(passages):
        if not c_float(after.score).value < c_float(before.score).value:
            yield f"passages {after.id} scores {after.score}, not below {before.id} with {before.score}"
            return


def check_citations_listed(_turn_id: str, response: RunResponse, _asked: "RunChecker") -> Iterator[str]:
    """Citations are among the references (2025: `validate_entry`)."""
    listed = {passage.id for passage in response.passages or ()}
    for hit in response.used:
        if hit.id not in listed:
            yield f"citations {hit.id} is not among the references"


def check_statements_known(turn_id: str, response: RunResponse, asked: "RunChecker") -> Iterator[str]:
    """Statement ids and texts are those of the topic's PTKB, each at most once (the 2024 validator accepts id 0)."""
    texts = {known.id: known.text for known in asked.ptkb.get(turn_id, ())}
    for statement in response.statements:
        if statement.id is not None and statement.id not in texts:
            yield f"ptkb_provenance id {statement.id} is not in the topic's PTKB"
        elif statement.text is not None and statement.text not in (
            [texts[statement.id]] if statement.id else texts.values()
        ):
            yield f"ptkb_provenance {statement.text!r} is no statement of the topic's PTKB"
    if len({(statement.id, statement.text) for statement in response.statements}) < len(response.statements):
        yield "ptkb_provenance lists a statement twice"


def check_statement_order(_turn_id: str, response: RunResponse, _asked: "RunChecker") -> Iterator[str]:
    """Statements are listed best first (2023: `check_ptkb_provenance`)."""
    scores = [statement.score for statement in response.statements if statement.score is not None]
    if any(after > before for before, after in pairwise(scores)):
        yield "ptkb_provenance is not ordered by score"


def check_given(turn_id: str, response: RunResponse, asked: "RunChecker") -> Iterator[str]:
    """The passages are in the index (`--index`), and those of the given ranking, in its order (`--ranking`)."""
    exists, ranking = asked.checks.exists, asked.checks.ranking
    passages = [passage.id for passage in response.passages or ()]
    if exists:
        yield from _name_ids([id for id in passages if not exists(id)], "is not in the index")
    if ranking is not None:
        places = {id: place for place, id in enumerate(ranking.get(turn_id, ()))}
        listed = dict.fromkeys(passages + [hit.id for hit in response.used])
        yield from _name_ids([id for id in listed if id not in places], "is not in the given ranking")
        found = [places[id] for id in passages if id in places]
        if found != sorted(found):
            yield "passages are not in the order of the given ranking"


Rule = Callable[[str, RunResponse, "RunChecker"], Iterator[str]]  # gets the turn id, too
RULES: tuple[Rule, ...] = (
    check_text,
    check_ranking,
    check_citations_listed,
    check_statements_known,
    check_statement_order,
    check_given,
)


class RunChecker:
    """Checks a run that is read turn by turn: each turn by all rules, and at the end that every turn was there.

    That the turns are those of the topics is an error in every edition, and that each is there once in all but 2025.
    """

    def __init__(self, rules: EditionRules, topics: Topics, info: RunInfo, checks: Checks) -> None:
        self.rules, self.checks = rules, checks
        self.judged = info.parts.answer  # whether there must be a text
        self.ptkb = {turn.id: topic.ptkb for topic in topics.topics for turn in topic.turns}
        self.seen: set[str] = set()  # turns that the run has, whatever is wrong with them
        self._first: RunTurn | None = None
        self._info = info

    def check_turn(self, turn: RunTurn) -> Iterator[Problem]:
        """What is wrong with one turn, by itself and beside those before it."""
        place = f"turn {turn.turn_id} {turn.where}"
        self._first = self._first or turn
        if turn.info != self._first.info:
            yield self._judge(Problem(place, f"metadata differ from those of {self._first.where}"))
        if turn.turn_id not in self.ptkb:
            yield Problem(place, "is not a turn of these topics")
        if turn.turn_id in self.seen:
            repeated = Problem(place, "is there already")
            yield repeated if self.rules.refuses_repeated_turns else self._judge(repeated)
        self.seen.add(turn.turn_id)
        for what in check_whole_turn(turn, self.rules):
            yield self._judge(Problem(place, what))
        for rule in RULES:
            for response in turn.responses:
                for what in rule(turn.turn_id, response, self):
                    yield self._judge(Problem(f"turn {turn.turn_id} {response.where}", what), rule)

    def _judge(self, problem: Problem, rule: "Rule | None" = None) -> Problem:
        """The problem as an error, or as a warning where the official validator does not refuse it."""
        refused = rule in self.rules.refused or rule is check_given  # the latter was asked for
        return problem if refused else replace(problem, severity="warning")

    def check_all_seen(self) -> Iterator[Problem]:
        """What is wrong with the run's name, and which turns the run lacks."""
        name = (self._first.info if self._first and self._first.info else self._info).name
        if name.split() not in ([], [name]):
            yield self._judge(Problem("$", f"the run's name {name!r} has spaces"))
        for turn_id in self.ptkb:
            if turn_id not in self.seen:
                yield Problem(f"turn {turn_id}", "is missing from the run")


def _name_ids(ids: list[str], what: str) -> Iterator[str]:
    """What holds of the first id of a passage, and of how many others."""
    if ids:
        others = f", nor are {len(ids) - 1} others" if len(ids) > 1 else ""
        yield f"passages {ids[0]} {what}{others}"
