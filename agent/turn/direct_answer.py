"""The few words that answer a question, where one span of the best sentences is sure: "Nine days."

A span is sure where its sentence, with the headings above it, has the question's words, and where it is the only one of
its kind or stands clearly nearer to them than the others. In doubt there is none: the sentence itself answers then.
"""

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

from agent.turn.question_kinds import MEASURE_OF, QuestionKind
from agent.turn.spans.answer_spans import Span, find_spans, read_row
from agent.turn.spans.question_words import CONTRASTS, Evidence, dimensions_of, is_conditional, is_german, stem_words
from indexes.words import list_tables, list_words, match_any

MAX_EVIDENCE = 3  # sentences that are looked at
MIN_SCORE = 1.0  # of the only candidate
MIN_LEAD = 1.0  # of the best before the second


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """What can stand first, and which of the sentences it is from."""

    text: str  # a span as it stands in the sentence, or "Yes", "No", "Ja", "Nein"
    sentence_index: int
    is_verdict: bool = False  # yes or no: it stands in no sentence, the one it is from decides it


# Words of a question that its kind says already: a sentence need not have them.
_IMPLIED = list_tables("implied_by")
_KIND_VERBS = list_tables("verbs_of")  # a sentence right under a heading that has all words of the question needs one
_AGENTS = {verb: agent for verb, (agent,) in list_tables("agents").items()}
_CLAUSE_END = re.compile(r"[;.,()](?=\s)|\s(?=(?:and|but|while|whereas|und|aber)\s)")
_HARD_END = re.compile(r"[;.()](?=\s)|\s(?=(?:and|but|while|whereas|und|aber)\s)")
_SEQUENCE = re.compile(
    r"[,;] (?:and |und )?(?:then|afterwards|later|dann|danach)\b", re.IGNORECASE
)  # a value for each step
_REFERS_BACK = re.compile(r"\b(?:it|they|them|he|she|him|this|that|these|those|ones?|es|sie)\b", re.IGNORECASE)
_BOUND = re.compile(r"\b(?:below|above|beyond|unless|not|nicht|unter|instead of)\s+$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A question and its stems: all, and those that a sentence must have."""

    question: str
    all: frozenset[str]
    required: frozenset[str]


def choose_direct_answer(question: str, kind: QuestionKind, ranked: Sequence[Evidence]) -> DirectAnswer | None:
    """The one sure answer in the first sentences, best first; None where there is none, or where two compete."""
    if kind.name == "yes-no":
        verdicts = [(n, decide_plainly(question, evidence)) for n, evidence in enumerate(ranked[:MAX_EVIDENCE])]
        found = [DirectAnswer(text, n, is_verdict=True) for n, text in verdicts if text]
    else:
        wanted = _read_question(question, kind)
        if len(wanted.required) < 1 + bool(_REFERS_BACK.search(question)):
            return None
        spans = [(n, _choose_span(kind, wanted, evidence)) for n, evidence in enumerate(ranked[:MAX_EVIDENCE])]
        found = [DirectAnswer(span.text, n) for n, span in spans if span]
    return found[0] if len({answer.text.lower() for answer in found}) == 1 else None


def to_sentence(text: str) -> str:
    """A span as it is shown first: `nine days` is `Nine days.`."""
    return f"{text[:1].upper()}{text[1:].rstrip(' .')}."


def _read_question(question: str, kind: QuestionKind) -> _Wanted:
    asked = stem_words(question)
    implied = set(stem_words(" ".join([*_IMPLIED.get(kind.name, ()), *list_words("light")])))
    if kind.name in ("number", "thing"):
        adjectives = [word for word, measure in MEASURE_OF.items() if measure == kind.noun]
        implied |= set(stem_words(" ".join([kind.noun, *adjectives])))
    for option in kind.options:
        implied |= set(stem_words(option))
    agents = [_AGENTS[stem] for stem in asked if stem in _AGENTS]
    if kind.name == "duration" and not re.search(r"\blast\W*$", question):
        implied -= set(stem_words("last"))  # the last tour
    return _Wanted(question, frozenset([*asked, *stem_words(" ".join(agents))]), frozenset(asked) - implied)


def _choose_span(kind: QuestionKind, wanted: _Wanted, evidence: Evidence) -> Span | None:
    """The sure span of one sentence, if any."""
    if not _is_about(kind, wanted, evidence):
        return None
    if kind.name == "choice":
        return _choose_option(kind, evidence.text)
    spans = [span for span in find_spans(kind, evidence.text) if not set(stem_words(span.text)) <= wanted.all]
    rivals = [span for span in spans if span.text.lower() != spans[0].text.lower()]
    if rivals and _SEQUENCE.search(evidence.text):
        return None
    clause_end = _CLAUSE_END if rivals else _HARD_END
    scored = [
        (_score_span(kind, span, wanted, evidence, clause_end), -span.start, span)
        for span in spans
        if _is_well_placed(kind, span, wanted, evidence.text)
    ]
    score, _, best = max(scored, key=lambda item: item[:2], default=(0.0, 0, Span("", 0)))
    others = [span for span in spans if span.text.lower() != best.text.lower()]
    second = max((rival for rival, _, span in scored if span in others), default=0.0)
    if score < MIN_SCORE or score - second < MIN_LEAD * bool(others):
        return None
    return None if _is_contrasted(best, others, wanted, evidence.text) else best


def _is_contrasted(best: Span, others: Sequence[Span], wanted: _Wanted, sentence: str) -> bool:
    """Whether the sentence tells cases apart, and the best span's is not the question's.

    Its clause names a case that the question does not ("small 8 euros, large 11 euros"), or a later one has words of
    the question that its own lacks ("Ida lives in Bergen, her brother in Oslo").
    """
    own = _clause_stems(best, sentence)
    if others and any(_is_distinctive(stem) and not stem.isdigit() for stem in own - wanted.all):
        return True
    return any(_clause_stems(other, sentence) & wanted.required - own for other in others if other.start > best.start)


def _clause_stems(span: Span, sentence: str) -> set[str]:
    before, after = read_clause(span, sentence)
    return _expand([*stem_words(before), *stem_words(after)])


def _is_well_placed(kind: QuestionKind, span: Span, wanted: _Wanted, sentence: str) -> bool:
    if kind.name == "person":
        return is_where_a_person_stands(span, wanted.all, wanted.question, sentence)
    if kind.name == "place":
        return is_where_a_place_stands(span, wanted.question, sentence, named=bool(kind.noun))
    return set(stem_words(span.modifiers)) <= wanted.all  # eight homegrown players are not all players


def _is_about(kind: QuestionKind, wanted: _Wanted, evidence: Evidence) -> bool:
    """Whether a sentence with its headings has the question's words, and itself at least one of them."""
    said = _expand(stem_words(evidence.text))
    missing = wanted.required - said - set(stem_words(evidence.heading))
    if len(missing) > len(wanted.required) // 4 or any(_is_distinctive(stem) for stem in missing):
        return False
    return bool(said & wanted.required) or _says_kind(kind, said)


def _expand(stems: Sequence[str]) -> set[str]:
    """With the verb of whoever does it: an author writes."""
    doers = {stem_words(agent)[0]: verb for verb, agent in _AGENTS.items()}
    return {*stems, *(doers[stem] for stem in stems if stem in doers)}


def _is_distinctive(stem: str) -> bool:
    """Whether another word in its place would make another thing of it: a number, a colour, first and last."""
    return stem.isdigit() or stem in set(stem_words(" ".join(CONTRASTS)))


def _score_span(
    kind: QuestionKind, span: Span, wanted: _Wanted, evidence: Evidence, clause_end: re.Pattern[str]
) -> float:
    """How near it stands to the question's words: next to one of them, and in a clause with how many of them."""
    before, after = read_clause(span, evidence.text, clause_end)
    nearest_before, nearest_after = stem_words(before)[-1:], stem_words(after)[:1]
    clause = _expand([*stem_words(before), *stem_words(after)])
    if any(_is_distinctive(stem) for stem in wanted.required & (set(stem_words(evidence.text)) - clause)):
        return 0.0  # the sentence says it of another
    if _speaks_of_another(kind, span, wanted, evidence.text, (before, after)):
        return 0.0
    if kind.name == "money" and is_for_something_else(span, evidence.text, wanted.question):
        return 0.0
    beside = 2.0 * bool(wanted.all & set(nearest_before)) + 1.0 * bool(wanted.all & set(nearest_after))
    if span.bare and not beside:
        return 0.0
    share = 2.0 * len(clause & wanted.required) / max(1, len(wanted.required))
    if not clause & wanted.required and _says_kind(kind, {*clause, *stem_words(span.text)}):
        share = 1.0  # the headings say of what
    return beside + share - 3.0 * bool(_BOUND.search(evidence.text[: span.start]))


def is_for_something_else(span: Span, sentence: str, question: str) -> bool:
    """Whether an amount of money is a deposit, a fine or the like, which the question does not ask for."""
    clause = _expand([stem for part in read_clause(span, sentence) for stem in stem_words(part)])
    return bool(set(stem_words(" ".join(list_words("other_money")))) & clause - set(stem_words(question)))


def _speaks_of_another(kind: QuestionKind, span: Span, wanted: _Wanted, sentence: str, clause: tuple[str, str]) -> bool:
    """Whether the question's words stand in other clauses only, or another dimension is measured here."""
    said = {*stem_words(clause[0]), *stem_words(clause[1])}
    asked_dimensions, said_dimensions = dimensions_of(wanted.question), dimensions_of(" ".join(clause))
    if asked_dimensions and said_dimensions and not asked_dimensions & said_dimensions:
        return True
    if _expand(tuple(said)) & wanted.required or not set(stem_words(sentence)) & wanted.required:
        return False
    if kind.noun and set(stem_words(kind.noun)) <= {*said, *stem_words(span.text)}:
        return False
    before, after = stem_words(clause[0]), stem_words(clause[1])[:1]  # no subject of its own: "... and cost 40 euros"
    return not ((before or after) and {*before, *(() if before else after)} <= wanted.all)


def _says_kind(kind: QuestionKind, stems: Set[str]) -> bool:
    """Whether some stems have the noun that is asked for, or a verb of the kind."""
    noun = set(stem_words(kind.noun))
    return bool(noun and noun <= stems) or bool(stems & set(stem_words(" ".join(_KIND_VERBS.get(kind.name, ())))))


def read_clause(span: Span, sentence: str, clause_end: re.Pattern[str] = _CLAUSE_END) -> tuple[str, str]:
    """What stands before and after a span in its clause; of a row, the name of its column and the other cells."""
    if row := read_row(sentence):
        name, own = next((name, cell) for name, cell in row if cell.start <= span.start <= cell.end)
        others = " ".join(cell.text for column, cell in row if column != name)
        return f"{others} {name} {sentence[own.start : span.start]}", ""
    before, after = sentence[: span.start].rstrip(), sentence[span.end :]
    starts = [match.end() for match in clause_end.finditer(before + " ")]
    end = clause_end.search(after)
    return before[max(starts, default=0) :], after[: end.start() if end else len(after)]


def _choose_option(kind: QuestionKind, sentence: str) -> Span | None:
    """The one option of a choice that a plain sentence names."""
    if is_conditional(sentence):
        return None
    found = [
        Span(match.group(), match.start())
        for option in kind.options
        for match in re.finditer(rf"\b{re.escape(option)}\b", sentence, re.IGNORECASE)
    ]
    return found[0] if len(found) == 1 and not re.search(r"\b(?:not|no|never|n't|nicht|kein)\b", sentence) else None


_NEGATION = re.compile(r"\b(?:not|no|never|neither|cannot|nobody|nothing|nicht|kein\w*|nie)\b|n['’]t\b", re.IGNORECASE)
# A restriction: what follows must be what the question asks about.
_RESTRICTION = re.compile(
    r"\b(?:in|on|at|with|without|than|for|from|to|during|before|after|between|by|under|over|since|near|of|"
    r"im|am|mit|ohne|für|von|bis|ab|vor|nach)\s+(?P<what>[^,.;]*)",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r"[,;:]\s|\s(?:and|but|or|und|aber|oder)\s")
_NAME = re.compile(r"(?<=\s)[A-ZÄÖÜ][\w'’-]+")


def decide_plainly(question: str, evidence: Evidence) -> str:
    """Yes or no, in the question's language; empty where the sentence does not decide plainly."""
    if is_conditional(evidence.text) or evidence.text.rstrip().endswith("?"):
        return ""
    asked = list(dict.fromkeys(stem_words(_drop_negation(question))))
    deciding = [
        clause for clause in _CLAUSES.split(evidence.text) if _has_all(asked, clause, evidence.heading, question)
    ]
    if len(asked) < 2 or len(deciding) != 1:
        return ""
    clause, turned = deciding[0], _turned(asked, deciding[0])
    negations = len(_NEGATION.findall(clause))
    if negations > 1 or _says_more(clause, asked, turned) or _names_in_another_order(question, clause):
        return ""
    is_yes = (negations + len(turned) + len(_NEGATION.findall(question))) % 2 == 0
    words = ("Ja", "Nein") if is_german(question) else ("Yes", "No")
    return words[0] if is_yes else words[1]


def _has_all(asked: Sequence[str], clause: str, heading: str, question: str) -> bool:
    """Whether a clause with its headings has every word of the question or its opposite, and itself at least one."""
    said = set(stem_words(_drop_negation(clause)))
    turned = _turned(asked, clause)
    missing = set(asked) - said - set(turned) - set(stem_words(heading))
    labels = re.findall(r"(?<=\s)[A-Z]\b", question.replace(" I ", " "))  # box A
    return not missing and bool(set(asked) & said or turned) and all(re.search(rf"\b{x}\b", clause) for x in labels)


def _turned(asked: Iterable[str], clause: str) -> list[str]:
    """The words of the question whose opposite a clause has."""
    said = set(stem_words(_drop_negation(clause)))
    return [stem for stem in asked if stem not in said and _opposites(stem) & said]


def _drop_negation(text: str) -> str:
    return _NEGATION.sub(" ", text)


def _opposites(stem: str) -> set[str]:
    """The stems of the words that mean the opposite of a stem's word."""
    found: set[str] = set()
    for pair in list_words("opposites"):
        sides = [set(stem_words(side)) for side in pair.split(":")]
        found |= {other for this, that in (sides, sides[::-1]) if stem in this for other in that - {stem}}
    return found


def _says_more(sentence: str, asked: Iterable[str], turned: Iterable[str]) -> bool:
    """Whether it speaks of one kind ("the rear tyre") or one case ("on Sundays") that the question does not name."""
    known = {*asked, *(other for stem in turned for other in _opposites(stem))}
    contrasts = set(stem_words(" ".join(CONTRASTS)))
    if any(stem in contrasts or stem.isdigit() for stem in set(stem_words(sentence)) - known):
        return True
    return any(set(stem_words(match["what"])) - known for match in _RESTRICTION.finditer(sentence))


def _names_in_another_order(question: str, sentence: str) -> bool:
    """Whether two names of the question stand in the other order: who does it and to whom may be exchanged."""
    names = _NAME.findall(question)
    places = [sentence.find(name) for name in names]
    return len(names) > 1 and -1 not in places and places != sorted(places)


_LOCATED = re.compile(
    r"(?:\b(?:is|are|was|were|be|located|found|kept|stored|situated|lies?|lying|hangs?|stands?|sits?|lives?|stays?"
    r"|remains?|ist|sind|war|liegt|hängt|steht|befindet sich)|:)$",
    re.IGNORECASE,
)
_NAMED_PLACE = re.compile(r"(?:^|\s)(?:[A-ZÄÖÜ]|\d)")
_DEFINITE_PLACE = re.compile(
    r"^(?:[\w ]*?)\b(?:im|am|beim|the|a|an|my|our|his|her|its|their|der|dem|den|das|einem|einer|unserem)\b",
    re.IGNORECASE,
)
_AND_ELSEWHERE = re.compile(r"^,? (?:and|or|und|oder) (?:in|at|on|near|im|am|bei)\b")
_BY = re.compile(r"\b(?P<verb>[\w'’-]+) (?:by|von) (?:(?:the |a |an )?[a-z-]+ )?$")
_IS = re.compile(r"\b(?:is|was|are|were|ist|war|sind)(?: called)?:?$|:$", re.IGNORECASE)
_LIST_BEFORE = re.compile(r"[A-ZÄÖÜ][\w.'’-]*(?:,| and| und| &|, and)$")
_LIST_AFTER = re.compile(r"^(?:,| and| und| &|, and) (?:(?:the|its|his|her) )?[A-ZÄÖÜ]")
_SKIPPED = re.compile(r"^(?:has|have|had|also|first|then|later|himself|herself|who|,)\s+")
_TO_BE = re.compile(r"^(?:is|was|are|were|ist|war|sind)\s+")
_PARTIAL = re.compile(rf"\b(?:{match_any('partial')})\b", re.IGNORECASE)
_QUOTE = '"“”«»‘'


def is_where_a_place_stands(span: Span, question: str, sentence: str, *, named: bool) -> bool:
    """Whether a place follows the question's verb, or a verb of being somewhere where the question has none.

    `named` asks for one with a name or a number, as "in which city" does.
    """
    if _PARTIAL.search(sentence) or not (_DEFINITE_PLACE.match(span.text) or _NAMED_PLACE.search(span.text)):
        return False
    if named and not _NAMED_PLACE.search(span.text):
        return False
    if _AND_ELSEWHERE.match(sentence[span.end :]):
        return False
    before = _strip_date(sentence[: span.start].rstrip())
    last_asked, last_said = stem_words(question)[-1:], stem_words(before.rsplit(" ", 1)[-1])
    return bool(_LOCATED.search(before)) or (bool(last_said) and last_asked == last_said)


def _strip_date(before: str) -> str:
    """Without a date at its end: "rehearses on Mondays" in the hall."""
    dates = find_spans(QuestionKind("date"), before)
    if dates and dates[-1].end == len(before):
        return re.sub(r"\s(?:on|at|in|um|am)$", "", before[: dates[-1].start].rstrip())
    return before


def is_where_a_person_stands(span: Span, asked: Set[str], question: str, sentence: str) -> bool:
    """Whether a name is beside the question's verb: "Ada wrote", "written by Ada", "the author is Ada", "the "
    "author, Ada"."""
    before, after = sentence[: span.start], sentence[span.end :]
    if read_row(sentence):
        return True
    if asked & set(stem_words(span.text)) or _PARTIAL.search(sentence) or (before[-1:] in _QUOTE and before):
        return False
    if _LIST_AFTER.match(after) or _LIST_BEFORE.search(before.rstrip()):
        return False
    if passive := _BY.search(before):
        return bool(asked & set(stem_words(passive["verb"])))
    if _IS.search(before.rstrip()):
        return True
    if before.endswith(", ") and re.match(r"[,.]|$", after):
        return bool(asked & set(stem_words(before)))
    return _verb_follows(after.lstrip(), asked, question)


def _verb_follows(after: str, asked: Set[str], question: str) -> bool:
    """Whether the next word is one of the question's; "is" is skipped where the question has it too."""
    if re.search(r"\b(?:is|was|are|were|ist|war)\b", question):
        after = _TO_BE.sub("", after)
    while skipped := _SKIPPED.match(after):
        after = after[skipped.end() :]
    words = re.findall(r"[\w'’-]+", after)[:3]
    heads = words if re.search(r"\b(?:is|was|ist|war)\b", question) else words[:1]
    return any(asked & set(stem_words(word)) for word in heads)
