"""A server of model endpoints inside the test's event loop: it sends given bytes, breaks connections, and hangs."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

KEY = "sk-very-secret-0123456789"

SSE = "text/event-stream"


@dataclass(frozen=True)
class Act:
    """The answer to one request: a status, headers, parts of the body, and then: `end`, `cut` or `hang`."""

    parts: Sequence[bytes] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    kind: str = "application/json"
    then: str = "end"


def streaming(*events: bytes, then: str = "end", kind: str = SSE) -> Act:
    """Return an answer that streams these events."""
    return Act(events, kind=kind, then=then)


def plain(body: str, status: int = 200, **headers: str) -> Act:
    """Return an answer with the whole body in one part."""
    return Act([body.encode()], status, [(name.replace("_", "-"), value) for name, value in headers.items()])


@dataclass
class Wire:
    """The server: received requests and its answers; the last answer is repeated."""

    acts: list[Act]
    url: str = ""
    bodies: list[bytes] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    heads: list[str] = field(default_factory=list)
    left: int = 0
    """Connections that the client closed while the server hung or was sending."""
    open: int = 0
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, left: int) -> None:
        """Wait until clients have closed `left` connections early."""
        async with asyncio.timeout(10):
            while self.left < left:
                self.news.clear()
                await self.news.wait()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await self._answer(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.open -= 1
            self.news.set()
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.readexactly(1)
        if first == b"\x16":  # the first byte of a TLS handshake
            writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode()
        length = int(head.lower().partition("content-length:")[2].split("\r\n")[0])
        self.bodies.append(await reader.readexactly(length))
        self.heads.append(head)
        self.paths.append(head.split()[1])
        act = self.acts.pop(0) if len(self.acts) > 1 else self.acts[0]
        headers = "".join(f"{name}: {value}\r\n" for name, value in act.headers)
        headers += f"content-type: {act.kind}\r\ntransfer-encoding: chunked\r\n"
        writer.write(f"HTTP/1.1 {act.status} X\r\n{headers}\r\n".encode())
        for part in act.parts:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
            await asyncio.sleep(0)
        if act.then == "end":
            writer.write(b"0\r\n\r\n")
        elif act.then == "hang":
            self.left += not await reader.read(1)
            return False
        return act.then == "end"


@asynccontextmanager
async def serving(*acts: Act) -> AsyncIterator[Wire]:
    """Run a server on 127.0.0.1 while the block runs, and wait at its end until all clients have disconnected."""
    wire = Wire(list(acts))
    server = await asyncio.start_server(wire.serve, "127.0.0.1", 0, backlog=1024)
    wire.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield wire
    finally:
        server.close()
        async with asyncio.timeout(10):
            while wire.open:
                wire.news.clear()
                await wire.news.wait()
