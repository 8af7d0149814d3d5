"""A Ray cluster, one of this machine alone that ends with the run or one that is joined, and actors on it.

What goes wrong with Ray's defaults is put right here, and nowhere else: it counts its users, listens on every network,
shows its workers' logs as its own, takes RAY_ADDRESS for a wish to join, gives workers threads by their number of
processors and next to none of the time of those, asks which cloud it is in, puts its sockets where their path may be
too long for the system, and takes the SIGTERM handler. Arguments of actors are copied to each of them: hand over paths,
not what the files hold.
"""

import logging
import os
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import Any

from agent.models.hub import PREFIX
from agent.models.local.hardware import threads_to_use
from agent.models.registry import is_server_address
from indexes.storage.atomic_files import scratch_directory
from schemas.errors import ConvagentError, MissingError, RunError, UsageError

EXTRA = "ray"
SCHEME = "ray://"
OBJECT_STORE_BYTES = 128 << 20  # of a cluster of our own; the results of turns are small
HOME = Path("/tmp" if os.name == "posix" else tempfile.gettempdir())  # noqa: S108  of a socket: paths have 107 bytes
LOOPBACK = ("127.", "localhost:")
ALWAYS = {"RAY_USAGE_STATS_ENABLED": "0"}
OWN_DEFAULTS = {
    "RAY_AUTH_MODE": "token",  # no other user of this machine may have it run something
    "RAY_worker_niceness": "0",  # it is 15: beside any other program, workers would stand still
}
LOOPBACK_ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # whatever its name says, on every system; read at import
PATIENCE_SECONDS = 10  # until a head that cannot be reached counts as not being there; Ray would try for many minutes
MAX_LOSSES = 3  # of actors at one task, until the run ends
log = logging.getLogger("convagent")


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster that this process has joined, and how many threads each worker may have on it."""

    ray: Any  # the module
    threads: int

    def start_actor(self, cls: type, *arguments: object) -> Any:
        """An actor that is an object of the class, as a process of its own.

        It takes as many of its node's processors as it has threads, and waits for them where they are taken. It may be
        lost at any time, or its node: Ray then starts it again, and asks it again, `MAX_LOSSES` times altogether.
        """
        threads = {"OMP_NUM_THREADS": str(self.threads)}  # the same on every node: sums differ by it in the last bits
        options = {
            "num_cpus": self.threads,
            "runtime_env": {"env_vars": threads},
            "max_restarts": -1,
            "max_task_retries": MAX_LOSSES - 1,
        }
        return self.ray.remote(cls).options(**options).remote(*arguments)


def get_reply(ray: Any, asked: Any, lost: str) -> Any:
    """What was asked of an actor. Raises what it raised, and `RunError` where it was lost."""
    try:
        return ray.get(asked)
    except ray.exceptions.RayTaskError as error:
        if isinstance(error.cause, ConvagentError):
            raise error.cause from error
        raise RunError(f"a worker failed: {error.cause!r}", where=f"node {error.ip}") from error
    except ray.exceptions.RayError as error:
        why = next((line.strip().rstrip(":.") for line in str(error).splitlines() if line.strip()), "")
        remedy = "What was answered is kept, and the same command with --resume goes on."
        raise RunError(f"{lost} ({why or type(error).__name__})", remedy=remedy) from error


def parse_cluster_address(name: str) -> str | None:
    """The address in `ray://HOST:PORT`, None for `ray`. Raises `UsageError` for anything else."""
    host, _, port = name.removeprefix(SCHEME).rpartition(":")
    if name == EXTRA:
        return None
    if not (name.startswith(SCHEME) and host and port.isdecimal()):
        remedy = "`ray://HOST:PORT` joins the cluster whose head listens there (6379 as a rule)."
        raise UsageError(f"unknown backend {name!r} (available: local, ray, ray://HOST:PORT)", remedy=remedy)
    return f"{host}:{port}"


def make_name_absolute(model: str) -> str:
    """The name of a model, as an absolute path where it is that of a file."""
    is_elsewhere = model.startswith(PREFIX) or is_server_address(model)
    is_file = not is_elsewhere and (model.endswith(".gguf") or os.sep in model)
    return str(Path(model).expanduser().absolute()) if is_file else model


@contextmanager
def open_cluster(address: str | None, workers: int) -> Iterator[Cluster]:
    """A cluster for so many workers: at the address, or without one a cluster of this process's own.

    One that this process has joined before is used whatever the address, and left open. Raises `MissingError` where Ray
    is not installed, `RunError` where no cluster is there or none can be started.
    """
    os.environ.update(ALWAYS)
    if address is None:
        for name, value in (OWN_DEFAULTS | {"RAY_AUTH_TOKEN": token_hex(32)}).items():
            os.environ.setdefault(name, value)
    if address is None or address.startswith(LOOPBACK):
        os.environ.update(LOOPBACK_ALONE)
    ray = import_ray()
    if ray.is_initialized():
        yield Cluster(ray, _share_processors(ray, workers))
    elif address is None:
        threads = max(1, threads_to_use() // workers)
        size = {"num_cpus": workers * threads, "object_store_memory": OBJECT_STORE_BYTES}
        with scratch_directory(HOME / "ray") as place, _no_dashboard(ray):
            place.chmod(0o700)
            own = {"address": "local", "include_dashboard": False, "_temp_dir": str(place)}
            with _connect(ray, "no cluster could be started here", **own, **size):
                yield Cluster(ray, threads)
    else:
        _require_listener(address)
        with _connect(ray, f"the cluster at {address} cannot be joined", address=address):
            yield Cluster(ray, _share_processors(ray, workers))


def import_ray() -> Any:
    """The module. Raises `MissingError` where it is not installed."""
    try:
        import ray
    except ModuleNotFoundError as error:
        if error.name != "ray":
            raise
        raise MissingError("Ray is not installed", remedy=f"pip install 'convagent[{EXTRA}]'.") from error
    # It prints on stdout what its daemons tell, whatever `log_to_driver` says.
    ray._private.worker.print_to_stdstream = lambda told, **_: log.debug("Ray: %s", told["lines"])
    return ray


@contextmanager
def _no_dashboard(ray: Any) -> Iterator[None]:
    """Leave its process out altogether: even without a dashboard and statistics it asks which cloud it is in.

    It asks 169.254.169.254 and metadata.google.internal, to report what then is not reported.
    """
    services = ray._private.services
    start, services.start_api_server = services.start_api_server, lambda *_, **__: (None, None)
    try:
        yield
    finally:
        services.start_api_server = start


def _require_listener(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE_SECONDS).close()
    except OSError as error:
        remedy = f"Start one with `ray start --head --port={port}`, or let --on ray start one here."
        raise RunError(f"no cluster answers ({error.strerror or error})", where=address, remedy=remedy) from error


@contextmanager
def _connect(ray: Any, failed: str, **settings: Any) -> Iterator[None]:
    try:
        with _own_signal_handlers():
            ray.init(log_to_driver=False, logging_level=logging.CRITICAL, **settings)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        ray.shutdown()
        remedy = "Is this machine one of its nodes (`ray start --address=HOST:PORT`), with the same Ray and Python?"
        raise RunError(f"{failed}: {error}", remedy=remedy if "joined" in failed else "") from error
    try:
        yield
    finally:
        with _own_signal_handlers():
            ray.shutdown()


@contextmanager
def _own_signal_handlers() -> Iterator[None]:
    """Put back at the end the handlers that were there before."""
    signals = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.getsignal(number) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _share_processors(ray: Any, workers: int) -> int:
    """How many threads each worker may have: no more than fit on the smallest node, or than a model would have here."""
    nodes = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
    computing = [processors for processors in nodes if processors]
    if not computing:
        raise RunError("no node of the cluster has a processor to give")
    return max(1, min(sum(computing) // workers, *computing, threads_to_use()))
