"""How many requests a user may send: many at once, as a page does that is opened, and then so many a second.

What open pages ask by themselves, again and again, is counted apart: any number of tabs leaves room for questions.
"""

import math
import time
from dataclasses import dataclass, field

BURST = 400  # requests at once
PER_SECOND = 20.0  # later on
POLLS_AT_ONCE, POLLS_PER_SECOND = 2000, 200.0  # a page that waits for an answer asks two or three times a second


@dataclass(slots=True)
class RequestLimit:
    """A token bucket for each user."""

    burst: int = BURST
    per_second: float = PER_SECOND
    _left: dict[str, tuple[float, float]] = field(default_factory=dict)  # requests left, and when that was so

    def count_request(self, user: str) -> int:
        """Count a request; 0 where it may be answered, else the seconds after which it is worth trying again."""
        now = time.monotonic()
        left, before = self._left.get(user, (float(self.burst), now))
        left = min(self.burst, left + (now - before) * self.per_second)
        is_allowed = left >= 1
        self._left[user] = (left - is_allowed, now)
        return 0 if is_allowed else math.ceil((1 - left) / self.per_second)
