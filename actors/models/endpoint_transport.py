"""Carry requests to one endpoint over HTTP/1.1, for openai's client: a transport of httpx2 over asyncio and httptools.

httpx2's own transport takes more than half of a request's CPU, in layers of Python; here llhttp, the parser of Node.js,
reads the answers as they arrive. docs/explanation/decisions/0041-transport-of-endpoints.md has the figures, and says
what else was measured. A request goes out once, and a connection that breaks is an error of httpx2, which openai turns
into its own. Used by `openai_client.py`.
"""

import asyncio
import select
import ssl
from collections import deque
from collections.abc import AsyncIterator
from typing import cast

import httptools
import httpx2

HEAD_BYTES_MAX = 100 << 10
"""Maximum bytes that a server may send without any byte of a body among them: a head, or the end of chunks."""

BUFFERED_BYTES_MAX = 256 << 10
"""Bytes of a body that wait for their reader, after which no more are read from the connection."""

FAMILY_DELAY_S = 0.25
"""Seconds after which the next address of a host is tried beside the one that has not answered (RFC 8305)."""


class EndpointConnection(asyncio.Protocol):
    """One connection: one exchange after the other, each parsed while it arrives."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        # As servers really send them. A connection whose answer has a length and chunks is not used again.
        self._parser.set_dangerous_leniencies(
            lenient_chunked_length=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._error: httpx2.TransportError | None = None
        self._spoiled = False
        """True if no other request may use the connection: more than one answer came, or the server wants it closed."""
        self._closed = False
        self.idle_since = 0.0
        self._complete = True
        self._forget()

    def _forget(self) -> None:
        self._status = 0
        self._headers: list[tuple[bytes, bytes]] = []
        self._headed = self._sized = self._paused = False
        self._parts: list[bytes] = []
        self._buffered = self._without_body = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection from the event loop."""
        self._transport = cast(asyncio.Transport, transport)
        self._arrivals = select.poll()
        self._arrivals.register(transport.get_extra_info("socket").fileno(), select.POLLIN)

    def data_received(self, data: bytes) -> None:
        """Parse the next bytes."""
        if self._complete:  # without a request: they would be taken for the answer to the next request
            self._spoiled = True
            self._transport.abort()
            return
        self._without_body += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fail(f"The server did not speak HTTP/1.1: {error}")
        if self._without_body > HEAD_BYTES_MAX:
            self._fail(f"The head of the answer has more than {HEAD_BYTES_MAX:,} bytes.")
        self._wake()

    def eof_received(self) -> bool:
        """Close the connection: nothing more comes, also if the request is still on its way."""
        self._end(None)
        self._transport.abort()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """End an answer that has not come to its end."""
        self._closed = True
        self._end(exc)

    def on_message_begin(self) -> None:
        """Note the beginning of an answer."""
        self._spoiled |= self._complete

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header. Those after the body are ignored."""
        if not self._headed and not self._complete:
            self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Keep the status of a head that is complete."""
        if self._complete:
            return
        self._status = self._parser.get_status_code()
        if self._status >= 200:
            self._headed = True
            marks = {name.lower() for name, _ in self._headers} & {b"content-length", b"transfer-encoding"}
            self._sized, self._spoiled = bool(marks), self._spoiled or len(marks) > 1

    def on_body(self, part: bytes) -> None:
        """Keep a part of the body until it is read."""
        if self._complete:
            return
        self._without_body = 0
        self._parts.append(part)
        self._buffered += len(part)
        if self._buffered > BUFFERED_BYTES_MAX and not self._paused:
            self._paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        """End the answer. One of status 1xx only announces another."""
        if self._complete:
            return
        if not self._headed:
            self._headers = []
            return
        self._spoiled |= not self._parser.should_keep_alive()
        self._complete = True

    def can_be_used(self) -> bool:
        """Return True if the connection is open, and nothing came over it since the last answer."""
        return not (self._spoiled or self._closed or self._transport.is_closing() or self._arrivals.poll(0))

    def send(self, request: bytes) -> None:
        """Begin an exchange."""
        self._forget()
        self._complete = False
        if self._closed:  # since it was made: no event will follow
            self._end(None)
        else:
            self._transport.write(request)

    async def head(self, silence_s: float | None) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Wait for the head of the answer. Return its status, headers and version. Raise httpx2.TransportError."""
        while not self._headed:
            if self._error is not None:
                raise self._error
            await self._news(silence_s)
        return self._status, self._headers, b"HTTP/" + self._parser.get_http_version().encode()

    async def part(self, silence_s: float | None) -> bytes:
        """Return what came of the body; empty at its end. Raise httpx2.TransportError if it does not reach its end."""
        while not self._parts:
            if self._complete:
                return b""
            if self._error is not None:
                raise self._error
            await self._news(silence_s)
        came, self._parts, self._buffered = b"".join(self._parts), [], 0
        if self._paused and not self._closed:
            self._paused = False
            self._transport.resume_reading()
        return came

    def drop(self) -> None:
        """Close the connection, whatever it is doing."""
        self._transport.abort()

    def is_finished(self) -> bool:
        """Return True if the request was sent and the answer read, both to the end, and the connection can be kept."""
        open_ = not (self._spoiled or self._closed)
        return open_ and self._complete and not self._parts and not self._transport.get_write_buffer_size()

    async def _news(self, silence_s: float | None) -> None:
        self._waiter = self._loop.create_future()
        try:
            async with asyncio.timeout(silence_s):
                await self._waiter
        except TimeoutError:
            raise httpx2.ReadTimeout(f"Nothing came for {silence_s:g} s.") from None
        finally:
            self._waiter = None

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _fail(self, why: str) -> None:
        self._spoiled = True
        if not self._complete and self._error is None:
            self._error = httpx2.RemoteProtocolError(why)
        self._transport.abort()

    def _end(self, exc: Exception | None) -> None:
        """End the exchange. Without a length the end of the connection is that of the body, unless it was reset."""
        if not self._complete and self._error is None:
            if exc is not None:
                self._error = httpx2.ReadError(str(exc) or type(exc).__name__)
            elif self._headed and not self._sized:
                self._complete = self._spoiled = True
            else:
                where = "in the middle of its answer" if self._headed else "without an answer"
                self._error = httpx2.RemoteProtocolError(f"The server closed the connection {where}.")
        self._wake()


class EndpointTransport(httpx2.AsyncBaseTransport):
    """Connections to one endpoint. Each is used again after an answer that was read to its end."""

    def __init__(self, trust: ssl.SSLContext, connections_max: int, idle_s: float) -> None:
        """`trust`: certificates for https. `idle_s`: seconds after which an idle connection is not used again."""
        self._trust = trust
        self._trust.set_alpn_protocols(["http/1.1"])
        self._idle_s = idle_s
        self._slots = asyncio.Semaphore(connections_max)
        self._idle: deque[EndpointConnection] = deque()
        """Idle connections, the one that was used last at the end."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request, and return the answer with its body unread. Raise httpx2.TransportError."""
        limits = request.extensions.get("timeout", {})
        content = await request.aread()
        try:
            async with asyncio.timeout(limits.get("pool")):
                await self._slots.acquire()
        except TimeoutError:
            raise httpx2.PoolTimeout("No connection became free in time.") from None
        connection: EndpointConnection | None = None
        body: _Body | None = None
        try:
            connection = self._kept() or await self._connected(request.url, limits.get("connect"))
            connection.send(_head(request) + content)
            status, headers, version = await connection.head(limits.get("read"))
            body = _Body(self, connection, limits.get("read"))
        finally:
            if body is None:  # failed or cancelled; otherwise the body gives the connection back
                self.release(connection)
        return httpx2.Response(status, headers=headers, stream=body, extensions={"http_version": version})

    async def aclose(self) -> None:
        """Close the idle connections. Idempotent."""
        while self._idle:
            self._idle.pop().drop()

    def release(self, connection: EndpointConnection | None) -> None:
        """Take a connection back, and keep it if its exchange came to an end. None: there was no connection."""
        self._slots.release()
        if connection is None:
            return
        if connection.is_finished():
            connection.idle_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.drop()

    def _kept(self) -> EndpointConnection | None:
        """Return an idle connection that can be used, if there is one, and close those that are idle too long."""
        oldest = asyncio.get_running_loop().time() - self._idle_s
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.popleft().drop()
        while self._idle:
            connection = self._idle.pop()
            if connection.can_be_used():
                return connection
            connection.drop()
        return None

    async def _connected(self, url: httpx2.URL, within_s: float | None) -> EndpointConnection:
        secured = url.scheme == "https"
        try:
            async with asyncio.timeout(within_s):
                _, connection = await asyncio.get_running_loop().create_connection(
                    EndpointConnection,
                    url.raw_host.decode("ascii"),
                    url.port or (443 if secured else 80),
                    ssl=self._trust if secured else None,
                    happy_eyeballs_delay=FAMILY_DELAY_S,
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error) or "No connection in time.") from None
        except (OSError, UnicodeError) as error:  # UnicodeError: the name of the host is none
            raise httpx2.ConnectError(str(error)) from error
        return connection


class _Body(httpx2.AsyncByteStream):
    """Body of an answer, read from its connection."""

    def __init__(self, owner: EndpointTransport, connection: EndpointConnection, silence_s: float | None) -> None:
        self._owner, self._connection, self._silence_s = owner, connection, silence_s
        self._open = True

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body in the parts in which it arrives."""
        while part := await self._connection.part(self._silence_s):
            yield part

    async def aclose(self) -> None:
        """Give the connection back. Idempotent."""
        if self._open:
            self._open = False
            self._owner.release(self._connection)


def _head(request: httpx2.Request) -> bytes:
    """Return the head of a request. Raise httpx2.LocalProtocolError if a header holds an end of line."""
    lines = [b"%b %b HTTP/1.1" % (request.method.encode("ascii"), request.url.raw_path)]
    lines += [name + b": " + value for name, value in request.headers.raw]
    head = b"\r\n".join([*lines, b"", b""])
    # An end of line in a header would begin another header, or another request. The header may be the key's.
    if head.count(b"\n") != len(lines) + 1 or head.count(b"\r") != len(lines) + 1:
        raise httpx2.LocalProtocolError("A header of the request holds an end of line.")
    return head
