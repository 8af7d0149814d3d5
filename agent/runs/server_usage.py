"""What a run took of a server: requests, tokens and seconds, summed over the lines of its trace."""

from collections.abc import Iterable
from dataclasses import dataclass

from agent.runs.trace import TraceLine
from schemas.records import Call


@dataclass(frozen=True, slots=True)
class ServerUsage:
    """Sums over the calls that a server was sent for the turns as they stand. What came from our cache took nothing."""

    calls: int = 0
    requests: int = 0
    prompt_tokens: int = 0  # all of them, those that the server had in its own cache included
    cached_tokens: int = 0  # the part of the prompt's that it had there
    completion_tokens: int = 0
    seconds: float = 0.0  # waiting for one's turn included

    @property
    def repeated(self) -> int:
        """Requests beside the first of each call: after a failure, or because the server did not take their form."""
        return self.requests - self.calls


def sum_server_usage(lines: Iterable[TraceLine]) -> ServerUsage:
    """What the turns of these lines took."""
    usage = ServerUsage()
    for line in lines:
        for call in line.calls:
            if call.requests:
                usage = _add_call(usage, call)
    return usage


def _add_call(usage: ServerUsage, call: Call) -> ServerUsage:
    return ServerUsage(
        usage.calls + 1,
        usage.requests + call.requests,
        usage.prompt_tokens + call.tokens_read + call.prefix_tokens,
        usage.cached_tokens + call.prefix_tokens,
        usage.completion_tokens + call.tokens_written,
        usage.seconds + call.seconds,
    )
