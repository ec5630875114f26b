"""Connects to a Ray cluster, or starts one on this machine, and streams what tasks on its workers yield."""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

from deemster.errors import ConfigurationError, DeemsterError, MissingExtraError, visible

# The address of a cluster that is started on this machine and ends with the run.
LOCAL_CLUSTER = "local-cluster"
# Ray reads these when it is imported or started: no usage statistics, and no change of the variables of GPUs.
_SETTINGS = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0"}
_CONNECT_S = 10.0


class WorkerLostError(DeemsterError):
    """A worker of a cluster died while it ran a part, or its node did."""


class RayCluster:
    """A Ray cluster that this process is connected to.

    Args:
        ray: The module, connected.
    """

    def __init__(self, ray: ModuleType) -> None:
        self._ray: Any = ray
        self._tasks: dict[Callable[..., Any], Any] = {}

    @property
    def slots(self) -> int:
        """How many tasks run at once: one for each CPU of the cluster, at least one."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def share(self, value: bytes) -> Any:
        """Put bytes where every worker can read them; the reference to them, which is passed to tasks."""
        return self._ray.put(value)

    async def stream(self, function: Callable[..., Iterator[Any]], *given: Any) -> AsyncGenerator[Any]:
        """Run a generator function on a worker; what it yields, as it comes.

        Where the caller stops reading, the task is ended.

        Args:
            function: A function of a module that the workers can import.
            given: What it is given; a reference to shared bytes arrives as the bytes.

        Raises:
            WorkerLostError: The worker or its node died.
            ConfigurationError: The worker cannot import this package.
        """
        if function not in self._tasks:
            self._tasks[function] = self._ray.remote(num_cpus=1, max_retries=0, num_returns="streaming")(function)
        errors = self._ray.exceptions
        stream = self._tasks[function].remote(*given)
        ended = False
        try:
            async for reference in stream:
                yield await reference
            ended = True
        except errors.RayTaskError as error:
            ended = True
            raise _worker_error(error) from None
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError) as error:
            ended = True
            raise WorkerLostError(str(error).partition("\n")[0]) from None
        finally:
            if not ended:
                self._ray.cancel(stream, force=True)

    def start_actor(self, kind: type, *given: Any) -> Any:
        """Start an actor on the head node of the cluster, which ends with this process; its handle.

        Without that node there is no cluster. Any other node may come and go.

        Args:
            kind: Its class. All methods are coroutines.
            given: What it is made of.
        """
        head = {"node:__internal_head__": 0.001}
        return self._ray.remote(num_cpus=0, max_concurrency=100_000, resources=head)(kind).remote(*given)


def _worker_error(error: Any) -> BaseException:
    """The error that a task raised, as this package raises it."""
    cause = getattr(error, "cause", None)
    if isinstance(cause, DeemsterError):
        return cause
    if isinstance(cause, ModuleNotFoundError):
        return ConfigurationError(
            f"A worker of the cluster cannot import `{cause.name}`. Install deemster with the same extras and plug-ins "
            "on every node."
        )
    return error  # type: ignore[no-any-return]


@contextmanager
def open_cluster(address: str) -> Iterator[RayCluster]:
    """A cluster, connected while the block runs.

    A program that has connected itself to a cluster with `ray.init` stays connected, and uses that cluster.

    Args:
        address: What `ray.init` takes as its address, or `local-cluster`, which starts a cluster with as many workers
            as this machine has cores.

    Raises:
        MissingExtraError: Ray is not installed.
        ConfigurationError: There is no such cluster.
    """
    ray = _import_ray()
    is_ours = not ray.is_initialized()
    if is_ours:
        _connect(ray, address)
    try:
        yield RayCluster(ray)
    finally:
        if is_ours:
            ray.shutdown()


def _import_ray() -> Any:
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        import ray  # noqa: PLC0415 - an extra
        import ray.exceptions  # noqa: PLC0415 - an extra
    except ImportError:
        raise MissingExtraError("A run on a cluster", extra="ray") from None
    return ray


def _connect(ray: Any, address: str) -> None:
    """Connect to a cluster, or start one, without its dashboard and its log lines."""
    if address.startswith("ray://"):
        raise ConfigurationError(
            f"`{address}` is the address of a Ray client, which cannot stream results. Start the run on a node of the "
            "cluster with `auto`, for instance by `ray job submit`."
        )
    _check_reachable(address)
    given: dict[str, Any] = {"address": address}
    if address == LOCAL_CLUSTER:
        given = {"address": "local", "num_cpus": os.cpu_count() or 1, "include_dashboard": False}
        # Nothing of it is open to the network.
        given["_node_ip_address"] = "127.0.0.1"
    # What goes wrong is raised.
    logging.getLogger("ray").setLevel(logging.ERROR)
    with _keep_signal_handlers(), without_api_server():
        try:
            ray.init(**given, configure_logging=False, log_to_driver=False)
        except (ConnectionError, RuntimeError, ValueError, OSError) as error:
            said = visible(str(error).strip().partition("\n")[0], limit=300)
            raise ConfigurationError(f"No Ray cluster can be used at `{address}`: {said}") from None


def _check_reachable(address: str) -> None:
    """Refuse an address where nothing listens: Ray would try for minutes, and ends the process then."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal():
        try:
            socket.create_connection((host, int(port)), timeout=_CONNECT_S).close()
        except (OSError, OverflowError) as error:
            raise ConfigurationError(f"No Ray cluster can be used at `{address}`: {error}") from None


@contextmanager
def without_api_server() -> Iterator[None]:
    """Keep nodes that this process starts from starting Ray's API server.

    Even without a dashboard, and with usage statistics off, that server runs its module of usage statistics: it asks
    the metadata services of clouds, and may report that it is off.
    """
    import ray._private.node  # noqa: PLC0415 - an extra

    def start_nothing(node: Any, **_: Any) -> None:
        node._webui_url = None  # noqa: SLF001 - what the real method sets

    kind: Any = ray._private.node.Node  # noqa: SLF001 - Ray has no setting for it
    before = kind.start_api_server
    kind.start_api_server = start_nothing
    try:
        yield
    finally:
        kind.start_api_server = before


@contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Keep the handlers of SIGINT and SIGTERM: Ray replaces that of SIGTERM, and a run must end in its own way."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
