"""`everlog cancel`: it ends open turns, reports each of them, and makes no agent."""

import asyncio

from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.ports.ports import Ports
from everlog.events import UserMessage
from everlog.store import FileStore
from tests.support.cli.command_line import Line


def left_open(cli: Line, *texts: str) -> None:
    """Send messages to sam without an answer, as after a killed process."""
    world = cli.world
    system = LocalSystem(FileStore(cli.root, world.clock.now), ports=Ports(clock=world.clock, ids=world.ids))

    async def main() -> None:
        async with system.agent("sam") as sam:
            for text in texts:
                await sam.receive(UserMessage(text=text))

    asyncio.run(main())


def test_an_open_turn_is_cancelled_and_the_next_is_answered(cli: Line) -> None:
    """The oldest open turn, or all, are cancelled; their messages stay and get no answer; the log verifies."""
    cli.ok("send", "sam", "Hi")
    left_open(cli, "one", "two", "three")
    assert cli.ok("cancel", "sam") == "Cancelled turn 2 of sam.\n"
    assert cli.json("cancel", "sam", "--waiting") == {"agent": "sam", "cancelled": [3, 4]}
    assert cli.ok("cancel", "sam", "--waiting") == "Nothing was cancelled: sam has no open turn.\n"
    assert cli.json("cancel", "sam") == {"agent": "sam", "cancelled": []}
    before = len(cli.script.asked)
    cli.ok("send", "sam", "four")
    assert len(cli.script.asked) == before + 1
    assert cli.ok("verify", "sam")
    kinds = [record["type"] for record in cli.lines("events", "sam")]
    assert kinds.count("turn_cancelled") == 3


def test_an_agent_that_is_not_there_is_not_made(cli: Line) -> None:
    """The command says that there is no such agent."""
    cli.ok("send", "sam", "Hi")
    assert "'ann'" in cli.fails("cancel", "ann")
    assert len(cli.json("agents")) == 1


def test_a_turn_cancelled_elsewhere_is_reported_to_its_caller(cli: Line) -> None:
    """If the turn of an input is cancelled by another process, `send` says so and fails."""
    cli.ok("send", "sam", "Hi")
    known = cli.lines("events", "sam")
    left_open(cli, "one")
    cli.ok("cancel", "sam")
    said = next(record for record in cli.lines("events", "sam") if record["text"] == "one")
    assert said["seq"] > known[-1]["seq"]
    code, out, err = cli("send", "sam", "one", "--id", said["event_id"])
    assert (code, out) == (1, "")
    assert "cancelled" in err
