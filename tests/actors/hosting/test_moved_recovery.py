"""A shard leaves the unfinished turns of an agent that has moved away to the shard where it is now."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from everlog.actors.agent.commands import Command, StreamItem
from everlog.actors.hosting.turn_recovery import TurnRecovery
from everlog.actors.ports.ports import Ports
from everlog.events import CorruptLog, HostLost
from tests.support.agents.journal_world import in_place


@pytest.mark.parametrize(("where", "is_tried_again"), [("here", True), ("elsewhere", False), ("unreadable", True)])
def test_an_agent_that_moved_away_is_not_tried_again(where: str, is_tried_again: bool) -> None:
    """If an agent is lost because it moved away, its shard does not wait to try it again, and so can be unloaded. It
    does wait if the agent is there, or the register cannot be read.
    """
    notes: list[str] = []

    async def perform(agent_id: str, command: Command, seen: int = 0) -> AsyncIterator[StreamItem]:
        raise HostLost("the log was lost, or the agent has moved")
        yield

    def is_here(agent_id: str) -> bool:
        if where == "unreadable":
            raise CorruptLog("the register is damaged")
        return where == "here"

    async def wait_for_ever(_: float) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        recovery = TurnRecovery(perform, is_here, Ports(note=notes.append, sleep=wait_for_ever, aside=in_place))
        recovery.open = True
        await recovery.all_of(["ada"], {})
        assert recovery.waiting == is_tried_again
        assert len(notes) == is_tried_again
        await recovery.stop()

    asyncio.run(main())
