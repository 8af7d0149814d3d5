"""An answer as short as a request wants it: up to a stop string, and of so many tokens."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.serve.v1.errors import RequestError
from indexes.text.response_length import response_length

MAX_STOPS = 4  # as OpenAI's


@dataclass(frozen=True, slots=True)
class AnswerLimits:
    """Where an answer ends. `max_tokens` are counted in the text as it is sent, as the tracks count (the stricter)."""

    stop: tuple[str, ...] = ()
    max_tokens: int | None = None

    def shorten(self, pieces: Iterable[str]) -> "Shortening":
        """An answer that is there already."""
        shortening = Shortening(self)
        for piece in pieces:
            shortening.add(piece)
        shortening.end()
        return shortening


@dataclass(slots=True)
class Shortening:
    """An answer that is taken in piece by piece. What may be the beginning of a stop string is held back."""

    limits: AnswerLimits
    text: str = ""  # all of the answer so far
    sent: int = 0  # characters of it that were given out
    is_stopped: bool = False  # by a stop string
    is_too_long: bool = False  # for the limit of tokens, so that whole pieces were left out

    @property
    def is_ended(self) -> bool:
        return self.is_stopped or self.is_too_long

    def add(self, piece: str) -> str:
        """Take a piece in; what can be given out now."""
        if self.is_ended:
            return ""
        longer = self.text + piece
        found = [place for stop in self.limits.stop if (place := longer.find(stop)) >= 0]
        kept = longer[: min(found)] if found else longer
        if self.limits.max_tokens is not None and response_length(kept) > self.limits.max_tokens:
            self.is_too_long = True
            return self.end()
        self.text, self.is_stopped = kept, bool(found)
        return self.end() if found else self._give_out(len(kept) - _count_held_back(kept, self.limits.stop))

    def end(self) -> str:
        """What was held back."""
        return self._give_out(len(self.text))

    def _give_out(self, end: int) -> str:
        given, self.sent = self.text[self.sent : end], max(self.sent, end)
        return given


def _count_held_back(text: str, stops: Sequence[str]) -> int:
    """How many characters at the end of a text may be the beginning of a stop string."""
    lengths = (length for stop in stops for length in range(len(stop) - 1, 0, -1) if text.endswith(stop[:length]))
    return max(lengths, default=0)


def read_stop(stop: str | list[str] | None) -> tuple[str, ...]:
    """The stop strings of a request. Raises `RequestError` for empty or too many ones."""
    stops = (stop,) if isinstance(stop, str) else tuple(stop or ())
    if len(stops) > MAX_STOPS or not all(stops):
        raise RequestError(400, f"stop takes up to {MAX_STOPS} strings, none of them empty", param="stop")
    return stops
