"""A web server on this machine that answers in raw bytes, and a resolver that answers from a script."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address
from pathlib import Path

from everlog.actors.functions.http_function import WebAccess
from everlog.actors.functions.network_addresses import Address

Answer = bytes | Callable[[int], bytes]

_CERTIFICATE = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgLJoN6kiPVGP1+ZNu
mxmjxm360GNPgxEZQKWuFe87N5ahRANCAAR5CYrsWJxFLR0EVUqKxD/35E+toO7h
yPzZOmXrAPwNnkC+bMZZoJNUmWIEZ9XTH28jmi1sJNh6wskz9fCn3jl5
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBmTCCAT6gAwIBAgIBATAKBggqhkjOPQQDAjAXMRUwEwYDVQQDDAxldmVybG9n
IHRlc3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBcxFTATBgNV
BAMMDGV2ZXJsb2cgdGVzdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABHkJiuxY
nEUtHQRVSorEP/fkT62g7uHI/Nk6ZesA/A2eQL5sxlmgk1SZYgRn1dMfbyOaLWwk
2HrCyTP18KfeOXmjeTB3MB0GA1UdDgQWBBTnCg0yCmP0i+Ez0w3fexbFNvZdkjAf
BgNVHSMEGDAWgBTnCg0yCmP0i+Ez0w3fexbFNvZdkjAPBgNVHRMBAf8EBTADAQH/
MBQGA1UdEQQNMAuCCXNob3AudGVzdDAOBgNVHQ8BAf8EBAMCAoQwCgYIKoZIzj0E
AwIDSQAwRgIhAO7iKydqvXxmTbPOcaRSM3yibcInIz8GXjfhfQdruIZAAiEA0XZM
OWdbXQN4AJvFlRE/tTLW2ly7qNL5+ykok08xwV0=
-----END CERTIFICATE-----
"""
"""A key that protects nothing, and its self-signed certificate for `shop.test`."""


def certificate(folder: Path) -> Path:
    """Write the certificate for `shop.test` with its key to a file. Return its path."""
    path = folder / "shop.test.pem"
    path.write_text(_CERTIFICATE, encoding="ascii")
    return path


def ok(body: bytes = b"hello", *headers: str, status: str = "200 OK") -> bytes:
    """Return a response with a Content-Length."""
    lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def moved(to: str, status: str = "302 Found") -> bytes:
    """Return a redirect."""
    return ok(b"", f"Location: {to}", status=status)


class Server:
    """Received requests, and the answer for each path; an answer may be a function of the port."""

    def __init__(self, answers: Mapping[str, Answer]) -> None:
        self.answers = dict(answers)
        self.requests: list[bytes] = []
        self.port = 0
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Record a request and send its answer; without an answer the connection stays open and silent."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
            body = await reader.readexactly(int(length[0].partition(b":")[2])) if length else b""
            self.requests.append(head + body)
            answer = self.answers.get(head.split(b" ")[1].decode(), b"")
            writer.write(answer(self.port) if callable(answer) else answer)
            await writer.drain()
            if not answer:
                await reader.read()
        except (OSError, EOFError):
            pass
        finally:
            self.closed.set()
            writer.close()


@asynccontextmanager
async def serving(answers: Mapping[str, Answer], secured: Path | None = None) -> AsyncIterator[Server]:
    """Run the server while the block runs; over TLS if `secured` is the file of a certificate."""
    server = Server(answers)
    context = None
    if secured is not None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(secured)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        await listening.wait_closed()


class Names:
    """A resolver: each look-up of a host takes the next of its answers, and the last one is repeated."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self._answers = {name.replace("_", "."): list(lists) for name, lists in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, _port: int) -> Sequence[str]:
        self.asked.append(host)
        lists = self._answers.get(host, [[host]])
        return lists.pop(0) if len(lists) > 1 else lists[0]


def here(address: Address) -> bool:
    """Return True for this machine's address, which a test accepts instead of public addresses."""
    return address == ip_address("127.0.0.1")


def web(server: Server, names: Names | None = None, *more: str, timeout_s: float = 20) -> WebAccess:
    """Return web access to `shop.test` on the server's port, which stands for a public host, and to the hosts in
    `more`.
    """
    names = names or Names(shop_test=[["127.0.0.1"]])
    return WebAccess([f"shop.test:{server.port}", *more], names, here, timeout_s)
