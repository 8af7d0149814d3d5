"""How long work shows its progress, without knowing where it is shown."""

from collections.abc import Callable
from contextlib import AbstractContextManager

# A stage's name and how many things it has; entering gives a function that is called with how many are done.
StageProgress = Callable[[str, int], AbstractContextManager[Callable[[int], None]]]
