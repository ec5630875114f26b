"""A real Ray cluster of two nodes on this machine: two sets of node processes, one CPU each."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from deemster.remote.ray_cluster import without_api_server

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
LONGEST_S = 60.0
# No usage statistics; no token in the home directory; and loopback, as where Ray thinks of a machine without a network.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}
# Here, because Ray reads some of them when it is imported, and any test may do that first.
os.environ.update(SETTINGS)


class TwoNodes:
    """A cluster whose second node can be killed."""

    def __init__(self) -> None:
        import ray
        from ray.cluster_utils import Cluster

        with without_api_server():
            self._cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.second: Any = None
        self.address: str = self._cluster.address
        # Before there is a second node, so that the first one serves this process.
        ray.init(self.address, log_to_driver=False)

    def start_second_node(self) -> None:
        """Start the second node, unless it runs."""
        if self.second is None:
            self.second = self._cluster.add_node(**NODE)
            self._wait_for_both()

    def _wait_for_both(self) -> None:
        """Wait until a run would use both nodes."""
        import ray

        until = time.monotonic() + LONGEST_S
        while ray.cluster_resources().get("CPU", 0) < 2 and time.monotonic() < until:
            time.sleep(0.05)

    def kill_second_node(self) -> None:
        """Kill every process of the second node with SIGKILL."""
        self._cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def shut_down(self) -> None:
        import ray

        ray.shutdown()
        self._cluster.shutdown()


class Meeting:
    """Has a worker of the first node wait until a worker of the second has a part of the run.

    Args:
        folder: Where both can see a file.
        nodes: The nodes.
        stay: Whether the worker of the second node stays until it is killed.
    """

    def __init__(self, folder: Path, nodes: TwoNodes, *, stay: bool) -> None:
        from ray import cloudpickle

        # Workers do not have the tests.
        cloudpickle.register_pickle_by_value(sys.modules[__name__])
        self._file, self._second, self._stay, self._driver = folder / "here", nodes.second.node_id, stay, os.getpid()

    def attend(self) -> None:
        """Wait; do nothing in the process that made it."""
        if os.getpid() == self._driver:
            return
        import ray

        is_second = ray.get_runtime_context().get_node_id() == self._second
        if is_second:
            self._file.touch()
        until = time.monotonic() + LONGEST_S
        while (self._stay if is_second else not self._file.exists()) and time.monotonic() < until:
            time.sleep(0.01)


@pytest.fixture(scope="session")
def started_nodes() -> Iterator[TwoNodes]:
    nodes = TwoNodes()
    yield nodes
    nodes.shut_down()


@pytest.fixture
def nodes(started_nodes: TwoNodes) -> TwoNodes:
    started_nodes.start_second_node()
    return started_nodes
