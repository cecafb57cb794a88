"""A background agent after an erasure in the log of the agent that it watches."""

import asyncio
from pathlib import Path

from everlog.actors.agent.local_system import LocalSystem
from everlog.events import AgentMessageSent
from everlog.store import FileStore
from tests.actors.mail.test_background_agents import run, said, told, watched
from tests.support import virtual_time
from tests.support.agents.writing_agents import Town


def test_an_erased_message_still_counts_as_told(tmp_path: Path) -> None:
    """Without the messages in which the words were told, as many are left to be told, at each moment: also while a turn
    ran.
    """

    def left(town: Town, upto: int) -> list[tuple[int, int, int, int | None]]:
        with LocalSystem(town.store).view("sam") as view:
            return [
                (seq, row["turns"], row["messages"], row["due_us"])
                for seq in range(1, upto + 1)
                for row in view.rows("background", seq)
            ]

    async def main() -> None:
        town = Town(FileStore.create(tmp_path, virtual_time.WallClock().now, "0" * 32))
        sam = await watched(town, turns=1)
        town.pauses["sam"] = 60
        await asyncio.gather(sam.send("say (first)"), sam.send("say (second)"))
        await asyncio.sleep(10)
        await sam.send("say (third)")
        await asyncio.sleep(10)
        assert told(town) == said(town)
        await town.leave()
        sent = [record.seq for record in town.log("sam") if record.type == AgentMessageSent.kind]
        assert len(sent) == 3
        before = left(town, town.log("sam")[-1].seq)
        for seq in sent:
            LocalSystem(town.store).erase("sam", seq, seq)
        assert left(town, before[-1][0]) == before
        town = Town(town.store)
        await town.ref("sam").send("say (fourth)")
        await asyncio.sleep(10)
        assert told(town) == said(town)
        await town.leave()

    run(main)
