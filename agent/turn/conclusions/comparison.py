"""A sentence for each side of a comparison, and the conclusion where both hold one comparable amount.

Strict: amounts that hang on a condition, that are for something else, or of which there are several that would lead to
different conclusions, conclude nothing. The sentences answer then.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain, zip_longest
from typing import Literal

from agent.turn.direct_answer import is_for_something_else, read_clause
from agent.turn.question_kinds import QuestionKind, recognise_kind
from agent.turn.quotes import Quote
from agent.turn.spans.amounts_and_dates import Amount, read_amount, read_date, write_calculation
from agent.turn.spans.answer_spans import Span, find_spans, read_row
from agent.turn.spans.question_words import is_conditional, is_german, stem_words
from schemas.records import Hit, Passage, Query

Aim = Literal["least", "most", "sum", "difference", ""]
MAX_WORDS = 8  # of what stands on one side

_PREPOSITION = r"(?:(?:in|on|at|by|from|for|of|with|to|under|im|am|bei|beim|mit|für|von|auf|zu)\s+)"
_AUXILIARY = r"(?:is|are|was|were|do|does|did|has|have|will|would|can|ist|sind|war|waren)"
_COMPARATIVE = (
    r"(?:\b(?:more|less|fewer|most|least)\b|\b\w{2,}(?:er|est)\b"
    r"|\b(?:billiger|günstiger|teurer|älter|jünger|länger|kürzer)\w*)"
)
_SIDES = rf"(?:either\s+|both\s+)?{_PREPOSITION}?(?P<a>[^,?]+?)\s+(?:{{0}})\s+{_PREPOSITION}?(?P<b>[^,?]+?)"
_OR, _AND, _ANY = "or|oder", "and|und", "and|und|or|oder|with|to|mit"
_TOGETHER = r"(?:together|altogether|in total|combined|in all|zusammen|insgesamt)"
_PATTERNS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?P<base>.*{_COMPARATIVE}.*?)\s*[,:]\s*{_SIDES.format(_OR)}$",
        rf"(?P<base>(?:which|what|who|welche[rs]?|was|wer)\b.*{_COMPARATIVE})\s+{_SIDES.format(_OR)}$",
        rf"{_AUXILIARY}\s+{_SIDES.format(_OR)}\s+(?P<base>(?:the\s+)?{_COMPARATIVE}.*)$",
        rf"(?P<yes_no>{_AUXILIARY})\s+(?P<a>[^,?]+?)\s+(?P<base>{_COMPARATIVE}(?:\s\w+)?)\s+(?:than|als)\s+(?P<b>[^,?]+)$",
        rf"(?P<base>how much\s+{_COMPARATIVE}(?:\s\w+)?)\s+{_AUXILIARY}\s+(?P<a>[^,?]+?)\s+than\s+(?P<b>[^,?]+)$",
        rf"(?P<base>.*\bdifference\b.*?)\s+between\s+{_SIDES.format(_AND)}$",
        rf"(?P<base>(?:please\s+)?(?:compare|vergleiche))\s+{_SIDES.format(_ANY)}$",
        rf"(?P<base>how much\s+{_AUXILIARY})\s+{_SIDES.format(_AND)}\s+"
        rf"(?P<rest>\w+\s+{_TOGETHER}|{_TOGETHER}(?:\s\w+)?)$",
        r"(?P<base>.*?),?\s+(?P<p>with|for|in|at|from|by|to|on|bei|mit|für|in)\s+(?P<a>[^,?]+?)\s+(?:and|und)\s+"
        r"(?P=p)\s+(?P<b>[^,?]+)$",
        rf"(?P<base>(?:what|how (?:much|long|many|old|heavy)|when)\s+{_AUXILIARY})\s+"
        r"(?P<a>the [^,?]+?)\s+and\s+(?P<b>the [^,?]+?)"
        r"\s+(?P<rest>cost|weigh|last|take|keep|start|begin|open|close|end)$",
    )
)
_PAIR = re.compile(
    r"\b(?:the two|both|they|them|these|each|either|of the(?:se)? two|die beiden|beide\w*)\b", re.IGNORECASE
)
_MONEY, _DATE, _DURATION = QuestionKind("money"), QuestionKind("date"), QuestionKind("duration")
# What each comparative compares, and whether less or more of it is asked for.
_COMPARED: tuple[tuple[str, tuple[tuple[QuestionKind, Aim], ...]], ...] = (
    (r"cheap(?:er|est)|less expensive|costs? (?:the )?(?:less|least)|billiger|günstiger", ((_MONEY, "least"),)),
    (r"dearer|(?:more|most) expensive|costs? (?:the )?(?:more|most)|teurer", ((_MONEY, "most"),)),
    (r"old(?:er|est)|älter", ((QuestionKind("number", "age"), "most"), (_DATE, "least"))),
    (r"young(?:er|est)|jünger", ((QuestionKind("number", "age"), "least"), (_DATE, "most"))),
    (r"newer|newest|later|latest|später|more recent", ((_DATE, "most"),)),
    (r"earlier|earliest|sooner|früher", ((_DATE, "least"),)),
    (r"heav(?:ier|iest)|schwerer", ((QuestionKind("number", "weight"), "most"),)),
    (r"light(?:er|est)|leichter", ((QuestionKind("number", "weight"), "least"),)),
    (r"(?:long(?:er|est)|länger)", ((_DURATION, "most"), (QuestionKind("number", "length"), "most"))),
    (r"(?:short(?:er|est)|kürzer)", ((_DURATION, "least"), (QuestionKind("number", "length"), "least"))),
    (r"quick(?:er|est)|fast(?:er|est)|schneller", ((_DURATION, "least"),)),
    (r"tall(?:er|est)|high(?:er|est)|höher", ((QuestionKind("number", "length"), "most"),)),
    (r"(?:far|fur)ther|farthest|furthest|weiter", ((QuestionKind("number", "length"), "most"),)),
    (r"warmer|warmest|hotter|hottest|wärmer", ((QuestionKind("number", "temperature"), "most"),)),
    (r"cold(?:er|est)|cooler|coolest|kälter", ((QuestionKind("number", "temperature"), "least"),)),
)


@dataclass(frozen=True, slots=True)
class Sides:
    """What is compared, and how."""

    names: tuple[str, str]  # as they stand in the question
    questions: tuple[str, str]  # of each alone
    question: str  # the same without a name
    compared: tuple[tuple[QuestionKind, Aim], ...] = ()  # the first that both sides have an amount of counts
    yes_no: bool = False  # whether it is asked if it is so of the first side

    def key(self, place: int) -> frozenset[str]:
        """The stems that a sentence of one side has, or its document."""
        own, other = (frozenset(stem_words(self.names[n])) for n in (place, 1 - place))
        return own - other


def find_sides(utterance: str, earlier: Sequence[str] = ()) -> Sides | None:
    """The sides of a question; of "the two", those of an earlier one. None where it has none."""
    sentences = [part.strip() for part in re.split(r"[?!]|\.(?=\s|$)", utterance) if part.strip()]
    if not sentences:
        return None
    *before, last = sentences
    if sides := _match_sides(last):
        return sides
    spoken = [*(part for text in earlier for part in re.split(r"[?!]", text)), *before]
    found = next((sides for text in reversed(spoken) if (sides := _match_sides(text.strip()))), None)
    if found is None or not _PAIR.search(last):
        return None
    return _describe(found.names, _PAIR.sub("", last), last)


def _match_sides(sentence: str) -> Sides | None:
    sentence = " ".join(sentence.split())
    for pattern in _PATTERNS:
        if match := pattern.match(sentence):
            groups = {name: text for name, text in match.groupdict().items() if text}
            names = (_clean_name(groups["a"]), _clean_name(groups["b"]))
            sides = _describe(names, f"{groups['base']} {groups.get('rest', '')}", sentence, yes_no="yes_no" in groups)
            short = all(0 < len(name.split()) <= MAX_WORDS for name in names)
            return sides if short and sides.key(0) and sides.key(1) else None
    return None


def _clean_name(name: str) -> str:
    return re.sub(rf"^(?:either|both)?\s*{_PREPOSITION}", "", name.strip(" .,:"), flags=re.IGNORECASE)


def _describe(names: tuple[str, str], base: str, sentence: str, *, yes_no: bool = False) -> Sides:
    compared = next(
        (kinds for words, kinds in _COMPARED if re.search(rf"\b(?:{words})\b", sentence, re.IGNORECASE)), ()
    )
    if re.search(rf"\b{_TOGETHER}\b", sentence, re.IGNORECASE):
        compared = tuple((kind, "sum") for kind in _kinds_of(base))
    elif re.match(r"(?:by )?how much", sentence, re.IGNORECASE) and compared:
        compared = tuple((kind, "difference") for kind, _ in compared if kind.name != "date")
    elif re.search(r"\bdifference\b", sentence, re.IGNORECASE):
        compared = tuple((kind, "difference") for kind in _kinds_of(base))
    first, second, neither = (_ask_alone(name, base, compared) for name in (*names, ""))
    return Sides(names, (first, second), neither, compared, yes_no)


def _ask_alone(name: str, base: str, compared: Sequence[tuple[QuestionKind, Aim]]) -> str:
    """What is asked of one side; of what is compared by its price: "What does the Havblikk cost (room)?"."""
    plain = " ".join(re.sub(_COMPARATIVE, " ", base, flags=re.IGNORECASE).split())
    if not any(kind.name == "money" for kind, _ in compared):
        return f"{plain} {name}".strip()
    words = [
        word for word in plain.split() if set(stem_words(word)) - set(stem_words("cost expensive price difference"))
    ]
    of_what = f" ({' '.join(words)})" if words else ""
    return f"What does {name or 'it'} cost{of_what}?"


def _kinds_of(base: str) -> tuple[QuestionKind, ...]:
    """What a sum or a difference is of."""
    if re.search(r"\b(?:costs?|price|prices|pay|paid|kosten|preis)\b", base, re.IGNORECASE):
        return (_MONEY,)
    if re.search(r"\bweighs?|weight\b", base, re.IGNORECASE):
        return (QuestionKind("number", "weight"),)
    kind = recognise_kind(base)
    return (kind,) if kind.name in ("money", "duration") else ()


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


def put_sides_first(query: Query, hits: tuple[Hit, ...], search: Callable[[Query], tuple[Hit, ...]]) -> tuple[Hit, ...]:
    """The hits in the order they are read in: for a question with sides, the best of each side in turn."""
    sides = find_sides(query.utterance, query.earlier_utterances)
    if sides is None:
        return hits
    found = {hit.id: hit for hit in hits}
    of_each = [[hit.id for hit in search(Query(asked)) if hit.id in found] for asked in sides.questions]
    alternating = (id for id in chain.from_iterable(zip_longest(*of_each)) if id)
    return tuple(found[id] for id in dict.fromkeys((*alternating, *found)))
