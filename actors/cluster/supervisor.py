"""Keep agents running: find or start the host of each partition, recover after crashes, and send timed heartbeats. Used
by `SupervisorActor` in `ray_runtime`.

The supervisor holds no state outside the logs and the hosts, except the capabilities that callers gave to agents. A
`HostProvider` runs the hosts: Ray's actors, or a test's.
"""

import asyncio
from collections.abc import AsyncIterable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from everlog.actors.agent.commands import FireTimer, ResumeTurns, SessionCapabilities
from everlog.actors.cluster.placement import (
    HostedPartition,
    HostHandle,
    HostLookup,
    HostProvider,
    HostState,
    HostTable,
    PartitionLookup,
    move_host,
)
from everlog.actors.cluster.recovery_queue import DeathReporter, RecoveryQueue, UnfinishedLookup
from everlog.actors.cluster.start_queue import StartPriority, StartQueue, StartQueueFull
from everlog.actors.hosting.cluster_status import SupervisorStatus
from everlog.actors.hosting.pending_work import PendingWork
from everlog.actors.hosting.timer_schedule import DeliveryCallback, HeartbeatBatch, TimerSchedule
from everlog.actors.ports.agent_constants import (
    RECOVERY_WAIT_S,
    RECOVERY_WAIT_S_MAX,
    RESENDS_MAX,
    RESTARTS_MAX,
    STABLE_HOST_S,
)
from everlog.actors.ports.ports import Ports
from everlog.events import ClusterError, EverlogError, HostLost, PartitionBusy, UnknownAgent
from everlog.events.times import MICROSECONDS

PendingTimers = dict[str, FireTimer]
"""Heartbeats in progress for agents of one partition."""


class Supervisor:
    """Supervisor of one store in one cluster."""

    def __init__(
        self,
        places: HostProvider,
        places_of: PartitionLookup,
        *,
        ports: Ports,
        activations_max: int,
        unfinished: UnfinishedLookup | None = None,
    ) -> None:
        """Create the supervisor. `activations_max`: hosts that start at once.

        `unfinished` reads logs: a dedicated host that died is started again only if its agent has an unfinished turn.
        None: it is always started again.
        """
        self._places = places
        self._places_of = places_of
        self._clock, self._ids, self._note = ports.clock, ports.ids, ports.note
        self._table = HostTable()
        self._activations_max = activations_max
        self._capabilities: dict[str, SessionCapabilities] = {}
        """Capabilities of agents, for those whose callers gave any."""
        self._deaths = self._recovered = 0
        self._dead = DeathReporter(ports.note)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False
        self._starts = StartQueue(activations_max, ports.clock)
        self.recoveries = RecoveryQueue(
            self._recover, unfinished, clock=ports.clock, sleep=ports.sleep, starts_max=activations_max
        )
        self.schedule = TimerSchedule(self._fire, clock=ports.clock, sleep=ports.sleep, note=ports.note)

    async def begin(self, pending_batches: AsyncIterable[Sequence[PendingWork]]) -> None:
        """Fire timers and recover hosts, for ever. First take up the pending work that `pending_batches` yields."""
        self._spawn(self.schedule.run())
        self._spawn(self.recoveries.run())
        async for some in pending_batches:
            for standing in some:
                self.schedule.load_timers(standing.agent_id, standing.timers)
            used = {standing.agent_id: standing.at for standing in some if standing.unfinished}
            for agent_id, place in (await self._places_of(used)).items():
                self.recoveries.add(place, sure=True, used=used[agent_id])
        self.schedule.finish_loading()

    async def end(self) -> Sequence[HostHandle]:
        """Stop. Return the hosts that still run; they continue on their own."""
        self._ended = True
        hosts = self._table.take_all()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return hosts

    @property
    def status(self) -> SupervisorStatus:
        """Figures of the supervisor now."""
        due, now = self.schedule.next_at, self._clock.now()
        waiting = {urgency.name.lower(): self._starts.waiting(urgency) for urgency in StartPriority}
        return SupervisorStatus(
            living=len(self._table.hosts),
            starting=self._starts.under_way,
            waiting=sum(waiting.values()),
            waiting_for=waiting,
            deaths=self._deaths,
            recovering=self.recoveries.running + self.recoveries.waiting,
            recoveries_waiting=self.recoveries.waiting,
            recoveries=self._recovered,
            timers=len(self.schedule),
            timers_left_out=self.schedule.left_out,
            firing=self.schedule.firing,
            next_due=due,
            lag_s=max(now - due, 0) / MICROSECONDS if due is not None else 0,
            lent=len(self._capabilities),
        )

    @property
    def hosts(self) -> Sequence[HostHandle]:
        """Hosts that run."""
        return self._table.hosts

    def placed(self, place: HostedPartition) -> HostHandle | None:
        """Return the host of a partition; None if there is none."""
        return self._table.placed(place)

    async def place(self, agent_id: str, capabilities: SessionCapabilities | None = None, lost: str = "") -> HostHandle:
        """Return the host of an agent, started if there is none. `lost`: key of a host that the caller could not reach.

        A host that replaces a dead one finishes the turns that were left unfinished. Raises ClusterError if the host
        cannot be started, or if too many callers wait for a start.
        """
        self._remember_capabilities(agent_id, capabilities)
        return await self._reach((await self._places_of([agent_id]))[agent_id], lost)

    async def place_many(
        self,
        agents: Sequence[str],
        capabilities: SessionCapabilities | None = None,
        lost: Mapping[str, str] | None = None,
    ) -> HostLookup:
        """Return the hosts of many agents with the same capabilities. `lost`: keys of lost hosts by partition name.

        The result has an error for each partition whose host cannot be reached. Raises nothing.
        """
        place_of = await self._places_of(agents)
        for agent_id in agents:
            self._remember_capabilities(agent_id, capabilities)
        places = list(dict.fromkeys(place_of.values()))
        found = await asyncio.gather(*[self._tried(place, (lost or {}).get(place.name, "")) for place in places])
        return HostLookup(
            {agent_id: place.name for agent_id, place in place_of.items()},
            {place.name: placed for place, placed in zip(places, found, strict=True)},
        )

    async def _tried(self, place: HostedPartition, lost: str) -> HostHandle | EverlogError:
        try:
            return await self._reach(place, lost)
        except EverlogError as error:
            return error

    def _remember_capabilities(self, agent_id: str, capabilities: SessionCapabilities | None) -> None:
        """Remember an agent's capabilities, so that its unfinished turns can be finished with them."""
        if capabilities is not None and (capabilities.code_digest or capabilities.same != SessionCapabilities().same):
            self._capabilities[agent_id] = capabilities
        elif capabilities is not None:
            self._capabilities.pop(agent_id, None)

    async def _reach(self, place: HostedPartition, lost: str) -> HostHandle:
        """Return the host of a partition for a caller."""
        before = self.placed(place)
        placed = await self._place(place, lost, StartPriority.CALLER)
        if lost and before is None and place not in self.recoveries:  # it may have died before this supervisor began
            self.recoveries.add(place, sure=False, used=self._clock.now())
        return placed

    async def _place(self, place: HostedPartition, lost: str, urgency: StartPriority) -> HostHandle:
        """Return the host of a partition, found or started. Raises ClusterError."""
        known = self._table.state(place)
        known.users += 1
        self._starts.hurry(place, urgency)
        try:
            async with known.lock:  # one start at a time: two hosts of one log would fence each other
                known.used = self._clock.now()
                placed = known.placed
                if placed is not None and (placed.key != lost or await self._places.is_alive(placed)):
                    return placed
                if placed is not None and placed is known.placed:  # not replaced during the await above
                    self._died(place, known, placed)
                placed = await self._found(place, urgency)
                known.placed, known.since = placed, self._clock.now()
                self._spawn(self._watch(place, known, placed))
                return placed
        finally:
            known.users -= 1
            self._table.forget(place, known)

    async def _found(self, place: HostedPartition, urgency: StartPriority) -> HostHandle:
        """Return the running host, or start one. Raises ClusterError."""
        placed = await self._places.find(place)
        if placed is None:
            async with self._starts.turn(place, urgency):
                self._check_not_ended(place)
                placed = await self._places.start(place)
        self._check_not_ended(place)
        return placed

    def _check_not_ended(self, place: HostedPartition) -> None:
        if self._ended:
            raise ClusterError(f"The supervisor has stopped, and starts no host for {place}. Try again.")

    def left(self, place: HostedPartition, key: str) -> HostHandle | None:
        """Remove a host that unloaded its idle agents. Return it; None if `key` is that of another host."""
        return self._table.left(place, key)

    async def drain(self, leaves: Callable[[HostHandle], bool]) -> int:
        """Move the hosts of which `leaves` is true, and return their number. `HostProvider` must choose other places
        already. So many move at once as are started at once: the others carry out commands meanwhile.
        """
        turns = asyncio.Semaphore(self._activations_max)
        return sum(await asyncio.gather(*(self._retire(*each, leaves, turns) for each in self._table.leaving(leaves))))

    async def _retire(
        self, place: HostedPartition, known: HostState, leaves: Callable[[HostHandle], bool], turns: asyncio.Semaphore
    ) -> bool:
        """Move one host. Return False if it has gone, or is one that stays."""
        known.users += 1
        try:
            async with turns:
                moved = await move_host(
                    self._places, place, known, leaves=lambda at: not self._ended and leaves(at), note=self._note
                )
                if moved is None:
                    return False
                if moved.following is not None:
                    known.since = self._clock.now()
                    self._spawn(self._watch(place, known, moved.following))
                self.recoveries.add(place, sure=False, used=known.used)
                if moved.was_busy:  # callers wait, or come soon: another one leaves when this one is back
                    await self._tried(place, "")
                return True
        finally:
            known.users -= 1
            self._table.forget(place, known)

    async def _watch(self, place: HostedPartition, known: HostState, placed: HostHandle) -> None:
        """Wait until the host dies, then have its unfinished turns finished."""
        await self._places.death(placed)
        if known.placed is placed:
            self._died(place, known, placed)

    def _died(self, place: HostedPartition, known: HostState, placed: HostHandle) -> None:
        """Record a host's death and queue its recovery, with a growing delay: an agent may be what kills its hosts."""
        if self._clock.now() - known.since > STABLE_HOST_S * MICROSECONDS:
            known.deaths = 0
        known.placed = None
        known.deaths += 1
        self._deaths += 1
        if known.deaths <= RESTARTS_MAX:
            self._dead.add(f"{place} (process {placed.pid})")
        elif known.deaths == RESTARTS_MAX + 1:
            self._note(
                f"the host of {place} died {known.deaths} times in a row; it is restarted after growing waits, and "
                "when a caller needs it"
            )
        self.recoveries.add(place, sure=False, used=known.used, after_s=_wait_s(known.deaths - 1))

    async def _recover(self, place: HostedPartition, started: Callable[[], None]) -> float | None:
        """Start a host and finish its unfinished turns. Return the seconds until the next try; None if done."""
        try:
            placed = await self._place(place, "", StartPriority.RECOVERY)
        except EverlogError as error:
            return self._put_off(place, error)
        started()
        try:
            await self._finish(place, placed)
        except HostLost:
            return await self._put_off_lost(place, placed)
        except (ClusterError, PartitionBusy) as error:
            return self._put_off(place, error)
        except UnknownAgent:
            self.schedule.know(place.agent_id, ())
        except EverlogError as error:
            self._note(f"{place}: {error}")
        else:
            self._recovered += 1
        self._table.reset_deaths(place)
        return None

    async def _finish(self, place: HostedPartition, placed: HostHandle) -> None:
        if place.agent_id:
            command = ResumeTurns(
                id=self._ids.new(self._clock.now()), capabilities=self._capabilities.get(place.agent_id)
            )
            async for _ in self._places.perform(placed, place.agent_id, command):
                pass
        else:
            place_of = await self._places_of(list(self._capabilities))
            lent = {agent: self._capabilities[agent] for agent, here in place_of.items() if here == place}
            await self._places.recover(placed, lent)

    def _put_off(self, place: HostedPartition, error: EverlogError) -> float:
        """Count a failed try. Return the seconds until the next one. Only the first RESTARTS_MAX in a row are noted."""
        known = self._table.state(place)
        known.deaths += 1
        wait_s = _wait_s(known.deaths)
        if known.deaths <= RESTARTS_MAX:
            self._note(f"{place} is tried again in {wait_s:.0f} s: {error}")
        return wait_s

    async def _put_off_lost(self, place: HostedPartition, placed: HostHandle) -> float:
        """Return the seconds until the next try after a host was lost: it unloaded its agent just then, or it died."""
        if await self._places.is_alive(placed):
            return _wait_s(1)
        known = self._table.state(place)
        if known.placed is placed:
            self._died(place, known, placed)
        return _wait_s(known.deaths - 1)

    async def _fire(self, beats: HeartbeatBatch, over: DeliveryCallback) -> None:
        """Send heartbeats to the hosts of their agents, one call for each partition."""
        places: dict[HostedPartition, PendingTimers] = {}
        place_of = await self._places_of([agent_id for agent_id, _ in beats])
        for agent_id, command in beats:
            places.setdefault(place_of[agent_id], {})[agent_id] = command
        await asyncio.gather(*[self._fire_at(place, waiting, over) for place, waiting in places.items()])

    async def _fire_at(self, place: HostedPartition, waiting: PendingTimers, over: DeliveryCallback) -> None:
        """Send heartbeats to one partition, again if its host is lost; the schedule retries those that are left."""
        try:
            await self._fire_until_lost(place, waiting, over)
        except StartQueueFull:  # counted in the status; one note for each would flood the log
            pass
        except ClusterError as error:
            self._note(f"{place}: {error}")
        for agent_id in waiting:
            over(agent_id)

    async def _fire_until_lost(self, place: HostedPartition, waiting: PendingTimers, over: DeliveryCallback) -> None:
        """Send heartbeats, and those left to the next host after a loss, RESENDS_MAX times. Raises ClusterError."""
        lost = ""
        for _ in range(1 + RESENDS_MAX):
            placed = await self._place(place, lost, StartPriority.TIMER)
            lost = placed.key
            with suppress(HostLost):
                await self._sent(place, placed, waiting, over)
            await self._follow(place, waiting, over)
            if not waiting or self._table.deaths(place) > RESTARTS_MAX:
                return

    async def _follow(self, place: HostedPartition, waiting: PendingTimers, over: DeliveryCallback) -> None:
        """Send the heartbeats of agents that moved meanwhile to their new partitions."""
        place_of = await self._places_of(list(waiting)) if waiting else {}
        moved = [agent_id for agent_id, here in place_of.items() if here != place]
        if moved:
            await self._fire([(agent_id, waiting.pop(agent_id)) for agent_id in moved], over)

    async def _sent(
        self, place: HostedPartition, placed: HostHandle, waiting: PendingTimers, over: DeliveryCallback
    ) -> None:
        """Send one call. Remove from `waiting` what was carried out or cannot be now. Raises HostLost."""
        lending = [
            (agent_id, msgspec.structs.replace(command, capabilities=self._capabilities.get(agent_id)))
            for agent_id, command in waiting.items()
        ]
        async for batch in self._places.perform_many(placed, lending):
            for agent_id, error in batch:
                if isinstance(error, HostLost) or waiting.pop(agent_id, None) is None:
                    continue
                self._handle_outcome(place, agent_id, error)
                over(agent_id)

    def _handle_outcome(self, place: HostedPartition, agent_id: str, error: EverlogError | None) -> None:
        """Handle the end of one heartbeat: it was carried out, or cannot be now."""
        if error is None:
            self._table.reset_deaths(place)
        elif isinstance(error, UnknownAgent):
            self.schedule.know(agent_id, ())
        else:  # the schedule tries again, if it is still due
            self._note(f"{agent_id!r}: {error}")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        if self._ended:
            work.close()
            return
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _wait_s(tries: int) -> float:
    """Return the seconds until the next try, after so many failed tries in a row."""
    return min(RECOVERY_WAIT_S * 4.0 ** (tries - 1), RECOVERY_WAIT_S_MAX) if tries > 0 else 0
