"""A chat-completions server on this machine: it records the requests byte for byte and answers from a script."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Reply = tuple[int, str]


class Loopback:
    """Received requests, and the answers: (status, body), the last one repeated."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.url = ""
        self.connections = 0
        self.listing: Reply = (404, "{}")
        """Answer to every GET, such as the question for the list of models."""
        self.asked_for: list[str] = []
        """Paths of all GETs."""
        self._news = threading.Condition()

    def wait_for(self, requests: int, seconds: float = 60) -> None:
        """Wait until the server has received `requests` requests in total."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.bodies) >= requests, seconds), f"{len(self.bodies)} came"

    def answer(self, headers: dict[str, str], body: bytes) -> Reply:
        with self._news:
            self.bodies.append(body)
            self.headers.append(headers)
            self._news.notify_all()
        return self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]


@contextmanager
def serving(*replies: Reply, location: str = "") -> Iterator[Loopback]:
    """Run a server on 127.0.0.1 while the block runs; each answer has a Location header with `location`, if given."""
    script = Loopback(*replies)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            script.connections += 1

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            status, text = script.answer({k.lower(): v for k, v in self.headers.items()}, body)
            data = text.encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(data)))
            if location:
                self.send_header("location", location)
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            script.asked_for.append(self.path)
            status, text = script.listing
            data = text.encode()
            self.send_response(status)
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 128  # a gateway may open that many connections at once

    server = Server(("127.0.0.1", 0), Handler)
    script.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
