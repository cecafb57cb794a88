"""The route of exports, for tests, as long as the server has none of its own."""

import tempfile
from pathlib import Path

from starlette.responses import Response

from everlog.interfaces.http.core.routes import Call, Route, RouteTable
from everlog.interfaces.http.server import full_table

PATH = "/api/v1/agents/{agent}/export"


async def _export(call: Call) -> Response:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        await call.service.system.export(call.stream, path)
        return Response(path.read_bytes(), media_type="application/octet-stream")


def table_with_exports(version: str) -> RouteTable:
    """Return all routes of a server, and that of exports."""
    table = full_table(version)
    if any(route.path == PATH for route in table):
        return table
    return (*table, Route("GET", PATH, _export, "Export an agent", media=("application/octet-stream",)))
