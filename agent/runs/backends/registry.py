"""Opening a backend by its name. `agent/runs/backends/protocol.py` says what a backend is."""

from contextlib import AbstractContextManager

from agent.runs.backends.protocol import Backend, Workforce
from agent.runs.backends.ray_cluster import is_cluster
from schemas.errors import UsageError

LOCAL = "local"
BACKEND_CHOICES = "local, ray, ray://HOST:PORT"


def open_backend(name: str, workforce: Workforce) -> AbstractContextManager[Backend]:
    """The workers, opened where the name says. Raises `UsageError` for an unknown name, and what opening raises."""
    if name == LOCAL:
        from agent.runs.backends.local import open_local

        return open_local(workforce)
    if is_cluster(name):
        from agent.runs.backends.ray import open_ray

        return open_ray(name, workforce)
    raise UsageError(f"unknown backend {name!r} (available: {BACKEND_CHOICES})")
