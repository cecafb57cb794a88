"""Run a local cluster for a store until a signal: the process that `everlog up` starts, or becomes (--foreground).

`everlog up` reads the address that is printed first on stdout: nothing else may be printed there before it. The log
on stderr says when and why the cluster begins and ends, as lines of JSON.

python -m everlog.actors.cluster.local_daemon STORE [ADDRESS]

Exit codes: 0 after SIGTERM, SIGINT or SIGHUP; 1 if Ray could not start, or died.
"""

import asyncio
import os
import platform
import signal
import sys
from pathlib import Path

import msgspec

from everlog.actors.cluster.os_processes import children, descendants, end, keeps_cluster, parent_name
from everlog.actors.cluster.ray_address import LocalCluster, cluster_file, local_cluster, prepare
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.ports.real_clock import RealClock, RealIds, make_store
from everlog.events import ClusterError, EverlogError
from everlog.store import open_private, restrict_process

MAIN = ("gcs_server", "raylet")
"""Main processes of Ray: without either of them the cluster is dead."""
LOOK_S = 1.0
"""Seconds between two checks that they live."""
SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""Signals that stop the cluster. A hangup is one of them: a terminal that is closed must not kill it unseen."""


async def run_cluster(root: Path, listen: str = "") -> None:
    """Start a cluster for the store in `root`, which is created if needed, and stop it at one of SIGNALS.

    `listen`: address of this machine at which other machines reach the cluster; empty: it listens on loopback only.
    Prints the cluster's address to stdout when it runs. Raises ClusterError, also if Ray dies; StoreError.
    """
    clock = RealClock()
    note = StructuredLogger("daemon", platform.node(), clock=clock, environment=os.environ)
    note(f"process {os.getpid()} starts Ray for the store {root}", "info")
    store = make_store(root, clock, RealIds())
    prepare(store.root, "", listen)
    from everlog.actors.cluster.ray_runtime import joined

    stopped: asyncio.Future[signal.Signals] = asyncio.get_running_loop().create_future()
    started: set[int] = set()
    path = cluster_file(store.root)
    known = local_cluster(store.root)
    if known is None or not keeps_cluster(known.pid, store.root):
        path.unlink(missing_ok=True)
    try:
        async with joined(store, "", listen=listen) as runtime:
            await runtime.ready()
            for number in SIGNALS:  # not earlier: Ray replaces signal handlers when it starts
                asyncio.get_running_loop().add_signal_handler(number, _stop, stopped, number)
            _publish(path, LocalCluster(runtime.address, os.getpid(), os.environ.get("RAY_AUTH_MODE", "")))
            print(runtime.address, flush=True)  # noqa: T201 - `everlog up` reads it
            note(f"Ray is running at {runtime.address}", "info")
            try:
                note(await _until(stopped), "info")
            finally:
                started = descendants(os.getpid())
    finally:
        # Only processes that are still Ray's: their numbers may have been given to other programs meanwhile.
        end({pid for pid in started if _is_ray(pid)})
        mine = local_cluster(store.root)
        if mine is not None and mine.pid == os.getpid():
            path.unlink(missing_ok=True)
    note("Ray is stopped", "info")


def _stop(stopped: "asyncio.Future[signal.Signals]", number: signal.Signals) -> None:
    """Remember the first signal."""
    if not stopped.done():
        stopped.set_result(number)


def _publish(path: Path, cluster: LocalCluster) -> None:
    """Record the cluster's address in the store. Raises ClusterError if another daemon has recorded its own."""
    try:
        # Exclusive creation decides between two daemons that start at once.
        with open_private(path, "xb") as file:
            file.write(msgspec.json.encode(cluster))
    except FileExistsError as error:
        raise ClusterError(
            "Another `everlog up` was faster: its cluster runs the agents of this store. Nothing is left to do."
        ) from error


async def _until(stopped: "asyncio.Future[signal.Signals]") -> str:
    """Wait for the signal to stop, and return the reason in words. Raises ClusterError if a main process of Ray dies.

    A signal does not tell its sender to Python. `everlog down` writes into the same log that it sends one, so a
    signal without such a line came from somewhere else: the parent's name is the best hint then.
    """
    main = {pid: name for pid, name, _ in children(os.getpid()) if name in MAIN}
    while main.keys() <= (living := {pid for pid, _, lives in children(os.getpid()) if lives}):
        await asyncio.wait([stopped], timeout=LOOK_S)
        if stopped.done():
            return f"stopping: got {stopped.result().name} (parent process: {parent_name()})"
    died = ", ".join(f"{name} (process {pid})" for pid, name in sorted(main.items()) if pid not in living)
    raise ClusterError(
        f"A main process of Ray has died: {died}. The cluster ended with it; `everlog up` starts another."
    )


def _is_ray(pid: int) -> bool:
    """Return True if the number is still that of a process of Ray, and was not given to another program."""
    try:
        return b"ray" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


if __name__ == "__main__":
    restrict_process()
    try:
        asyncio.run(run_cluster(Path(sys.argv[1]), *sys.argv[2:3]))
    except EverlogError as error:
        sys.exit(f"everlog: {error}")
