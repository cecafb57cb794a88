"""Routes that need no key: health, and the description of the API.

`/metrics` needs the key of the operator once there are keys: the figures of a fleet are for the operator alone.
"""

from collections.abc import Callable

import msgspec
from starlette.responses import Response

from everlog.interfaces.http.core.openapi import openapi
from everlog.interfaces.http.core.routes import JSON, HttpCall, Route, RouteTable, encode

METRICS_TYPE = "text/plain; version=0.0.4"


class Health(msgspec.Struct, frozen=True):
    """State of the server."""

    status: str


def described_by(table: Callable[[], RouteTable], version: str) -> RouteTable:
    """Return the routes that describe a server. `table`: all its routes, these included."""
    document: list[bytes] = []

    async def show_openapi(_: HttpCall) -> Response:
        """Return this document."""
        if not document:
            document.append(encode(openapi(table(), version)))
        return Response(document[0], media_type=JSON)

    async def live(_: HttpCall) -> Health:
        """Say that the process answers."""
        return Health("ok")

    async def ready(call: HttpCall) -> Health:
        """Say that the server takes requests: the store can be read, and the server is not about to stop."""
        if call.service.stopping.is_set():
            return Health("stopping")
        await call.service.ports.aside(call.service.system.store.agents)
        return Health("ok")

    async def metrics(call: HttpCall) -> Response:
        """Return figures of the server for Prometheus."""
        call.service.take_figures()
        return Response(call.service.metrics.text(version), media_type=METRICS_TYPE)

    return (
        Route("GET", "/livez", live, "Say that the process answers", answer=Health, is_open=True),
        Route("GET", "/readyz", ready, "Say that the server takes requests", answer=Health, is_open=True),
        Route("GET", "/metrics", metrics, "Show figures for Prometheus", operator=True, media=(METRICS_TYPE,)),
        Route("GET", "/openapi.json", show_openapi, "Describe the API", is_open=True, media=(JSON,)),
    )
