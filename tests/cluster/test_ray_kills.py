"""Killed processes of a cluster: callers get their answers from the next process, and the log is not damaged."""

import asyncio
import os
import resource
import signal
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.commands import ResumeTurns
from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.api import open_system
from everlog.actors.cluster.cluster_claim import ClusterClaim
from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.cluster.ray_placement import RayHostProvider, actors_of
from everlog.actors.functions.tools import tool
from everlog.actors.ports.real_clock import RealClock, monotonic_us
from everlog.events import CorruptLog, HostLost, StoreError
from everlog.store import FileStore, partition_of, store_address
from tests.cluster.conftest import ends
from tests.cluster.process_kills import checksums, host_of, kill, pid_of_host, statuses, titled, until
from tests.contract.agent_functions import results
from tests.contract.contract_agents import (
    KNOCKS,
    SCRIPTED,
    alive,
    asked,
    assert_sound,
    calls,
    gate,
    log,
    says,
    scripted,
    texts,
)
from tests.soak.test_killed_processes import start
from tests.support.models.loopback_server import Reply, serving

pytestmark = pytest.mark.ray

LEAVES = """
import asyncio, sys
from pathlib import Path
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.events import UserMessage
from everlog.store import FileStore
from everlog.actors.ports.real_clock import RealClock, RealIds

async def main():
    clock, ids = RealClock(), RealIds()
    store = FileStore.create(Path(sys.argv[1]), clock.now, ids.new(clock.now()))
    async with LocalSystem(store).agent("sam", Settings(), command="everlog chat") as agent:
        await agent.receive(UserMessage(text="My dog is called Rex"))
        print("said", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""
"""Program of a process that has sent sam a message and is killed before it answers."""


@pytest.fixture
def opens(folder: Path) -> Any:
    return lambda **options: open_system(folder, runtime="ray", **options)


@alive
async def test_the_caller_gets_the_rest_from_the_next_host(opens: Any) -> None:
    """After a SIGKILL in the middle of a turn its answer arrives, nothing is lost or doubled, and no projection
    differs.
    """
    async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
        answer = asyncio.ensure_future(agent.send("go"))
        visitor = await place.reached()
        head, before = len(log(system)), checksums(system)
        kill(await pid_of_host(system))
        await visitor.gone()
        heard = await answer
        assert heard == [record for record in log(system) if record.turn == 1]
        assert texts(heard, "user_message") == ["go"]
        assert [result.text for result in results(heard)] == [INTERRUPTED]
        assert texts(heard, "message_sent") == ["Done."]
        assert checksums(system, as_of=head) == before
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_killed_host_is_back_before_anybody_asks(opens: Any) -> None:
    """The supervisor restarts the host, and the open turn is finished although its caller has left."""
    async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
        answer = asyncio.ensure_future(agent.send("go"))
        visitor = await place.reached()
        answer.cancel()
        kill(await pid_of_host(system))
        await visitor.gone()
        await until(lambda: statuses(system) == ["done"])
        assert texts(log(system), "message_sent") == ["Done."]
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_host_that_hangs_is_fenced(opens: Any) -> None:
    """A stopped host that was declared dead is replaced; when it resumes, it can write nothing."""
    async with opens() as system:
        agent = await system.agent("sam")
        await agent.send("My dog is called Rex")
        hung = await pid_of_host(system)
        os.kill(hung, signal.SIGSTOP)
        try:
            import ray

            ray.kill(host_of(system))
            assert "Rex" in str(texts(await agent.send("What is my dog called?"), "message_sent"))
            assert await pid_of_host(system) != hung
            before = log(system)
        finally:
            try:
                os.kill(hung, signal.SIGCONT)
            except ProcessLookupError:
                pass
        assert ends(hung)
        assert log(system) == before
        assert_sound(system)


@alive
async def test_a_killed_supervisor_finds_its_hosts_again(opens: Any) -> None:
    """Timers continue, and the host is still the same, single process."""
    with serving(says("Tick.")) as endpoint:
        async with opens(base_url=endpoint.url) as system:
            agent = await system.agent("sam", SCRIPTED)
            await agent.set_timer("tea", every=timedelta(seconds=1))
            host = await pid_of_host(system)
            kill(*titled("ray::SupervisorActor"))
            await asked(endpoint, len(endpoint.bodies) + 2)
            assert await agent.cancel_timer("tea")
            async with opens(base_url=endpoint.url) as other:
                await (await other.agent("sam")).send("Hi")
            assert await pid_of_host(system) == host
            assert titled("ray::DedicatedActor") + titled("ray::host of 'sam'") == [host]
            assert_sound(system)


@alive
async def test_a_killed_gateway_is_asked_again(opens: Any) -> None:
    """A request that was under way is sent again by the next gateway, and the turn continues."""
    released = threading.Event()
    with serving(says("Done.")) as endpoint:
        answer_at_once = endpoint.answer

        def answer(headers: dict[str, str], body: bytes) -> Reply:
            reply = answer_at_once(headers, body)
            if len(endpoint.bodies) == 1:
                released.wait(60)
            return reply

        endpoint.answer = answer  # type: ignore[method-assign]
        async with opens(base_url=endpoint.url) as system:
            agent = await system.agent("sam", SCRIPTED)
            heard = asyncio.ensure_future(agent.send("go"))
            await asked(endpoint, 1)
            kill(*titled("ray::GatewayActor"))
            try:
                assert texts(await heard, "message_sent") == ["Done."]
            finally:
                released.set()
            assert endpoint.bodies[0] == endpoint.bodies[1]
            assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_turn_that_a_killed_process_left_is_finished_unasked(opens: Any, folder: Path) -> None:
    """A cluster that is started for the store finishes its unfinished turns before any agent is called."""
    left = start("-c", LEAVES, str(folder))
    assert left.stdout is not None
    assert await asyncio.to_thread(left.stdout.readline) == "said\n"
    left.kill()
    left.communicate()
    async with opens() as system:
        assert statuses(system) == ["open"]
        await until(lambda: statuses(system) == ["done"])
        assert texts(log(system), "message_sent")
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_function_that_kills_its_host_does_not_kill_for_ever(opens: Any, tmp_path: Path) -> None:
    """The caller gets HostLost, the host is not restarted for ever, and the agent works again without the function."""
    deaths = tmp_path / "deaths"

    @tool(effect="read_only")
    def die() -> None:
        """End the process."""
        with deaths.open("a") as file:
            file.write("x")
        os.kill(os.getpid(), signal.SIGKILL)

    async with scripted(opens, calls("die"), tools=[die]) as (system, agent):
        with pytest.raises(HostLost, match=r"is gone\. Acknowledged events are in the log"):
            await agent.send("go")
        assert texts(log(system), "user_message") == ["go"]
        assert 3 < len(deaths.read_text()) < 15
        await system.runtime.stop()
    async with scripted(opens, says("Done.")) as (system, agent):
        assert texts(await agent.send("on"), "message_sent")[-1:] == ["Done."]


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_host_is_thin(opens: Any) -> None:
    """After a turn and a call, the process of an agent has imported neither openai nor lancedb."""
    async with scripted(opens, says("Done.")) as (system, agent):
        assert texts(await agent.send("go"), "message_sent") == ["Done."]
        modules = {name.partition(".")[0] for name in await host_of(system).modules.remote()}
        assert {"ray", "duckdb"} <= modules
        assert modules.isdisjoint({"openai", "lancedb"})


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_host_whose_disk_is_full(opens: Any) -> None:
    """The caller gets the error, the message is not recorded, and when there is room again the same host continues."""
    async with opens() as system:
        agent = await system.agent("sam")
        host = await pid_of_host(system)
        resource.prlimit(host, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        with pytest.raises(StoreError):
            await agent.send("One")
        with pytest.raises(StoreError):
            await agent.send("Two")
        resource.prlimit(host, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert texts(await agent.send("Three"), "message_sent")
        assert texts(log(system), "user_message") == ["Three"]
        assert await pid_of_host(system) == host
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_host_that_cannot_read_its_log(opens: Any, folder: Path) -> None:
    """CorruptLog reaches the caller, nothing is changed, and other agents continue; when the log is repaired, the agent
    works.
    """
    async with opens() as system:
        agent, other = await system.agent("sam"), await system.agent("kim")
        await agent.send("My dog is called Rex")
        assert await agent.unload()
        file = max((folder / "log" / partition_of("sam")).iterdir(), key=lambda path: path.stat().st_size)
        whole = file.read_bytes()
        file.write_bytes(whole[:400] + bytes([whole[400] ^ 1]) + whole[401:])
        with pytest.raises(CorruptLog):
            await agent.send("What is my dog called?")
        assert texts(await other.send("Hi"), "message_sent")
        file.write_bytes(whole)
        assert "Rex" in str(texts(await agent.send("What is my dog called?"), "message_sent"))
        assert_sound(system)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_host_hands_over_again_and_again(folder: Path) -> None:
    """A prepared process is no host before it takes over, and then it is the one that is found; a host that has taken
    over can hand over itself. A process that a dead supervisor had prepared is ended, and no actor is left but the
    host.
    """
    FileStore.create(folder, RealClock().now, "store", shards=1)
    claim = ClusterClaim("here", None, clock=RealClock(), now_us=monotonic_us, note=print)
    places, place = RayHostProvider(store_address(folder), 300, claim), HostedPartition("shard-000")
    host = await places.start(place)
    assert await places.prepare(place, host) is None
    for _ in range(3):
        [_ async for _ in places.perform_many(host, [("sam", ResumeTurns(id="1"))])]
        assert await places.prepare(place, host)
        assert await places.find(place) == host
        assert len(actors_of(store_address(folder), place)) == 1
        assert await places.prepare(place, host)
        prepared = await places.prepare(place, host)
        assert prepared is not None
        assert not await places.retire(host)
        following = await places.take_over(prepared)
        assert following is not None
        assert ends(host.pid)
        assert await places.find(place) == following != host
        host = following
