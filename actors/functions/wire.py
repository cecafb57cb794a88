"""One request and its answer over HTTP/1.1, to an address that was checked before. It follows and keeps nothing.

The name of the host goes into the `Host` header and into TLS, where the certificate must be for it; the connection goes
to the address, so that no second look-up can change it. The caller limits the time.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from everlog.actors.functions.addresses import Address
from everlog.actors.functions.hosts import Target

if TYPE_CHECKING:
    import ssl

HEAD_BYTES_MAX = 32 * 1024
"""Largest head of an answer: status and headers."""

BODY_BYTES_MAX = 64 * 1024
"""Bytes of a body that are read; the rest is left where it is."""

INTERIM_MAX = 5
"""Answers such as `100 Continue` that may come before the one that counts."""

_STATUS = re.compile(r"HTTP/1\.[01] ([1-5]\d\d)(?: .*)?")
_LENGTH = re.compile(r"\d{1,18}")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,8}")


class BrokenAnswer(ValueError):
    """What came is no answer in HTTP/1.1."""


class Response(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    """Names in small letters; several of one name are joined by a comma."""
    body: bytes
    """Its first BODY_BYTES_MAX bytes at most."""


async def exchange(
    target: Target, addresses: Sequence[Address], method: str, payload: bytes | None, sending: Callable[[], None]
) -> Response:
    """Send a request to the first of the addresses that takes the connection, and read the answer.

    `sending` is called before the first byte of the request leaves. Raises OSError, EOFError where the answer ends too
    early, ValueError (BrokenAnswer) where it is none.
    """
    reader, writer = await _connected(target, addresses)
    try:
        sending()
        writer.write(_request(target, method, payload))
        await writer.drain()
        status, headers = await _head(reader)
        body = b"" if method == "HEAD" or status in (204, 304) else await _body(reader, headers)
        return Response(status, headers, body)
    except asyncio.LimitOverrunError as error:
        raise BrokenAnswer(f"the head or a line of it is longer than {HEAD_BYTES_MAX} bytes") from error
    finally:
        writer.transport.abort()


async def _connected(target: Target, addresses: Sequence[Address]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = _secured(target)
    name = target.host if context else None
    failed = OSError(f"{target.host} has no address")
    for address in addresses:
        try:
            return await asyncio.open_connection(
                str(address), target.port, limit=HEAD_BYTES_MAX, ssl=context, server_hostname=name
            )
        except OSError as error:
            failed = error
    raise failed


def _secured(target: Target) -> "ssl.SSLContext | None":
    """TLS with the certificates that the machine trusts, for https; it holds the server's to the name."""
    if target.scheme != "https":
        return None
    import ssl

    return ssl.create_default_context()


def _request(target: Target, method: str, payload: bytes | None) -> bytes:
    lines = [
        f"{method} {target.path} HTTP/1.1",
        f"Host: {target.name}",
        "Accept: */*",
        "Accept-Encoding: identity",
        "User-Agent: everlog",
        "Connection: close",
    ]
    if payload is not None:
        lines += ["Content-Type: application/json", f"Content-Length: {len(payload)}"]
    return "\r\n".join([*lines, "", ""]).encode("ascii") + (payload or b"")


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    """Status and headers of the answer that counts."""
    for _ in range(INTERIM_MAX + 1):
        first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")[:-4].split("\r\n")
        status = _STATUS.fullmatch(first)
        if status is None:
            raise BrokenAnswer(f"it begins with {first[:80]!r}")
        if int(status[1]) >= 200:
            return int(status[1]), _headers(lines)
    raise BrokenAnswer(f"more than {INTERIM_MAX} interim answers")


def _headers(lines: Sequence[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BrokenAnswer(f"a header is {line[:80]!r}")
        before = headers.get(name.lower())
        headers[name.lower()] = value.strip() if before is None else f"{before}, {value.strip()}"
    return headers


async def _body(reader: asyncio.StreamReader, headers: dict[str, str]) -> bytes:
    """The body, up to BODY_BYTES_MAX."""
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise BrokenAnswer(f"it is compressed ({headers['content-encoding'][:40]}), though it was asked not to be")
    if "transfer-encoding" in headers:
        if headers["transfer-encoding"].lower() != "chunked":
            raise BrokenAnswer(f"its transfer-encoding is {headers['transfer-encoding'][:40]!r}")
        return await _chunked(reader)
    if "content-length" not in headers:
        return await _up_to(reader, BODY_BYTES_MAX)
    if not _LENGTH.fullmatch(headers["content-length"]):
        raise BrokenAnswer(f"its content-length is {headers['content-length'][:40]!r}")
    return await reader.readexactly(min(int(headers["content-length"]), BODY_BYTES_MAX))


async def _up_to(reader: asyncio.StreamReader, most: int) -> bytes:
    """What comes until the connection ends, `most` bytes at most."""
    found = b""
    while len(found) < most and (piece := await reader.read(most - len(found))):
        found += piece
    return found


async def _chunked(reader: asyncio.StreamReader) -> bytes:
    found = b""
    while len(found) < BODY_BYTES_MAX:
        size = (await reader.readuntil(b"\r\n"))[:-2].partition(b";")[0].strip()
        if not _SIZE.fullmatch(size):
            raise BrokenAnswer(f"the size of a chunk is {size[:40]!r}")
        if not int(size, 16):
            break
        most = BODY_BYTES_MAX - len(found)
        found += await reader.readexactly(min(int(size, 16), most))
        if int(size, 16) < most and await reader.readexactly(2) != b"\r\n":
            raise BrokenAnswer("a chunk does not end where it should")
    return found
