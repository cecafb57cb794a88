"""`everlog up` and `everlog down`: start and stop a Ray on this machine that keeps running between commands.

`everlog cluster status`: show the state of the cluster, whether `everlog up` or another program started it.

Called by `cli.command_run`. `everlog up` waits for the first line of stdout of `cluster.local_daemon`: the address.
"""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from everlog.actors.api import open_system, place_of
from everlog.actors.cluster.os_processes import keeps_cluster
from everlog.actors.cluster.ray_address import local_cluster, running
from everlog.actors.hosting.cluster_status import ClusterStatus, StatusSource
from everlog.events import ClusterError, UsageError
from everlog.interfaces.common.bootstrap import ports_of, root_of, store_of, warn
from everlog.interfaces.common.error_output import complain, sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.output import json_shapes
from everlog.store import check_storage, storage_warning

STOP_S = 60
"""Seconds to wait for the cluster to stop; it interrupts running agents."""
LOOK_S = 0.1
"""Seconds between two checks whether a process has ended."""
FOLLOW_S = 1.0
"""Seconds between two measurements of a cluster."""


def up(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `up`."""
    place_of(None, root_of(args))  # rejects an invalid EVERLOG_RUNTIME before a store is created
    check_storage(root_of(args))
    store = store_of(args, world, create=True)
    if known := storage_warning(store.root):
        warn(f"{known}.")
    address = running(store.root)
    if address:
        raise UsageError(f"A Ray cluster is running already, at {address}; agents of this store run in it.")
    complain(f"starting Ray for {sanitize(str(store.root))}; this takes a few seconds")
    with tempfile.TemporaryFile() as errors:
        keeper = subprocess.Popen(
            [sys.executable, "-m", "everlog.actors.cluster.local_daemon", str(store.root.resolve())],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors, text=True, start_new_session=True,
        )  # fmt: skip
        assert keeper.stdout is not None
        address = keeper.stdout.readline().strip()
        if not address:
            ended = keeper.wait()
            errors.seek(0)
            said = errors.read().decode(errors="replace")
            raise ClusterError(_last_line(said) or f"Ray ended with exit code {ended} and no message.")
    print(f"Ray is running at {address} (process {keeper.pid}). `everlog down` stops it.")
    return 0


def down(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `down`."""
    root = root_of(args)
    known = local_cluster(root)
    if known is None or not keeps_cluster(known.pid, root):
        raise UsageError(f"No Ray of `everlog up` is running for the store {sanitize(str(root))}.")
    os.kill(known.pid, signal.SIGTERM)
    if not asyncio.run(_gone(known.pid, root, world)):
        raise ClusterError(
            f"Ray (process {known.pid}) did not stop in {STOP_S} seconds; end it with: kill -9 {known.pid}"
        )
    print("Ray is stopped. The agents' state is in their logs.")
    return 0


async def _gone(pid: int, root: Path, world: CommandEnvironment) -> bool:
    """Wait until the process has ended. Return False if it has not ended after STOP_S seconds."""
    for _ in range(int(STOP_S / LOOK_S)):
        if not keeps_cluster(pid, root):
            return True
        await world.sleep(LOOK_S)
    return False


def _last_line(said: str) -> str:
    """Return the last line of a traceback, without the name of the error's type."""
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].partition(": ")[2] or lines[-1] if lines else ""


def status(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `cluster status`."""
    root = root_of(args)
    if not running(root):
        print(json_shapes.line({"running": False}) if args.json else sanitize(_not_running_text(root)))
        return 0
    store_of(args, world)  # raises if the store does not exist, and does not create it
    asyncio.run(_watch(args, world))
    return 0


def _not_running_text(root: Path) -> str:
    return (
        f"No cluster is running for the store {root}: agents run in the process of each command.\n"
        "`everlog up` starts a cluster on this machine. For several machines, set RAY_ADDRESS "
        "(docs/reference/cluster.md)."
    )


@asynccontextmanager
async def source_of(args: Namespace, world: CommandEnvironment) -> AsyncIterator[StatusSource]:
    """Open the cluster that runs agents of the store. Raises ClusterError."""
    async with open_system(root_of(args), runtime="ray", ports=ports_of(world)) as system:
        if not isinstance(system.runtime, StatusSource):
            raise ClusterError("This cluster reports no status of everlog. `ray status` shows the status of Ray.")
        yield system.runtime


async def _watch(args: Namespace, world: CommandEnvironment) -> None:
    """Show the status. Measure twice, FOLLOW_S apart, to compute rates."""
    async with source_of(args, world) as source:
        before = await source.status()
        await world.sleep(FOLLOW_S)
        now = await source.status()
        if not args.follow:
            _show(args, before, now)
        elif sys.stdout.isatty() and not args.json:
            await _redraw(source, world, before, now)
        else:
            await _repeat_status(args, source, world, before, now)


def _show(args: Namespace, before: ClusterStatus, now: ClusterStatus) -> None:
    from everlog.interfaces.fleet import status_page
    from everlog.interfaces.output import show_pages

    if args.json:
        print(json_shapes.line(status_page.shape(before, now)))
    else:
        show_pages.show(status_page.page(before, now))


async def _repeat_status(
    args: Namespace, source: StatusSource, world: CommandEnvironment, before: ClusterStatus, now: ClusterStatus
) -> None:
    """Print a line for each measurement, until Ctrl-C."""
    from everlog.interfaces.fleet import status_page

    while True:
        said = json_shapes.line(status_page.shape(before, now)) if args.json else status_page.line(before, now)
        print(said, flush=True)
        await world.sleep(FOLLOW_S)
        before, now = now, await source.status()


async def _redraw(source: StatusSource, world: CommandEnvironment, before: ClusterStatus, now: ClusterStatus) -> None:
    """Redraw the page for each measurement, until Ctrl-C."""
    from rich.live import Live

    from everlog.interfaces.fleet import status_page
    from everlog.interfaces.output.terminal_output import console

    with Live(status_page.page(before, now), console=console(), auto_refresh=False) as live:
        while True:
            await world.sleep(FOLLOW_S)
            before, now = now, await source.status()
            live.update(status_page.page(before, now), refresh=True)
