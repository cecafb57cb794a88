"""Runs over HTTP and in this process: the same records, replies and errors, also over connections that are cut."""

import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent_system import AgentSystem
from everlog.actors.api import ServiceOptions, open_system
from everlog.actors.ports.ports import Ports
from everlog.events import (
    BadInput,
    ClusterError,
    EverlogError,
    ModelError,
    Record,
    SystemAlert,
    UserLogin,
    event_of,
)
from everlog.interfaces.client.connect import connect_system
from tests.support.cli.command_line import CountedIds, HandClock, Script, completion, says
from tests.support.http.cutting_proxy import cutting
from tests.support.http.served_store import served
from tests.support.seeds import seeds

Told = list[Any]


def script() -> Script:
    edit = ("core_memory_append", {"name": "human", "content": "Sails", "request_heartbeat": True})
    down = ModelError("The endpoint is down.", kind="unreachable")
    return Script([says("Ahoy"), completion(edit), says("Noted"), down, says("Again"), says("Hm"), says("Ping")])


async def conversation(system: AgentSystem) -> Told:
    """Carry out the script of the law. Return what a caller is told."""
    told: Told = []

    async def note(what: Awaitable[Any]) -> None:
        try:
            told.append(seen(await what))
        except EverlogError as error:
            told.append((type(error), str(error)))

    agent = await system.agent("sam", Settings(zone="Europe/Vienna", stream=False))
    told.append((agent.opened.born, agent.opened.model, agent.opened.zone, agent.opened.head))
    await note(agent.ask("Hello"))
    await note(agent.ask("I sail", speaker="Ann"))
    await note(agent.ask("Are you there?"))
    await note(agent.send(UserLogin(last_login=5)).reply())
    await note(agent.heartbeat("Look around").reply())
    await note(agent.ask(SystemAlert(text="Liked", source="user_event")))
    await note(agent.add_block("notes", "one", limit=30, description="What to do"))
    await note(agent.add_block("notes", "one"))
    await note(agent.update_block("notes", "two"))
    await note(agent.update_block("notes", "two"))
    await note(agent.update_block("notes", "three", base=1))
    await note(agent.remove_block("notes"))
    await note(agent.archive.insert("Tea is nice", ["drink"]))
    await note(agent.archive.insert_many(["Tea is nice", "Coffee"]))
    await note(agent.configure(Settings(window=9000)))
    await note(agent.configure(Settings(window=3)))
    await note(agent.set_timer("nap", "Wake", cron="0 7 * * 1-5", zone="Europe/Vienna"))
    await note(agent.cancel_timer("nap"))
    await note(agent.cancel_timer("nap"))
    await note(agent.undo_turns(1))
    await note(agent.edit_last_thought("Better"))
    await note(agent.retry().reply())
    await note(agent.resume().reply())
    await note(agent.summarize())
    await note(agent.undo_summary())
    await note(agent.cancel())
    await note(agent.memories.derive("facts"))
    await note(agent.memories.note_fact("Ann", "lives_in", "Vienna", sources=[8]))
    await note(agent.memories.note_fact("Ann", "lives_in", "Graz", sources=[9_999]))
    await note(agent.memories.withdraw([1]))
    await note(system.agent("nobody", create=False))
    await note(agent.ask(" "))
    async with await system.view("sam") as view:
        told.append((await view.memory(), view.head))
    return told


def seen(value: Any) -> Any:
    """Return what of a value must be the same: all but ids and times, which each process makes for itself."""
    if hasattr(value, "records"):
        return str(value), value.turn, value.calls, value.tokens, [shape(record) for record in value.records]
    if isinstance(value, str) and len(value) == 36:
        return "id"
    if isinstance(value, msgspec.Struct):
        return msgspec.json.decode(msgspec.json.encode(value))
    return [seen(each) for each in value] if isinstance(value, list) else value


def shape(record: Record) -> Any:
    return record.seq, record.type, record.turn, record.step, record.text


async def records_of(system: AgentSystem) -> Any:
    async with await system.view("sam") as view:
        found = list(view._view.reader.read("sam"))
    return [(*shape(record), without_times(record)) for record in found]


def without_times(record: Record) -> Any:
    event = msgspec.to_builtins({name: getattr(event_of(record), name) for name in event_of(record).__struct_fields__})
    dropped = {"memory_id", "due_at", "last_login", "latency_ms", "context_sha256", "parts", "context_bytes", "by"}
    return {name: value for name, value in event.items() if name not in dropped}


def test_a_conversation_is_the_same_here_and_over_http(tmp_path: Path) -> None:
    """One conversation with every kind of command leaves the same records, and tells the same replies and errors."""

    async def main() -> None:
        ports = Ports(clock=HandClock(), ids=CountedIds())
        model = script()
        services = ServiceOptions(models=lambda _name, _url: model)
        async with open_system(tmp_path / "here", runtime="local", services=services, ports=ports) as system:
            here = await conversation(system)
            records_here = await records_of(system)
        async with served(tmp_path / "there", script(), ports=Ports(clock=HandClock(), ids=CountedIds())) as server:
            async with connect_system(server.address) as system:
                there = await conversation(system)
            records_there = await records_of(server.system)
        for one, other in zip(here, there, strict=True):
            assert one == other
        assert records_here == records_there

    asyncio.run(main())


@pytest.mark.parametrize("seed", seeds(3, label="cut streams"))
def test_streams_that_are_cut_lose_and_double_no_record(tmp_path: Path, seed: int) -> None:
    """Connections are cut at any byte: each message is in the log once, and its run has each record once."""

    async def main() -> None:
        draw = random.Random(seed)
        waits: list[float] = []

        async def sleep(seconds: float) -> None:
            waits.append(seconds)
            await asyncio.sleep(0)

        armed = False

        def until_cut() -> int | None:
            return None if not armed else draw.choice([None, draw.randrange(1, 200), draw.randrange(200, 6000)])

        ports = Ports(sleep=sleep)
        async with served(tmp_path, Script([]), ports=Ports()) as server:
            async with (
                cutting(server.address, until_cut) as proxy,
                connect_system(proxy.address, ports=ports, chance=draw.random) as system,
            ):
                armed = True
                agent = await system.agent("sam", Settings(stream=True))
                received: list[Record] = []
                for number in range(12):
                    reply = await agent.ask(f"Message {number}")
                    assert str(reply) == "Indeed."
                    assert reply.value.text == f"Message {number}"
                    assert [r.seq for r in reply.records] == list(range(reply.value.seq, reply.records[-1].seq + 1))
                    received += reply.records
                assert proxy.cuts
            async with await server.system.view("sam") as view:
                logged = [r for r in view._view.reader.read("sam") if r.turn]
            assert [r.event_id for r in received] == [r.event_id for r in logged]
            assert sum(r.type == "user_message" for r in logged) == 12

    asyncio.run(main())


def test_a_server_that_stops_is_waited_for(tmp_path: Path) -> None:
    """A run whose server stops continues at the next server of the store, without a lost or doubled record."""

    async def main() -> None:
        gate, asked = asyncio.Event(), asyncio.Event()

        class Slow(Script):
            async def ask(self, request: bytes, **how: object) -> Any:
                asked.set()
                await gate.wait()
                return await super().ask(request, **how)

        model = Slow([says("Ahoy")])
        port: list[str] = [""]

        async with served(tmp_path, model) as first:
            port[0] = first.address

            async with cutting(first.address, lambda: None) as proxy:
                async with connect_system(proxy.address) as system:
                    agent = await system.agent("sam")
                    asking = asyncio.ensure_future(agent.ask("Hello"))
                    await asked.wait()
                    first.service.stopping.set()  # streams are closed, and requests are still taken
                    gate.set()
                    reply = await asking
                    assert str(reply) == "Ahoy"
                    assert len({record.seq for record in reply.records}) == len(reply.records)

    asyncio.run(main())


def test_an_address_without_a_server_is_one_clear_error(tmp_path: Path) -> None:
    """An address without a server, a wrong one, and one with a password are refused, and no secret is repeated."""

    async def main() -> None:
        async with served(tmp_path) as server:
            gone = server.address
        with pytest.raises(ClusterError, match="does not answer"):
            async with connect_system(gone):
                pass
        for wrong in ("ftp://x", "http://", "http://ann:secret@host", "http://host?key=secret", "x"):
            with pytest.raises(BadInput) as refused:
                async with connect_system(wrong):
                    pass
            assert "secret" not in str(refused.value)

    asyncio.run(main())


def test_a_key_is_needed_and_never_shown(tmp_path: Path) -> None:
    """A server with keys refuses a client without one; the key of a client is in no error and in no repr."""

    async def main() -> None:
        async with served(tmp_path) as server:
            key = server.key("talk")["Authorization"].removeprefix("Bearer ")
            with pytest.raises(BadInput, match="A key is needed"):
                async with connect_system(server.address):
                    pass
            async with connect_system(server.address, key=key) as system:
                with pytest.raises(BadInput, match="role 'talk'") as refused:
                    await system.agent("sam", Settings(zone="UTC"))
                shown = [repr(system), repr(system.runtime.channel.address), str(refused.value), repr(refused.value)]
                assert not [text for text in shown if key in text]
            with pytest.raises(BadInput, match="unknown"):
                async with connect_system(server.address, key=key + "x"):
                    pass

    asyncio.run(main())
