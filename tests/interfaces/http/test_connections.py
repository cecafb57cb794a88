"""Connections of the server."""

import asyncio
import socket

from everlog.interfaces.http.server import bound_socket


def test_an_answer_does_not_wait_for_an_acknowledgement() -> None:
    """The server sends each part of an answer at once, also on a connection that had answers before: a body does not
    wait until the client has acknowledged the head.
    """

    async def main() -> None:
        options: asyncio.Queue[int] = asyncio.Queue()

        async def opened(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            sock = writer.get_extra_info("socket")
            options.put_nowait(sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        server = await asyncio.start_server(opened, sock=bound_socket("127.0.0.1", 0))
        async with server:
            port = server.sockets[0].getsockname()[1]
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await options.get() != 0
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())
