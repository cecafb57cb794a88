"""The routes of a server that belong to no surface of another maker."""

from everlog.interfaces.http.core.routes import RouteTable
from everlog.interfaces.http.core.surfaces import NATIVE_SURFACE, surface_of
from everlog.interfaces.http.server import SURFACES, full_table


def native_table() -> RouteTable:
    """Return the routes of the native API, and of the pages beside it."""
    return [route for route in full_table("test") if surface_of(route.path, SURFACES) is NATIVE_SURFACE]
