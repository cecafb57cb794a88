"""`everlog up` and `everlog down`: start and stop a Ray on this machine that keeps running between commands.

Called by `cli.command_run`. `everlog up` waits for the first line of stdout of `cluster.local_daemon`: the address.
With --foreground it becomes that process, so that the signals of a supervisor reach it.
"""

import asyncio
import getpass
import os
import signal
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

from everlog.actors.api import place_of
from everlog.actors.cluster.os_processes import keeps_cluster, starting_daemon
from everlog.actors.cluster.ray_address import local_cluster, running
from everlog.actors.cluster.structured_log import StructuredLogger
from everlog.actors.scaling.scaling_plan import VARIABLE, range_from
from everlog.events import ClusterError, UsageError
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of, warn
from everlog.interfaces.output import json_shapes
from everlog.store import check_storage, open_appending, storage_warning

STOP_S = 60
"""Seconds to wait for the cluster to stop; it interrupts running agents."""
LOOK_S = 0.1
"""Seconds between two checks whether a process has ended."""
LOG_FILE = "cluster.log"
"""Log of the process that runs the cluster, in the store: lines of JSON, and what Ray itself prints."""
LOG_BYTES_MAX = 1_000_000
"""Size above which `everlog up` begins a new log; the one before is kept as cluster.log.1."""


def up(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `up`. With --foreground it does not return."""
    place_of(None, root_of(args))  # rejects an invalid EVERLOG_RUNTIME before a store is created
    setting = args.shards_by_load if args.shards_by_load is not None else os.environ.get(VARIABLE, "")
    range_from(setting)  # rejects an invalid one
    environment = {**os.environ, VARIABLE: setting}
    check_storage(root_of(args))
    store = store_of(args, world, create=True)
    if known := storage_warning(store.root):
        warn(f"{known}.")
    address = running(store.root)
    if address:
        raise UsageError(f"A Ray cluster is running already, at {address}; agents of this store run in it.")
    command = [sys.executable, "-m", "everlog.actors.cluster.local_daemon", str(store.root.resolve())]
    command.append(args.listen or "")
    if args.foreground:
        if args.json:
            args.fail("--json cannot be given with --foreground: the log on stderr is JSON already")
        sys.stdout.flush()
        # The same process id: signals of a supervisor reach the daemon.
        os.execve(command[0], command, environment)  # noqa: S606
    complain(f"starting Ray for {sanitize(str(store.root))}; this takes a few seconds")
    log = _log(store.root)
    began = log.stat().st_size if log.exists() else 0
    with open_appending(log) as errors:
        keeper = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            start_new_session=True,
        )
    assert keeper.stdout is not None
    address = keeper.stdout.readline().strip()
    if not address:
        ended = keeper.wait()
        said = log.read_bytes()[began:].decode(errors="replace")
        raise ClusterError(_last_line(said) or f"Ray ended with exit code {ended} and no message ({log}).")
    if args.json:
        print(json_shapes.line({"address": address, "pid": keeper.pid, "log": str(log)}))
    else:
        print(f"Ray is running at {address} (process {keeper.pid}). `everlog down` stops it.")
    return 0


def _log(root: Path) -> Path:
    """Return the file of the daemon's log; a long one is put aside first."""
    path = root / LOG_FILE
    if path.exists() and path.stat().st_size > LOG_BYTES_MAX:
        path.replace(path.with_name(f"{LOG_FILE}.1"))
    return path


def down(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `down`. The daemon's log says first which process asked it to stop."""
    root = root_of(args)
    known = local_cluster(root)
    pid = known.pid if known is not None and keeps_cluster(known.pid, root) else starting_daemon(root)
    if pid is None:
        raise UsageError(f"No Ray of `everlog up` is running for the store {sanitize(str(root))}.")
    with open_appending(root / LOG_FILE) as file, open(file.fileno(), "w", closefd=False, encoding="utf-8") as out:
        note = StructuredLogger("everlog down", os.uname().nodename, clock=world.clock, environment=os.environ,
                                out=lambda: out)  # fmt: skip
        note(f"process {os.getpid()} of {getpass.getuser()} sends SIGTERM to process {pid}", "info")
    os.kill(pid, signal.SIGTERM)
    if not asyncio.run(_gone(pid, root, world)):
        raise ClusterError(f"Ray (process {pid}) did not stop in {STOP_S} seconds; end it with: kill -9 {pid}")
    shape = {"stopped": True, "pid": pid}
    print(json_shapes.line(shape) if args.json else "Ray is stopped. The agents' state is in their logs.")
    return 0


async def _gone(pid: int, root: Path, world: CommandEnvironment) -> bool:
    """Wait until the process has ended. Return False if it has not ended after STOP_S seconds."""
    for _ in range(int(STOP_S / LOOK_S)):
        if not keeps_cluster(pid, root):
            return True
        await world.sleep(LOOK_S)
    return False


def _last_line(said: str) -> str:
    """Return the error that the daemon printed last, without the name of its type; empty if it printed none."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("{")]
    return lines[-1].partition(": ")[2] or lines[-1] if lines else ""
