"""Two real processes and one agent: the second is refused with the owner's name, or fences the first if told to take
over.
"""

import asyncio
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import PartitionBusy, UserMessage
from everlog.store import FileStore, check
from everlog.testing import ManualClock
from tests.soak.test_killed_processes import start

CHAT = """
import asyncio, json, sys
from pathlib import Path
from everlog.actors.ports.real_clock import RealClock, RealIds
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.events import Fenced, UserMessage
from everlog.store import FileStore

async def main():
    clock, ids = RealClock(), RealIds()
    store = FileStore.create(Path(sys.argv[1]), clock.now, ids.new(clock.now()))
    async with LocalSystem(store).agent("sam", Settings(), command="everlog chat") as agent:
        print("open", flush=True)
        for line in sys.stdin:
            try:
                record = await agent.receive(UserMessage(text=line.strip()))
                print(record.event_id, flush=True)
                await agent.run()
            except Fenced as error:
                print(f"Fenced: {error}", flush=True)

asyncio.run(main())
"""


class Chat:
    """A process that has sam open; it prints the id of each durable message, or that it was fenced."""

    def __init__(self, store: Path) -> None:
        self.process: subprocess.Popen[str] = start("-c", CHAT, str(store))
        assert self.process.stdin and self.process.stdout
        self.into, self.out = self.process.stdin, self.process.stdout
        assert self.out.readline() == "open\n"

    def tell(self, text: str) -> str:
        self.into.write(f"{text}\n")
        self.into.flush()
        return self.out.readline().strip()

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def chat(tmp_path: Path) -> Iterator[Chat]:
    running = Chat(tmp_path / "store")
    yield running
    running.kill()


def here(store: Path) -> LocalSystem:
    """Return a system of this process over the same store."""
    return LocalSystem(FileStore(store, ManualClock(tick_us=1000).now))


async def one_message(system: LocalSystem, text: str, *, take_over: bool = False) -> None:
    async with system.agent("sam", Settings(), command="everlog send", take_over=take_over) as agent:
        await agent.receive(UserMessage(text=text))
        await agent.run()


def said(system: LocalSystem) -> list[str | None]:
    return [r.text for r in system.store.reader("sam").read("sam") if r.type == "user_message"]


def assert_sound(system: LocalSystem) -> None:
    assert isinstance(system.store, FileStore)
    assert all(check(system.store.partition(name)).ok for name in system.store.partitions())
    view = system.view("sam")
    assert (verify(view, system.tools).faults, rebuild(view).faults) == ([], [])
    assert {turn["status"] for turn in view.rows("turns")} == {"done"}
    view.close()


def test_a_second_process_is_refused_and_nothing_changes(chat: Chat, tmp_path: Path) -> None:
    """PartitionBusy names the process and its command; the first process continues undisturbed."""
    assert chat.tell("one")
    refused = rf"^sam is open in process {chat.process.pid} \(everlog chat\)"
    with pytest.raises(PartitionBusy, match=refused):
        asyncio.run(one_message(here(tmp_path / "store"), "not kept"))
    assert "Fenced" not in chat.tell("two")
    chat.kill()
    system = here(tmp_path / "store")
    assert said(system) == ["one", "two"]


def test_after_a_take_over_the_first_is_never_acknowledged_again(chat: Chat, tmp_path: Path) -> None:
    """The first process gets Fenced for its next append and writes nothing; the new owner's turns stand, and all checks
    pass.
    """
    assert chat.tell("one")
    system = here(tmp_path / "store")
    asyncio.run(one_message(system, "taken over", take_over=True))
    assert chat.tell("lost").startswith("Fenced: epoch 1")
    assert chat.tell("lost too").startswith("Fenced: epoch 1")
    asyncio.run(one_message(system, "and on"))
    assert said(system) == ["one", "taken over", "and on"]
    assert_sound(system)


def test_after_a_kill_the_second_process_opens_without_take_over(chat: Chat, tmp_path: Path) -> None:
    """A dead owner does not block the agent; its last acknowledged message is there once, and its turn is finished."""
    last = chat.tell("one")
    chat.kill()
    system = here(tmp_path / "store")
    asyncio.run(one_message(system, "two"))
    assert said(system) == ["one", "two"]
    assert last in {record.event_id for record in system.store.reader("sam").read("sam")}
    assert_sound(system)
