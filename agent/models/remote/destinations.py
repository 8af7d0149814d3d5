"""Where questions, passages and statements go: nowhere, unless a model is behind an address."""

from urllib.parse import urlsplit

from agent.models.registry import is_server_address
from schemas.addresses import is_loopback

STAYS = "Nothing leaves this machine."
STAYS_WITH_SERVER = "What you ask goes to this server and no further."


def describe_destination(model: str, embedder: str | None, *, is_shared: bool = False) -> str:
    """A sentence for the person who asks; `is_shared` where that may be from another machine."""
    hosts = [_find_host(name) for name in (model, embedder or "") if is_server_address(name)]
    if not hosts:
        return STAYS_WITH_SERVER if is_shared else STAYS
    return f"Questions, passages and statements go to {' and '.join(dict.fromkeys(hosts))}."


def _find_host(address: str) -> str:
    """The host of an address, without a user or password; whether it is this machine."""
    try:
        url = urlsplit(address)
        host, port = url.hostname or "", url.port
    except ValueError:
        return "the model's server"
    named = f"{host}:{port}" if port else host
    return f"the server {named} on this machine" if is_loopback(host) else f"the server {named}, over the network"
