"""A cluster of several nodes on this machine: a head that runs no agents, and workers that can be killed or stopped."""

import os
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from everlog.actors.cluster.ray_address import prepare
from everlog.store.partition.epoch import start_of
from tests.cluster.conftest import descendants, ends
from tests.cluster.process_kills import kill

QUICK = {
    "RAY_AUTH_MODE": "disabled",
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "4",
    "RAY_raylet_liveness_self_check_interval_ms": "2000",
    "RAY_gcs_rpc_server_reconnect_timeout_s": "12",
    "RAY_worker_maximum_startup_concurrency": "4",
}
"""Ray settings with which an unresponsive node is given up after seconds, not after a minute."""
STORE_BYTES = 80 * 2**20
"""Bytes of a node's shared object store, which everlog does not use."""

AGENTS = ("ray::DashboardA", "ray::RuntimeEnv")
"""Ray processes that outlive a killed raylet for longer than a test waits."""


Machine = Callable[[int], dict[str, str]]
"""Function from the number of a node to the variables in which its environment differs from that of this process."""


def same_machine(_: int) -> dict[str, str]:
    """Return no variables: the nodes share what this process has."""
    return {}


class Nodes:
    """A head and its workers, as real processes."""

    def __init__(self, workers: int, slots: int, machine: Machine = same_machine) -> None:
        """Start the cluster; `slots` is the number of hosts that fit on a worker, `machine` returns the environment of
        each node by its number. The head is 0.
        """
        self._slots = slots
        self._machine = machine
        self._others = descendants(os.getpid())
        self._seen: dict[int, tuple[int, str]] = {}
        """Every process that was seen, by process id: its start time and its name."""
        self.all_nodes: list[Any] = []
        """All nodes that were started, ended ones included."""
        self.workers: list[Any] = []
        self.begin(workers)

    def begin(self, workers: int) -> None:
        """Start a new head with workers."""
        from ray.cluster_utils import Cluster

        arguments = {"num_cpus": 0, "object_store_memory": STORE_BYTES, "include_dashboard": False,
                     "env_vars": self._machine(len(self.all_nodes))}  # fmt: skip
        self._cluster = Cluster(initialize_head=True, shutdown_at_exit=False, head_node_args=arguments)
        self.all_nodes.append(self.head)
        for _ in range(workers):
            self.add()

    @property
    def address(self) -> str:
        """Address at which the cluster can be joined."""
        return str(self._cluster.address)

    @property
    def head(self) -> Any:
        """The head's node."""
        return self._cluster.head_node

    def add(self) -> Any:
        """Start a worker."""
        node = self._cluster.add_node(
            num_cpus=1, object_store_memory=STORE_BYTES, resources={"agent_slot": self._slots},
            env_vars=self._machine(len(self.all_nodes)),
        )  # fmt: skip
        self.all_nodes.append(node)
        self.workers.append(node)
        return node

    def family(self, node: Any) -> Mapping[int, str]:
        """Return the processes of a worker: its raylet and all descendants."""
        raylet = raylet_of(node).pid
        return {raylet: "raylet", **descendants(raylet)}

    def hosts(self, node: Any) -> list[int]:
        """Return the processes of a worker that run agents."""
        return [pid for pid in self.family(node) if _title(pid).startswith((b"ray::host of", b"ray::SharedActor",
                                                                            b"ray::DedicatedActor"))]  # fmt: skip

    def node_of(self, pid: int) -> Any:
        """Return the worker to which a process belongs."""
        return next(node for node in self.workers if pid in self.family(node))

    def kill(self, node: Any) -> Mapping[int, str]:
        """Kill a worker's raylet. Return the processes that the worker had."""
        family = self.family(node)
        raylet_of(node).kill()
        raylet_of(node).wait()
        self.workers.remove(node)
        return family

    def stop(self, node: Any) -> Mapping[int, str]:
        """Send SIGSTOP to all processes of a worker. Return these processes."""
        family = self.family(node)
        for pid in family:
            os.kill(pid, signal.SIGSTOP)
        self.workers.remove(node)
        return family

    def go_on(self, family: Iterable[int]) -> None:
        """Send SIGCONT to stopped processes."""
        for pid in family:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def kill_head(self) -> Mapping[int, str]:
        """Kill everything on the head. Return the processes of the workers, which have no head now."""
        family = {pid: name for node in self.workers for pid, name in self.family(node).items()}
        self._cluster.remove_node(self.head, allow_graceful=False)
        self.workers = []
        return family

    def remember(self) -> None:
        """Record the running processes, so that `close` checks that they have ended."""
        self._seen |= {pid: (start_of(pid), name) for pid, name in descendants(os.getpid()).items()
                       if pid not in self._others}  # fmt: skip

    def _left(self) -> Mapping[int, str]:
        """Return the recorded processes that still run; a reused process id has another start time."""
        return {pid: name for pid, (start, name) in self._seen.items() if start and start_of(pid) == start}

    def close(self) -> None:
        """End everything. Kill processes that are left, and raise AssertionError with their names."""
        self.remember()
        for node in self.all_nodes:
            for started in node.all_processes.values():
                for info in started:
                    info.process.kill()
                    info.process.wait()
        kill(*(pid for pid, name in self._left().items() if name in AGENTS))
        left = {pid: name for pid, name in self._left().items() if not ends(pid)}
        kill(*left)
        assert not left, f"processes of Ray that were left over: {left}"


def raylet_of(node: Any) -> Any:
    """Return the raylet process of a node."""
    return node.all_processes["raylet"][0].process


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


@contextmanager
def cluster_of(workers: int, slots: int, machine: Machine = same_machine) -> Iterator[Nodes]:
    """Run a cluster while the block runs, with RAY_ADDRESS set. At the end no process of it may be left."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory(prefix="nodes") as folder:
        patch.setenv("RAY_TMPDIR", folder)  # so that no other process on this machine joins this cluster
        for name, value in QUICK.items():
            patch.setenv(name, value)
        prepare(Path("tests"), "nobody")
        nodes = Nodes(workers, slots, machine)
        patch.setenv("RAY_ADDRESS", nodes.address)
        try:
            yield nodes
        finally:
            nodes.close()
