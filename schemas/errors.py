"""One exception base. Every error says what is wrong, where, and what to do next; the command line prints just that."""

from collections.abc import Sequence

from schemas.secrets import hide_secrets

MOST_LINES, LONGEST_LINE = 100, 500  # of what is told; names and places of a bad file can be of any length


def list_with_limit(items: Sequence[object], limit: int, more: str = "... and {} more") -> list[str]:
    """The first `limit` items as text; where there are more, a last entry says how many."""
    rest = [more.format(len(items) - limit)] if len(items) > limit else []
    return [*map(str, items[:limit]), *rest]


def format_count(count: int, noun: str) -> str:
    """A number with its noun, of regular plural: "1 problem", "2,000 problems"."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class ConvagentError(Exception):
    """What, where and the remedy; `exit_code` is the command line's (docs: README, "Exit codes").

    None of them repeats a key or a password, whoever's words they hold.
    """

    exit_code = 6

    def __init__(self, what: str, *, where: str = "", remedy: str = "") -> None:
        self.what, self.where, self.remedy = map(hide_secrets, (what, where, remedy))
        super().__init__(self.what)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{place}{_clip(self.what)}{advice}"


def _clip(text: str) -> str:
    lines = [line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}..." for line in text.split("\n")]
    return "\n".join(list_with_limit(lines, MOST_LINES, "  ... and {} more"))


class UsageError(ConvagentError):
    """Arguments that cannot be meant."""

    exit_code = 2


class MissingError(ConvagentError):
    """A file, an index or a model that is not there."""

    exit_code = 4


class InvalidInputError(ConvagentError):
    """A file whose contents are not what they should be."""

    exit_code = 5


class RunError(ConvagentError):
    """Something failed while running."""


class ModelError(RunError):
    """A model could not be asked, or gave nothing that can be used. The flow does without it."""


class ModelReplyError(ModelError):
    """A model replied with something other than what was asked for."""
