"""`/v1/embeddings`: vectors of texts by the server's embedding model, kept nowhere; `/v1/models`: it and the agent."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.models.cancellation import CancellationToken
from agent.serve.request_queue import RequestQueue
from agent.serve.v1.answering import wait_for_result
from agent.serve.v1.requests import (
    MODEL,
    RequestError,
    decode_request,
    name_ignored,
    refuse,
    refuse_model,
)
from indexes.ranking.vectors import Embedder, Vectors, leave_cache_out

MAX_TEXTS = 256  # of one request


class EmbeddingRequest(msgspec.Struct):
    """A request. Other fields that it may have (`user`) have no effect, and the reply says so."""

    model: str
    input: str | list[Any]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: int | None = None

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts. Raises `RequestError` for tokens, too many texts, and empty ones."""
        texts = (self.input,) if isinstance(self.input, str) else tuple(self.input)
        if not all(isinstance(text, str) for text in texts):
            told = "input must be a string or a list of strings; tokens of another model mean nothing to this one"
            raise refuse("input", f"{told} (LangChain: check_embedding_ctx_length=False)")
        if not texts or not all(text.strip() for text in texts):
            raise RequestError(400, "input must not be empty, nor any of its texts", param="input")
        if len(texts) > MAX_TEXTS:
            raise RequestError(400, f"input has {len(texts)} texts, where at most {MAX_TEXTS} are taken", param="input")
        return texts


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The endpoints. Texts wait in the same queue as questions."""

    embedder: Embedder | None
    queue: RequestQueue

    def routes(self) -> list[Route]:
        return [
            Route("/v1/embeddings", self.embed, methods=["POST"]),
            Route("/v1/models", self.list_models),
            Route("/v1/models/{model:path}", self.show_model),
        ]

    async def list_models(self, _request: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_describe_model(name) for name in self._names]})

    async def show_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        if name not in self._names:
            raise refuse_model(name, ", ".join(self._names))
        return JSONResponse(_describe_model(name))

    @property
    def _names(self) -> list[str]:
        return [MODEL, self.embedder.name] if self.embedder else [MODEL]

    async def embed(self, request: Request) -> Response:
        """One vector of length 1 for each text, in their order."""
        asked, ignored = decode_request(await request.body(), EmbeddingRequest)
        embedder, texts = self._find_embedder(asked.model), asked.texts
        if asked.dimensions is not None:
            told = f"dimensions cannot be chosen: a vector has {embedder.size} numbers"
            raise refuse("dimensions", told, "unsupported_parameter")
        job = self.queue.submit(lambda observer: embed_texts(texts, embedder, observer.token), request.state.user)
        vectors, tokens = await wait_for_result(request, job)
        rows = vectors.astype("<f4")
        is_base64 = asked.encoding_format == "base64"
        encoded = [base64.b64encode(row.tobytes()).decode() for row in rows] if is_base64 else rows.tolist()
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(encoded)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        reply = {"object": "list", "data": data, "model": embedder.name, "usage": usage}
        return JSONResponse(reply, 200, name_ignored(ignored))

    def _find_embedder(self, name: str) -> Embedder:
        if self.embedder is None:
            message = "this server has no embedding model (serve --embedder opens one)"
            raise RequestError(404, message, param="model", code="model_not_found")
        if name != self.embedder.name:
            raise refuse_model(name, self.embedder.name)
        return self.embedder


def embed_texts(texts: Sequence[str], embedder: Embedder, token: CancellationToken) -> tuple[Vectors, int]:
    """Vectors, without a look into any cache, and how many tokens the texts have together.

    Raises `RequestError` for a text of which the end would be cut off, and `AnswerCancelledError` between two texts.
    """
    counts = [embedder.count_tokens(text) for text in texts]
    for place, count in enumerate(counts):
        if count > embedder.max_tokens:
            told = f"input[{place}] has {count} tokens, where {embedder.name} reads at most {embedder.max_tokens}"
            raise RequestError(400, told, param="input", code="context_length_exceeded")
    rows = []
    for text in texts:
        token.raise_if_cancelled()
        rows.append(leave_cache_out(embedder).embed([text]))
    return np.concatenate(rows), sum(counts)


def _describe_model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "local"}
