"""Measure the shards of a cluster, and carry out what `scaling_plan` decides.

It holds no state that matters: after a restart of the supervisor it measures from the beginning. The number of shards
and the place of each agent are in the store, and the changes are those that people make: `set_shards` with the mover of
`sharding`, and the command `MoveAgent`.

Used by the supervisor's actor.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence

import msgspec

from everlog.actors.agent.commands import MoveAgent
from everlog.actors.hosting.cluster_status import HostStatus, ScalingStatus
from everlog.actors.ports.ports import Ports
from everlog.actors.scaling.scaling_plan import (
    LOOK_S,
    SHRINK_S,
    HotMove,
    LoadSample,
    Resize,
    ShardLoad,
    ShardsRange,
    hot_agents,
    plan,
    range_from,
)
from everlog.actors.sharding.shard_mover import CommandsSender, ShardMover, shards_for
from everlog.events import BadInput, Busy, EverlogError
from everlog.events.times import MICROSECONDS
from everlog.store import FileStore

PATIENCE_S = 5
"""Seconds that a hot agent has to end its turn before it is moved; its other commands wait meanwhile."""

Measure = Callable[[int], Awaitable[Sequence[HostStatus | None]]]
"""Returns the figures of the processes of so many shards that have one; None for one that does not answer."""


class ShardScaler:
    """Lets the number of shards of a store follow their load, and moves hot agents."""

    def __init__(
        self,
        setting: str,
        store: FileStore,
        measure: Measure,
        send: CommandsSender,
        mover: ShardMover,
        arrived: Callable[[Sequence[str]], Awaitable[None]],
        *,
        ports: Ports,
    ) -> None:
        """Store the collaborators. `setting`: the range, see `range_from`; nothing is changed without one.

        `send` has agents carry out commands; `arrived` is called with an agent that was moved. `ports.note` gets a line
        about each change.
        """
        self._store, self._measure = store, measure
        self._send, self._mover, self._arrived, self._ports = send, mover, arrived, ports
        self._samples: list[LoadSample] = []
        """Loads since the last change."""
        self._before: tuple[int, Mapping[tuple[str, str, int], HostStatus]] | None = None
        """Time and figures of the measurement before."""
        self._number: int | None = None
        self._resized_at: int | None = None
        self._noted = ""
        """Failure that was noted last."""
        self._within: ShardsRange | None = None
        self._status = ScalingStatus()
        try:
            self._within = within = range_from(setting)
        except BadInput as error:  # the supervisor has more to do than this, and runs on
            self._failed(str(error))
        else:
            if within is not None:
                self._status = ScalingStatus(shards_min=within.least, shards_max=within.most)

    @property
    def status(self) -> ScalingStatus | None:
        """Figures for people; None if there is no range."""
        return None if self._within is None and not self._status.fault else self._status

    async def run(self) -> None:
        """Measure, and change what the load calls for, for ever; return at once if there is no range."""
        while self._within is not None:
            await self._ports.sleep(LOOK_S)
            try:
                await self.look()
            except EverlogError as error:  # the next measurement tries again
                self._failed(str(error))

    async def look(self) -> None:
        """Measure once, and carry out one change if the load calls for it. Raises StoreError, CorruptLog."""
        assert self._within is not None
        number = await self._ports.aside(lambda: self._store.shards)
        if number != self._number:
            if self._number is not None:  # a person has changed it: that counts as much as a change by load
                self._resized_at = self._ports.clock.now()
            self._number = number
            self._forget()
        self._status = msgspec.structs.replace(self._status, shards=number, fault="")
        if self._mover.status.running:  # the loads are those of agents on their way
            self._forget()
            return
        await self._sample(number)
        now = self._ports.clock.now()
        targets = {agent: await self._ports.aside(shards_for, self._store, agent)
                   for agent in hot_agents(self._samples, now)}  # fmt: skip
        match plan(self._samples, number, self._within, targets, now, resized_at=self._resized_at):
            case Resize() as resize:
                await self._resize(number, resize)
            case HotMove() as move:
                await self._move(move)

    async def _sample(self, number: int) -> None:
        """Add the loads since the measurement before, unless a process does not answer."""
        found = await self._measure(number)
        if None in found:
            return  # the next measurement covers this time too: the figures are counters
        now = self._ports.clock.now()
        hosts = {host.key: host for host in found if host is not None}
        before, self._before = self._before, (now, hosts)
        if before is None or now <= before[0]:
            return
        # A process that has started meanwhile is measured from the next time on: its start is no load.
        measured = [(host.place, _load(before[1][key], host, now - before[0]))
                    for key, host in hosts.items() if key in before[1]]  # fmt: skip
        measured.sort(key=lambda one: one[1].work)  # of two processes of a shard, the busier one counts
        self._samples.append(LoadSample(now, dict(measured)))
        while self._samples[1:] and self._samples[1].at <= now - SHRINK_S * MICROSECONDS:
            del self._samples[0]

    async def _resize(self, number: int, resize: Resize) -> None:
        if number != await self._ports.aside(lambda: self._store.shards):
            return  # a person was faster
        await self._ports.aside(self._store.set_shards, resize.number)
        self._number, self._resized_at = resize.number, self._ports.clock.now()
        self._changed(
            f"changed from {number} to {resize.number} shards: {resize.why}", resizes=self._status.resizes + 1
        )
        self._status = msgspec.structs.replace(self._status, shards=resize.number)
        self._mover.begin()

    async def _move(self, move: HotMove) -> None:
        ports = self._ports
        command = MoveAgent(id=ports.ids.new(ports.clock.now()), shared=True, to=move.to, patience_s=PATIENCE_S)
        (error,) = await self._send([(move.agent_id, command)])
        if error is not None:
            self._forget()  # it is not tried again at once
            if not isinstance(error, Busy):
                self._failed(f"{move.agent_id!r} could not be moved to {move.to}: {error}")
            return
        self._changed(f"moved {move.agent_id!r} to {move.to}: {move.why}", moves=self._status.moves + 1)
        await self._arrived([move.agent_id])

    def _changed(self, what: str, **counter: int) -> None:
        """Remember a change, and begin the measurement again."""
        self._forget()
        self._status = msgspec.structs.replace(
            self._status, last=what, last_at=self._ports.clock.now(), fault="", **counter
        )
        self._ports.note(what)

    def _failed(self, why: str) -> None:
        """Remember a failure; a note is made of the first of several equal ones."""
        if why != self._noted:
            self._ports.note(f"the shards cannot follow their load: {why}")
        self._noted = why
        self._status = msgspec.structs.replace(self._status, fault=why)

    def _forget(self) -> None:
        self._samples.clear()
        self._before = None


def _load(before: HostStatus, now: HostStatus, us: int) -> ShardLoad:
    """Return the load of a process in the `us` microseconds since an earlier measurement."""
    work = (now.cpu_us - before.cpu_us) / us
    return ShardLoad(work, now.busiest, work * now.busiest_share)
