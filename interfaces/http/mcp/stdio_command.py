"""`everlog mcp serve`: be an MCP server over stdin and stdout, for a program on this machine that starts it.

Called by `cli.command_run`. Stdout belongs to the protocol: everything for people goes to stderr.
"""

import asyncio
from argparse import Namespace
from importlib.metadata import version
from importlib.util import find_spec

from everlog.actors.ports.real_clock import chance, secret
from everlog.events import UsageError
from everlog.interfaces.common.bootstrap import agents_of, ports_of
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import store_of

NEEDED = ("mcp", "starlette")
"""Packages of the extras `mcp` and `serve`."""


def serve(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `mcp serve` until the program that started it closes stdin."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise UsageError(f"`everlog mcp serve` needs {', '.join(missing)}: pip install 'everlog[mcp,serve]'.")
    store_of(args, world, create=True)
    return asyncio.run(_serve(args, world))


async def _serve(args: Namespace, world: CommandEnvironment) -> int:
    from mcp.server.stdio import stdio_server

    from everlog.interfaces.http.core.routes import HttpCaller
    from everlog.interfaces.http.core.service import HttpOptions, HttpService
    from everlog.interfaces.http.core.tenants import TenantNames
    from everlog.interfaces.http.mcp.agent_tools import ServedCaller
    from everlog.interfaces.http.mcp.mcp_server import mcp_server

    caller = HttpCaller(key_id="", role=args.role, names=TenantNames(""))
    served = ServedCaller(caller=caller, only=args.agent or "")
    async with agents_of(args, world, timers=True) as system:
        service = HttpService(system, ports_of(world), HttpOptions(), secret=secret, chance=chance)
        server = mcp_server(service, version("everlog"), lambda _: served)
        try:
            async with stdio_server() as (received, sent):
                await server.run(received, sent, server.create_initialization_options())
        finally:
            await service.close()
    return 0
