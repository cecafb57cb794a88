"""Cancelled turns: at whatever moment, committed records stay, the log is sound, and the next turn works."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from everlog.actors.agent.commands import CancelTurn
from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.functions.tools import Tool, tool
from everlog.events import Record, event_of
from tests.support import virtual_time
from tests.support.agent_world import kinds, say
from tests.support.agents.virtual_time_runtime import Home
from tests.support.models.streaming_model import Streamer, calls, faults, opened, said, streaming, streaming_shared

Making = Callable[..., Home]
BOTH = pytest.mark.parametrize("making", [streaming, streaming_shared])
LONG = 400
"""Upper bound of the moments of a turn at which it can be cancelled."""


def letter(posted: list[str]) -> Tool:
    """Return a function with an outside effect that takes a few rounds of the event loop."""

    @tool
    async def post_letter(text: str) -> str:
        """Post a letter.

        Args:
            text: What to write.
        """
        posted.append(text)
        for _ in range(4):
            await asyncio.sleep(0)
        return "posted"

    return post_letter


async def after(moments: int) -> None:
    for _ in range(moments):
        await asyncio.sleep(0)


async def until_asked(model: Streamer) -> None:
    while not model.open:
        await after(1)


def of_turn(records: Sequence[Record], turn: int) -> list[Record]:
    return [record for record in records if record.turn == turn and (record.step or record.type == "user_message")]


@BOTH
def test_a_turn_can_be_cancelled_at_every_moment(making: Making) -> None:
    """A cancel at any moment from the message to the end of its turn ends the turn at once, as cancelled or as it would
    have ended. A letter that was posted has a result, the model's connection is closed, the next message is answered,
    and the log is sound.
    """
    posted: list[str] = []
    model, tools = Streamer(), [letter(posted)]
    endings = []

    async def main() -> None:
        home = making(model, tools)
        sam = await opened(home)
        for moments in range(LONG):
            model.lines = [calls("post_letter", text=str(moments)), say("Sent.")]
            turn = asyncio.ensure_future(sam.send("Write")._all())
            await after(moments)
            ended = await sam.cancel()
            records = await turn
            await after(2)
            assert model.open == 0
            mine = of_turn(home.log(), records[0].turn) if records else []
            assert ended in ([], [mine[0].turn]) if mine else not ended
            endings.append(mine[-1].type if mine else "")
            assert (endings[-1] == "turn_cancelled") == bool(ended)
            started, results = (kinds(mine).count(kind) for kind in ("function_started", "function_result"))
            assert started <= results
            model.lines = []
            assert said(await sam.send("Hello?")) == ["Yes."]
            if not ended and moments:
                break
        await home.leave()
        assert faults(home, tools) == []
        unknown = [event_of(r) for r in home.log() if r.type == "function_result" and r.text == INTERRUPTED]
        assert unknown
        assert all(result.unknown and not result.ok for result in unknown)

    virtual_time.run(main)
    assert endings.count("turn_cancelled") > 20
    assert endings[-1] != "turn_cancelled"
    assert len(posted) < len(endings)


@BOTH
def test_a_repeated_cancel_is_idempotent(making: Making) -> None:
    """A cancel that is sent again with its id returns the same turns and cancels no other; without an open turn it
    returns an empty list.
    """

    async def main() -> None:
        home = making(model := Streamer())
        sam = await opened(home)
        command = CancelTurn(id=home.ids.new(home.clock.now()))

        async def cancelled() -> Any:
            return [heard async for heard in home.runtime.perform("sam", command)][-1].value

        assert await sam.cancel() == []
        for turn in (1, 2):
            answer = asyncio.ensure_future(sam.send("Hi")._all())
            await until_asked(model)
            assert await cancelled() == [1]
            assert ("turn_cancelled" in kinds(await answer)) == (turn == 1)
        assert await cancelled() == [1]
        await home.leave()
        assert kinds(home.log()).count("turn_cancelled") == 1
        assert faults(home) == []

    virtual_time.run(main)


@BOTH
def test_turns_that_wait_continue_unless_all_are_cancelled(making: Making) -> None:
    """A cancel ends the running turn, and the next turn begins; with `every` it also ends the waiting turns, and none
    of these runs.
    """

    async def main() -> None:
        short, long = say("Yes."), say("Once upon a time. " * 40)  # the others arrive while the fourth is told
        home = making(model := Streamer(short, short, short, long))
        sam = await opened(home)
        for every, ended, answers in ((False, [1], [[], ["Yes."], ["Yes."]]), (True, [4, 5, 6], [[], [], []])):
            turns = [asyncio.ensure_future(sam.send(text)._all()) for text in ("one", "two", "three")]
            while not model.open or kinds(home.log()).count("user_message") % 3:
                await after(1)
            assert await sam.cancel(all_turns=every) == ended
            assert [said(records) for records in await asyncio.gather(*turns)] == answers
        await home.leave()
        assert faults(home) == []

    virtual_time.run(main)


def test_a_turn_that_a_crash_left_is_cancelled_and_not_run_again() -> None:
    """After a crash the turn is cancelled before it is resumed: its function may have posted the letter, so the
    function is not called again.
    """
    posted: list[str] = []
    tools = [letter(posted)]

    async def main() -> None:
        home = streaming(Streamer(calls("post_letter", text="x")), tools)
        sam = await opened(home)
        turn = asyncio.ensure_future(sam.send("Write")._all())
        while not posted:
            await after(1)
        turn.cancel()
        await asyncio.gather(turn, return_exceptions=True)
        await home.runtime.host("sam").close()
        again = home.ref()
        assert await again.cancel() == [1]
        assert await again.cancel() == []
        await again.resume()
        await home.leave()
        assert posted == ["x"]
        assert kinds(home.log())[-2:] == ["function_result", "turn_cancelled"]
        assert faults(home, tools) == []

    virtual_time.run(main)


def test_a_function_that_will_not_be_stopped_leaves_nothing() -> None:
    """A function that catches its cancellation and returns a value does not keep the turn open, and the value is not
    recorded.
    """

    @tool
    async def dig() -> str:
        """Dig."""
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(1)
        return "a hole"

    async def main() -> None:
        home = streaming(Streamer(calls("dig")), [dig])
        sam = await opened(home)
        turn = asyncio.ensure_future(sam.send("Dig")._all())
        await asyncio.sleep(30)
        assert await sam.cancel() == [1]
        assert kinds(await turn)[-2:] == ["function_result", "turn_cancelled"]
        assert said(await sam.send("And now?")) == ["Yes."]
        await home.leave()
        assert "a hole" not in [record.text for record in home.log()]
        assert faults(home, [dig]) == []

    virtual_time.run(main)


def test_a_host_closed_during_a_cancel_leaves_a_sound_log() -> None:
    """A host that is closed while a turn is being cancelled does close, and the log is sound after the next
    activation.
    """

    async def main() -> None:
        home = streaming(model := Streamer())
        sam = await opened(home)
        turn = asyncio.ensure_future(sam.send("Hi")._all())
        await until_asked(model)
        both = asyncio.gather(sam.cancel(), home.runtime.host("sam").close(), return_exceptions=True)
        await asyncio.wait_for(both, 60)
        await asyncio.gather(turn, return_exceptions=True)
        await (await opened(home)).resume()
        await home.leave()
        assert faults(home) == []

    virtual_time.run(main)


def test_a_cancelled_error_of_a_function_is_its_own_failure() -> None:
    """In a turn after a cancelled one, a function that raises CancelledError has failed, and the turn continues."""

    @tool
    async def give_up() -> str:
        """Give up."""
        raise asyncio.CancelledError

    async def main() -> None:
        home = streaming(model := Streamer(say("Never."), calls("give_up"), say("It gave up.")), [give_up])
        sam = await opened(home)
        first, second = (asyncio.ensure_future(sam.send(text)._all()) for text in ("one", "two"))
        await until_asked(model)
        assert await sam.cancel() == [1]
        assert said(await second) == ["It gave up."]
        assert said(await first) == []
        await home.leave()
        assert INTERRUPTED not in [record.text for record in home.log()]
        assert faults(home, [give_up]) == []

    virtual_time.run(main)
