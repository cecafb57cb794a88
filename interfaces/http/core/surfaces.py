"""Describe the surfaces of a server: the native API, and those that clients of other makers already speak.

A surface has a path of its own, its own shape of a refusal, and its own answer at an address that it does not have.
Requests of all surfaces pass the same guards. Used by `application`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.wire.problems import Problem


def _native_body(problem: Problem) -> object:
    return problem


def _no_address(_method: str, _path: str) -> Refusal:
    return Refusal(404, "not-found", "There is nothing at this address. /openapi.json lists what there is.")


class Surface(NamedTuple):
    """One API of a server, below a path."""

    prefix: str
    """Beginning of its paths, without a `/` at the end; empty for the native API and the pages."""
    body_of: Callable[[Problem], object] = _native_body
    """Function that returns the body of the answer for a problem."""
    unknown: Callable[[str, str], Refusal] = _no_address
    """Function that returns the refusal of a request to an address that the surface does not have, by method and path.
    """
    takes_unknown: bool = False
    """True: parameters that a route does not have are ignored, as the original server does."""
    invalid_status: int = 400
    """Status of a request whose parameters or body have another shape."""
    page_of: Callable[[Problem, Request, Mapping[str, str]], Response] | None = None
    """Function that returns a page for people, in place of a body in JSON, for a problem of a request; the headers go
    with it.
    """


NATIVE_SURFACE = Surface("")


def surface_of(path: str, surfaces: Sequence[Surface]) -> Surface:
    """Return the surface of a path; the native one if the path belongs to no other."""
    for surface in surfaces:
        if path == surface.prefix or path.startswith(f"{surface.prefix}/"):
            return surface
    return NATIVE_SURFACE
