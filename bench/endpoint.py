"""A model endpoint that answers at once, in a process of its own: `python -m bench.endpoint` prints its port.

It reads as little of a request as HTTP/1.1 allows and says the same to all: what is measured is whoever asks.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from .harness import ROOT

_CALL = {
    "id": "call_1",
    "type": "function",
    "function": {"name": "send_message", "arguments": '{"message": "Indeed."}'},
}
_BODY = json.dumps(
    {
        "id": "completion-1",
        "object": "chat.completion",
        "created": 0,
        "model": "instant",
        "choices": [
            {
                "index": 0,
                "finish_reason": "tool_calls",
                "message": {"role": "assistant", "content": "I see.", "tool_calls": [_CALL]},
            }
        ],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020},
    }
).encode()
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(_BODY) + _BODY


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 20)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving() -> Iterator[int]:
    """Its port, for as long as the block runs."""
    with subprocess.Popen([sys.executable, "-m", "bench.endpoint"], cwd=ROOT, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


def bare_per_s(port: int, requests: int, body: bytes = b"x" * 20_000) -> float:
    """Requests a second over one bare connection, one after the other: the floor of anything that asks it."""
    request = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body
    with socket.create_connection(("127.0.0.1", port)) as connection:
        begun = time.perf_counter()
        for _ in range(requests):
            connection.sendall(request)
            left = len(ANSWER)
            while left:
                left -= len(connection.recv(left))
        return requests / (time.perf_counter() - begun)


if __name__ == "__main__":
    asyncio.run(_main())
