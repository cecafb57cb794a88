"""Serve a model endpoint that answers at once, in a process of its own.

`python -m bench.support.endpoint` prints its port. Nothing may be printed before: `serving` reads it from stdout. Used
by `bench.fleet`, `bench.gateway` and the soak.

It reads as little of a request as HTTP/1.1 allows and gives every request the same answer, so that only the client is
measured.
"""

import asyncio
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.support.harness import ROOT

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


PIECES = 24
"""Number of chunks into which the arguments of the call are split in a streamed reply."""


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _sse({"id": "completion-1", "object": "chat.completion.chunk", "created": 0, "model": "instant",
                 "choices": [choice]})  # fmt: skip


def _sse(chunk: dict[str, object]) -> bytes:
    data = b"data: " + json.dumps(chunk).encode() + b"\n\n"
    return b"%x\r\n%s\r\n" % (len(data), data)


def _streamed() -> list[bytes]:
    """Return the same reply as chunks of a streamed response."""
    whole = str(_CALL["function"]["arguments"])  # type: ignore[index]
    size = -(-len(whole) // PIECES)
    parts = [whole[at : at + size] for at in range(0, len(whole), size)]
    first = {**_CALL, "index": 0, "function": {"name": "send_message", "arguments": ""}}
    usage = {"id": "completion-1", "object": "chat.completion.chunk", "created": 0, "model": "instant", "choices": [],
             "usage": {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 1020}}  # fmt: skip
    done = b"data: [DONE]\n\n"
    return [
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n",
        _event({"role": "assistant", "content": "I see."}),
        _event({"tool_calls": [first]}),
        *[_event({"tool_calls": [{"index": 0, "function": {"arguments": part}}]}) for part in parts],
        _event({}, "tool_calls"),
        _sse(usage),
        b"%x\r\n%s\r\n0\r\n\r\n" % (len(done), done),
    ]


STREAM = _streamed()


async def _serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
            body = await reader.readexactly(length)
            if b'"stream":true' in body or b'"stream": true' in body:
                for chunk in STREAM:
                    writer.write(chunk)
            else:
                writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _main() -> None:
    server = await asyncio.start_server(_serve, "127.0.0.1", 0, limit=1 << 20, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def serving() -> Iterator[int]:
    """Run the endpoint for the duration of the block. Yield its port."""
    with subprocess.Popen([sys.executable, "-m", "bench.support.endpoint"], cwd=ROOT, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.kill()


def bare_per_s(port: int, requests: int, body: bytes = b"x" * 20_000) -> float:
    """Return the requests a second over one bare connection, one after the other: the floor of every client."""
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
