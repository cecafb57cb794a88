"""Write server-sent events: records with their seq as id, so that a reader that comes back says where it stopped.

The native format, for browsers and the client of everlog. Other surfaces have readers that understand less: they encode
the same items in their own way, and send them by the same answer in another style.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, NamedTuple

from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send

from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import EVENT_STREAM, HttpCaller, encode
from everlog.interfaces.http.core.service import HttpService

RETRY_MS = 3_000
"""Shortest time after which a reader comes back by itself, milliseconds. Readers come back at different times."""
RETRY_SPREAD_MS = 4_000
KEEP_ALIVE = b": waiting\n\n"
HEADERS = {
    "Content-Type": f"{EVENT_STREAM}; charset=utf-8",
    "Cache-Control": "no-cache, no-transform",
    "X-Accel-Buffering": "no",
}


def event(kind: str, data: object, id: str | int = "") -> bytes:
    """Return one event. `id`: position after which a reader continues; empty: the event changes no position."""
    number = b"id: %s\n" % str(id).encode() if id != "" else b""
    return b"%sevent: %s\ndata: %s\n\n" % (number, kind.encode(), encode(data))


def last_event_id(headers: Mapping[str, str], given: str | None) -> str:
    """Return the position after which a reader continues: the header Last-Event-ID, else the parameter; empty: neither.

    A browser repeats the header by itself, and the address with the parameter stays as it was: the header counts.
    """
    return headers.get("last-event-id") or given or ""


class StreamStyle(NamedTuple):
    """Bytes that a stream sends beside its events, as the readers of a surface understand them."""

    retry: bool = True
    """True: the stream begins with the time after which a reader comes back."""
    keep_alive: bytes = KEEP_ALIVE
    """Bytes that are sent in silence."""
    stop: bytes = event("close", {"reason": "the server stops: come back"})
    """Bytes that end the stream when the server stops."""


NATIVE_STYLE = StreamStyle()


class EventStreamResponse(Response):
    """Answer that sends events until their source ends, the reader goes, or the server stops."""

    def __init__(
        self,
        service: HttpService,
        caller: HttpCaller,
        events: AsyncIterator[bytes],
        headers: Mapping[str, str] = {},
        style: StreamStyle = NATIVE_STYLE,
    ) -> None:
        """`events`: one or more whole events each. Raises the refusal if too many streams are open."""
        super().__init__(None, 200, {**HEADERS, **headers})
        self._service, self._key, self._events, self._style = service, caller.key_id, events, style
        limits = service.options.limits
        mine = service.readers.get(self._key, 0) if self._key else 0
        if sum(service.readers.values()) >= limits.streams_max or mine >= limits.streams_per_key_max:
            wait_s = (RETRY_MS + RETRY_SPREAD_MS * service.chance()) / 1000
            raise Refusal(503, "too-many-streams", "Too many streams are open. Come back later.", retry_after_s=wait_s)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        readers = self._service.readers
        readers[self._key] = readers.get(self._key, 0) + 1
        gone = asyncio.ensure_future(_until_gone(receive))
        stop = asyncio.ensure_future(self._service.stopping.wait())
        try:
            headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
            await self._send(send, {"type": "http.response.start", "status": self.status_code, "headers": headers})
            if self._style.retry:
                retry = int(RETRY_MS + RETRY_SPREAD_MS * self._service.chance())
                await self._send_body(send, b"retry: %d\n\n" % retry)
            await self._send_events(send, gone, stop)
        except TimeoutError:
            self._service.metrics.counters["everlog_streams_dropped"] += 1
        finally:
            gone.cancel()
            stop.cancel()
            readers[self._key] -= 1
            if not readers[self._key]:
                del readers[self._key]

    async def _send_events(self, send: Send, gone: "asyncio.Future[Any]", stop: "asyncio.Future[Any]") -> None:
        loop, keep_alive_s = asyncio.get_running_loop(), self._service.options.limits.keep_alive_s
        due = asyncio.Event()  # one event for all that can happen: thousands of quiet streams wake for each keep-alive

        def wake(_: "asyncio.Future[Any]") -> None:
            due.set()

        gone.add_done_callback(wake)
        stop.add_done_callback(wake)
        coming: asyncio.Future[bytes] | None = None
        try:
            while True:
                if coming is None:
                    coming = asyncio.ensure_future(anext(self._events, b""))
                    coming.add_done_callback(wake)
                timer = loop.call_later(keep_alive_s, due.set)
                await due.wait()
                due.clear()
                timer.cancel()
                if gone.done():
                    return
                if coming.done():
                    sent, coming = coming.result(), None
                    if not sent:
                        break
                    await self._send_body(send, sent)
                elif stop.done():
                    await self._send_body(send, self._style.stop)
                    break
                else:
                    await self._send_body(send, self._style.keep_alive)
            await self._send(send, {"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.wait((coming,))
            if isinstance(self._events, AsyncGenerator):
                await self._events.aclose()

    async def _send_body(self, send: Send, body: bytes) -> None:
        await self._send(send, {"type": "http.response.body", "body": body, "more_body": True})

    async def _send(self, send: Send, message: Message) -> None:
        """Send a part of the answer. Raises TimeoutError if the reader takes nothing: it continues from its last id."""
        async with asyncio.timeout(self._service.options.limits.send_s):
            await send(message)


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
