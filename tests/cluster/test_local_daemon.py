"""A cluster that a daemon keeps: commands join it, it ends on request, and callers notice its death."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.api import open_system
from everlog.actors.cluster.ray_address import cluster_file, local_cluster, running
from tests.cluster.conftest import descendants, ends
from tests.cluster.process_kills import kill
from tests.contract.agent_functions import results
from tests.contract.contract_agents import KNOCKS, alive, assert_sound, gate, log, texts
from tests.soak.test_killed_processes import start
from tests.support.models.loopback_server import serving

pytestmark = pytest.mark.ray

TALKS = """
import asyncio, sys
from everlog.actors.api import open_system
from everlog.events import EverlogError
from tests.contract.contract_agents import SCRIPTED, Gate

async def main(folder, url, port):
    place = Gate()
    place.port = int(port)
    async with open_system(folder, runtime="auto", base_url=url, tools=[place.knock()]) as system:
        print(type(system.runtime).__name__, flush=True)
        agent = await system.agent("sam", SCRIPTED)
        async for record in agent.send("go"):
            print(record.type, flush=True)

try:
    asyncio.run(main(*sys.argv[1:]))
except EverlogError as error:
    sys.exit(f"{type(error).__name__}: {error}")
"""
"""Program of a process that talks to sam, whose function waits at a gate."""


@pytest.fixture
def keeper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[str]]:
    """Yield a daemon that keeps a cluster for the test's store; at the end no process of it may be left."""
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    keeper = start("-m", "everlog.actors.cluster.local_daemon", str(tmp_path / "store"))
    family: dict[int, str] = {}
    try:
        assert keeper.stdout is not None
        address = keeper.stdout.readline().strip()
        assert address, keeper.communicate()
        yield keeper
        family = descendants(keeper.pid)
    finally:
        keeper.terminate()
        keeper.communicate()
        left = [pid for pid in family if not ends(pid)]
        assert not left, f"left over: {[family[pid] for pid in left]}"


@alive
async def test_a_local_cluster_is_joined_and_ends_on_sigterm(keeper: subprocess.Popen[str], tmp_path: Path) -> None:
    """The daemon reports its address, `auto` joins its cluster, and SIGTERM leaves neither a process nor the
    address.
    """
    store = tmp_path / "store"
    told = local_cluster(store)
    assert told is not None
    assert (told.pid, running(store)) == (keeper.pid, told.address)
    async with gate() as place:
        with serving(*KNOCKS) as endpoint:
            talks = start("-c", TALKS, str(store), endpoint.url, str(place.port))
            visitor = await place.reached()
            family = descendants(keeper.pid)
            await visitor.enters()
            out, err = await asyncio.to_thread(talks.communicate)
    assert (talks.returncode, err) == (0, "")
    assert out.split()[0] == "RayRuntime"
    assert out.split()[-2:] == ["message_sent", "function_result"]
    keeper.send_signal(signal.SIGTERM)
    assert await asyncio.to_thread(keeper.wait) == 0
    assert {name for pid, name in family.items() if not ends(pid)} == set()
    assert not cluster_file(store).exists()
    assert running(store) == ""


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_a_cluster_that_dies_in_a_turn(keeper: subprocess.Popen[str], tmp_path: Path) -> None:
    """Callers get an error without a traceback; the next owner of the agent, without a cluster, finishes the turn."""
    store = tmp_path / "store"
    async with gate() as place:
        with serving(*KNOCKS) as endpoint:
            talks = start("-c", TALKS, str(store), endpoint.url, str(place.port))
            visitor = await place.reached()
            family = descendants(keeper.pid)
            kill(keeper.pid, *(pid for pid, name in family.items() if name in ("gcs_server", "raylet")))
            await visitor.gone()
            out, err = await asyncio.to_thread(talks.communicate)
            kill(*(pid for pid in family if not ends(pid, 0)))  # helper processes of Ray that outlive its daemons
            assert out.split() == ["RayRuntime", "user_message", "model_reply", "function_started"]
            assert talks.returncode == 1
            assert err.splitlines()[-1].startswith(("ClusterError: ", "HostLost: "))
            assert "Traceback" not in err
            async with open_system(store, runtime="local", base_url=endpoint.url) as system:
                agent = await system.agent("sam")
                assert agent.opened.waiting == 1
                await agent.resume()
                assert [result.text for result in results(log(system))] == [INTERRUPTED]
                assert texts(log(system), "message_sent") == ["Done."]
                assert_sound(system)
