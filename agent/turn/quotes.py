"""What can be quoted from passages: each statement of theirs, with what must be shown with it."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.turn.question_words import stem_words
from indexes.text.analysis import extract_stems
from indexes.text.response_length import MAX_TOKENS, response_length
from indexes.text.sentences import split_sentences
from indexes.text.units import find_units_to_quote, split_units
from schemas.records import Passage, Unit
from schemas.tuning import AnswerTuning

MAX_CONTEXT_WORDS = 25  # of the unit before


@dataclass(frozen=True, slots=True)
class Reading:
    """What the reader makes of one quote (`reading.py`); all numbers are logits."""

    margin: float = 0.0  # above 0, an answer within it is likelier than none in the passage; 0 where nobody reads
    text: str = ""  # the words that answer best, as they stand in the passage
    lead: float = 0.0  # how much likelier they are than any others of the passage


@dataclass(frozen=True, slots=True)
class Quote:
    """A unit of a passage that may become part of an answer."""

    lead: str  # the unit itself, by which the quote is judged
    texts: tuple[str, ...]  # what is shown: the unit, and those that must be shown with it, in their order
    heading: str  # the headings that the unit stands under
    passage: Passage
    rank: int  # of its passage, from 0
    place: int  # in its passage, from 0
    doubtful: bool = False  # a heading may be glued to its front
    score: float = 0.0
    reading: Reading = Reading()

    @property
    def document(self) -> str:
        """What stands before the place in its passage's id."""
        return self.passage.document

    @property
    def language(self) -> str:
        """Of its document."""
        return self.passage.language

    @property
    def headed(self) -> str:
        """The unit after its headings."""
        return f"{self.heading}: {self.lead}" if self.heading else self.lead

    @property
    def in_context(self) -> str:
        """The unit on a line of its own, after its headings and the end of the unit before it."""
        before = split_units(self.passage)[self.place - 1].text.split()[-MAX_CONTEXT_WORDS:] if self.place else []
        return self.headed.removesuffix(self.lead) + f"{' '.join(before)}\n{self.lead}" if before else self.headed

    @property
    def length(self) -> int:
        """Words shown."""
        return sum(len(text.split()) for text in self.texts)

    def stems(self) -> frozenset[str]:
        """The stems of what is shown."""
        return frozenset(extract_stems(" ".join(self.texts), self.language))

    def headed_stems(self) -> frozenset[str]:
        """The stems of the words that say something, of what is shown and of the headings."""
        return frozenset(stem_words(f"{self.heading}: {' '.join(self.texts)}", self.language))


def find_quotes(passages: Sequence[Passage], tuning: AnswerTuning) -> list[Quote]:
    """Everything that can be quoted, each text once; where there is no statement at all, the passages' beginnings."""
    numbered = list(enumerate(passages))
    made = (_make_quote(passage, unit, rank, tuning) for rank, passage in numbered for unit in split_units(passage))
    found = [quote for quote in made if quote] or [
        Quote(text, (text,), passage.title, passage, rank, 0)
        for rank, passage in numbered
        if (text := truncate_words(passage.text, MAX_TOKENS, tuning.max_sentence_words))
    ]
    return list({(quote.lead, quote.texts): quote for quote in reversed(found)}.values())[::-1]


def _make_quote(passage: Passage, unit: Unit, rank: int, tuning: AnswerTuning) -> Quote | None:
    """The quote of a unit; None for a question, a title in capitals, a very long one, and what cannot stand alone."""
    shown = find_units_to_quote(split_units(passage), unit.place)
    texts = tuple(end_sentence(each.text) for each in shown)
    words = len(unit.text.split())
    says_nothing = unit.text.isupper() or unit.text.rstrip("\"'”’)").endswith("?")
    if not shown or words > tuning.max_sentence_words or says_nothing:
        return None
    return Quote(
        end_sentence(unit.text),
        texts,
        ": ".join(unit.headings),
        passage,
        rank,
        unit.place,
        any(each.may_have_heading for each in shown),
    )


def end_sentence(text: str) -> str:
    """With a full stop where the next sentence would else be taken for a part of it, if that helps: not of 8 p.m."""
    stopped = f"{text.rstrip(' :;,-–—')}."
    return next((ended for ended in (text, stopped) if split_sentences(f"{ended} Then.")[-1] == "Then."), text)


def truncate_words(text: str, tokens: int, max_words: int) -> str:
    """The beginning of a text: a passage without a sentence of ordinary length is quoted like this."""
    words = text.split()[:max_words]
    while words and response_length(" ".join(words)) > tokens:
        words.pop()
    return " ".join(words)


def to_sentence(text: str) -> str:
    """A few words as they are shown first: `nine days` is `Nine days.`; `iCloud` stays."""
    first = text[:1].upper() if text.partition(" ")[0][1:].islower() else text[:1]
    return f"{first}{text[1:].rstrip(' .')}."
