"""The contract suite of agents, run as Ray actors; and what only a cluster can be asked."""

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from actors.addresses import host_name, namespace
from actors.api import AgentSystem
from tests.cluster.conftest import ends
from tests.contract.agent_contract import AgentContract

pytestmark = pytest.mark.ray


def host_of(system: AgentSystem, name: str = "sam") -> Any:
    """The actor that runs the agent. Raises ValueError if there is none."""
    import ray

    return ray.get_actor(host_name(name), namespace=namespace(system.runtime._root))


class TestRayAgents(AgentContract):
    runtime = "ray"

    @pytest.fixture
    def folder(self, folder: Path) -> Path:
        return folder

    async def kill(self, system: AgentSystem, name: str) -> None:
        """SIGKILL for the process of the host."""
        pid = await host_of(system, name).ready.remote()
        os.kill(pid, signal.SIGKILL)
        assert ends(pid)

    async def passive(self, system: AgentSystem, name: str) -> None:
        """An agent that is let go of has no process."""
        import ray

        try:
            await host_of(system, name).death.remote()
        except (ValueError, ray.exceptions.RayActorError):
            pass
