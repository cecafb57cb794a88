"""Ten agents with a long conversation each, at the same time, while their processes are killed."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from everlog.actors.agent.conversation_import import conversation
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import open_system
from everlog.events import Record
from tests.cluster.process_kills import kill, pid_of_host
from tests.contract.contract_agents import alive, assert_sound, log, texts

pytestmark = [pytest.mark.ray, pytest.mark.long, pytest.mark.nodes]

AGENTS = 10
LINES = 200
"""Messages of each conversation, more than a window holds."""


@pytest.fixture
def conversations(data_dir: Path) -> list[Path]:
    found = sorted(path for path in (data_dir / "locomo" / "dev").glob("conv-*.jsonl") if "questions" not in path.name)
    if not found:
        pytest.skip("LoCoMo is not in the data folder")
    return found


async def talk(system: AgentSystem, number: int, lines: Sequence[bytes]) -> list[Record]:
    """Import a conversation and ask three questions; kill every third agent's process during the second answer."""
    name = f"agent {number}"
    agent = await system.agent(name)
    assert (await agent.import_messages(conversation(lines, "here"))).delayed is None
    heard = await agent.send("What did we talk about first?")
    async for record in agent.send(f"My dog is called Rex{number}."):
        heard.append(record)
        if record.type == "user_message" and number % 3 == 0:
            kill(await pid_of_host(system, name))
    return heard + await agent.send("What is my dog called?")


@alive
async def test_ten_conversations_at_once(folder: Path, conversations: list[Path]) -> None:
    """Each agent answers from its own conversation, each caller gets all records of its turns, and everything
    verifies.
    """
    lines = [path.read_bytes().splitlines() for path in conversations]
    async with open_system(folder, runtime="ray") as system:
        work = [talk(system, n, lines[n % len(lines)][n * 10 :][:LINES]) for n in range(AGENTS)]
        for number, heard in enumerate(await asyncio.gather(*work)):
            name = f"agent {number}"
            assert heard == [record for record in log(system, name) if record.turn > 0]
            assert texts(heard, "user_message")[1:] == [f"My dog is called Rex{number}.", "What is my dog called?"]
            assert f"Rex{number}" in str(texts(heard, "message_sent")[-1])
            assert_sound(system, name)
