"""Users' functions: they run in the agent's process, with any closure, and after the process was lost."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.formats.reply_preview import Preview
from everlog.actors.functions.tools import Tool, tool
from everlog.events import BadInput, FunctionResult, Record, event_of
from tests.contract.contract_agents import (
    KNOCKS,
    SCRIPTED,
    alive,
    assert_sound,
    calls,
    context,
    gate,
    log,
    module_from,
    says,
    scripted,
    texts,
)
from tests.support.models.loopback_server import serving

OWN_FILE = '''
"""Functions of a user's own, in a file of their own."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from everlog.actors.memory.core_memory import Memory
from everlog.actors.functions.tools import tool

PLACES = {"Oslo": "rain"}


@dataclass
class Sky:
    place: str

    def tell(self):
        return PLACES.get(self.place, "sun")


class Place(msgspec.Struct, frozen=True):
    town: str
    country: str = "NO"

    @property
    def sky(self):
        return Sky(self.town)


@tool(effect="read_only")
def weather(place: Place, days: list[int] | None = None) -> str:
    """Tell the weather.

    Args:
        place: A town.
        days: Which days.
    """
    assert place == Place(place.town, "NO")
    return place.sky.tell()


@tool
def plan(memory: Memory, text: str) -> None:
    """Write a plan down.

    Args:
        text: The plan.
    """
    memory.append("human", f"Plan: {text}")
'''


@tool(effect="read_only")
def double(number: int) -> int:
    """Double a number.

    Args:
        number: Any number.
    """
    return 2 * number


def results(records: list[Record]) -> list[FunctionResult]:
    """Return the functions' results, except those of send_message."""
    found = [event for event in map(event_of, records) if isinstance(event, FunctionResult)]
    return [event for event in found if event.name != "send_message"]


class FunctionContract:
    """Contract of functions; a part of `AgentContract`."""

    kill: Any

    async def run(self, opens: Any, own: Tool, arguments: dict[str, Any], wanted: str) -> None:
        """Have an agent call a function twice, before and after its host dies."""
        turn = (calls(own.name, arguments), says("Done."))
        async with scripted(opens, *turn, *turn, tools=[own]) as (system, agent):
            for _ in range(2):
                records = await agent.send("go")
                assert [(result.ok, result.text) for result in results(records)] == [(True, wanted)]
                await self.kill(system, "sam")
            assert_sound(system)

    @alive
    async def test_a_function_of_a_module(self, opens: Any) -> None:
        """A function at the top level of a module runs, also after the host died."""
        await self.run(opens, double, {"number": 21}, "42")

    @alive
    async def test_a_function_of_a_file_that_no_other_process_can_import(
        self, opens: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The function runs with everything that its file defines, as `--tools FILE.py` promises."""
        own = module_from(tmp_path / "sailor.py", OWN_FILE, monkeypatch)
        await self.run(opens, own.weather, {"place": {"town": "Oslo"}}, "rain")

    @alive
    async def test_a_function_that_edits_memory(
        self, opens: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A user's memory function leaves its edit in the reply's commit."""
        own = module_from(tmp_path / "planner.py", OWN_FILE, monkeypatch)
        async with scripted(opens, calls("plan", {"text": "to sail"}), says("Done."), tools=[own.plan]) as (system, _):
            agent = await system.agent("sam")
            assert [result.ok for result in results(await agent.send("go"))] == [True]
            assert "Plan: to sail" in str(context(system).blocks)

    @alive
    async def test_a_function_made_in_a_function(self, opens: Any) -> None:
        """Variables that a function closes over are pickled with it."""
        factor = 3

        @tool(effect="read_only")
        def times(number: int) -> int:
            """Multiply a number.

            Args:
                number: Any number.
            """
            return factor * number

        await self.run(opens, times, {"number": 14}, "42")

    @alive
    async def test_new_functions_replace_the_earlier_ones(self, opens: Any) -> None:
        """A caller that opens the system with other functions gets an agent with those functions."""
        async with scripted(opens, *KNOCKS, tools=[double]) as (system, agent):
            assert "double" in str(context(system).config.functions)
            assert await agent.unload()
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
            assert "double" not in str(context(system).config.functions)
            assert "knock" in str(context(system).config.functions)

    @alive
    async def test_edited_code_runs_in_an_agent_that_is_open(self, opens: Any) -> None:
        """A function that was edited without a change of name or schema runs as edited."""

        def growing(factor: int) -> Tool:
            @tool(effect="read_only")
            def grow() -> int:
                """Grow."""
                return 7 * factor

            return grow

        turn = (calls("grow"), says("Done."))
        with serving(*turn, *turn) as endpoint:
            for factor in (2, 3):
                async with opens(base_url=endpoint.url, tools=[growing(factor)]) as system:
                    agent = await system.agent("sam", SCRIPTED)
                    assert [result.text for result in results(await agent.send("go"))] == [str(7 * factor)]

    @alive
    async def test_an_exception_of_a_function_is_reported(self, opens: Any) -> None:
        """A CancelledError that the function raises gives a failed result, and the agent continues."""

        @tool
        async def cancel() -> None:
            """Cancel."""
            raise asyncio.CancelledError

        async with scripted(opens, calls("cancel"), says("Done."), says("Yes."), tools=[cancel]) as (system, agent):
            assert [result.ok for result in results(await agent.send("go"))] == [False]
            assert results(await agent.send("still there?")) == []
            assert_sound(system)

    @alive
    async def test_progress_of_a_function_comes_while_it_runs(self, opens: Any) -> None:
        """A line of progress reaches the caller while the function waits at the gate, and is not in the log."""
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock(says="1 of 2")]) as (system, agent):
            seen: list[Preview] = []
            coming = asyncio.Event()

            def on_preview(preview: Preview) -> None:
                seen.append(preview)
                if preview.kind == "progress":
                    coming.set()

            answer = asyncio.ensure_future(agent.send("go", preview=on_preview))
            visitor = await place.reached()
            await coming.wait()
            assert [(one.kind, one.text) for one in seen if one.kind in ("call", "progress")] == [
                ("call", ""), ("progress", "1 of 2"),
            ]  # fmt: skip
            await visitor.enters()
            await answer
            assert "1 of 2" not in str(log(system))

    @alive
    async def test_an_effect_that_may_have_happened_is_not_repeated(self, opens: Any) -> None:
        """If a host dies during an outside effect, the call's outcome is unknown, and the turn ends."""
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
            answer = asyncio.ensure_future(agent.send("go"))
            visitor = await place.reached()
            await self.kill(system, "sam")
            await visitor.gone()
            await settled(answer)
            await agent.resume()
            assert [(result.ok, result.text) for result in results(log(system))] == [(False, INTERRUPTED)]
            assert_sound(system)

    @alive
    async def test_a_turn_is_cancelled_while_its_function_is_outside(self, opens: Any) -> None:
        """A cancel by any caller abandons the function, the result says that the outcome is unknown, and the caller
        gets the end of the turn. A waiting turn is answered next, and so are later messages.
        """
        async with gate() as place, scripted(opens, *KNOCKS, tools=[place.knock()]) as (system, agent):
            first, second = (asyncio.ensure_future(agent.send(text)._all()) for text in ("one", "two"))
            visitor = await place.reached()
            turn = log(system)[-1].turn
            assert await agent.cancel() == [turn]
            await visitor.gone()
            results = [event_of(record) for record in await first if record.type == "function_result"]
            assert [(result.text, result.unknown) for result in results] == [(INTERRUPTED, True)]
            assert (await first)[-1].type == "turn_cancelled"
            assert "message_sent" in [record.type for record in await second]
            assert await agent.cancel(all_turns=True) == []
            assert "message_sent" in [record.type for record in await agent.send("three")]
            view = system._reading.view("sam")
            assert {row["status"] for row in view.rows("turns")} == {"done", "cancelled"}
            view.close()

    @alive
    async def test_a_function_that_blocks_holds_up_no_other_agent(self, opens: Any) -> None:
        """While plain functions of two agents block, a third agent is answered, and so are readers of the logs."""
        own = (calls("block"), calls("block"), says("Yes."), says("Done."))
        async with gate() as place, scripted(opens, *own, tools=[place.block()]) as (system, sam):
            ann, bob = await system.agent("ann", SCRIPTED), await system.agent("bob", SCRIPTED)
            turns, visitors = [], []
            for agent in (sam, ann):
                turns.append(asyncio.ensure_future(agent.send("go")._all()))
                visitors.append(await place.reached())
            assert texts(await bob.send("Are you there?"), "message_sent") == ["Yes."]
            assert not any(turn.done() for turn in turns)
            for visitor in visitors:
                await visitor.enters("came in")
            for turn in turns:
                assert [result.text for result in results(await turn)] == ["came in"]
            assert_sound(system)

    @alive
    async def test_a_turn_is_cancelled_while_its_function_blocks(self, opens: Any) -> None:
        """A plain function cannot be stopped. The cancelled turn ends at once all the same, the next message is
        answered while the function still blocks, and its late result is in no record.
        """
        own = (calls("block"), says("Yes."))
        async with gate() as place, scripted(opens, *own, tools=[place.block()]) as (system, agent):
            turn = asyncio.ensure_future(agent.send("go")._all())
            visitor = await place.reached()
            assert await agent.cancel() == [log(system)[-1].turn]
            ended = await turn
            assert [(result.text, result.unknown) for result in results(ended)] == [(INTERRUPTED, True)]
            assert ended[-1].type == "turn_cancelled"
            assert texts(await agent.send("Are you there?"), "message_sent") == ["Yes."]
            await visitor.enters("came in late")
            assert "came in late" not in str(log(system))

    @alive
    async def test_a_function_that_only_reads_is_run_again(self, opens: Any) -> None:
        """If a host dies during a function that only reads, no record of the step exists: the next host calls the model
        again.
        """
        own = [calls("knock"), *KNOCKS]
        async with gate() as place, scripted(opens, *own, tools=[place.knock("read_only")]) as (system, agent):
            answer = asyncio.ensure_future(agent.send("go"))
            first = await place.reached()
            await self.kill(system, "sam")
            await first.gone()
            resumed = asyncio.ensure_future(agent.resume())
            await (await place.reached()).enters("came in")
            await resumed
            await settled(answer)
            assert [(result.ok, result.text) for result in results(log(system))] == [(True, "came in")]
            assert_sound(system)

    @alive
    async def test_a_reserved_function_name_is_refused_when_the_system_is_opened(self, opens: Any) -> None:
        """A function with the name of a built-in one is refused when the system is opened."""
        with pytest.raises(BadInput, match="There is a function 'send_message' already"):
            async with opens(tools=[tool(double.function, name="send_message")]):
                pass


async def settled(answer: Any) -> None:
    """Wait for an answer whose host died. It may fail or not, depending on the runtime, but it must end."""
    await asyncio.wait([answer])
