"""A proxy between a client and a server that cuts connections at chosen bytes of what the server answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import urlsplit


class CuttingProxy:
    """Address of the proxy, and what it did."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.cuts = 0
        self.connections = 0


@asynccontextmanager
async def cutting(address: str, bytes_until_cut: Callable[[], int | None]) -> AsyncIterator[CuttingProxy]:
    """Pass connections on to the server while the block runs.

    `bytes_until_cut`: called for each connection; it returns the bytes of answers after which the connection is cut,
    None for one that is never cut, and a negative number for one whose request never reaches the server.
    """
    target = urlsplit(address)
    open_tasks: set[asyncio.Task[Any]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        proxy.connections += 1
        own = asyncio.current_task()
        assert own is not None
        open_tasks.add(own)
        left = bytes_until_cut()
        if left is not None and left < 0:
            proxy.cuts += 1
            writer.close()
            open_tasks.discard(own)
            return
        there_reader, there_writer = await asyncio.open_connection(target.hostname, target.port)

        async def forward() -> None:
            with suppress(OSError):
                while part := await reader.read(65536):
                    there_writer.write(part)
                    await there_writer.drain()

        sending = asyncio.get_running_loop().create_task(forward())
        try:
            with suppress(OSError):
                while part := await there_reader.read(65536):
                    if left is not None and len(part) >= left:
                        writer.write(part[:left])
                        await writer.drain()
                        proxy.cuts += 1
                        break
                    left = None if left is None else left - len(part)
                    writer.write(part)
                    await writer.drain()
        finally:
            sending.cancel()
            writer.close()
            there_writer.close()
            await asyncio.gather(sending, return_exceptions=True)
            open_tasks.discard(own)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    proxy = CuttingProxy(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    try:
        yield proxy
    finally:
        server.close()
        left = list(open_tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
