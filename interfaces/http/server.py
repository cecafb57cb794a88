"""Run the HTTP server in the event loop of a system: start, readiness, and a stop that lets streams end with a cursor.

Used by `everlog serve` and by tests, which serve on a free port.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import uvicorn
from starlette.types import ASGIApp

from everlog.events import BadInput
from everlog.interfaces.http.a2a.surface import A2A_SURFACE
from everlog.interfaces.http.a2a.table import A2A
from everlog.interfaces.http.bounded_http import BoundedHttpProtocol
from everlog.interfaces.http.console.surface import CONSOLE_SURFACE
from everlog.interfaces.http.console.table import console_pages
from everlog.interfaces.http.core.application import application
from everlog.interfaces.http.core.open_routes import described_by
from everlog.interfaces.http.core.routes import RouteTable
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.letta.surface import LETTA_SURFACE
from everlog.interfaces.http.letta.table import LETTA
from everlog.interfaces.http.mcp.mcp_mount import MCP_SURFACE, mcp_routes
from everlog.interfaces.http.native.table import NATIVE
from everlog.interfaces.http.openai.surface import OPENAI_SURFACE
from everlog.interfaces.http.openai.table import OPENAI
from everlog.interfaces.http.pages.docs_page import docs_pages
from everlog.interfaces.http.stoppable_server import StoppableServer

STOP_S = 20
"""Seconds in which requests in progress finish when the server stops."""
BACKLOG = 2048
SURFACES = (OPENAI_SURFACE, LETTA_SURFACE, CONSOLE_SURFACE, MCP_SURFACE, A2A_SURFACE)
"""Surfaces beside the native API."""


def full_table(version: str) -> RouteTable:
    """Return all routes of a server. `version`: of everlog."""
    table: list[RouteTable] = []
    pages = (*described_by(lambda: table[0], version), *docs_pages(lambda: table[0], version))
    routes = (*NATIVE, *OPENAI, *LETTA, *A2A, *mcp_routes(version), *console_pages(), *pages)
    table.append(routes)
    return routes


def app_of(service: HttpService, version: str) -> ASGIApp:
    """Return the application with all routes."""
    return application(full_table(version), service, SURFACES)


def bound_socket(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 is a free one. Raises BadInput."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends at once only from sockets that name their protocol. Else, on a connection that is kept, the body of
    # an answer would wait until the client has acknowledged the head, which clients put off for 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
    except (OSError, OverflowError) as error:
        listener.close()
        raise BadInput(
            f"The server cannot listen on {host}, port {port}: {error}. Choose another --port, or stop what has it."
        ) from error
    listener.setblocking(False)
    return listener


@asynccontextmanager
async def serving(
    app: ASGIApp, service: HttpService, listener: socket.socket, notify: Callable[[str], None]
) -> AsyncIterator[str]:
    """Serve while the block runs, and yield the address. At the end streams are closed with a cursor, and requests in
    progress finish.

    `notify`: called with a line if requests did not finish in time.
    """
    host, port = listener.getsockname()[:2]
    config = uvicorn.Config(
        app, log_config=None, access_log=False, lifespan="off", server_header=False, proxy_headers=False, ws="none",
        timeout_keep_alive=75, timeout_graceful_shutdown=STOP_S, http=BoundedHttpProtocol,
    )  # fmt: skip
    server = StoppableServer(config)
    work = asyncio.get_running_loop().create_task(server.serve([listener]))
    begun = asyncio.get_running_loop().create_task(server.begun.wait())
    service.webhooks.start()
    try:
        await asyncio.wait((begun, work), return_when=asyncio.FIRST_COMPLETED)
        yield f"http://{f'[{host}]' if ':' in host else host}:{port}"
    finally:
        begun.cancel()
        service.stopping.set()
        server.stop()
        done, _ = await asyncio.wait((work,), timeout=STOP_S + 5)
        if not done:
            notify("some requests did not finish in time")
            work.cancel()
        await asyncio.gather(work, return_exceptions=True)
        await service.close()
