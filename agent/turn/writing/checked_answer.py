"""An answer that grows sentence by sentence, each checked before anybody is shown it."""

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.models.protocol import LanguageModel
from indexes.text.response_length import leading_within_limit
from schemas.records import Response, Sentence

ResponseListener = Callable[[Response], None]


@dataclass(frozen=True, slots=True)
class Writer:
    """A model that may write the answer, and who is shown what of it is certain while it writes."""

    llm: LanguageModel
    show: ResponseListener | None = None  # is handed the answer so far, each time that another sentence was checked
    leads: bool = True  # whether the first sentence has to say what the reader is sure of: not of a summary
    quotes: bool = False  # whether sentences must stay as they stand: where something has to be heeded


@dataclass(slots=True)
class CheckedAnswer:
    """An answer that grows by checked sentences, each once, up to its length."""

    tokens: int
    show: ResponseListener | None
    sentences: list[Sentence] = field(default_factory=list)
    is_full: bool = False

    def add(self, sentence: Sentence) -> None:
        """Add a sentence that a passage supports and that has room; nothing after one that has none."""
        if not sentence.passage_ids or self.is_full or sentence in self.sentences:
            return
        longer = [*self.sentences, sentence]
        self.is_full = len(leading_within_limit((each.text for each in longer), self.tokens)) < len(longer)
        if not self.is_full:
            self.sentences = longer
            if self.show:
                self.show(Response(tuple(longer)))
