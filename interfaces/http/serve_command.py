"""`everlog serve`: answer HTTP in front of the agents of a store, in this process or in a cluster.

Called by `cli.command_run`. What the server needs beyond a plain installation is imported here, and not before.
"""

import asyncio
import signal
from argparse import Namespace
from collections.abc import Awaitable, Callable
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from everlog.actors.ports.real_clock import chance, secret
from everlog.events import UsageError
from everlog.interfaces.common.agent_defaults import settings_of_new_agents
from everlog.interfaces.common.bootstrap import agents_of, ports_of
from everlog.interfaces.common.error_output import complain
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of, store_of
from everlog.interfaces.output import json_shapes

if TYPE_CHECKING:
    from everlog.interfaces.http.core.service import HttpOptions

NEEDED = ("starlette", "uvicorn")
"""Packages of the extra `serve`."""
LOOPBACK = ("127.0.0.1", "::1", "localhost")


def serve(args: Namespace, world: CommandEnvironment, *, announce: Callable[[str], None] | None = None) -> int:
    """Run the command `serve` until a signal ends it.

    `announce`: called with the address when the server answers; None: the address is printed.
    """
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"`everlog serve` needs {', '.join(missing)}: pip install 'everlog[serve]'.")
    from everlog.interfaces.http.core.keys import KeyRing
    from everlog.interfaces.http.core.service import HttpLimits, HttpOptions

    store_of(args, world, create=True)
    is_public = args.host not in LOOPBACK
    if is_public and not [key for key in KeyRing(root_of(args)).all() if key.is_valid(world.clock.now())]:
        raise UsageError(
            f"--host {args.host}: everybody who reaches that address could read and change every agent. Create a key "
            "first: `everlog keys create NAME --role admin`."
        )
    options = HttpOptions(
        hosts=tuple(name.lower() for name in args.hostname),
        origins=tuple(args.origin),
        keys_required=is_public,
        webhook_hosts=tuple(args.webhook_host),
        new_agents=settings_of_new_agents(args),
        limits=HttpLimits(requests_per_s=args.rate),
    )

    def print_address(address: str) -> None:
        if args.json:
            print(json_shapes.line({"address": address, "store": str(root_of(args))}), flush=True)
        else:
            print(f"everlog serves {root_of(args)} at {address}; {address}/docs describes the API.", flush=True)

    return asyncio.run(_serve(args, world, options, announce or print_address, _until_signal))


async def _until_signal() -> None:
    """Wait for SIGTERM or SIGINT."""
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, over.set)
    await over.wait()


async def _serve(
    args: Namespace,
    world: CommandEnvironment,
    options: "HttpOptions",
    announce: Callable[[str], None],
    until: Callable[[], Awaitable[None]],
) -> int:
    from everlog.interfaces.http.core.service import HttpService
    from everlog.interfaces.http.server import app_of, bound_socket, serving

    listener = bound_socket("127.0.0.1" if args.host == "localhost" else args.host, args.port)
    async with agents_of(args, world, timers=True) as system:
        service = HttpService(system, ports_of(world), options, secret=secret, chance=chance)
        async with serving(app_of(service, version("everlog")), service, listener, complain) as address:
            announce(address)
            if not args.json:
                print("Ctrl-C stops it: turns that run are finished when their agents are opened next.", flush=True)
            await until()
    return 0
