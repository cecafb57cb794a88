"""Send one HTTP request to an address that was checked before, and read the response. Follows and stores nothing.

The connection goes to the address, so that a second look-up cannot lead elsewhere. The name of the host goes into the
`Host` header and into TLS, where the certificate must match it. Proxies of the environment are ignored. The caller
limits the time. Importing this file loads the HTTP client, so it is imported for the first request only. Used by
`http_function.py`, and by the server's webhooks.
"""

import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing

import httpx2
import msgspec

from everlog.actors.functions.allowed_hosts import RequestTarget
from everlog.actors.functions.network_addresses import Address

HEAD_BYTES_MAX = 32 * 1024
"""Largest total size of the headers of a response, in bytes."""

BODY_BYTES_MAX = 64 * 1024
"""Most bytes of a body that are read for a function of an agent; the rest is ignored."""

_HEADERS = {
    "Accept": "*/*",
    "Accept-Encoding": "identity",
    "User-Agent": "everlog",
    "Connection": "close",
}


class MalformedResponse(ValueError):
    """The response is incomplete, or is not HTTP."""


class HttpResponse(msgspec.Struct, frozen=True):
    """Response of a server."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; several values of one name are joined by a comma."""
    body: bytes
    """First bytes of the body."""


async def exchange(
    target: RequestTarget,
    addresses: Sequence[Address],
    method: str,
    payload: bytes | None,
    sending: Callable[[], None],
    bytes_max: int = BODY_BYTES_MAX,
    headers: Mapping[str, str] | None = None,
) -> HttpResponse:
    """Send a request to the first of the addresses that accepts a connection, and return the response with the first
    `bytes_max` bytes of its body. `headers`: further ones.

    `sending` is called before the first byte of the request leaves. Raises OSError if the network failed, ValueError
    (MalformedResponse) if the response is invalid.
    """
    failed = OSError(f"{target.host} has no address")
    async with httpx2.AsyncHTTPTransport(verify=_secured(target), trust_env=False) as transport:
        for address in addresses:
            try:
                answer = await transport.handle_async_request(
                    _request(target, address, method, payload, sending, headers or {})
                )
                return await _response(answer, bytes_max)
            except httpx2.ConnectError as error:
                failed = _failure(error)
            except httpx2.RemoteProtocolError as error:
                raise MalformedResponse(
                    f"the server ended the connection too early, or sent no HTTP: {error}"
                ) from error
            except httpx2.TransportError as error:
                raise _failure(error) from error
    raise failed


def _secured(target: RequestTarget) -> ssl.SSLContext:
    """Return TLS settings that verify the server's name with the machine's authorities; for http, an unused default."""
    return ssl.create_default_context() if target.scheme == "https" else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _request(
    target: RequestTarget,
    address: Address,
    method: str,
    payload: bytes | None,
    sending: Callable[[], None],
    headers: Mapping[str, str],
) -> httpx2.Request:
    async def trace(event: str, _: object) -> None:
        if event == "http11.send_request_headers.started":
            sending()

    typed = {} if payload is None else {"Content-Type": "application/json"}
    return httpx2.Request(
        method,
        httpx2.URL(scheme=target.scheme, host=str(address), port=target.port),
        headers={"Host": target.name, **_HEADERS, **typed, **headers},
        content=payload,
        extensions={"target": target.path.encode("ascii"), "sni_hostname": target.host, "trace": trace},
    )


async def _response(answer: httpx2.Response, bytes_max: int) -> HttpResponse:
    try:
        if sum(len(name) + len(value) for name, value in answer.headers.raw) > HEAD_BYTES_MAX:
            raise MalformedResponse(f"its headers are longer than {HEAD_BYTES_MAX} bytes")
        body = await _body(answer, bytes_max)
        if body and (encoding := answer.headers.get("content-encoding", "identity")).lower() != "identity":
            raise MalformedResponse(f"it is compressed ({encoding[:40]}), though it was asked not to be")
        return HttpResponse(answer.status_code, dict(answer.headers), body)
    finally:
        await answer.aclose()


async def _body(answer: httpx2.Response, bytes_max: int) -> bytes:
    """Read the body, up to `bytes_max` bytes."""
    found = bytearray()
    async with aclosing(answer.aiter_raw()) as parts:
        async for part in parts:
            found += part
            if len(found) >= bytes_max:
                break
    return bytes(found[:bytes_max])


def _failure(error: BaseException) -> OSError:
    """Return the innermost cause of a client error: it names the failure of the network, which the client may hide."""
    while (cause := error.__cause__ or error.__context__) is not None:
        error = cause
    return error if isinstance(error, OSError) else OSError(str(error) or type(error).__name__)
