"""A receiver of webhooks on this machine that fails in every way, and checks what it gets."""

import asyncio
import base64
import hashlib
import hmac
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
ANSWERS = {
    "ok": OK,
    "accepted": b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    "error": b"HTTP/1.1 500 Oops\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "busy": b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
    "redirect": b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "silent": b"",
    "middle": b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nhalf",
    "noise": b"\x00\x01 no http at all\r\n\r\n",
}
"""Bytes that are answered before the connection is closed, by way. `hang` answers nothing and keeps it open."""


class Delivery(msgspec.Struct):
    """One try that arrived whole."""

    id: str
    records: list[tuple[str, int]]
    """Agent and seq of each record."""
    acknowledged: bool
    headers: dict[str, str]
    body: bytes


class Receiver:
    """Tries that arrived, and the answers to the next ones."""

    def __init__(self) -> None:
        self.deliveries: list[Delivery] = []
        self.answer: Callable[[int], str] = lambda _: "ok"
        """Returns the way in which a try is answered, by its number from 0."""
        self.arrived = asyncio.Condition()
        self.port = 0
        self.release = asyncio.Event()

    async def until(self, holds: Callable[["Receiver"], bool]) -> None:
        """Wait until a condition holds."""
        async with self.arrived:
            await asyncio.wait_for(self.arrived.wait_for(lambda: holds(self)), 60)

    def received(self) -> dict[str, list[int]]:
        """Return the seqs of each agent in the order of the first arrival, without what came again."""
        found: dict[str, list[int]] = {}
        seen: set[str] = set()
        for delivery in self.deliveries:
            if delivery.id not in seen:
                seen.add(delivery.id)
                for agent, seq in delivery.records:
                    found.setdefault(agent, []).append(seq)
        return found

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Read one request, note it and answer it."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = [line.partition(": ") for line in head.split("\r\n")[1:] if line]
            headers = {name.lower(): value for name, _, value in lines}
            body = await reader.readexactly(int(headers["content-length"]))
            way = self.answer(len(self.deliveries))
            data = msgspec.json.decode(body)["data"]
            records = [(record["agent"], record["seq"]) for record in data["records"]]
            async with self.arrived:
                good = way in {"ok", "accepted"}
                self.deliveries.append(Delivery(headers["webhook-id"], records, good, headers, body))
                self.arrived.notify_all()
            if way == "hang":
                await self.release.wait()
            else:
                writer.write(ANSWERS[way])
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


def is_signed(delivery: Delivery, secret: str) -> bool:
    """Return True if a delivery has the signature of a secret, computed as Standard Webhooks says."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = b".".join((delivery.id.encode(), delivery.headers["webhook-timestamp"].encode(), delivery.body))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return delivery.headers["webhook-signature"] == f"v1,{expected}"


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """Run a receiver while the block runs."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        receiver.release.set()
        server.close()
        await server.wait_closed()
