"""`/v1/models`: the agent, and the embedding model where there is one."""

from dataclasses import dataclass
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.serve.v1.answering import MODEL
from agent.serve.v1.errors import RequestError
from indexes.ranking.vectors import Embedder


@dataclass(frozen=True, slots=True)
class Models:
    """The endpoints."""

    embedder: Embedder | None

    def routes(self) -> list[Route]:
        return [Route("/v1/models", self.list_models), Route("/v1/models/{model:path}", self.show_model)]

    async def list_models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_describe(name) for name in self._names]})

    async def show_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._names:
            raise _make_unknown_error(name, ", ".join(self._names))
        return JSONResponse(_describe(name))

    @property
    def _names(self) -> list[str]:
        return [MODEL, self.embedder.name] if self.embedder else [MODEL]


def check_chat_model(name: str) -> None:
    """Raise `RequestError` for another model than the agent."""
    if name != MODEL:
        raise _make_unknown_error(name, MODEL)


def check_embedding_model(name: str, embedder: Embedder | None) -> Embedder:
    """The embedding model. Raises `RequestError` for another one, or where there is none."""
    if embedder is None:
        message = "this server has no embedding model (serve --embedder opens one)"
        raise RequestError(404, message, param="model", code="model_not_found")
    if name != embedder.name:
        raise _make_unknown_error(name, embedder.name)
    return embedder


def _make_unknown_error(name: str, available: str) -> RequestError:
    message = f"unknown model {name!r} (available: {available})"
    return RequestError(404, message, param="model", code="model_not_found")


def _describe(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "local"}
