"""`everlog cluster status`, `cluster drain` and `everlog ping`: the cluster, started by `everlog up` or otherwise.

Called by `cli.command_run`. Monitoring programs depend on the exit codes and on the keys of the JSON.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

from everlog.actors.api import open_system
from everlog.actors.cluster.ray_address import running
from everlog.actors.hosting.cluster_status import ClusterStatus, StatusSource, faults_of
from everlog.events import ClusterError
from everlog.events.times import MICROSECONDS
from everlog.interfaces.common.bootstrap import ports_of
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.common.plural import plural
from everlog.interfaces.output import json_shapes

if TYPE_CHECKING:
    from everlog.actors.cluster.ray_runtime import RayRuntime

FOLLOW_S = 1.0
"""Seconds between two measurements of a cluster."""
UNHEALTHY, NOT_RUNNING = 1, 3
"""Exit codes of `ping`; 3 is that of service managers for a service that is stopped."""


def status(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `cluster status`."""
    root = root_of(args)
    if not running(root):
        print(json_shapes.line({"running": False}) if args.json else sanitize(_not_running_text(root)))
        return NOT_RUNNING
    store_of(args, world)  # raises if the store does not exist, and does not create it
    asyncio.run(_watch(args, world))
    return 0


def _not_running_text(root: Path) -> str:
    return (
        f"No cluster is running for the store {root}: agents run in the process of each command.\n"
        "`everlog up` starts a cluster on this machine. For several machines, set RAY_ADDRESS "
        "(docs/reference/cluster.md)."
    )


def drain(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `cluster drain`."""
    root = root_of(args)
    if not running(root):
        print(json_shapes.line({"running": False}) if args.json else sanitize(_not_running_text(root)))
        return NOT_RUNNING
    store_of(args, world)  # raises if the store does not exist, and does not create it
    began = world.clock.now()
    moved = asyncio.run(_drained(args, world))
    seconds = (world.clock.now() - began) / MICROSECONDS
    if args.json:
        print(json_shapes.line({"moved": moved, "seconds": round(seconds, 1)}))
    else:
        where = f"from {args.node}" if args.node else "from this machine's node"
        print(sanitize(f"Moved {plural(moved, 'host')} {where} in {seconds:.1f} s. No host is started there any more."))
    return 0


async def _drained(args: Namespace, world: CommandEnvironment) -> int:
    async with open_system(root_of(args), runtime="ray", ports=ports_of(world)) as system:
        return await cast("RayRuntime", system.runtime).drain(args.node or "")


def ping(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `ping`."""
    root = root_of(args)
    address = running(root)
    reasons = asyncio.run(_faults(args, world)) if address else []
    if args.json:
        print(json_shapes.line({"running": bool(address), "healthy": bool(address) and not reasons,
                                "address": address or None, "reasons": reasons}))  # fmt: skip
    elif not address:
        print(sanitize(f"not running: no cluster for the store {root}"))
    else:
        print(sanitize(f"unhealthy: {'; '.join(reasons)}" if reasons else f"healthy: {address}"))
    return UNHEALTHY if reasons else 0 if address else NOT_RUNNING


async def _faults(args: Namespace, world: CommandEnvironment) -> list[str]:
    """Return the faults of a cluster that accepts connections; none if it is healthy."""
    try:
        async with source_of(args, world) as source:
            return list(faults_of(await source.status()))
    except ClusterError as error:
        return [str(error)]


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
