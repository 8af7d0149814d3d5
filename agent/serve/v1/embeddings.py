"""`/v1/embeddings`: vectors of texts by the server's embedding model, kept nowhere; `/v1/models`: it and the agent."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agent.models.cancellation import CancellationToken
from agent.serve.request_queue import RequestQueue
from agent.serve.v1.requests import MODEL, ModelRequest, RequestError, decode_request, name_ignored, wait_for_result
from indexes.ranking.vectors import Embedder, Vectors, leave_cache_out

MAX_TEXTS = 256  # of one request
Text = Annotated[str, msgspec.Meta(pattern=r"\S")]


class EmbeddingRequest(ModelRequest):
    """A request. Other fields that it may have (`user`) have no effect, and the reply says so."""

    input: Text | Annotated[list[Text], msgspec.Meta(min_length=1, max_length=MAX_TEXTS)]
    encoding_format: Literal["float", "base64"] | None = "float"


@dataclass(frozen=True, slots=True)
class Embeddings:
    """The endpoints. Texts wait in the same queue as questions."""

    embedder: Embedder | None
    queue: RequestQueue

    def routes(self) -> list[Route]:
        return [
            Route("/v1/embeddings", self.embed, methods=["POST"]),
            Route("/v1/models", self.list_models),
        ]

    async def list_models(self, _request: Request) -> Response:
        names = [MODEL, self.embedder.name] if self.embedder else [MODEL]
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "local"} for name in names]
        return JSONResponse({"object": "list", "data": models})

    async def embed(self, request: Request) -> Response:
        """One vector of length 1 for each text, in their order."""
        if (embedder := self.embedder) is None:
            told = "this server has no embedding model (serve --embedder opens one)"
            raise RequestError(404, told, "model", "model_not_found")
        asked, ignored = decode_request(await request.body(), EmbeddingRequest, embedder.name)
        texts = [asked.input] if isinstance(asked.input, str) else asked.input
        job = self.queue.submit(lambda observer: embed_texts(texts, embedder, observer.token), request.state.user)
        vectors, tokens = await wait_for_result(request, job)
        rows = vectors.astype("<f4")
        is_base64 = asked.encoding_format == "base64"
        encoded = [base64.b64encode(row.tobytes()).decode() for row in rows] if is_base64 else rows.tolist()
        data = [{"object": "embedding", "index": place, "embedding": row} for place, row in enumerate(encoded)]
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        reply = {"object": "list", "data": data, "model": embedder.name, "usage": usage}
        return JSONResponse(reply, 200, name_ignored(ignored))


def embed_texts(texts: Sequence[str], embedder: Embedder, token: CancellationToken) -> tuple[Vectors, int]:
    """Vectors, without a look into any cache, and how many tokens the texts have together.

    Raises `RequestError` for a text of which the end would be cut off, and `AnswerCancelledError` between two texts.
    """
    counts = [embedder.count_tokens(text) for text in texts]
    for place, count in enumerate(counts):
        if count > embedder.max_tokens:
            told = f"input[{place}] has {count} tokens, where {embedder.name} reads at most {embedder.max_tokens}"
            raise RequestError(400, told, "input", "context_length_exceeded")
    rows = []
    for text in texts:
        token.raise_if_cancelled()
        rows.append(leave_cache_out(embedder).embed([text]))
    return np.concatenate(rows), sum(counts)
