"""The process that `everlog up` leaves behind: it keeps a local cluster running for a store, until SIGTERM.

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
"""The processes without which a cluster is none."""
LOOK_S = 1.0
"""How often it is looked whether they live."""


async def run_cluster(root: Path) -> None:
    """Start a cluster for the store in `root`, which is made if there is none, say its address on stdout when it runs,
    and stop it at SIGTERM. Raises ClusterError, StoreError.
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
            for number in (signal.SIGTERM, signal.SIGINT):  # not before: Ray puts its own in the place of others
                asyncio.get_running_loop().add_signal_handler(number, stopped.set)
            _publish(path, LocalCluster(runtime.address, os.getpid(), os.environ.get("RAY_AUTH_MODE", "")))
            print(runtime.address, flush=True)  # noqa: T201 - `everlog up` reads it
            await _until(stopped)
            started = descendants(os.getpid())
    finally:
        end({pid for pid in started if _is_ray(pid)})
        mine = local_cluster(store.root)
        if mine is not None and mine.pid == os.getpid():
            path.unlink(missing_ok=True)


def _publish(path: Path, cluster: LocalCluster) -> None:
    """Say where the cluster is. Raises ClusterError where another was faster."""
    try:
        with path.open("xb") as file:
            file.write(msgspec.json.encode(cluster))
    except FileExistsError as error:
        raise ClusterError("Another `everlog up` was faster; agents of this store run in its cluster.") from error


async def _until(stopped: asyncio.Event) -> None:
    """Wait until it is told to stop, or until the cluster cannot go on: one of its two main processes has died."""
    main = {pid for pid, name, _ in children(os.getpid()) if name in MAIN}
    while main <= {pid for pid, _, lives in children(os.getpid()) if lives}:
        with suppress(TimeoutError):
            await asyncio.wait_for(stopped.wait(), LOOK_S)
        if stopped.is_set():
            return
    print("everlog: a main process of Ray has died, and the cluster with it", file=sys.stderr)  # noqa: T201


def _is_ray(pid: int) -> bool:
    """Whether it is still the process that was started, and no other that was given its number."""
    try:
        return b"ray" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    try:
        asyncio.run(run_cluster(Path(sys.argv[1])))
    except EverlogError as error:
        sys.exit(str(error))
