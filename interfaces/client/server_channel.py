"""Send requests to a server: from an event loop, or from a thread. A request is repeated while that is safe and useful.

Every request that changes something has an id, by which the server knows a repeat. So a request whose answer was lost
is sent again, and done once.
"""

import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

import httpx2

from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import pause
from everlog.events import ClusterError, EverlogError, HostLost
from everlog.interfaces.client.event_stream import EventDecoder, ServerEvent
from everlog.interfaces.client.server_address import (
    API,
    BodyT,
    ServerAddress,
    WireRequest,
    decoded,
    failure_of,
    wait_s_of,
)

PATIENCE_S = 60.0
"""Seconds without any progress after which a client gives a server up."""
FIRST_WAIT_S, LONGEST_WAIT_S = 0.1, 8.0
CONNECT_S = 10.0
SILENCE_S = 60.0
"""Seconds of silence after which a stream counts as cut: a server says something each fifteen seconds."""
ANSWER_S = 900.0
"""Seconds in which a request is answered that may call a model."""
CONNECTIONS_MAX = 128
PAUSES_S = (0.1, 0.3)
"""Seconds before the repeats of a request that only reads."""


class Patience:
    """Waits between repeats, each longer than the one before, until nothing has succeeded for PATIENCE_S."""

    def __init__(self, ports: Ports, chance: Callable[[], float]) -> None:
        self._ports, self._chance = ports, chance
        self._waited_s, self._next_s = 0.0, FIRST_WAIT_S

    def renew(self) -> None:
        """Note that something has succeeded."""
        self._waited_s, self._next_s = 0.0, FIRST_WAIT_S

    async def wait(self, error: EverlogError, at_least_s: float = 0.0) -> None:
        """Wait before a repeat. Raises `error` if it has taken too long."""
        if self._waited_s >= PATIENCE_S:
            raise error
        wait_s = max(at_least_s, self._next_s * (0.5 + self._chance()))  # clients come back at different times
        self._waited_s += wait_s
        self._next_s = min(2 * self._next_s, LONGEST_WAIT_S)
        await self._ports.sleep(wait_s)


class ServerChannel:
    """Requests to one server from an event loop."""

    def __init__(self, address: ServerAddress, ports: Ports, chance: Callable[[], float]) -> None:
        self.address = address
        self._ports, self._chance = ports, chance
        self._client = httpx2.AsyncClient(**_options(address), limits=httpx2.Limits(max_connections=CONNECTIONS_MAX))

    def patience(self) -> Patience:
        """Return the waits for one request."""
        return Patience(self._ports, self._chance)

    async def call(self, request: WireRequest, kind: type[BodyT], *, repeats: bool = True) -> BodyT:
        """Send a request, and return its answer. Raises the error that the server answers.

        `repeats`: the request may be sent again if its answer is lost; else HostLost is raised then, because the
        outcome is not known.
        """
        return decoded(await self.bytes_of(request, repeats=repeats), kind)

    async def bytes_of(self, request: WireRequest, *, repeats: bool = True) -> bytes:
        """Send a request, and return the bytes of its answer; see `call`."""
        patience = self.patience()
        while True:
            try:
                answer = await self._client.request(**_arguments(self.address, request))
            except httpx2.TransportError as error:
                lost = self.address.unreachable(error)
                if not repeats and not isinstance(error, httpx2.ConnectError):
                    raise HostLost(f"{lost} The outcome of the request is not known.") from error
                await patience.wait(lost)
                continue
            if answer.is_success:
                return answer.content
            refused = failure_of(answer.status_code, answer.content)
            if not wait_s_of(refused):
                raise refused
            await patience.wait(refused, wait_s_of(refused))

    @asynccontextmanager
    async def events(self, request: WireRequest) -> AsyncIterator[AsyncIterator[ServerEvent]]:
        """Open a stream of events. Raises the error that the server answers, and StreamCut if there is no server."""
        try:
            async with self._client.stream(**_arguments(self.address, request)) as answer:
                if not answer.is_success:
                    raise failure_of(answer.status_code, await answer.aread())
                yield _decoded(answer)
        except httpx2.TransportError as error:
            raise StreamCut(self.address.unreachable(error)) from error

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()


class StreamCut(Exception):
    """Connection that ended before its stream: the reader comes back. `error` says why, if it cannot."""

    def __init__(self, error: ClusterError) -> None:
        super().__init__(str(error))
        self.error = error


async def _decoded(answer: httpx2.Response) -> AsyncIterator[ServerEvent]:
    decoder = EventDecoder()
    async for part in answer.aiter_bytes():
        for event in decoder.feed(part):
            yield event


class BlockingChannel:
    """Requests to one server from threads, for what only reads."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._client = httpx2.Client(**_options(address))

    def call(self, request: WireRequest, kind: type[BodyT]) -> BodyT:
        """Send a request, and return its answer. Raises the error that the server answers, and ClusterError."""
        return decoded(self.bytes_of(request), kind)

    def bytes_of(self, request: WireRequest) -> bytes:
        """Send a request, and return the bytes of its answer; see `call`."""
        for wait_s in (*PAUSES_S, 0.0):
            try:
                answer = self._client.request(**_arguments(self.address, request))
            except httpx2.TransportError as error:
                if not wait_s:
                    raise self.address.unreachable(error) from error
            else:
                if answer.is_success:
                    return answer.content
                refused = failure_of(answer.status_code, answer.content)
                if not (wait_s and wait_s_of(refused)):
                    raise refused
                wait_s = max(wait_s, wait_s_of(refused))
            pause(wait_s)
        raise AssertionError("the last try returns or raises")

    def parts_of(self, request: WireRequest) -> Iterator[bytes]:
        """Send a request, and yield its answer in parts. Raises the error that the server answers, and ClusterError."""
        try:
            with self._client.stream(**_arguments(self.address, request)) as answer:
                if not answer.is_success:
                    raise failure_of(answer.status_code, answer.read())
                yield from answer.iter_bytes()
        except httpx2.TransportError as error:
            raise self.address.unreachable(error) from error

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _options(address: ServerAddress) -> dict[str, Any]:
    return {
        "base_url": address.url + API,
        "headers": address.headers(),
        "timeout": httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
        "follow_redirects": False,  # another server would get the key
        "trust_env": not address.is_loopback,  # no proxy stands between programs of one machine
        "verify": _trust(address),
    }


def _trust(address: ServerAddress) -> ssl.SSLContext | bool:
    """Return the certificates that connections are checked against: none for http://.

    To read those of the machine takes 50 ms, twice in each command, and nothing would be checked with them.
    """
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if address.url.startswith("http:") else True


def _arguments(address: ServerAddress, request: WireRequest) -> dict[str, Any]:
    arguments: dict[str, Any] = {
        "method": request.method, "url": address.path(request.path), "headers": request.headers(),
        "content": request.data(), "params": list(request.query) or None,
    }  # fmt: skip
    if request.streams:
        arguments["timeout"] = httpx2.Timeout(SILENCE_S, connect=CONNECT_S)
    return arguments
