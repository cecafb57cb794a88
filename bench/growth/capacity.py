"""Compute cost and capacity of a fleet from measured points: of this machine, to test the model, and of larger ones.

Run as `python -m bench.growth.capacity`. It measures nothing: the points are those of `bench/landed.json`, and three of
`bench.bucket.object_store` and `bench.growth.control_plane`, which are not landed. docs/explanation/scale.md explains
the model and has its results.
"""

import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from bench.support.landed import LANDED, landed_runs

COMMITS = 2
"""Durable commits of a message of one model call."""
DAY_S = 86_400
KB, MIB, GB = 1000, 2**20, 10**9
TIMER_BYTES = 295
"""Bytes of the supervisor for an agent with a timer: 281 MiB for a million (`bench.growth.control_plane`)."""
BUCKET = {"messages_per_s": 760.3, "commit_ms_p50": 70.21, "puts_a_message": 0.01888}
"""One run of `bench.bucket.object_store --quick`, while other programs used the machine: 20 ms a request."""


class MeasuredPoints(NamedTuple):
    """Needs of one unit of each kind of work, as measured on 2 cores."""

    cores: int
    short_cpu_s: float
    """CPU time of a message of a few words, all processes."""
    real_cpu_s: float
    """CPU time of a message of realistic text, a part of which searches memory."""
    agent_bytes: float
    """Memory of an agent in a host, after realistic text."""
    host_bytes: float
    """Memory of a process without agents."""
    message_bytes: float
    """Bytes of a message and its answer in sealed files."""
    lone_cpu_s: float
    """CPU time of a turn of one agent in a process of its own."""
    syncs: float
    sync_s: float


class FleetLoad(NamedTuple):
    """A fleet, and what is said to it."""

    agents: int
    messages_a_day: float
    """Messages to each agent."""
    peak: float
    """Messages of the busiest hour, as a multiple of the mean."""
    active: float
    """Part of the agents that are in memory in that hour."""
    nodes: int
    cores: int
    """Of each node."""
    shards: int
    put_s: float = BUCKET["commit_ms_p50"] / 1000
    """Time of a commit in a bucket."""
    tokens_in: float = 3000
    tokens_out: float = 150
    """Tokens of a message, in all of its requests and replies."""


class FleetNeeds(NamedTuple):
    """Needs of a fleet, by the model."""

    messages_per_s: float
    """In the busiest hour."""
    cores: float
    """Cores at work in that hour."""
    hosts_bytes: float
    timers_bytes: float
    """Memory of the supervisor, if each agent has a timer."""
    disk_bytes_a_day: float
    puts_a_message: float
    puts_a_day: float
    tokens_a_day: float


def measured_points() -> MeasuredPoints:
    """Return the points of the last landed state."""
    fleet, step, replay = figures("fleet"), figures("step"), figures("replay")
    noise = landed_runs(LANDED)["step"].noise
    return MeasuredPoints(
        cores=2,
        short_cpu_s=fleet["real_cpu_ms"][1] / 1000,  # the floor of that figure is the same for a short message
        real_cpu_s=fleet["real_cpu_ms"][0] / 1000,
        agent_bytes=fleet["real_kb_per_agent"][0] * KB,
        host_bytes=fleet["mib_10k"][1] * MIB / 3,  # two hosts and the supervisor
        message_bytes=replay["bytes_per_turn_sealed"][0],
        lone_cpu_s=step["turn_cpu_ms"][0] / 1000,
        syncs=step["syncs_per_turn"][0],
        sync_s=noise.fdatasync_ms / 1000,
    )


def figures(bench: str) -> Mapping[str, tuple[float, float]]:
    """Return the landed figures of a benchmark with their floors, by key."""
    return {figure.key: (figure.value, figure.floor) for figure in landed_runs(LANDED)[bench].figures}


def puts_a_message(messages_per_s: float, put_s: float) -> float:
    """Return the puts of a message to one log: while a put is on its way, the commits that come wait for the next."""
    return COMMITS / (1 + COMMITS * messages_per_s * put_s)


def predictions(points: MeasuredPoints) -> Iterator[tuple[str, float, float]]:
    """Yield what the model says of this machine: key, predicted, measured."""
    fleet, step = figures("fleet"), figures("step")
    yield "messages_per_s", points.cores / points.short_cpu_s, fleet["messages_per_s"][0]
    yield "real_messages_per_s", points.cores / points.real_cpu_s, fleet["real_messages_per_s"][0]
    turn_s = points.lone_cpu_s + points.syncs * points.sync_s
    yield "turn_ms_200", 1000 * turn_s, step["turn_ms_200"][0]
    yield "turn_ms_1000", 1000 * turn_s, step["turn_ms_1000"][0]
    puts = puts_a_message(BUCKET["messages_per_s"], BUCKET["commit_ms_p50"] / 1000)
    yield "puts_a_message", puts, BUCKET["puts_a_message"]
    yield "mib_10k", (3 * points.host_bytes + 1000 * points.agent_bytes) / MIB, fleet["mib_10k"][0]


def needs(load: FleetLoad, points: MeasuredPoints) -> FleetNeeds:
    """Return what a fleet of shared agents needs."""
    messages = load.agents * load.messages_a_day
    per_s = messages / DAY_S * load.peak
    puts = puts_a_message(messages / DAY_S / load.shards, load.put_s)
    return FleetNeeds(
        messages_per_s=per_s,
        cores=per_s * points.real_cpu_s,
        hosts_bytes=load.shards * points.host_bytes + load.agents * load.active * points.agent_bytes,
        timers_bytes=load.agents * TIMER_BYTES,
        disk_bytes_a_day=messages * points.message_bytes,
        puts_a_message=puts,
        puts_a_day=puts * messages,
        tokens_a_day=messages * (load.tokens_in + load.tokens_out),
    )


MILLION = FleetLoad(
    agents=1_000_000, messages_a_day=20, peak=3, active=0.05, nodes=100, cores=8, shards=400
)  # fmt: skip
"""A million agents on a hundred nodes of 8 cores, each of which hears 20 messages a day."""


def rows(load: FleetLoad, points: MeasuredPoints) -> Iterator[tuple[str, str]]:
    """Yield the rows of the table of docs/explanation/scale.md."""
    found = needs(load, points)
    yield "messages a second in the busiest hour", f"{found.messages_per_s:,.0f}"
    yield f"cores at work then, of {load.nodes * load.cores:,}", f"{found.cores:.1f}"
    yield f"memory of {load.shards} hosts", f"{found.hosts_bytes / GB:.0f} GB"
    yield "memory of the supervisor, each agent with a timer", f"{found.timers_bytes / GB:.1f} GB"
    yield "sealed files a day", f"{found.disk_bytes_a_day / GB:.1f} GB"
    yield "puts a message, in a bucket", f"{found.puts_a_message:.2f}"
    yield "puts a day, in a bucket", f"{found.puts_a_day / 1e6:.0f} million"
    yield "tokens a day", f"{found.tokens_a_day / GB:.0f} billion"


def main() -> int:
    """Print the predictions for this machine, then the large fleet."""
    points = measured_points()
    for key, predicted, measured in predictions(points):
        print(f"{key:20} predicted {predicted:9.4g}  measured {measured:9.4g}  {predicted / measured - 1:+.0%}")
    for what, value in rows(MILLION, points):
        print(f"| {what} | {value} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
