"""Define the figures of a cluster: what each host, node, the supervisor and the gateway report at one moment.

Filled by shards, host actors and the supervisor; shown by `everlog cluster status` and exported by `metrics`. Counters
only grow, from 0 at the start of their process; a rate is the difference of two reports. Imports no Ray.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol, runtime_checkable

import msgspec

from everlog.actors.gateway.gateway_status import GatewayStatus
from everlog.events.times import MICROSECONDS


class HostStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of one host process."""

    place: str
    """Name of the host: `shard-003`, or the agent of a dedicated host."""
    placement: str
    """`dedicated` or `shared`."""
    node: str
    pid: int
    active: int = 0
    """Agents in memory."""
    passive: int = 0
    """Agents that belong to the host and are not in memory."""
    moved: bool = False
    """True for a dedicated host whose agent has moved to another partition: the process ends after its idle time."""
    turns: int = 0
    """Turns that run now."""
    waiting: int = 0
    """Commands that are being carried out."""
    lag_us: int = 0
    """Age of the oldest command in progress, microseconds; 0 if there is none."""
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
    cpu_us: int = 0
    """Counter: processor time of the process, microseconds (shards only)."""
    busiest: str = ""
    """Agent with the most of the newest records (shards only); empty if there are none."""
    busiest_share: float = 0.0
    """Its part of these records, from 0 to 1."""
    memory_bytes: int = 0
    """Memory of the process that it shares with no other."""
    unsealed_bytes: int = 0
    """Frames of its log that are not sealed yet."""

    @property
    def key(self) -> tuple[str, str, int]:
        """Identity of this process, as against other hosts and earlier processes of the same host."""
        return self.place, self.node, self.pid

    @property
    def busy(self) -> bool:
        """True if a turn runs, or a caller waits for a command."""
        return bool(self.turns or self.waiting)


class NodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One machine of the cluster, or one node in the sense of Ray."""

    node: str
    lives: bool = True
    hosts: int = 0
    slots_used: int = 0
    """Used part of the resource `agent_slot`."""
    slots: int = 0
    """Total of `agent_slot`; 0 if the node offers none, like the head."""
    memory_used_bytes: int = 0
    memory_bytes: int = 0
    """Total memory; 0 if unknown."""


class ScalingStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the supervisor's task that lets the number of shards follow the load."""

    shards_min: int = 0
    shards_max: int = 0
    """Range of the number; both 0 if it cannot be used, see `fault`."""
    shards: int = 0
    """Number of shards now; 0 before the first measurement."""
    resizes: int = 0
    """Counter: changes of the number."""
    moves: int = 0
    """Counter: agents that were moved to another shard because of their load."""
    last: str = ""
    """The last change, with its reason, in words; empty if there was none."""
    last_at: int | None = None
    """Time of that change, microseconds UTC."""
    fault: str = ""
    """Reason why the last measurement or change failed; empty if it did not."""


class SupervisorStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the supervisor."""

    living: int = 0
    """Hosts that run."""
    starting: int = 0
    """Hosts that are being started."""
    waiting: int = 0
    """Hosts that wait for room: a slot, or their turn to be started."""
    waiting_for: Mapping[str, int] = {}
    """Of these, the numbers that wait for a `caller`, for a `recovery` and for a `timer`."""
    deaths: int = 0
    """Counter: hosts that died."""
    recovering: int = 0
    """Hosts that finish what another host left unfinished, or that wait to do so."""
    recoveries_waiting: int = 0
    """Of these, the hosts that wait."""
    recoveries: int = 0
    """Counter: hosts that finished what another had left unfinished."""
    timers: int = 0
    """Agents whose timers the schedule holds."""
    timers_left_out: int = 0
    """Counter: how often timers could not be kept because there were too many."""
    firing: int = 0
    """Timed heartbeats under way."""
    next_due: int | None = None
    """Time of the next heartbeat, microseconds UTC; None if there is none."""
    lag_s: float = 0.0
    """Seconds for which the next heartbeat has been due already; 0 if it is not due yet."""
    lent: int = 0
    """Agents with capabilities that callers gave them."""
    scaling: ScalingStatus | None = None
    """None if the number of shards does not follow the load."""


class ArchiveStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of the archive, for the logs that it has followed."""

    embedder: str = ""
    memories: int = 0
    """Parts of memories and documents, those that were changed or deleted since included."""
    messages: int = 0
    behind: int = 0
    """Logs with records that the archive has not read yet."""
    memory_bytes: int = 0
    age_s: float = 0.0
    """Seconds since the other figures were measured: the archive has been busy since."""
    versions: int = 0
    """Versions of the table on disk; compactions remove old ones."""
    files: int = 0
    """Files of the table."""
    disk_bytes: int = 0
    row_cache_bytes: int = 0
    """Rows and vectors of recently searched agents, in memory."""
    row_cache_bytes_max: int = 0
    table_cache_bytes: int = 0
    """LanceDB's caches of indices and metadata, in memory."""
    table_cache_bytes_max: int = 0


class ClusterStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a cluster at one moment."""

    at: int
    """Microseconds UTC."""
    address: str
    hosts: Sequence[HostStatus] = ()
    nodes: Sequence[NodeStatus] = ()
    supervisor: SupervisorStatus | None = None
    """None if it did not answer in time."""
    gateway: GatewayStatus | None = None
    """None if no gateway was needed yet, or it did not answer in time."""
    archive: ArchiveStatus | None = None
    """None if nothing was searched yet, or the archive did not answer in time."""
    silent: int = 0
    """Hosts that did not answer in time; `hosts` does not contain them."""


def faults_of(now: ClusterStatus) -> Iterator[str]:
    """Yield what keeps a cluster from serving its agents; nothing if it is healthy. An endpoint of models that fails is
    no fault of the cluster.
    """
    if now.supervisor is None:
        yield "the supervisor did not answer in time"
    if now.silent:
        yield f"{now.silent} of {now.silent + len(now.hosts)} hosts did not answer in time"


@runtime_checkable
class StatusSource(Protocol):
    """Source of the figures of a cluster."""

    async def status(self) -> ClusterStatus:
        """Return the figures of now. Raises ClusterError if the cluster does not answer."""
        ...


class HostRates(msgspec.Struct, frozen=True, kw_only=True):
    """Rates between two reports, per second."""

    messages: float = 0.0
    commits: float = 0.0
    ticks: float = 0.0

    @property
    def tick(self) -> float | None:
        """Commits per tick, on average; None if there was no tick."""
        return self.commits / self.ticks if self.ticks else None

    @property
    def rank(self) -> tuple[float, float]:
        """Sort key: activity of the host."""
        return self.messages, self.commits


def rates(before: ClusterStatus, now: ClusterStatus) -> dict[tuple[str, str, int], HostRates]:
    """Return the rates of each host that is in both reports, by its `key`. A new host, or one that was silent, has none
    yet.
    """
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
    """Return the sum of the rates; None if there are none."""
    if not each:
        return None
    return HostRates(
        messages=sum(rate.messages for rate in each.values()),
        commits=sum(rate.commits for rate in each.values()),
        ticks=sum(rate.ticks for rate in each.values()),
    )
