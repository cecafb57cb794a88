"""Check a request before a route sees it: Host, Origin, the type and size of the body, the key, and the rate.

The order matters: a sender without permission learns nothing, and a body is read only if its sender may send it.

Used by `application`, for the routes of every surface.
"""

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

from starlette.requests import ClientDisconnect, Request

from everlog.interfaces.http.core.keys import LINK_NAME, PREFIX, ROLES
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCaller, Route, not_found
from everlog.interfaces.http.core.service import LOCAL_NAMES, HttpService
from everlog.interfaces.http.core.tenants import TenantNames

OPERATOR = HttpCaller(key_id="", role="admin", names=TenantNames(""))
"""Caller on this machine while the store has no keys."""
DROP_BYTES_MAX = 16 * 1024 * 1024
"""Bytes of a refused body that are received."""
DROP_S = 2.0
"""Seconds in which they are."""
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="everlog"'}


def check_host(request: Request, service: HttpService) -> None:
    """Raise the refusal of a request that was meant for another host: a page whose name was bound to this address."""
    given = request.headers.getlist("host")
    name = _host_name(given[0]) if len(given) == 1 else ""
    if name not in (*LOCAL_NAMES, *service.options.hosts):
        raise Refusal(
            421, "wrong-host",
            f"The request is for the host {name or given!r}, which this server is not. If clients reach it by that "
            "name, start it with --hostname NAME.",
        )  # fmt: skip


def check_origin(request: Request, service: HttpService) -> str:
    """Return the origin of the page that sent a request, if it needs an answer that allows it; else an empty text.

    Raises the refusal of a page of another origin.
    """
    origin = request.headers.get("origin")
    if origin is None:
        return ""
    if origin in service.options.origins:
        return origin
    parts = urlsplit(origin)
    if parts.scheme in {"http", "https"} and parts.netloc == request.headers.get("host"):
        return ""
    raise Refusal(
        403, "wrong-origin",
        f"Pages of {origin!r} may not call this server. If they should, start it with --origin {origin}.",
    )  # fmt: skip


def caller_of(request: Request, service: HttpService) -> HttpCaller:
    """Return the sender of a request. Raises the refusal of one without a key that counts.

    A server without keys takes any: programs for other servers insist on sending one.
    """
    key = _key_of(request) or _key_of_page(request)
    if not service.options.keys_required and not service.keys.all():
        return OPERATOR
    if not key:
        raise Refusal(
            401, "unauthorized",
            "A key is needed: send `Authorization: Bearer KEY`. The operator makes one with `everlog keys create`.",
            headers=_CHALLENGE,
        )  # fmt: skip
    entry = service.keys.find(key, service.ports.clock.now())
    if entry is None or entry.name == LINK_NAME:
        shape = "" if key.startswith(PREFIX) else f" Keys of everlog begin with {PREFIX}."
        raise Refusal(
            401, "unauthorized", f"The key is unknown, has expired or was revoked.{shape}", headers=_CHALLENGE
        )
    return HttpCaller(key_id=entry.id, role=entry.role, names=TenantNames(entry.tenant))


def check_allowed(route: Route, caller: HttpCaller) -> None:
    """Raise the refusal of a caller whose key does not allow a route. What is the operator's does not exist for
    tenants.
    """
    if route.operator and caller.names.tenant:
        raise not_found("such address")
    if ROLES.index(caller.role) < ROLES.index(route.role):
        raise Refusal(
            403, "forbidden", f"The key has the role {caller.role!r}, and this needs {route.role!r}. Nothing was done."
        )


def check_rate(caller: HttpCaller, service: HttpService) -> None:
    """Raise the refusal of a request that comes too soon after many others of its key."""
    wait_s = service.rates.wait_s(caller.key_id) if caller.key_id else 0.0
    if wait_s:
        raise Refusal(
            429, "too-many-requests", "The key has sent too many requests in a second. Nothing was done.",
            retry_after_s=wait_s,
        )  # fmt: skip


def check_body_type(request: Request, route: Route) -> None:
    """Raise the refusal of a body of another type: no form of a page can send what a route takes."""
    given = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    taken = route.body_types or (route.body_media,)
    if (has_body or given) and given not in taken:
        raise Refusal(
            415, "unsupported-media-type",
            f"The body is {' or '.join(taken)}, and the request says {given or 'nothing'!r} (Content-Type).",
        )  # fmt: skip


async def read_body(request: Request, service: HttpService, limit: int) -> bytes:
    """Return the body of a request. Raises the refusal of one that is too large or too slow."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > limit:
        raise too_large(limit)
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(service.options.limits.body_s):
            async for part in request.stream():
                size += len(part)
                if size > limit:
                    raise too_large(limit)
                parts.append(part)
    except TimeoutError as error:
        raise Refusal(408, "too-slow", "The body did not arrive in time. Nothing was done.") from error
    except ClientDisconnect as error:
        raise Refusal(400, "cut-off", "The connection ended within the body. Nothing was done.") from error
    return b"".join(parts)


async def drop_body(request: Request) -> None:
    """Receive a part of a body that was refused, so that its sender can read the answer instead of an error."""
    size = 0
    with suppress(TimeoutError, ClientDisconnect, RuntimeError):
        async with asyncio.timeout(DROP_S):
            async for part in request.stream():
                size += len(part)
                if size > DROP_BYTES_MAX:
                    return


def too_large(limit: int) -> Refusal:
    """Return the refusal of a body that is larger than a limit, in bytes."""
    return Refusal(
        413, "too-large", f"The body is larger than {limit:,} bytes. Nothing was done.", headers={"Connection": "close"}
    )


def _key_of(request: Request) -> str:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else ""


def cookie_name(request: Request) -> str:
    """Return the name of the cookie with the key of a browser. Cookies know no ports, so the name has it."""
    return f"everlog-{request.headers.get('host', '').rpartition(':')[2]}"


def is_of_own_page(request: Request) -> bool:
    """Return True if a page of this server sent the request, as the browser says."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    origin = request.headers.get("origin", "")
    return urlsplit(origin).netloc == request.headers.get("host")


def _key_of_page(request: Request) -> str:
    """Return the key that a browser sends by itself, as a cookie; empty if there is none. Raises the refusal of a
    request that changes something and is not sent by a page of this server: a browser sends the cookie there too.
    """
    key = request.cookies.get(cookie_name(request), "")
    if key and request.method not in {"GET", "HEAD", "OPTIONS"} and not is_of_own_page(request):
        raise Refusal(
            403, "wrong-origin", "A change needs a page of this server, or a key in the header Authorization."
        )
    return key


def _host_name(given: str) -> str:
    """Return the name in a header Host, without the port."""
    if given.startswith("["):
        return given.partition("]")[0] + "]"
    return given.partition(":")[0].lower()
