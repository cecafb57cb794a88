"""A proxy between a client and a server that loses requests and answers: before, in and after the answer."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Break(NamedTuple):
    """Place at which the connection of a request is lost."""

    request: int | None = None
    """Bytes of the request that reach the server; None: all."""
    answer: int | None = None
    """Bytes of the answer that reach the client; None: all. 0 with a whole request: the server does not notice."""
    at_once: bool = False
    """True: the client loses the connection as soon as the request has reached the server."""


WHOLE = Break()


@asynccontextmanager
async def breaking(address: str, next_break: Callable[[], Break]) -> AsyncIterator[str]:
    """Pass connections on to a server while the block runs, and yield the address. `next_break`: of each request."""
    target, tasks = urlsplit(address), set[asyncio.Task[Any]]()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = asyncio.current_task()
        assert own is not None
        tasks.add(own)
        there_reader, there_writer = await asyncio.open_connection(target.hostname, target.port)
        try:
            with suppress(OSError):
                await _passed_on(reader, writer, there_reader, there_writer, next_break)
        finally:
            writer.close()
            there_writer.close()
            tasks.discard(own)

    listener = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()
        left = list(tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def _passed_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, there_reader: asyncio.StreamReader,
    there_writer: asyncio.StreamWriter, next_break: Callable[[], Break],
) -> None:  # fmt: skip
    """Pass requests on, and their answers, as far as the connection lasts."""
    while head := await _until_body(reader):
        at = next_break()
        body = await reader.readexactly(_length(head))
        request = (head + body)[: at.request]
        there_writer.write(request)
        await there_writer.drain()
        if at.request is not None or at.at_once:
            return
        if at.answer == 0:
            await there_reader.read(1)
            return
        answer_head = await _until_body(there_reader)
        answer = answer_head + await there_reader.readexactly(_length(answer_head))
        writer.write(answer[: at.answer])
        await writer.drain()
        if at.answer is not None:
            return


async def _until_body(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return b""


def _length(head: bytes) -> int:
    lines = head.lower().split(b"\r\n")
    return next((int(line.split(b":")[1]) for line in lines if line.startswith(b"content-length:")), 0)
