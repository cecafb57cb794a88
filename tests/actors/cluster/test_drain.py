"""A node is drained: its hosts leave it a few at a time, and come back elsewhere if they are needed."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from everlog.actors.agent.commands import ResumeTurns
from everlog.actors.cluster import ray_api
from everlog.actors.cluster.cluster_claim import ClusterClaim
from everlog.actors.cluster.host_actors import USED_S, DedicatedActor
from everlog.actors.cluster.placement import TAKE_OVER_S, FenceRight, HostedPartition, HostHandle, HostLookup, dedicated
from everlog.actors.cluster.ray_placement import RayHostProvider
from everlog.actors.cluster.ray_runtime import RayRuntime
from everlog.events import BadInput, ClusterError, HostLost, UnknownAgent
from everlog.store import FileStore, HostMark
from tests.support import virtual_time
from tests.support.agents.supervisor_world import Run, names
from tests.support.agents.virtual_time_runtime import run_plain
from tests.support.virtual_time import WallClock

SHARD = HostedPartition("shard-000")


def _here(placed: HostHandle) -> bool:
    return placed.node == "here"


def test_hosts_of_the_node_leave_and_no_others() -> None:
    """Hosts on the drained node are ended, those on other nodes stay; an agent that was idle is started elsewhere when
    it is needed again, and nothing counts as a death.
    """

    async def main() -> None:
        async with Run(unfinished=_none) as (supervisor, places, notes):
            await supervisor.place_many(names(5))
            places.node = "there"
            stays = await supervisor.place("stays")
            assert await supervisor.drain(_here) == 5
            assert sorted(places.retired) == sorted(names(5))
            assert supervisor.hosts == [stays]
            await asyncio.sleep(300)
            assert supervisor.hosts == [stays]
            assert (await supervisor.place(names(5)[0])).node == "there"
            assert (supervisor.status.deaths, notes) == (0, [])

    run_plain(main)


async def _none(_: object) -> list[str]:
    return []


def test_hosts_leave_as_fast_as_they_can_be_started_elsewhere() -> None:
    """Of many hosts with agents at work no more leave at once than are started at once, and each is back before the
    next one leaves: so the wait of a message does not grow with their number.
    """

    async def main() -> None:
        async with Run(unfinished=_none, activations_max=2) as (supervisor, places, _):
            await supervisor.place_many(names(20))
            places.busy = {dedicated(name) for name in names(20)}
            places.node, living = "there", []

            async def watch() -> None:
                while True:
                    living.append(len(places.living))
                    await asyncio.sleep(0.5)

            watching = asyncio.ensure_future(watch())
            await supervisor.drain(_here)
            watching.cancel()
            assert places.retiring_most == 2
            assert min(living) >= 18
            assert len(supervisor.hosts) == 20
            assert all(placed.node == "there" for placed in supervisor.hosts)

    run_plain(main)


def test_a_message_during_the_drain_waits_for_the_next_host() -> None:
    """A caller whose host leaves gets the next host as soon as the first one has closed its log, and no second one is
    started.
    """

    async def main() -> None:
        async with Run(place_of=lambda _: SHARD) as (supervisor, places, _):
            placed = await supervisor.place("sam")
            places.node, places.busy = "there", {SHARD}
            draining = asyncio.ensure_future(supervisor.drain(_here))
            await asyncio.sleep(0.5)
            begun = asyncio.get_running_loop().time()
            found = await supervisor.place("sam", lost=placed.key)
            assert (found.node, asyncio.get_running_loop().time() - begun) == ("there", 1.5)
            assert await draining == 1
            await asyncio.sleep(100)
            assert places.started == ["shard-000", "shard-000"]
            assert places.performed == ["recover []"]

    run_plain(main)


def test_a_message_waits_for_the_hand_over_and_not_for_the_start() -> None:
    """While the next host is prepared, callers get the old one; then they wait only until that has left. The next one
    recovers the shard, and its death is noticed as that of any host.
    """

    async def main() -> None:
        async with Run(place_of=lambda _: SHARD) as (supervisor, places, notes):
            placed = await supervisor.place("sam")
            places.node, places.busy, places.used = "there", {SHARD}, {SHARD}
            draining = asyncio.ensure_future(supervisor.drain(_here))
            await asyncio.sleep(0.9)
            assert await supervisor.place("sam") == placed
            await asyncio.sleep(0.2)
            begun = asyncio.get_running_loop().time()
            found = await supervisor.place("sam", lost=placed.key)
            assert (found.node, found.pid) == ("there", 2)
            assert asyncio.get_running_loop().time() - begun == pytest.approx(0.9)
            assert await draining == 1
            await asyncio.sleep(100)
            assert (places.started, places.performed, notes) == (["shard-000"], ["recover []"], [])
            assert places.prepared == {}
            places.die(SHARD)
            await asyncio.sleep(100)
            assert places.started == ["shard-000", "shard-000"]
            assert supervisor.status.deaths == 1

    run_plain(main)


def test_a_host_leaves_without_a_next_one_if_none_can_be_prepared() -> None:
    """If no process can be started, or the prepared one dies, the reason is noted or the death is bridged: the host
    leaves, and the next one is started as after a crash.
    """

    async def main(*, fails: bool) -> None:
        async with Run(place_of=lambda _: SHARD) as (supervisor, places, notes):
            await supervisor.place("sam")
            places.node, places.busy, places.used, places.fail = "there", {SHARD}, {SHARD}, int(fails)
            draining = asyncio.ensure_future(supervisor.drain(_here))
            await asyncio.sleep(1.5)
            places.prepared.clear()
            assert await draining == 1
            assert (places.started, places.retired) == (["shard-000"] * 2, ["shard-000"])
            assert [host.node for host in supervisor.hosts] == ["there"]
            said = ["shard-000 leaves its node before its next host has started: no room"]
            assert notes == (said if fails else [])

    run_plain(lambda: main(fails=True))
    run_plain(lambda: main(fails=False))


def test_a_host_that_dies_while_the_next_one_is_prepared_is_started_once() -> None:
    """The death is handled as any other; the prepared process is ended, and not a second host."""

    async def main() -> None:
        async with Run(place_of=lambda _: SHARD) as (supervisor, places, _):
            await supervisor.place("sam")
            places.node, places.used = "there", {SHARD}
            draining = asyncio.ensure_future(supervisor.drain(_here))
            await asyncio.sleep(0.5)
            places.die(SHARD)
            assert await draining == 0
            await asyncio.sleep(100)
            assert (places.started, places.retired) == (["shard-000"] * 2, [])
            assert places.prepared == {}
            assert [host.node for host in supervisor.hosts] == ["there"]

    run_plain(main)


def test_a_drain_that_is_asked_twice_moves_each_host_once() -> None:
    """The second request finds that the hosts have moved, and leaves no process behind."""

    async def main() -> None:
        async with Run(place_of=lambda _: SHARD) as (supervisor, places, _):
            await supervisor.place("sam")
            places.node, places.busy, places.used = "there", {SHARD}, {SHARD}
            assert sorted(await asyncio.gather(supervisor.drain(_here), supervisor.drain(_here))) == [0, 1]
            assert (places.retired, places.prepared) == (["shard-000"], {})
            assert [host.node for host in supervisor.hosts] == ["there"]

    run_plain(main)


@pytest.fixture
def waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], DedicatedActor]:
    """Return a function that makes the actor of a prepared host."""
    monkeypatch.setattr("everlog.actors.cluster.host_actors.minimize_reserves", lambda: None)
    monkeypatch.setattr(ray_api, "own_node", lambda: "here")
    FileStore.create(tmp_path, lambda: 1, "store")
    right = FenceRight(HostMark("here", 1))
    return lambda: DedicatedActor(str(tmp_path), dedicated("sam"), 60, right, waits=True)


def test_a_prepared_host_carries_out_nothing_before_it_takes_over(
    waiting: Callable[[], DedicatedActor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It refuses commands, and a supervisor that finds it sees that it is no host; afterwards it is one, and counts as
    used for a minute after each command.
    """
    now = [7]
    monkeypatch.setattr("everlog.actors.cluster.host_actors.monotonic_us", lambda: now[0])

    async def main() -> None:
        host = waiting()
        command = ResumeTurns(id="1")
        assert await host.ready() == 0
        (heard,) = [heard async for heard in host.perform("sam", command)]
        assert isinstance(heard, HostLost)
        assert not await host.is_used()
        assert await host.take_over() == os.getpid()
        assert await host.take_over() == os.getpid()
        (heard,) = [heard async for heard in host.perform("sam", command)]
        assert isinstance(heard, UnknownAgent)
        assert await host.is_used()
        now[0] += USED_S * 1_000_000
        assert not await host.is_used()
        await host.close()

    asyncio.run(main())


def test_a_prepared_host_that_never_takes_over_ends_itself(
    waiting: Callable[[], DedicatedActor], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its supervisor has died, so its process ends after TAKE_OVER_S seconds; one that has taken over stays."""
    exits: list[int] = []
    monkeypatch.setattr(os, "_exit", exits.append)

    async def main(*, takes_over: bool) -> None:
        host = waiting()
        if takes_over:
            await host.take_over()
        await asyncio.sleep(TAKE_OVER_S + 1)

    virtual_time.run(lambda: main(takes_over=True))
    assert exits == []
    virtual_time.run(lambda: main(takes_over=False))
    assert exits == [0]


def test_a_host_that_is_being_started_there_leaves_too() -> None:
    """A host whose start on the node had begun before the drain is moved as soon as it runs."""

    async def main() -> None:
        async with Run(unfinished=_none) as (supervisor, places, _):
            starting = asyncio.ensure_future(supervisor.place("sam"))
            await asyncio.sleep(0.5)
            assert await supervisor.drain(_here) == 1
            await starting
            assert places.retired == ["sam"]

    run_plain(main)


def _provider() -> RayHostProvider:
    clock = WallClock()
    return RayHostProvider("store", 1, ClusterClaim("here", None, clock=clock, now_us=clock.now, note=print))


def _node(number: int, *, slots: int = 4, alive: bool = True, head: bool = False) -> dict[str, Any]:
    resources = {**({"agent_slot": slots} if slots else {}), **({ray_api.HEAD: 1.0} if head else {})}
    return {
        "NodeID": f"{number}{number}abcdef", "NodeManagerAddress": f"10.0.0.{number}", "Alive": alive,
        "NodeManagerHostname": f"worker-{number}", "Resources": resources,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ("", "3 nodes of the cluster are called ''"),
        ("nowhere", "There are 11abcdef"),
        ("4", "0 nodes"),
        ("1", "The head cannot be drained"),
    ],
)
def test_a_node_that_cannot_be_drained_is_refused(wanted: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unknown name, a node that has gone and the head are refused by name, and nothing is changed."""
    nodes = [_node(1, head=True, slots=0), _node(2), _node(3), _node(4, alive=False)]
    monkeypatch.setattr(ray_api, "nodes", lambda: nodes)
    places = _provider()
    with pytest.raises(BadInput, match=said):
        places.begin_drain(wanted)
    assert places.drained == set()


@pytest.mark.parametrize("wanted", ["10.0.0.2", "worker-2", "22ab"])
def test_the_last_node_with_room_is_not_drained(wanted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node is named by its address, host name or id; the last one that offers room is refused, and a node that came
    back is another one.
    """
    nodes = [_node(1, head=True, slots=0), _node(2), _node(3)]
    monkeypatch.setattr(ray_api, "nodes", lambda: nodes)
    places = _provider()
    assert places.begin_drain(wanted) == "22abcdef"
    assert places.begin_drain(wanted) == "22abcdef"
    with pytest.raises(ClusterError, match="No other node"):
        places.begin_drain("worker-3")
    nodes[1] = _node(5)
    assert places.begin_drain("worker-3") == "33abcdef"
    assert places.drained == {"33abcdef"}


@pytest.mark.parametrize("place", [dedicated("sam"), SHARD])
def test_the_names_of_a_partitions_actors_are_its_own(place: HostedPartition) -> None:
    """No agent can be called so that an actor of its host has a name that belongs to another partition."""
    called = [name for own in place.host_names for name in (own, own.removeprefix("agent:"), f"agent:{own}")]
    others = [dedicated(name) for name in {*called, f"{called[0]}/next", "sam/next", "next:sam"} - {place.agent_id}]
    assert not {name for other in others for name in other.host_names} & {*place.host_names}
    assert len({*place.host_names}) == 2


def test_no_host_takes_over_after_the_supervisor_has_ended() -> None:
    """If the supervisor ends while a host leaves, the prepared process is ended too: it would be left without one."""

    async def main() -> None:
        async with Run(place_of=lambda _: SHARD) as (supervisor, places, _):
            await supervisor.place("sam")
            places.node, places.used = "there", {SHARD}
            draining = asyncio.ensure_future(supervisor.drain(_here))
            await asyncio.sleep(1.5)
            assert (places.retiring, len(places.prepared)) == (1, 1)
            await supervisor.end()
            await draining
            assert (places.living, places.prepared) == ({}, {})

    run_plain(main)


@pytest.mark.parametrize("silent_first", [True, False])
def test_a_host_is_found_beside_an_actor_that_does_not_answer(
    silent_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor that died may have left an actor that waits for room. It hides no host, and is ended."""
    killed: list[str] = []

    async def placed(handle: Any) -> HostHandle:
        return await asyncio.Future() if handle.key == "silent" else HostHandle(handle.key, 7, handle)

    async def death() -> None:
        assert killed == ["silent"]

    host, silent = (SimpleNamespace(key=key, death=SimpleNamespace(remote=death)) for key in ("host", "silent"))
    names_of = dict(zip(SHARD.host_names, (silent, host) if silent_first else (host, silent), strict=True))
    monkeypatch.setattr(ray_api, "find_actor", lambda _, name: names_of.get(name))
    monkeypatch.setattr(ray_api, "kill", lambda handle: killed.append(handle.key))
    places = _provider()
    monkeypatch.setattr(places, "_placed", placed)
    found = virtual_time.run(lambda: places.find(SHARD))
    assert (found, killed) == (HostHandle("host", 7, host), ["silent"])
    names_of.pop(SHARD.host_names[silent_first])
    with pytest.raises(ClusterError, match="does not answer"):
        virtual_time.run(lambda: places.find(SHARD))


def test_a_host_that_is_lost_while_another_is_looked_up_is_no_bug() -> None:
    """If one task loses a host while another one asks the supervisor for other agents, the other one gets the host that
    it knew, and its command is told that the host is lost.
    """
    first, second = HostHandle("key-1", 1, None), HostHandle("key-2", 2, None)

    async def asked(agents: list[str], *_: object) -> HostLookup:
        runtime._forget("sam", first)
        assert agents == ["ann"]
        return HostLookup({"ann": "shard-002"}, {"shard-002": second})

    runtime = object.__new__(RayRuntime)
    runtime._supervisor = SimpleNamespace(place_many=SimpleNamespace(remote=asked))
    runtime._places, runtime._placed, runtime._lost = {"sam": "shard-001"}, {"shard-001": first}, {}
    assert asyncio.run(runtime._reach(["sam", "ann"], None)) == {"sam": first, "ann": second}
    assert runtime._lost == {"shard-001": "key-1"}
