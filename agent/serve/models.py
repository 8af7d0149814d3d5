"""Which model answers, and a larger one fetched at a press: on a server of one person on this machine."""

import subprocess
import sys
import threading
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from agent.chat.session import Assistant
from agent.models.catalogue import ModelEntry, RecommendedModel, choose_model, list_models, list_recommended
from agent.models.hub import count_received
from agent.serve.rendering import read_form, render_page
from schemas.errors import ConvagentError, UsageError


@dataclass(slots=True)
class Fetch:
    """A model that is fetched by `convagent model pull` in a process of its own, which can be ended at any time."""

    model: RecommendedModel
    process: "subprocess.Popen[str]"
    problem: str = ""

    @property
    def share(self) -> float:
        """How much of it is here, 0 to 1."""
        return min(1.0, count_received(self.model.name) / self.model.bytes)


@dataclass(slots=True)
class ModelPages:
    """The page of models. What is chosen there answers from the next question on, here and after a new start."""

    assistant: Assistant
    fetch: Fetch | None = None

    def routes(self) -> list[Route]:
        return [
            Route("/models", self.show),
            Route("/models/use", self.use, methods=["POST"]),
            Route("/models/get", self.get, methods=["POST"]),
            Route("/models/stop", self.stop, methods=["POST"]),
        ]

    def show(self, _request: Request) -> Response:
        others, fetch = list_recommended(), self.fetch
        values = {"assistant": self.assistant, "here": _list_here(), "others": others, "fetch": fetch}
        return render_page("models.html", values)

    async def use(self, request: Request) -> Response:
        """Let one answer that is here. Raises `UsageError` for any other."""
        name = (await read_form(request)).get("name", "")
        if name not in {model.name for model in _list_here()}:
            raise UsageError(f"{name!r} is no model of this machine")
        await run_in_threadpool(self._switch, name)
        return RedirectResponse("/models", 303)

    async def get(self, request: Request) -> Response:
        """Begin to fetch one that is recommended, unless one is on its way. Raises `UsageError` for any other."""
        name = (await read_form(request)).get("name", "")
        model = next((model for model in list_recommended() if model.name == name), None)
        if model is None:
            raise UsageError(f"{name!r} is not among the models to be had")
        if self.fetch is None or self.fetch.problem:
            command = [sys.executable, "-m", "cli", "--quiet", "model", "pull", name]
            nowhere, kept = subprocess.DEVNULL, subprocess.PIPE
            self.fetch = Fetch(model, subprocess.Popen(command, text=True, stdout=nowhere, stderr=kept))  # noqa: S603
            threading.Thread(target=self._finish, args=(self.fetch,), name="fetching", daemon=True).start()
        return RedirectResponse("/models", 303)

    def stop(self, _request: Request) -> Response:
        """End what is fetched; what came of it is kept, and fetching goes on from there."""
        self.close()
        return RedirectResponse("/models", 303)

    def close(self) -> None:
        """Leave no process behind."""
        fetch, self.fetch = self.fetch, None
        if fetch:
            fetch.process.terminate()

    def _finish(self, fetch: Fetch) -> None:
        """Wait for the process, then let the model answer."""
        _, said = fetch.process.communicate()
        if self.fetch is not fetch:  # it was stopped
            return
        try:
            if fetch.process.returncode:
                told = said.rpartition("convagent: ")[2].strip()  # without what libraries said before it
                fetch.problem = told.replace("\n  ", ". ") or "it could not be fetched"
            else:
                self._switch(fetch.model.name)
                self.fetch = None
        except ConvagentError as error:
            fetch.problem = str(error)

    def _switch(self, name: str) -> None:
        self.assistant.use_model(name)
        choose_model(name)


def _list_here() -> list[ModelEntry]:
    return [model for model in list_models() if model.kind == "language" and model.bytes]
