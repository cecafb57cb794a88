"""A cluster with wrong settings gives a clear error or a visible wait, and loses nothing."""

import resource
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.actors.cluster.cluster_claim import ClusterClaim
from everlog.actors.cluster.placement import HostedPartition
from everlog.actors.cluster.ray_placement import RayHostProvider
from everlog.actors.cluster.ray_runtime import RayRuntime, supervisor_of
from everlog.actors.ports.real_clock import RealClock, monotonic_us
from everlog.actors.reply import SendOutcome
from everlog.events import BadInput, ClusterError, ModelError, PartitionBusy, StoreError
from tests.cluster.process_kills import actor, until
from tests.contract.contract_agents import SCRIPTED, alive, assert_sound, log, says, texts
from tests.soak.test_killed_processes import start
from tests.support.models.loopback_server import Loopback, Reply, serving

pytestmark = pytest.mark.ray

AGENTS = [f"agent {number}" for number in range(6)]
HOLDS = """
import asyncio, sys
from everlog.actors.api import open_system

async def main(folder):
    async with open_system(folder, runtime="local", placement="shared", shards=1) as system:
        agent = await system.agent("agent 0")
        print("open", flush=True)
        await asyncio.to_thread(sys.stdin.readline)

asyncio.run(main(sys.argv[1]))
"""
"""Program of a process that owns the shard until it reads a line."""


@pytest.fixture
def opens(folder: Path) -> Any:
    return lambda **options: open_system(folder, runtime="ray", placement="shared", shards=1, **options)


@pytest.fixture
def holder(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Own the store's shard in another process until a line is written to it."""
    process = start("-c", HOLDS, str(folder))
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    yield process
    process.kill()
    process.communicate()


async def sent(system: AgentSystem, text: str) -> list[SendOutcome]:
    """Send this text to every agent, and return the outcomes."""
    return [one async for one in system.send_many([(name, text) for name in AGENTS])]


async def made(system: AgentSystem, **options: Any) -> None:
    """Create the agents."""
    async for one in system.create_many(AGENTS, **options):
        assert one.error is None, one.error


def heard(system: AgentSystem) -> list[list[str | None]]:
    """Return the messages in each agent's log."""
    return [texts(log(system, name), "user_message") for name in AGENTS]


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_store_whose_hosts_live_elsewhere(holder: "subprocess.Popen[str]", opens: Any) -> None:
    """The error names the owner and its command, and no message is recorded. When the owner has closed, the same
    cluster gets the partition.
    """
    async with opens() as system:
        system.store.register_many(AGENTS, shared=True)
        for one in await sent(system, "One"):
            assert isinstance(one.error, PartitionBusy), one.error
            assert f"open in process {holder.pid} (everlog host of shard-000)" in str(one.error)
        holder.communicate("\n")
        await made(system)
        assert not [one.error for one in await sent(system, "Two") if one.error]
        assert heard(system) == [["Two"]] * len(AGENTS)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_another_number_of_shards(opens: Any, folder: Path) -> None:
    """Another number of shards is refused with the store's number, and the agents do not change."""
    async with opens() as system:
        await made(system)
        with pytest.raises(BadInput, match="has 1 shared partitions, not 3: their number is fixed"):
            async with open_system(folder, runtime="ray", placement="shared", shards=3):
                pass
        assert not [one.error for one in await sent(system, "One") if one.error]
        assert heard(system) == [["One"]] * len(AGENTS)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_shard_whose_disk_is_full(opens: Any) -> None:
    """All callers get the error, and no message is acknowledged; when there is room again, the same host continues."""
    async with opens() as system:
        await made(system)
        host = await actor(system, "shard-000").ready.remote()
        resource.prlimit(host, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
        for text in ("One", "Two"):
            for one in await sent(system, text):
                assert isinstance(one.error, StoreError), one.error
                assert not one.records
        resource.prlimit(host, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert not [one.error for one in await sent(system, "Three") if one.error]
        assert await actor(system, "shard-000").ready.remote() == host
        assert heard(system) == [["Three"]] * len(AGENTS)
        for name in AGENTS:
            assert_sound(system, name)


def expiring(endpoint: Loopback, good: Callable[[], bool]) -> None:
    """Let the endpoint refuse the key unless `good()` is true."""
    answers = endpoint.answer

    def answer(headers: dict[str, str], body: bytes) -> Reply:
        reply = answers(headers, body)
        return reply if good() else (401, '{"error": {"message": "Your key has expired", "code": "invalid_api_key"}}')

    endpoint.answer = answer  # type: ignore[method-assign]


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_key_that_expires_during_a_batch(opens: Any) -> None:
    """Callers without an answer get the reason, and their messages are recorded once; with a good key every agent
    answers again.
    """
    with serving(says("Done.")) as endpoint:
        renewed = False
        expiring(endpoint, lambda: renewed or len(endpoint.bodies) <= len(AGENTS) // 2)
        async with opens(base_url=endpoint.url) as system:
            await made(system, settings=SCRIPTED)
            outcomes = await sent(system, "One")
            failed = {one.agent_id: one.error for one in outcomes if one.error}
            assert len(failed) == len(AGENTS) - len(AGENTS) // 2
            for error in failed.values():
                assert isinstance(error, ModelError)
                assert "key" in str(error)
            renewed = True
            again = failed.keys()
            while again:
                said = [one async for one in system.send_many([(name, "Two") for name in sorted(again)])]
                again = {one.agent_id: one.error for one in said if one.error}.keys()
            assert all(texts(log(system, name), "message_sent")[-1] == "Done." for name in AGENTS)
            assert [told[0] for told in heard(system)] == ["One"] * len(AGENTS)
            assert [told.count("One") for told in heard(system)] == [1] * len(AGENTS)


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_head_that_does_not_see_the_store(ray_cluster: str, tmp_path: Path) -> None:
    """The supervisor starts but cannot begin, and its callers get an error that names the missing folder."""
    root = str(tmp_path / "nothing")
    with pytest.raises(ClusterError, match=r"StoreError: .*nothing"):
        await RayRuntime(root, supervisor_of(root)).ready()


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_node_that_does_not_see_the_store(ray_cluster: str, tmp_path: Path) -> None:
    """The error names the node and the missing folder, and no host is left on the node."""
    import ray

    claim = ClusterClaim("here", None, clock=RealClock(), now_us=monotonic_us, note=print)
    places = RayHostProvider(str(tmp_path / "nothing"), 300, claim)
    with pytest.raises(ClusterError, match=r"^node \S+ finds no store in .*nothing.*: mount there the storage"):
        await places.start(HostedPartition("shard-000"))
    await until(lambda: not [one for one in ray.util.list_named_actors(all_namespaces=True)
                             if str(tmp_path) in one["namespace"]])  # fmt: skip
