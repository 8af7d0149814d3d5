"""A sentence for each side of a comparison, and the conclusion where both hold one comparable amount.

Strict: amounts that hang on a condition, that are for something else, or of which there are several that would lead to
different conclusions, conclude nothing. The sentences answer then.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from agent.turn.conclusions.amounts import Amount, read_amount, read_date, write_calculation
from agent.turn.conclusions.sides import Aim, Sides
from agent.turn.direct_answer import is_for_something_else, read_clause
from agent.turn.question_kinds import QuestionKind
from agent.turn.quotes import Quote
from agent.turn.spans.answer_spans import Span, find_spans, read_row
from agent.turn.spans.question_words import is_conditional, is_german, stem_words
from schemas.records import Passage

NEAR = 0.15  # behind the best with an amount: what another one says counts as well
BESIDE = 0.1  # how much better a quote must be that only stands under what names the side
OPENING_WORDS = 12  # of a passage, that say what its document is about


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The quotes that answer, and what follows from them."""

    quotes: tuple[Quote, ...]  # of the side that was asked for first, where there is one
    direct: str = ""  # "The night train", "94 EUR + 12 EUR = 106 EUR"; empty where nothing is sure


@dataclass(frozen=True, slots=True)
class _Held:
    """The amounts that a side has, and the quote of the best of them."""

    amounts: tuple[Amount, ...]
    quote: Quote

    @property
    def values(self) -> set[Decimal]:
        return {amount.value for amount in self.amounts}


def compare_sides(
    sides: Sides, ranked: Sequence[Quote], passages: Sequence[Passage], question: str
) -> Conclusion | None:
    """What the quotes of some passages, best first, say of both sides; None where one side is not spoken of."""
    openings = _read_openings(passages)
    own = (_find_own(sides, 0, ranked, openings), _find_own(sides, 1, ranked, openings))
    if not any(own[0]) or not any(own[1]):
        return None
    for kind, aim in sides.compared:
        first, second = (_hold_amounts(sides, place, own[place], kind) for place in (0, 1))
        if first and second:
            concluded = _conclude(sides, (first, second), aim, question)
            return concluded or Conclusion((first.quote, second.quote))
    told = [_list_told(sides, place, ranked, passages) for place in (0, 1)]
    return Conclusion((_best_of(own[0], told[0]), _best_of(own[1], told[1])))


def _read_openings(passages: Sequence[Passage]) -> dict[str, set[str]]:
    """The stems of the first words of each document's passages, and of their titles: what the documents are about."""
    openings: dict[str, set[str]] = {}
    for passage in passages:
        words = " ".join(passage.text.split()[:OPENING_WORDS])
        openings.setdefault(passage.document, set()).update(stem_words(f"{passage.title}: {words}"))
    return openings


def _find_own(
    sides: Sides, place: int, ranked: Sequence[Quote], openings: Mapping[str, set[str]]
) -> tuple[list[Quote], list[Quote]]:
    """The quotes that name a side, best first, and those whose section or document opens with it, and not the other."""
    key, other = sides.key(place), sides.key(1 - place)
    sections: dict[tuple[int, str], set[str]] = {}
    for quote in sorted(ranked, key=lambda quote: (quote.rank, quote.place)):
        sections.setdefault((quote.rank, quote.heading), _stems_of(quote))
    naming, beside = list[Quote](), list[Quote]()
    for quote in ranked:
        around = (sections[quote.rank, quote.heading], openings[quote.document])
        if key <= _stems_of(quote):
            naming.append(quote)
        elif any(key <= opening and not other <= opening for opening in around):
            beside.append(quote)
    return naming, beside


def _list_told(sides: Sides, place: int, ranked: Sequence[Quote], passages: Sequence[Passage]) -> list[Quote]:
    """The quotes of passages that name a side, and not the other."""
    key, other = sides.key(place), sides.key(1 - place)
    said = [set(stem_words(f"{passage.title}: {passage.text}")) for passage in passages]
    return [quote for quote in ranked if key <= said[quote.rank] and not other <= said[quote.rank]]


def _best_of(own: tuple[list[Quote], list[Quote]], told: Sequence[Quote]) -> Quote:
    """The best quote of a side: one that names it, unless another is clearly better."""
    naming = own[0][:1]
    further = sorted((*own[1][:1], *told[:1]), key=lambda quote: -quote.score)[:1]
    if naming and (not further or naming[0].score >= further[0].score - BESIDE):
        return naming[0]
    return further[0]


def _stems_of(quote: Quote) -> set[str]:
    document = re.sub(r"[/._-]", " ", quote.document)
    return set(stem_words(f"{document} {quote.heading}: {' '.join(quote.texts)}"))


def _hold_amounts(sides: Sides, place: int, own: tuple[list[Quote], list[Quote]], kind: QuestionKind) -> _Held | None:
    """The amounts of a kind in the quotes of a side that come near the best with one; None where one is unsure."""
    holding = next((found for quotes in own if (found := _list_holding(sides, place, quotes, kind))), [])
    amounts: list[Amount] = []
    for quote, spans in holding:
        if quote.score < holding[0][0].score - NEAR:
            break
        read = [_read(span, quote.lead, kind) for span in spans]
        if is_conditional(quote.lead) or None in read:
            return None
        amounts += [amount for amount in read if amount]
    return _Held(tuple(amounts), holding[0][0]) if amounts else None


def _list_holding(
    sides: Sides, place: int, quotes: Sequence[Quote], kind: QuestionKind
) -> list[tuple[Quote, list[Span]]]:
    """The quotes that have an amount of a kind for a side, with its spans."""
    return [(quote, spans) for quote in quotes if (spans := _own_spans(sides, place, quote, kind))]


def _read(span: Span, sentence: str, kind: QuestionKind) -> Amount | None:
    return read_date(span.text) if kind.name == "date" else read_amount(span.text, _read_around(span, sentence))


def _own_spans(sides: Sides, place: int, quote: Quote, kind: QuestionKind) -> list[Span]:
    """The spans of a kind that a quote says of this side."""
    key, other = sides.key(place), sides.key(1 - place)
    spans = [
        span
        for span in find_spans(kind, quote.lead)
        if not (kind.name == "money" and is_for_something_else(span, quote.lead, sides.questions[place]))
    ]
    if not other & set(stem_words(quote.lead)):
        return spans
    clauses = [(span, set(stem_words(" ".join(read_clause(span, quote.lead))))) for span in spans]
    return [span for span, said in clauses if key & said and not other & said]


def _read_around(span: Span, sentence: str) -> str:
    """The clause of a span, or the sentence where it is alone; of a row, the first cell and the name of the column."""
    row = read_row(sentence)
    if not row:
        alone = len(find_spans(QuestionKind("money"), sentence)) == 1
        return sentence if alone else " ".join(read_clause(span, sentence))
    return " ".join([row[0][1].text, *(name for name, cell in row if cell.start <= span.start <= cell.end)])


def _conclude(sides: Sides, held: tuple[_Held, _Held], aim: Aim, question: str) -> Conclusion | None:
    first, second = held
    quotes = (first.quote, second.quote)
    if len({amount.unit for each in held for amount in each.amounts}) != 1:
        return None
    if aim in ("sum", "difference"):
        return _calculate(held, aim)
    if max(first.values) < min(second.values):
        lower = 0
    elif max(second.values) < min(first.values):
        lower = 1
    else:
        return None
    winner = lower if aim == "least" else 1 - lower
    if not sides.yes_no:
        return Conclusion((quotes[winner], quotes[1 - winner]), sides.names[winner])
    words = ("Ja", "Nein") if is_german(question) else ("Yes", "No")
    return Conclusion(quotes, words[winner])


def _calculate(held: tuple[_Held, _Held], aim: Aim) -> Conclusion | None:
    """A sum, or a difference that is not 0, of one amount each."""
    if any(len(each.values) != 1 for each in held):
        return None
    ordered = held if aim == "sum" else tuple(sorted(held, key=lambda each: -max(each.values)))
    amounts = [each.amounts[0] for each in ordered]
    sign, result = (
        ("+", sum(each.value for each in amounts)) if aim == "sum" else ("−", amounts[0].value - amounts[1].value)
    )
    return Conclusion(tuple(each.quote for each in ordered), write_calculation(amounts, sign, Decimal(result)))
