"""Build the ASGI application from the table of routes: guards, decoding, the handler, and the answer or the problem.

Paths are matched before they are decoded, so that a name may hold any character: `/` in a name is sent as %2F.
"""

import logging
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, get_origin
from urllib.parse import unquote

import msgspec
from starlette.middleware.errors import ServerErrorMiddleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route as PathRoute
from starlette.routing import Router
from starlette.types import ASGIApp, Receive, Scope, Send

from everlog.actors.ports.loggers import logger_of
from everlog.actors.ports.real_clock import monotonic_us
from everlog.events import EverlogError
from everlog.events.times import MICROSECONDS
from everlog.interfaces.http.core import guards
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, JsonResponse, Route, RouteTable
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.core.surfaces import NATIVE_SURFACE, Surface, surface_of
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.wire.problems import Problem, problem_of

_log = logger_of("http")
_ALLOWED = "Authorization, Content-Type, Idempotency-Key, If-Match, Last-Event-ID"
SECURITY = {"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store"}
"""Headers of every answer that does not set them itself."""


def application(table: RouteTable, service: HttpService, surfaces: Sequence[Surface] = ()) -> ASGIApp:
    """Return the application that serves the routes of a table. `surfaces`: those beside the native API."""
    by_path: dict[str, list[Route]] = {}
    for route in table:
        by_path.setdefault(route.path, []).append(route)
    routes = [PathRoute(path, _Address(of, service, surface_of(path, surfaces))) for path, of in by_path.items()]
    unknown = {one: _Address((), service, one) for one in (NATIVE_SURFACE, *surfaces)}

    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        await unknown[surface_of(scope["path"], surfaces)](scope, receive, send)

    router = Router(routes, redirect_slashes=False, default=elsewhere)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            # The router splits the path at each `/`: those of names are still encoded here.
            raw: bytes = scope.get("raw_path") or scope["path"].encode()
            scope["path"] = raw.decode("ascii", "replace")
            await router(scope, receive, send)

    async def bug_answer(request: Request, error: Exception) -> Response:
        """Answer a request that met a bug of everlog; the server then gets the exception and logs it."""
        message = "everlog failed: this is a bug of the server, whose log has the details."
        _log.error("bug: %s", type(error).__name__)
        surface = surface_of(request.scope["path"], surfaces)
        return _problem_response(surface, request, Problem(code="bug", message=message, status=500))

    return ServerErrorMiddleware(app, handler=bug_answer)


class _Address:
    """Everything that is served at one path."""

    def __init__(self, routes: Sequence[Route], service: HttpService, surface: Surface) -> None:
        self._routes = {route.method: route for route in routes}
        self._surface = surface
        self._path = routes[0].path if routes else "unknown"
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began = monotonic_us()
        request, origin = Request(scope, receive), ""
        try:
            guards.check_host(request, self._service)
            origin = guards.check_origin(request, self._service)
            response = await self._answer(request)
        except Refusal as refusal:
            response = _problem_response(self._surface, request, refusal.problem, refusal.headers)
            if request.method not in {"GET", "HEAD", "OPTIONS"}:
                await guards.drop_body(request)
        except EverlogError as error:
            response = _problem_response(self._surface, request, problem_of(error))
        for name, value in {**SECURITY, **_cors(origin)}.items():
            response.headers.setdefault(name, value)
        await response(scope, receive, send)
        seconds = (monotonic_us() - began) / MICROSECONDS
        self._service.metrics.answered(scope["method"], self._path, response.status_code, seconds)
        if _log.isEnabledFor(logging.INFO):
            _log.info("%s %s: %d", scope["method"], self._path, response.status_code)

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        route = self._routes.get(method)  # type: ignore[call-overload]
        if route is None:
            return self._without_route(request)
        caller = guards.OPERATOR if route.is_open else guards.caller_of(request, self._service)
        guards.check_allowed(route, caller)
        guards.check_rate(caller, self._service)
        guards.check_body_type(request, route)
        call = HttpCall(
            self._service, caller, request,
            params={name: _decoded(text) for name, text in request.path_params.items()},
            query=_query(request, route.query, self._surface),
        )  # fmt: skip
        if route.body is not None:
            body = await guards.read_body(request, self._service, route.body_max)
            call.body = _body(body, route.body, self._surface)
        try:
            answer = await route.handler(call)
        except EverlogError as error:
            return _problem_response(self._surface, request, problem_for(error, caller.names))
        if isinstance(answer, Response):
            return answer
        return Response(status_code=204) if route.answer is None else JsonResponse(answer, route.status)

    def _without_route(self, request: Request) -> Response:
        if not self._routes:
            raise self._surface.unknown(request.method, request.scope["path"])
        allowed = ", ".join(sorted({*self._routes, "OPTIONS"}))
        if request.method == "OPTIONS":
            return Response(status_code=204, headers={"Allow": allowed})
        raise Refusal(
            405, "method-not-allowed", f"This address takes {allowed}, not {request.method}.",
            headers={"Allow": allowed},
        )  # fmt: skip


def _problem_response(
    surface: Surface, request: Request, problem: Problem, headers: Mapping[str, str] | None = None
) -> Response:
    more = dict(headers or {})
    if problem.retry_after_s:
        more["Retry-After"] = str(max(1, round(problem.retry_after_s)))
    # Clients of other makers repeat requests after some statuses by themselves: tell them when that cannot help.
    more["X-Should-Retry"] = "true" if problem.status in {429, 503} else "false"
    if surface.page_of is not None:
        return surface.page_of(problem, request, more)
    return JsonResponse(surface.body_of(problem), problem.status, more)


def _cors(origin: str) -> Mapping[str, str]:
    if not origin:
        return {}
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Headers": _ALLOWED,
        "Access-Control-Allow-Methods": "GET, POST, PUT, PATCH, DELETE",
        "Access-Control-Expose-Headers": "Location, Retry-After, ETag",
        "Vary": "Origin",
    }


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as error:
        raise _bad_input(f"{text[:80]!r} in the address is not UTF-8") from error


@cache
def _parameters(kind: type[msgspec.Struct]) -> tuple[Sequence[str], frozenset[str]]:
    """Return the names of the parameters of a route, and of those that may be given several times. Looking at the
    types takes longer than the rest of `_query`.
    """
    fields = msgspec.structs.fields(kind)
    lists = frozenset(field.encode_name for field in fields if get_origin(field.type) in {list, tuple})
    return [field.encode_name for field in fields], lists


def _query(request: Request, kind: type[msgspec.Struct], surface: Surface) -> msgspec.Struct:
    known, lists = _parameters(kind)
    values: dict[str, Any] = {}
    for name, value in request.query_params.multi_items():
        if name in lists:
            values.setdefault(name, []).append(value)
        elif name in values:
            raise _bad_input(f"The parameter {name[:80]!r} is given twice")
        else:
            values[name] = value
    unknown = values.keys() - set(known)
    if unknown and not surface.takes_unknown:
        listed = f"there are {', '.join(known)}" if known else "there are none here"
        raise _bad_input(f"There is no parameter {min(unknown)[:80]!r}: {listed}")
    try:
        return msgspec.convert(values, kind, strict=False)
    except msgspec.ValidationError as error:
        raise _bad_input(f"A parameter is not what it should be: {error}", surface.invalid_status) from error


def _body(body: bytes, kind: Any, surface: Surface) -> Any:
    try:
        return msgspec.json.decode(body or b"{}", type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise _bad_input(f"The body is not what it should be: {error}", surface.invalid_status) from error


def _bad_input(message: str, status: int = 400) -> Refusal:
    return Refusal(status, "bad-input", f"{message}. Nothing was done.")
