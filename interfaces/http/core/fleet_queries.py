"""Run work over the views of all agents, or of those of a tenant: a few at once, each with limits of memory and time.

Used by the routes of SQL, costs and reports.
"""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from starlette.requests import Request

from everlog.actors.memory.fleet_sql import fleet_views
from everlog.actors.models.prices import PriceList
from everlog.events import BadInput
from everlog.events.times import microseconds_of, moment
from everlog.interfaces.http.core.moments import time_of_parameter
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall
from everlog.projections.fleet_views import FleetViews, QueryLimits
from everlog.store import FleetPosition, Snapshot, check_presence

T = TypeVar("T")
SCRATCH_MB = 4096
THREADS = 2
_STOP_S = 0.05
"""Time between two attempts to stop a query, which may be between two statements."""


class QueryRun:
    """One query, which can be stopped from the event loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stops: list[Callable[[], None]] = []
        self._stopped = False

    def opened(self, stop: Callable[[], None]) -> None:
        """Keep the function that stops an engine."""
        with self._lock:
            self._stops.append(stop)
        self.check()

    def check(self) -> None:
        """Raise KeyboardInterrupt if the query was stopped, as an engine does."""
        if self._stopped:
            raise KeyboardInterrupt

    def stop(self) -> None:
        """Stop what runs now. It may have to be said again."""
        self._stopped = True
        with self._lock:
            for stop in self._stops:
                stop()


def position_of(
    call: HttpCall, views: FleetViews, position: Snapshot, at: int, *, check: bool = False
) -> FleetPosition:
    """Return the position that the caller is told. A tenant is told nothing of logs, which others share. `check`: say
    what is missing.
    """
    if call.names.tenant:
        count = views.table("SELECT count(*) AS n FROM records").column("n")[0].as_py()
        return FleetPosition(as_of=moment(at), records=int(count))
    return position.covered(at, check_presence(call.service.system.store) if check else ())


async def _first_of(task: "asyncio.Future[Any]", request: Request) -> None:
    """Wait for the end of a task. Raises the refusal of a query whose reader has gone."""
    gone = asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if gone.done() and not task.done():
            raise Refusal(400, "bad-input", "The query was stopped, because nobody waits for its answer.")
    finally:
        gone.cancel()
        await asyncio.wait((gone,))


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def over_fleet(
    call: HttpCall,
    work: Callable[[FleetViews, Snapshot, QueryRun], T],
    *,
    as_of: str | None = None,
    agent: str = "",
    skip_damaged: bool = False,
    stops_with_reader: bool = False,
) -> T:
    """Run `work` in a thread over the views that the caller may see, and return what it returns.

    `as_of`: parameter with a time. `agent`: only records of this agent. `skip_damaged`: see `fleet_views`; not for a
    tenant. Calls have the prices of the server. Raises the refusal of a query that takes too long, and BadInput if it
    needs prices that are not usable.

    `stops_with_reader`: the query is stopped if the reader of the answer goes; the body of the request was read.
    """
    service, names = call.service, call.names
    if skip_damaged and names.tenant:
        raise Refusal(403, "forbidden", "Only the operator may leave damaged logs out of an answer. Nothing was run.")
    when = time_of_parameter(as_of, "as_of")
    limits = service.options.limits
    stream = service.system.store.stream_of(names.inner(agent)) if agent else ""
    run, known = QueryRun(), await service.system.prices()

    def prices() -> PriceList:
        if isinstance(known, BadInput):
            raise known
        return known

    opened = partial(
        fleet_views, service.system.store, as_of=None if when is None else microseconds_of(when, "as_of"),
        agent=names.outer(stream) or None, tenant=names.prefix, opened=run.opened, prices=prices,
        skip_damaged=skip_damaged,
        limits=QueryLimits(memory_mb=limits.query_memory_mb, scratch_mb=SCRATCH_MB, threads=THREADS),
    )  # fmt: skip

    def answered() -> T | None:
        try:
            with opened() as (views, position):
                return work(views, position, run)
        except KeyboardInterrupt:  # it must not reach the event loop, which would end the server
            return None

    task: asyncio.Future[T | None] | None = None
    try:
        async with asyncio.timeout(limits.query_s):
            async with service.queries:
                task = asyncio.ensure_future(service.ports.aside(answered))
                if stops_with_reader:
                    await _first_of(task, call.request)
                found = await asyncio.shield(task)
    except TimeoutError as error:
        raise Refusal(
            400, "query-too-slow",
            f"The query took longer than {limits.query_s:g} seconds, and was stopped. Ask for fewer columns or rows, "
            "or for a shorter time.",
        ) from error  # fmt: skip
    finally:
        while task is not None and not task.done():
            run.stop()
            await asyncio.wait((task,), timeout=_STOP_S)
    assert found is not None, "only a query that was stopped has no answer"
    return found
