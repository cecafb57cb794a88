"""`http_request`: disabled unless hosts are allowed, and then limited to these hosts, at public addresses.

Each redirect is checked against the allow-list again and resolved again. Every address of a host is checked, and the
connection goes to a checked address. No proxy, cookie, name or password is used. Used by `extras.py`, and by `everlog
load` for pages.
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

import msgspec

from everlog.actors.functions.allowed_hosts import RequestTarget, hosts, target
from everlog.actors.functions.network_addresses import AddressFilter, HostResolver, check_addresses, is_public, resolved
from everlog.events import FunctionError

if TYPE_CHECKING:
    from everlog.actors.functions.http_transport import HttpResponse

REQUEST_TIMEOUT_S = 20.0
"""Longest time, in seconds, for a request with all its redirects."""

REDIRECTS_MAX = 5
"""Most redirects that are followed."""

MAYBE_DONE = "The request was sent, and may have been carried out: find out before you send it again."
"""Added to the text of every failure after the first byte of a request was sent."""

METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


class WebAccess:
    """Access to the allowed hosts."""

    def __init__(
        self,
        allowed: Sequence[str],
        resolve: HostResolver = resolved,
        admits: AddressFilter = is_public,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> None:
        """Raise BadInput for an invalid host."""
        self._allowed = hosts(allowed)
        self._resolve = resolve
        self._admits = admits
        self._timeout_s = timeout_s

    async def http_request(self, method: str, url: str, payload_json: str | None = None) -> dict[str, Any]:
        """Send a request to a web server that the user allows, and get status_code, headers and body of its answer.

        Args:
            method: GET, HEAD, OPTIONS, POST, PUT, PATCH or DELETE.
            url: The whole address, such as https://api.example.org/items?page=1.
            payload_json: What to send, as JSON text. GET sends nothing.
        """
        if not self._allowed:
            raise FunctionError("You may send requests to no host. The user can allow some: --allow-host HOST[:PORT].")
        method = method.upper()
        if method not in METHODS:
            raise FunctionError(f"The method is one of {', '.join(METHODS)}, not {method[:40]!r}. Nothing was sent.")
        goal, payload = target(url, self._allowed), _payload(method, payload_json)
        sent: list[str] = []
        try:
            async with asyncio.timeout(self._timeout_s):
                return _response_fields(await self._followed(goal, url, method, payload, sent))
        except TimeoutError:
            fault = f"there was no whole answer within {self._timeout_s:g} seconds"
        except (OSError, ValueError) as error:
            fault = f"{type(error).__name__}: {error}"
        return {"error": f"{fault}. {MAYBE_DONE}" if sent else fault}

    async def page(self, url: str, bytes_max: int) -> "HttpResponse":
        """Return the answer to GET with the first `bytes_max` bytes of its body, after all redirects.

        Raise FunctionError for an address that is not allowed, OSError or ValueError if it cannot be read.
        """
        if not self._allowed:
            raise FunctionError("no host is allowed. Allow its host: --allow-host HOST[:PORT].")
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._followed(target(url, self._allowed), url, "GET", None, [], bytes_max)
        except TimeoutError:
            raise OSError(f"there was no whole answer within {self._timeout_s:g} seconds") from None

    async def _followed(
        self,
        goal: RequestTarget,
        url: str,
        method: str,
        payload: bytes | None,
        sent: list[str],
        bytes_max: int | None = None,
    ) -> "HttpResponse":
        """Send the request, follow redirects, and return the last response. `sent` collects the URLs that were
        requested.

        A FunctionError means that nothing was sent; later refusals are OSErrors.
        """
        from everlog.actors.functions.http_transport import BODY_BYTES_MAX, exchange

        for hop in range(REDIRECTS_MAX + 1):
            try:
                goal = _next(goal, target(url, self._allowed)) if hop else goal
                addresses = await check_addresses(goal.host, goal.port, self._resolve, self._admits)
            except FunctionError as error:
                if not hop:
                    raise
                raise OSError(f"the server's redirect to {url[:200]!r} was not followed: {error}") from error
            noted = partial(sent.append, url)
            response = await exchange(goal, addresses, method, payload, noted, bytes_max or BODY_BYTES_MAX)
            location = response.headers.get("location")
            if response.status not in (301, 302, 303, 307, 308) or location is None:
                return response
            url = urljoin(url, location)
            if method != "HEAD" and (response.status == 303 or (response.status in (301, 302) and method == "POST")):
                method, payload = "GET", None
        raise OSError(f"there were more than {REDIRECTS_MAX} redirects")


def _next(before: RequestTarget, after: RequestTarget) -> RequestTarget:
    """Return the target of a redirect. Raise FunctionError if it leads from https to http: others could read it."""
    if (before.scheme, after.scheme) == ("https", "http"):
        raise FunctionError("it leads from https to http, where everybody on the way can read it")
    return after


def _payload(method: str, text: str | None) -> bytes | None:
    """Encode the payload. Raise FunctionError for a text that is not JSON."""
    if method == "GET" or text is None:
        return None
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise FunctionError(f"payload_json is no JSON: {error}. Nothing was sent.") from error
    return text.encode()


def _response_fields(response: "HttpResponse") -> dict[str, Any]:
    """Convert a response into the fields that the model sees."""
    body = response.body.decode(errors="replace")
    return {"status_code": response.status, "headers": response.headers, "body": body}
