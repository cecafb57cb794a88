"""Letta's published client against a server whose agents run on Ray."""

import asyncio
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from letta_client import Letta

from everlog.actors.api import open_system
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.interfaces.http.core.service import HttpOptions, HttpService
from everlog.interfaces.http.server import app_of, bound_socket, serving
from tests.contract.contract_agents import alive, calls, says, scripted

pytestmark = pytest.mark.ray

KEEPS = calls("archival_memory_insert", {"content": "The dog is called Rex"})


@pytest.fixture
def opens(folder: Path) -> Any:
    return lambda **options: open_system(folder, runtime="ray", exact_names=True, **options)


def _main_job(address: str) -> Sequence[str]:
    """Create an agent, talk to it, and stream and read its run again. Return what it said."""
    with Letta(base_url=f"{address}/letta", api_key=None, timeout=120) as client:
        like = client.agents.list().items[0]
        agent = client.agents.create(name="tim", model=like.model, memory_blocks=[{"label": "human", "value": "Chad"}])
        answer = client.agents.messages.create(agent.id, input="My dog is called Rex")
        assert [one.message_type for one in answer.messages].count("tool_return_message") == 1
        assert [one.text for one in client.agents.passages.list(agent.id)] == ["The dog is called Rex"]
        events = list(client.agents.messages.create(agent.id, input="Hello", streaming=True, stream_tokens=True))
        assert events[-1].message_type == "usage_statistics"
        run = client.runs.list(agent_id=agent.id).items[0]
        again: list[Any] = list(client.runs.messages.stream(run.id))
        said = ["".join(_text(event) for event in stream) for stream in (events, again)]
        assert client.runs.retrieve(run.id).status == "completed"
        client.agents.delete(agent.id)
        return said


def _text(event: Any) -> str:
    found = event if isinstance(event, dict) else event.model_dump()
    return str(found["content"]) if found.get("message_type") == "assistant_message" else ""


@pytest.mark.long
@pytest.mark.cluster
@alive
async def test_the_main_job_is_done_by_agents_of_a_cluster(opens: Any) -> None:
    """An agent on Ray is created, answers, calls its functions, streams, and its run is read again, by the same client
    as in one process.
    """
    async with scripted(opens, KEEPS, says("Noted."), says("Ahoy")) as (system, _):
        ports = Ports(clock=RealClock(), ids=RealIds())
        service = HttpService(system, ports, HttpOptions(), secret=lambda: "s" * 43, chance=lambda: 0.5)
        async with serving(app_of(service, "test"), service, bound_socket("127.0.0.1", 0), print) as address:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                assert await asyncio.to_thread(_main_job, address) == ["Ahoy", "Ahoy"]
