"""Run a local cluster for a store until SIGTERM: the process that `everlog up` starts.

Started by `everlog up`, which reads the address that is printed first on stdout: nothing else may be printed there
before it.

python -m everlog.actors.cluster.local_daemon STORE
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from everlog.actors.cluster.os_processes import children, descendants, end, keeps_cluster
from everlog.actors.cluster.ray_address import LocalCluster, cluster_file, local_cluster, prepare
from everlog.actors.ports.real_clock import RealClock, RealIds, make_store
from everlog.events import ClusterError, EverlogError

MAIN = ("gcs_server", "raylet")
"""Main processes of Ray: without either of them the cluster is dead."""
LOOK_S = 1.0
"""Seconds between two checks that they live."""


async def run_cluster(root: Path) -> None:
    """Start a cluster for the store in `root`, which is created if needed, and stop it at SIGTERM or SIGINT.

    Prints the cluster's address to stdout when it runs. Raises ClusterError, StoreError.
    """
    clock = RealClock()
    store = make_store(root, clock, RealIds())
    prepare(store.root, "")
    from everlog.actors.cluster.ray_runtime import joined

    stopped = asyncio.Event()
    started: set[int] = set()
    path = cluster_file(store.root)
    known = local_cluster(store.root)
    if known is None or not keeps_cluster(known.pid, store.root):
        path.unlink(missing_ok=True)
    try:
        async with joined(store, "") as runtime:
            await runtime.ready()
            for number in (signal.SIGTERM, signal.SIGINT):  # not earlier: Ray replaces signal handlers when it starts
                asyncio.get_running_loop().add_signal_handler(number, stopped.set)
            _publish(path, LocalCluster(runtime.address, os.getpid(), os.environ.get("RAY_AUTH_MODE", "")))
            print(runtime.address, flush=True)  # noqa: T201 - `everlog up` reads it
            await _until(stopped)
            started = descendants(os.getpid())
    finally:
        # Only processes that are still Ray's: their numbers may have been given to other programs meanwhile.
        end({pid for pid in started if _is_ray(pid)})
        mine = local_cluster(store.root)
        if mine is not None and mine.pid == os.getpid():
            path.unlink(missing_ok=True)


def _publish(path: Path, cluster: LocalCluster) -> None:
    """Record the cluster's address in the store. Raises ClusterError if another daemon has recorded its own."""
    try:
        # Exclusive creation decides between two daemons that start at once.
        with path.open("xb") as file:
            file.write(msgspec.json.encode(cluster))
    except FileExistsError as error:
        raise ClusterError(
            "Another `everlog up` was faster: its cluster runs the agents of this store. Nothing is left to do."
        ) from error


async def _until(stopped: asyncio.Event) -> None:
    """Wait for the signal to stop, or until a main process of Ray has died."""
    main = {pid for pid, name, _ in children(os.getpid()) if name in MAIN}
    while main <= {pid for pid, _, lives in children(os.getpid()) if lives}:
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), LOOK_S)
        if stopped.is_set():
            return
    print("everlog: a main process of Ray has died, and the cluster with it", file=sys.stderr)  # noqa: T201


def _is_ray(pid: int) -> bool:
    """Return True if the number is still that of a process of Ray, and was not given to another program."""
    try:
        return b"ray" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    try:
        asyncio.run(run_cluster(Path(sys.argv[1])))
    except EverlogError as error:
        sys.exit(str(error))
