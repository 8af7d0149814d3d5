"""Which model answers in the pages: the one that `serve` was started with, or another of this machine."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from agent.chat.session import Assistant
from agent.models.catalogue import list_models
from schemas.errors import MissingError, UsageError


@dataclass(slots=True)
class ModelChoice:
    """The assistant that answers in the pages, which may be replaced by one with another model.

    Only models of the list may be chosen: a request names no file and no server.
    """

    assistant: Assistant
    describe_destination: Callable[[str], str]  # where questions go with a model of that name
    open: Callable[[str], Assistant] | None = None  # None where the model may not be chosen
    _first: Assistant = field(init=False)  # that `/v1` answers with, too
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._first = self.assistant

    @property
    def destination(self) -> str:
        return self.describe_destination(self.assistant.model)

    def list_names(self) -> tuple[str, ...]:
        """The models that can be chosen, the first one first. Raises `MissingError` where none may be."""
        if self.open is None:
            raise MissingError("the model of this server is chosen by whoever runs it")
        installed = [model.name for model in list_models() if model.kind == "language" and model.bytes]
        return tuple(dict.fromkeys((self._first.model, *installed, "none")))

    def choose(self, name: str) -> None:
        """Let the next question be answered with this model; a question in hand keeps its own.

        Raises `UsageError` for one that is not in the list, and what opening a model raises.
        """
        if name not in self.list_names() or self.open is None:
            raise UsageError(f"{name!r} is not in the list of models", remedy="`convagent model pull` fetches others.")
        with self._turn:
            if name == self._first.model:
                self.assistant = self._first
            elif name != self.assistant.model:
                self.assistant = self.open(name)
