"""The two things that a question compares or adds up ("the train or the ferry"), and what is asked of each.

English and German. In doubt there are no sides, and the question is answered like any other.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.turn.question_kinds import QuestionKind, recognise_kind
from agent.turn.spans.question_words import stem_words

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
