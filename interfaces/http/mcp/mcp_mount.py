"""Serve MCP over HTTP at /mcp, behind the same checks of host, origin, key and rate as every route.

The SDK is loaded at the first request, in a thread. It keeps no session: any server in front of the store can answer
the next request. `/mcp/NAME` limits a client to one agent.
"""

import asyncio
from importlib.util import find_spec
from typing import Any

from starlette.datastructures import MutableHeaders
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from everlog.interfaces.http.core.routes import HttpCall, Route, RouteTable
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.core.surfaces import Surface
from everlog.interfaces.http.mcp.agent_tools import ServedCaller

PATH = "/mcp"
MCP_SURFACE = Surface(PATH)
CALLER = "everlog.mcp_caller"
"""Key of the sender in the scope of a request."""


def mcp_routes(version: str) -> RouteTable:
    """Return the routes for MCP clients; none if the SDK is not installed. `version`: of everlog."""
    if find_spec("mcp") is None:
        return ()
    mount = _Mount(version)
    summary = "Answer a client of the Model Context Protocol"
    return [Route("POST", path, mount.answer, summary, hidden=True) for path in (PATH, f"{PATH}/{{agent}}")]


class _Mount:
    """The SDK's side of one server, from the first request to the end of the server."""

    def __init__(self, version: str) -> None:
        self._version = version
        self._manager: asyncio.Task[Any] | None = None

    async def answer(self, call: HttpCall) -> Response:
        """Pass a request on to the SDK."""
        served = ServedCaller(caller=call.caller, only=call.params.get("agent", ""))
        if self._manager is None:
            self._manager = asyncio.get_running_loop().create_task(self._made(call.service))
        return _Passed(await asyncio.shield(self._manager), served)

    async def _made(self, service: HttpService) -> Any:
        """Return the SDK's manager of requests, when it takes them."""
        manager, entered = await service.ports.aside(_new_manager, service, self._version), asyncio.Event()
        service.detach(_hold(service, manager, entered))
        await entered.wait()
        return manager


async def _hold(service: HttpService, manager: Any, entered: asyncio.Event) -> None:
    """Hold the manager until the server stops: its scopes belong to one task."""
    async with manager.run():
        entered.set()
        await service.stopping.wait()


def _new_manager(service: HttpService, version: str) -> Any:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
    from mcp.server.transport_security import TransportSecuritySettings

    from everlog.interfaces.http.mcp.mcp_server import mcp_server

    server = mcp_server(service, version, lambda context: context.request.scope[CALLER])
    # The guards of the application have checked Host and Origin already, by the names that the operator gave.
    unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    return StreamableHTTPSessionManager(server, stateless=True, security_settings=unchecked)


class _Passed(Response):
    """A response that the SDK writes. Headers that are set here are added to its own."""

    def __init__(self, manager: Any, served: ServedCaller) -> None:
        super().__init__()
        self._manager, self._served = manager, served
        del self.headers["content-length"]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def add_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                self.status_code = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in self.headers.items():
                    headers.setdefault(name, value)
            await send(message)

        await self._manager.handle_request({**scope, CALLER: self._served}, receive, add_headers)
