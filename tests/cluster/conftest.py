"""A real Ray cluster of two nodes on this machine: two sets of node processes, one CPU each."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from deemster.cluster.ray_cluster import without_api_server

NODE = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
# No usage statistics; no token in the home directory; and loopback, as where Ray thinks of a machine without a network.
SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_AUTH_MODE": "disabled",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
}


class TwoNodes:
    """A cluster whose second node can be killed."""

    def __init__(self) -> None:
        os.environ.update(SETTINGS)
        from ray.cluster_utils import Cluster

        with without_api_server():
            self._cluster = Cluster(initialize_head=True, head_node_args=NODE)
        self.second: Any = None
        self.address: str = self._cluster.address

    def start_second_node(self) -> None:
        """Start the second node, unless it runs."""
        if self.second is None:
            # An address of its own: a driver of the first address is served by the first node.
            self.second = self._cluster.add_node(**{**NODE, "node_ip_address": "127.0.0.2"})

    def kill_second_node(self) -> None:
        """Kill every process of the second node with SIGKILL."""
        self._cluster.remove_node(self.second, allow_graceful=False)
        self.second = None

    def shut_down(self) -> None:
        self._cluster.shutdown()


@pytest.fixture(scope="session")
def started_nodes() -> Iterator[TwoNodes]:
    nodes = TwoNodes()
    yield nodes
    nodes.shut_down()


@pytest.fixture
def nodes(started_nodes: TwoNodes) -> TwoNodes:
    started_nodes.start_second_node()
    return started_nodes
