"""Many messages between agents at once, and messages that cannot be taken yet, in virtual time."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent import event_writer
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.commands import DeliverLetter, OpenAgent, ResumeTurns, SendInput
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.hosting.local_runtime import local_runtime
from everlog.actors.mail.letters import Letter
from everlog.actors.mail.mail_functions import NAMES
from everlog.actors.ports.ports import Ports
from everlog.actors.ports.real_clock import RealClock
from everlog.actors.postbox import admission, postbox
from everlog.actors.postbox.admission import Admission
from everlog.events import Busy, HostLost, UserMessage
from everlog.store import FileStore
from tests.support import virtual_time
from tests.support.agent_world import SECOND
from tests.support.agents.killed_town import done, obey
from tests.support.agents.virtual_time_runtime import when
from tests.support.agents.virtual_time_shard import SharedHome
from tests.support.agents.writing_agents import Town


class SharedTown(Town, SharedHome):
    """A town whose agents share one partition."""


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run `main` in virtual time."""
    return virtual_time.run(main)


async def shared_town(names: list[str]) -> SharedTown:
    town = SharedTown()
    town.store.register_many(names, shared=True)
    await asyncio.gather(*map(town.person, names))
    return town


def letter(number: int) -> DeliverLetter:
    return DeliverLetter(
        id=f"letter {number}",
        letter=Letter(
            sender="sam", sent=str(number), message=number, text="hi", waits=False, hops=["sam"], waiting=[]
        ),
    )  # fmt: skip


def test_a_storm_above_the_limits_of_a_shard_drains_without_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve agents that all write to all others, 132 messages, in a shard with room for 30 commands and 4 letters:
    each arrives once, none is refused, and none waits for the next minute.
    """
    monkeypatch.setattr(admission, "SHARD_COMMANDS_MAX", 30)
    monkeypatch.setattr(admission, "LETTERS_INSIDE_MAX", 4)
    monkeypatch.setattr(postbox, "LETTERS_AT_ONCE", 3)

    async def main() -> None:
        names = [f"a{one:02}" for one in range(12)]
        town = await shared_town(names)
        inside: list[int] = []
        let_in = Admission._let_in
        monkeypatch.setattr(Admission, "_let_in", lambda own: (let_in(own), inside.append(own._letters))[0])
        orders = {name: " ".join(f"tell {other} (hi)" for other in names if other != name) for name in names}
        await asyncio.gather(*(town.ref(name).send(order) for name, order in orders.items()))
        await asyncio.sleep(30)
        for name in names:
            assert sorted(sender for sender, _ in town.heard(name)) == [other for other in names if other != name]
            assert set(town.states(name)) == {"delivered", "received"}
        assert town.shard.status("here").refused == 0
        assert (len(inside), max(inside)) == (132, 4)
        await town.leave()

    run(main)


def test_letters_are_let_in_in_their_order_and_callers_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """With no room left a letter waits for its turn, a cancelled one leaves its place to the next, and a caller is
    refused at once.
    """
    monkeypatch.setattr(admission, "SHARD_COMMANDS_MAX", 1)

    async def main() -> None:
        gate, order = Admission("shard-000", virtual_time.WallClock()), []
        release = asyncio.Event()

        async def enter(number: int) -> None:
            async with gate.entered(letter(number)):
                order.append(number)
                await release.wait()

        tasks = [asyncio.create_task(enter(number)) for number in range(4)]
        await asyncio.sleep(1)
        assert (order, len(gate.under_way)) == ([0], 4)
        with pytest.raises(Busy):
            async with gate.entered(ResumeTurns(id="r")):
                pass
        tasks[1].cancel()
        release.set()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert order == [0, 2, 3]
        assert (gate.under_way, gate.errors) == ({}, {"Busy": 1})
        async with gate.entered(ResumeTurns(id="r")):
            pass

    run(main)


def test_a_letter_that_is_let_in_and_cancelled_at_once_leaves_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """The place of a letter whose sender goes in the same moment is given to the next."""
    monkeypatch.setattr(admission, "LETTERS_INSIDE_MAX", 1)

    async def main() -> None:
        gate, entered = Admission("shard-000", virtual_time.WallClock()), []

        async def enter(number: int) -> None:
            async with gate.entered(letter(number)):
                entered.append(number)

        async with gate.entered(letter(0)):
            tasks = [asyncio.create_task(enter(number)) for number in (1, 2)]
            await asyncio.sleep(1)
        tasks[0].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert entered == [2]

    run(main)


def test_an_agent_with_a_full_inbox_takes_the_message_seconds_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A receiver that has no room is tried again within seconds, not in the next minute, and gets each message once."""
    monkeypatch.setattr(event_writer, "INBOX_MAX", 2)

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        town.pauses["bob"] = 1
        await sam.send(" ".join(["tell bob (hi)"] * 6))
        await asyncio.sleep(20)
        assert town.heard("bob") == [("sam", "hi")] * 6
        assert set(town.states("sam")) == {"delivered"}
        assert town.notes == []
        await town.leave()

    run(main)


def test_a_message_that_cannot_be_delivered_holds_up_nothing() -> None:
    """While another process holds the receiver, the sender's timer fires on time, its wait for the answer ends on time,
    and its other messages arrive at once.
    """

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("eve")
        async with LocalSystem(town.store).agent("bob"):
            await sam.send("ask bob (say (yes))")
            await sam.set_timer("tea", "Make tea.", due_at=when(100))
            await asyncio.sleep(90)
            assert town.beats("sam") == []
            await asyncio.sleep(15)
            assert [round(at) for at, _ in town.beats("sam")] == [100]
            await sam.send("tell eve (hi)")
            await asyncio.sleep(5)
            assert town.heard("eve") == [("sam", "hi")]
            assert town.states("sam") == ["pending", "delivered"]
            await asyncio.sleep(3600)
            assert town.heard("sam") == [("bob", "bob has not answered in time.")]
        await town.leave()

    run(main)


def test_a_letter_whose_host_was_lost_is_sent_again_within_seconds() -> None:
    """The death of a receiver's host costs a message seconds, and each further attempt waits for longer."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        box, tries = town.runtime.host("sam")._postbox, []
        send = box._send
        assert send is not None

        async def losing(letters: Any) -> Any:
            tries.append(round(asyncio.get_running_loop().time()))
            return [HostLost("gone")] * len(letters) if len(tries) < 4 else await send(letters)

        box._send = losing
        await sam.send("tell bob (hi)")
        await asyncio.sleep(20)
        assert [tries[at] - tries[0] for at in range(4)] == [0, 2, 6, 14]
        assert town.heard("bob") == [("sam", "hi")]
        assert town.notes == []
        await town.leave()

    run(main)


async def storm(folder: Path, names: list[str], shards: int) -> tuple[float, float, list[str]]:
    """Have all agents write to all others at once. Return seconds and seconds of CPU until all has arrived, and the
    notes of the process.
    """
    clock, notes = RealClock(), []
    store = FileStore.create(folder, clock.now, "storm", shards=shards)
    store.register_many(names, shared=True)
    ports = Ports(clock=clock, note=notes.append)
    ids = ports.ids
    runtime = local_runtime(store, obey, None, ports=ports, idle_s=600, timers=True)
    settings = Settings(model="offline", optional_functions=NAMES, labels=("crew",), window=1_000_000)
    await asyncio.gather(
        *(done(runtime, name, OpenAgent(id=ids.new(clock.now()), settings=settings)) for name in names)
    )
    began, cpu, order = time.perf_counter(), time.process_time(), UserMessage(text="shout crew (hi)")
    await asyncio.gather(*(done(runtime, name, SendInput(id=ids.new(clock.now()), event=order)) for name in names))
    # A schedule sends no notice when nothing is due any more.
    while runtime.firing or ((at := runtime.next_timer_at) is not None and at <= clock.now() + SECOND):  # noqa: ASYNC110
        await asyncio.sleep(0.1)
    await asyncio.gather(*(done(runtime, name, ResumeTurns(id=ids.new(clock.now()))) for name in names))
    took = time.perf_counter() - began, time.process_time() - cpu, notes
    await runtime.close()
    return took


@pytest.mark.long
@pytest.mark.effects
@pytest.mark.parametrize("shards", [1, 2])
def test_a_storm_of_two_hundred_agents_drains(tmp_path: Path, shards: int) -> None:
    """200 agents that all write to all others at once, 39,800 messages, in real shards: none is lost or doubled, none
    waits for the next minute, and no command is refused.
    """
    names = [f"a{one:03}" for one in range(200)]
    wall_s, cpu_s, notes = asyncio.run(storm(tmp_path, names, shards))
    system = LocalSystem(FileStore(tmp_path, lambda: 0))
    heard: Counter[tuple[str, str]] = Counter()
    states: Counter[str] = Counter()
    for name in names:
        view = system.view(name)
        rows = view.rows("agent_messages")
        heard.update((row["other"], name) for row in rows if row["direction"] == "received")
        states.update(row["state"] for row in rows)
        view.close()
    messages = len(names) * (len(names) - 1)
    lost, doubled = messages - len(heard), sum(count > 1 for count in heard.values())
    print(
        f"\n{messages} messages between {len(names)} agents, {shards} shards: {wall_s:.0f} s, "
        f"{messages / wall_s:.0f} messages/s, {cpu_s:.0f} s of CPU, lost {lost}, doubled {doubled}"
    )
    assert (lost, doubled, notes) == (0, 0, [])
    assert states == {"delivered": messages, "received": messages}
