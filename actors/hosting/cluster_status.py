"""How a cluster is doing: what each host, node, the supervisor and the gateway say of themselves at one moment.

Plain figures, filled where they arise, shown by `everlog cluster status` and counted by `meters`. Counters only grow,
from 0 at the start of their process; a rate is the difference of two looks. Imports no Ray.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from everlog.actors.gateway.gateway_status import GatewayStatus
from everlog.events.times import MICROSECONDS


class HostStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One host process."""

    place: str
    """What it is called: `shard-003`, or the agent of a dedicated host."""
    placement: str
    """`dedicated` or `shared`."""
    node: str
    pid: int
    active: int = 0
    """Agents in memory."""
    passive: int = 0
    """Agents that are its own, registered, and not in memory."""
    turns: int = 0
    """Turns that run now."""
    waiting: int = 0
    """Commands that are being carried out."""
    lag_us: int = 0
    """Age of the oldest of them, microseconds; 0 where none waits."""
    messages: int = 0
    """Counter: inputs that are durable and opened a turn."""
    model_calls: int = 0
    """Counter: steps that were asked of a model, the offline one too."""
    commits: int = 0
    """Counter."""
    ticks: int = 0
    """Counter: groups of commits that were synced as one."""
    refused: int = 0
    """Counter: commands that were refused because a queue was full."""
    errors: Mapping[str, int] = {}
    """Counters, by the name of the error's type."""
    memory_bytes: int = 0
    """Of the process, what it shares with no other."""
    unsealed_bytes: int = 0
    """Frames of its log that are not sealed yet."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Tells this life of it from every other host, and from its own next life."""
        return self.place, self.node, self.pid

    @property
    def busy(self) -> bool:
        """Whether somebody waits for it."""
        return bool(self.turns or self.waiting)


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of the cluster, or what Ray takes for one."""

    node: str
    lives: bool = True
    hosts: int = 0
    slots_used: int = 0
    """Of the resource `agent_slot`."""
    slots: int = 0
    """In all; 0 where the node offers none, as the head."""
    memory_used_bytes: int = 0
    memory_bytes: int = 0
    """In all; 0 where nobody says."""


class SupervisorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor."""

    living: int = 0
    """Hosts that run."""
    starting: int = 0
    """Hosts that are being started."""
    waiting: int = 0
    """Hosts that wait for room: a slot, or their turn to be started."""
    waiting_for: Mapping[str, int] = {}
    """Of these, how many are for a `caller`, how many are for a `recovery`, and how many for a `timer`."""
    deaths: int = 0
    """Counter: hosts that died."""
    recovering: int = 0
    """Hosts that finish what another left unfinished, or that are to: they wait for their turn."""
    recoveries_waiting: int = 0
    """Of these, those that wait."""
    recoveries: int = 0
    """Counter: hosts that finished what another had left unfinished."""
    timers: int = 0
    """Agents with timers that are kept."""
    timers_left_out: int = 0
    """Counter: how often timers could not be kept because there were too many."""
    firing: int = 0
    """Timed heartbeats under way."""
    next_due: int | None = None
    """When the next one is due, microseconds UTC; None if none waits."""
    lag_s: float = 0.0
    """For how long the next one has been due already."""
    lent: int = 0
    """Agents that were lent something."""


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The archive, as far as it has followed the logs."""

    embedder: str = ""
    memories: int = 0
    """Parts of memories and documents, those that were changed or deleted since included."""
    messages: int = 0
    behind: int = 0
    """Logs that have something new for it."""
    memory_bytes: int = 0


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A cluster at one moment."""

    at: int
    """Microseconds UTC."""
    address: str
    hosts: Sequence[HostStatus] = ()
    nodes: Sequence[NodeStatus] = ()
    supervisor: SupervisorStatus | None = None
    """None where it did not answer in time."""
    gateway: GatewayStatus | None = None
    """None where none was needed yet, or it did not answer in time."""
    archive: ArchiveStatus | None = None
    """None where nothing was searched yet, or it did not answer in time."""
    silent: int = 0
    """Hosts that did not answer in time: none of their figures is in here."""


@runtime_checkable
class StatusSource(Protocol):
    """Whoever can say how a cluster is doing."""

    async def status(self) -> ClusterStatus:
        """As it is now. Raises ClusterError where the cluster does not answer."""
        ...


class HostRates(msgspec.Struct, frozen=True, kw_only=True):
    """What happened between two looks, by the second."""

    messages: float = 0.0
    commits: float = 0.0
    ticks: float = 0.0

    @property
    def tick(self) -> float | None:
        """Commits in a tick, on average; None where there was no tick."""
        return self.commits / self.ticks if self.ticks else None

    @property
    def rank(self) -> tuple[float, float]:
        """How much happened: for sorting."""
        return self.messages, self.commits


def rates(before: ClusterStatus, now: ClusterStatus) -> dict[tuple[str, str, int], HostRates]:
    """The rates of each host that is in both, by its `key`. A host that is new, or was silent, has none yet."""
    seconds = (now.at - before.at) / MICROSECONDS
    if seconds <= 0:
        return {}
    then = {host.key: host for host in before.hosts}
    return {
        host.key: HostRates(
            messages=max(0, host.messages - then[host.key].messages) / seconds,
            commits=max(0, host.commits - then[host.key].commits) / seconds,
            ticks=max(0, host.ticks - then[host.key].ticks) / seconds,
        )
        for host in now.hosts
        if host.key in then
    }


def sum_rates(each: Mapping[tuple[str, str, int], HostRates]) -> HostRates | None:
    """The sum; None where nothing is known."""
    if not each:
        return None
    return HostRates(
        messages=sum(rate.messages for rate in each.values()),
        commits=sum(rate.commits for rate in each.values()),
        ticks=sum(rate.ticks for rate in each.values()),
    )
