"""A server in this event loop, on a free port of this machine, over a store in a folder, with a scripted model."""

import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import msgspec

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import ServiceOptions, open_system
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.interfaces.http.core.keys import PREFIX, Role
from everlog.interfaces.http.core.service import HttpOptions, HttpService
from everlog.interfaces.http.server import app_of, bound_socket, serving
from tests.support.cli.command_line import Script

Headers = Mapping[str, str]


class Served:
    """A server and a client of it."""

    def __init__(self, address: str, system: AgentSystem, service: HttpService, client: httpx2.AsyncClient) -> None:
        self.address = address
        self.system = system
        self.service = service
        self.client = client

    def key(self, role: Role = "admin", tenant: str = "", name: str = "test") -> dict[str, str]:
        """Create a key, and return the header that sends it."""
        ports = self.service.ports
        key = f"{PREFIX}{role}-{tenant}-{name}-{ports.ids.new(ports.clock.now())}"
        now = ports.clock.now()
        self.service.keys.create(name, role, key=key, key_id=ports.ids.new(now), now=now, tenant=tenant)
        return {"Authorization": f"Bearer {key}"}

    async def call(
        self, method: str, path: str, body: object = None, *, status: int | None = None, headers: Headers | None = None
    ) -> Any:
        """Send a request below /api/v1 and return the decoded answer. `status`: fail if the answer has another."""
        sent = dict(headers or {})
        content = None
        if body is not None:
            content, sent["Content-Type"] = msgspec.json.encode(body), "application/json"
        answer = await self.client.request(method, f"/api/v1{path}", content=content, headers=sent)
        if status is not None:
            assert answer.status_code == status, (answer.status_code, answer.text)
        return answer.json() if answer.content else None

    async def events(
        self, path: str, *, headers: Headers | None = None, until: Callable[["SseEvent"], bool] | None = None
    ) -> list["SseEvent"]:
        """Read a stream below /api/v1 until its end, or until an event of `until`."""
        found: list[SseEvent] = []
        async with self.client.stream("GET", f"/api/v1{path}", headers=dict(headers or {})) as answer:
            assert answer.status_code == 200, (await answer.aread()).decode()
            async for one in sse(answer.aiter_bytes()):
                found.append(one)
                if until is not None and until(one):
                    break
        return found


class SseEvent(msgspec.Struct, frozen=True):
    """One server-sent event."""

    kind: str
    data: Any
    id: str = ""
    """Last id that was seen, as a browser keeps it."""


async def sse(body: AsyncIterator[bytes]) -> AsyncIterator[SseEvent]:
    """Yield the whole events of a body; one that is cut off is dropped, as browsers do."""
    buffer, last = b"", ""
    async for part in body:
        buffer += part
        while b"\n\n" in buffer:
            event, _, buffer = buffer.partition(b"\n\n")
            fields = dict(line.split(": ", 1) for line in event.decode().split("\n") if line and line[0] != ":")
            last = fields.get("id", last)
            if "data" in fields:
                yield SseEvent(fields.get("event", "message"), msgspec.json.decode(fields["data"]), last)


def body_of(received: bytes) -> bytes:
    """Return the body of an HTTP answer, as far as it arrived."""
    head, _, body = received.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return body
    whole = b""
    while body:
        size, found, rest = body.partition(b"\r\n")
        if not found or not size:
            break
        length = int(size, 16)
        whole += rest[:length]
        body = rest[length + 2 :]
    return whole


@asynccontextmanager
async def served(
    root: Path,
    model: Any = None,
    *,
    options: HttpOptions | None = None,
    ports: Ports | None = None,
    real: bool = False,
    **open_options: Any,
) -> AsyncIterator[Served]:
    """Serve the store in `root` while the block runs. `model`: answers the agents; None: a script without lines.

    `real`: agents have the models of their settings, as they always do where they run on Ray.
    """
    ports = ports or Ports(clock=RealClock(), ids=RealIds())
    stand_in = model or Script([])
    services = None if real else ServiceOptions(models=lambda _name, _url: stand_in)
    opening = {"runtime": "local", "timers": False, **open_options}
    async with open_system(root, services=services, ports=ports, exact_names=True, **opening) as system:
        service = HttpService(system, ports, options or HttpOptions(), secret=lambda: "s" * 43, chance=lambda: 0.5)
        async with serving(app_of(service, "test"), service, bound_socket("127.0.0.1", 0), print) as address:
            trust = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # nothing is encrypted: certificates take 50 ms to read
            async with httpx2.AsyncClient(base_url=address, timeout=30, trust_env=False, verify=trust) as client:
                yield Served(address, system, service, client)
