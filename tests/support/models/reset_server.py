"""A server of model endpoints that answers in raw bytes and then resets, closes or keeps its connection.

Used by tests of connections that break. It runs in a thread: an event loop never sends the reset of TCP that a crashed
server, a firewall or a load balancer sends.
"""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

WAIT_S = 10


@dataclass(frozen=True)
class Answer:
    """The answer to one request: raw bytes, and then `reset`, `close` or `keep` of the connection."""

    parts: tuple[bytes, ...]
    then: str = "keep"


@dataclass
class ResetServer:
    """Received requests, and the answers in order; the last one is repeated."""

    answers: list[Answer]
    url: str = ""
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0

    def serve(self, listening: socket.socket) -> None:
        """Answer connections, one after the other, until the listening socket is closed."""
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                connection.settimeout(WAIT_S)
                self.connections += 1
                with connection, suppress(OSError):
                    while self._answer(connection):
                        pass

    def _answer(self, connection: socket.socket) -> bool:
        """Answer one request. Return True if the connection is kept."""
        request = b""
        while b"\r\n\r\n" not in request or not request.endswith(b"}"):  # each request of these tests is JSON
            part = connection.recv(65536)
            if not part:
                return False
            request += part
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        for part in answer.parts:
            connection.sendall(part)
        if answer.then == "reset":  # lingering for 0 seconds: closing sends RST in place of FIN
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return answer.then == "keep"


@contextmanager
def resetting(*answers: Answer) -> Iterator[ResetServer]:
    """Run a server on 127.0.0.1 while the block runs."""
    server = ResetServer(list(answers))
    listening = socket.create_server(("127.0.0.1", 0))
    server.url = f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
    thread = threading.Thread(target=server.serve, args=(listening,))
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK", version: bytes = b"HTTP/1.1") -> bytes:
    """Return a response with its length."""
    lines = [version + b" " + status, b"Content-Length: %d" % len(body), b"Content-Type: application/json", *headers]
    return b"\r\n".join([*lines, b"", body])


def chunked(*events: bytes, end: bool = True) -> tuple[bytes, ...]:
    """Return a streamed response in chunks; with `end` also its last, empty chunk."""
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"
    return (head, *(b"%x\r\n%b\r\n" % (len(event), event) for event in events), *([b"0\r\n\r\n"] if end else []))
