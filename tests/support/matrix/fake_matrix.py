"""A small server with as much of Matrix's client-server API as a bot needs, which can lose requests and answers."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from everlog.interfaces.http.server import bound_socket
from everlog.interfaces.http.stoppable_server import StoppableServer

BOT = "@bot:test"
TIMELINE_MAX = 3
"""Events of a room that one answer to `sync` has: of more, the client has to read the gap."""
POLL_S = 0.2
"""Seconds for which a question for news is kept open."""


class FakeMatrix:
    """Rooms with their events, and what the bot keeps there."""

    def __init__(self, now: Callable[[], int]) -> None:
        """`now`: microseconds UTC."""
        self.events: list[dict[str, Any]] = []
        """All events of all rooms, in order; a place in Matrix is a number of events."""
        self.data: dict[str, Any] = {}
        self.sent: dict[str, str] = {}
        """Ids of events by their rooms and transactions."""
        self.invited: list[str] = []
        self.kept = 0
        """Number of times that the bot kept a place: each time is news, as on a real server."""
        self.lose: Callable[[str], str] = lambda _: ""
        """Says for each request whether it is lost `before` it is carried out, or `after`; empty: it is answered."""
        self._now = now
        self._news = asyncio.Event()

    def say(self, room: str, body: str, sender: str = "@ann:test", **content: Any) -> str:
        """Say something in a room, and return the id of the event."""
        return self._add(room, "m.room.message", sender, {"msgtype": "m.text", "body": body, **content})

    def _add(self, room: str, kind: str, sender: str, content: Any, **more: Any) -> str:
        event_id = f"${len(self.events)}"
        event = {"event_id": event_id, "type": kind, "sender": sender, "content": content, "room_id": room, **more}
        self.events.append({**event, "origin_server_ts": self._now() // 1000})
        self._tell()
        return event_id

    def _tell(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def answers(self, room: str) -> list[dict[str, Any]]:
        """Return what the bot said in a room, in order."""
        return [
            event["content"]
            for event in self.events
            if event["room_id"] == room and event["sender"] == BOT and event["type"] == "m.room.message"
        ]

    async def changed(self) -> None:
        """Wait until something happens in a room, or a request comes."""
        await self._news.wait()

    async def answer(self, request: Request) -> Response:
        """Answer a request, or lose it."""
        path = request.url.path.removeprefix("/_matrix/client/v3")
        how = self.lose(f"{request.method} {path}")
        self._tell()
        if how == "before":
            return Response(status_code=502)
        body = await request.json() if await request.body() else None
        value = await self._carried_out(request.method, path, dict(request.query_params), body)
        if how == "after":
            return Response(status_code=502)
        return Response(status_code=404) if value is None else JSONResponse(value)

    async def _carried_out(self, method: str, path: str, query: dict[str, str], body: Any) -> Any:
        parts = path.strip("/").split("/")
        match method, parts:
            case "GET", ["account", "whoami"]:
                return {"user_id": BOT}
            case "GET", ["joined_rooms"]:
                return {"joined_rooms": self._joined()}
            case "POST", ["join", room]:
                if room in self.invited:
                    self.invited.remove(room)
                    self._add(room, "m.room.member", BOT, {"membership": "join"}, state_key=BOT)
                return {"room_id": room}
            case "GET", ["sync"]:
                return await self._sync(query.get("since"))
            case "GET", ["rooms", room, "messages"]:
                return self._page(room, int(query["from"]), int(query["to"]))
            case "PUT", ["rooms", room, "send", kind, _]:
                if path not in self.sent:
                    self.sent[path] = self._add(room, kind, BOT, body)
                return {"event_id": self.sent[path]}
            case _, [*_, "account_data", _]:
                if method == "PUT":
                    self.data[path] = body
                    self.kept += 1
                    self._add(parts[3] if parts[2] == "rooms" else "", "account_data", BOT, {})
                return self.data.get(path)
        raise AssertionError(f"{method} {path}")

    def _joined(self) -> list[str]:
        joined = [event["room_id"] for event in self.events if event.get("state_key") == BOT]
        return list(dict.fromkeys(joined))

    async def _sync(self, since: str | None) -> Any:
        with suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                while since is not None and len(self.events) == int(since) and not self.invited:
                    await self.changed()
        start, end = int(since or 0), len(self.events)
        rooms: dict[str, Any] = {}
        for room in self._joined():
            here = [(n, event) for n, event in enumerate(self.events[start:end], start) if event["room_id"] == room]
            mine = [(n, event) for n, event in here if event["type"] != "account_data"]
            if here and not mine:
                rooms[room] = {"timeline": {"events": [], "limited": False}}
            elif mine:
                shown = mine[-TIMELINE_MAX:]
                rooms[room] = {
                    "timeline": {
                        "events": [event for _, event in shown],
                        "limited": len(shown) < len(mine),
                        "prev_batch": str(shown[0][0]),
                    }
                }
        return {"next_batch": str(end), "rooms": {"join": rooms, "invite": {room: {} for room in self.invited}}}

    def _page(self, room: str, before: int, until: int) -> Any:
        """Return up to TIMELINE_MAX events of a room before a place, newest first."""
        mine = [n for n in range(before - 1, until - 1, -1) if self._is_in(n, room)][:TIMELINE_MAX]
        page = {"chunk": [self.events[n] for n in mine]}
        return {**page, "end": str(mine[-1])} if len(mine) == TIMELINE_MAX else page

    def _is_in(self, number: int, room: str) -> bool:
        event = self.events[number]
        return event["room_id"] == room and event["type"] != "account_data"


@asynccontextmanager
async def fake_matrix(matrix: FakeMatrix) -> AsyncIterator[str]:
    """Serve a Matrix while the block runs, and yield its address."""
    routes = [Route("/_matrix/{path:path}", matrix.answer, methods=["GET", "POST", "PUT"])]
    config = uvicorn.Config(Starlette(routes=routes), log_config=None, lifespan="off", timeout_graceful_shutdown=1)
    server = StoppableServer(config)
    listener = bound_socket("127.0.0.1", 0)
    work = asyncio.ensure_future(server.serve([listener]))
    try:
        await asyncio.wait((asyncio.ensure_future(server.begun.wait()), work), return_when=asyncio.FIRST_COMPLETED)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        await work
