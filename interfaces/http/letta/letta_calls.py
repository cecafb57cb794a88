"""Parts that the routes of the Letta surface share: find the agent of an id, read it, cut a list into pages, refuse."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Literal, TypeVar

import msgspec

from everlog.actors.agent.agent_view import AgentView
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.agent_ref import AgentRef
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.translation.letta_ids import LettaPlace, digits_in, place_in
from everlog.interfaces.http.runs.agent_digests import stream_of_digest

LIMIT_MAX = 1000
ListedT = TypeVar("ListedT")
ResultT = TypeVar("ResultT")


class LettaPageQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Page of a list. `before` and `after` are ids, and count in the order of the list."""

    limit: int | None = None
    before: str | None = None
    after: str | None = None
    order: Literal["asc", "desc"] = "desc"


class LettaNotice(msgspec.Struct, frozen=True, kw_only=True):
    """Answer to a request that has no other."""

    message: str


def refused(message: str, status: int = 422) -> Refusal:
    """Return the refusal of a request that everlog cannot carry out as it is meant."""
    return Refusal(status, "not-supported" if status == 501 else "bad-input", f"{message} Nothing was done.")


async def agent_stream(call: HttpCall, given: str | None = None) -> str:
    """Return the stream of the agent of an id, by default the one in the path. Raises the refusal of an unknown one."""
    agent = call.params["agent_id"] if given is None else given
    digits = digits_in("agent", agent)
    stream = await stream_of_digest(call, digits) if digits else None
    if stream is None:
        raise not_found(f"agent {agent[:80]!r}")
    return stream


async def placed_in(call: HttpCall, kind: str, given: str) -> tuple[str, LettaPlace]:
    """Return the stream and the place of the id of something of an agent. Raises the refusal of an unknown one."""
    place = place_in(kind, given)
    stream = await stream_of_digest(call, place.digest) if place is not None else None
    if stream is None or place is None:
        raise not_found(f"{kind} {given[:80]!r}")
    return stream, place


async def agent_ref(call: HttpCall, stream: str) -> AgentRef:
    """Return a handle on an agent: its first command has the id of this request."""
    ids = await call.command_ids(stream)
    return call.service.system.handle(stream, by=call.caller.key_id, first_id=ids.id)


async def viewed(call: HttpCall, stream: str, read: Callable[[AgentView], ResultT]) -> ResultT:
    """Return what `read` makes, in a thread, of an agent as it is now. Raises UnknownAgent."""
    reading = LocalSystem(call.service.system.store, ports=call.service.ports)

    def looked() -> ResultT:
        with reading.view(stream) as view:
            return read(view)

    found: ResultT = await call.service.ports.aside(looked)
    return found


@asynccontextmanager
async def alone(call: HttpCall, name: str) -> AsyncIterator[None]:
    """Create something under a name while no other request of this server does: a repeat finds what the first made."""
    locks = call.service.creating
    lock = locks.setdefault(name, asyncio.Lock())
    try:
        async with lock:
            yield
    finally:
        if not lock.locked() and locks.get(name) is lock:
            del locks[name]


def page_size(query: LettaPageQuery, default: int) -> int:
    """Return the number of items of a page. Raises the refusal of one that is none."""
    size = default if query.limit is None else query.limit
    if not 1 <= size <= LIMIT_MAX:
        raise refused(f"`limit` is from 1 to {LIMIT_MAX}, not {size}.")
    return size


def page_of(
    items: Sequence[ListedT], query: LettaPageQuery, id_of: Callable[[ListedT], str], default: int = 50
) -> Sequence[ListedT]:
    """Return a page of a list, whose items come in the order of the query.

    Raises the refusal of a cursor that is not in the list.
    """
    size = page_size(query, default)
    first, end = 0, len(items)
    if query.after or query.before:
        places = {id_of(item): number for number, item in enumerate(items)}
        for cursor in filter(None, (query.after, query.before)):
            if cursor not in places:
                raise not_found(f"item {cursor[:80]!r} in this list")
        first = places[query.after] + 1 if query.after else 0
        end = places[query.before] if query.before else end
    if query.before and not query.after:
        first = max(first, end - size)
    return items[first : min(end, first + size)]


def ordered(items: Sequence[ListedT], query: LettaPageQuery, key: Callable[[ListedT], Any]) -> list[ListedT]:
    """Return items in the order of a query."""
    return sorted(items, key=key, reverse=query.order == "desc")
