"""The contract of agents, run as Ray actors, and tests that need a cluster."""

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent_system import AgentSystem
from everlog.actors.functions.tools import tool
from everlog.events import BadInput, UsageError
from tests.cluster.process_kills import host_of, kill, pid_of_host
from tests.contract.agent_contract import AgentContract
from tests.contract.agent_functions import double
from tests.contract.contract_agents import KNOCKS, alive, gate, module_from, scripted, texts
from tests.support.example_module import example
from tests.support.town_day import INVITATION

pytestmark = pytest.mark.ray


class TestRayAgents(AgentContract):
    runtime = "ray"
    shortest_s = 0.05

    @pytest.fixture
    def folder(self, folder: Path) -> Path:
        return folder

    async def kill(self, system: AgentSystem, name: str) -> None:
        """Kill the process of the host."""
        kill(await pid_of_host(system, name))

    async def passive(self, system: AgentSystem, name: str) -> None:
        """Wait until the process of the unloaded agent has ended."""
        import ray

        try:
            await host_of(system, name).death.remote()
        except (ValueError, ray.exceptions.RayActorError):
            pass

    @alive
    async def test_functions_that_cannot_be_sent(self, opens: Any) -> None:
        """An object that cannot be pickled is refused before the cluster is used."""
        lock = threading.Lock()

        @tool(effect="read_only")
        def locked() -> bool:
            """Tell whether it is locked."""
            return lock.locked()

        async with opens(tools=[locked]) as system:
            with pytest.raises(BadInput, match="The functions locked cannot be sent to the process"):
                await system.agent("sam")
            assert await system.agents() == []

    @alive
    async def test_functions_that_cannot_be_loaded(
        self, opens: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The error names a module that the host lacks, and the agent continues without the function."""
        helper = module_from(tmp_path / "helper.py", "class Sky: pass", monkeypatch)
        sky = helper.Sky

        @tool(effect="read_only")
        def look() -> str:
            """Look at the sky."""
            return str(sky)

        async with opens(tools=[look]) as system:
            with pytest.raises(BadInput, match=r"cannot be loaded where the agent runs .*own_helper"):
                await system.agent("sam")
        async with opens() as system:
            assert texts(await (await system.agent("sam")).send("Hi"), "message_sent")

    @alive
    async def test_other_functions_wait_until_the_agent_is_idle(self, opens: Any) -> None:
        """While a turn runs for a caller, the functions of another caller are refused with a plain text."""
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (_, agent):
            answer = asyncio.ensure_future(agent.send("go"))
            visitor = await place.reached()
            async with opens(tools=[double]) as other:
                with pytest.raises(UsageError, match="at work for another caller"):
                    await other.agent("sam")
            await visitor.enters()
            assert texts(await answer, "message_sent") == ["Done."]


@pytest.mark.long
@pytest.mark.cluster
def test_a_day_of_the_town_is_lived_in_a_cluster(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/examples/town.py prints the same talk of the town as in one process: only the date is another one."""
    printed = asyncio.run(example("town").main(str(folder), "ray"))
    assert f"12:10  cafe       Isabella: {INVITATION}" in printed
    assert any(line.endswith("Ayesha heard of the party from Klaus") for line in printed)
    assert any("Klaus thinks: Klaus moved from Oak Street to Mill Lane" in line for line in printed)
    assert "\n".join(printed) in capsys.readouterr().out
