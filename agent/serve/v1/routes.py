"""All paths of `/v1`."""

from starlette.routing import Route

from agent.chat.session import Assistant
from agent.chat.store import Store
from agent.serve.request_queue import RequestQueue
from agent.serve.v1.answering import Answering
from agent.serve.v1.completions import Completions
from agent.serve.v1.embeddings import Embeddings
from agent.serve.v1.models import Models
from agent.serve.v1.responses import Responses


def make_routes(assistant: Assistant, store: Store, queue: RequestQueue) -> list[Route]:
    """Models, chat completions, responses and embeddings."""
    answering, embedder = Answering(assistant, store, queue), assistant.tools.embedder
    endpoints = (Models(embedder), Completions(answering), Responses(answering), Embeddings(embedder, queue))
    return [route for endpoint in endpoints for route in endpoint.routes()]
