"""A turn with calls of every effect class, killed at every point, once and twice: the log reports the effects
correctly.
"""

import asyncio
import json
from collections.abc import Sequence
from itertools import count
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.memory.core_memory import Memory
from everlog.events import FunctionResult, FunctionStarted, UserMessage, event_of
from everlog.store import Commit, Log, MemoryStore
from tests.actors.agent.test_turn_recovery import assert_whole
from tests.actors.functions.test_effects import Killed, killed_in, recovered, results
from tests.support.agent_world import World, completion, say
from tests.support.seeds import chance, pick

CALLS: Sequence[tuple[str, dict[str, Any]]] = [
    ("look", {"number": 0}),
    ("pay", {"number": 1}),
    ("note", {"number": 2}),
    ("book", {"number": 3}),
    ("look", {"number": 4}),
    ("pay", {"number": 5, "request_heartbeat": True}),
]
POINTS = 26
"""Crash points of an uninterrupted run: before and after five appends, six functions and two model calls."""
FEW = 4
"""Number of points, and of pairs of points, in the ordinary suite; the deep suite tries all."""


class Reaper:
    """Counts the crash points that a process passes, kills the process at one of them, and records outside effects."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.done: list[tuple[str, int, str]] = []

    def pass_by(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Killed

    def act(self, name: str, number: int, key: str = "") -> str:
        self.pass_by()
        self.done.append((name, number, key))
        self.pass_by()
        return f"done {number}"

    def tools(self) -> list[Tool]:
        @tool
        def pay(number: int) -> str:
            """Pay.

            Args:
                number: Of the call.
            """
            return self.act("pay", number)

        @tool(effect="idempotent")
        def book(number: int, idempotency_key: str) -> str:
            """Book.

            Args:
                number: Of the call.
            """
            return self.act("book", number, idempotency_key)

        @tool(effect="read_only")
        async def look(number: int) -> str:
            """Look.

            Args:
                number: Of the call.
            """
            await asyncio.sleep(0)
            return self.act("look", number)

        @tool
        def note(memory: Memory, number: int) -> str:
            """Note.

            Args:
                number: Of the call.
            """
            memory.append("human", f"noted {number}")
            return self.act("note", number)

        return [pay, book, look, note]


class MortalStore(MemoryStore):
    """A store whose appends are crash points: one before the append, one after it is durable and before it is
    acknowledged.
    """

    reaper: Reaper

    def open(self, *arguments: Any, **more: Any) -> Log:
        log = super().open(*arguments, **more)
        append = log.append

        def mortal(*appended: Any) -> Commit:
            self.reaper.pass_by()
            commit = append(*appended)
            self.reaper.pass_by()
            return commit

        log.append = mortal  # type: ignore[method-assign]
        return log


class Turn:
    """A new agent with one unanswered message in its log, and the processes that run its turn."""

    def __init__(self) -> None:
        self.reaper = Reaper()
        store = MortalStore()
        store.reaper = self.reaper
        self.world = World(store=store, tools=self.reaper.tools(), after=self.reply)
        self.unknown: set[str] = set()
        self.asked = ""
        """The last request, whichever life made it."""
        asyncio.run(self._receive())

    async def _receive(self) -> None:
        async with self.world.system.agent("sam", self.world.settings) as agent:
            await agent.receive(UserMessage(text="go"))

    def reply(self, request: bytes) -> str:
        """Return the scripted model's reply, which depends on the request alone. There is a crash point before and
        after it.
        """
        self.asked = request.decode()
        self.reaper.pass_by()
        users = [json.loads(m["content"]) for m in json.loads(request)["messages"] if m["role"] == "user"]
        self.reaper.pass_by()
        return completion(calls=CALLS) if users[-1]["type"] == "user_message" else say("Done.")

    def live(self, points: int | None) -> bool:
        """Run a process that is killed at point number `points` (None: never). Return False if it ended before that
        point.
        """
        self.world = self.world.restarted(after=self.reply)
        self.reaper.left = points
        try:
            asyncio.run(self._run())
        except Killed:
            self.unknown |= self.begun()
            return True
        finally:
            self.reaper.left = None
        return False

    async def _run(self) -> None:
        async with self.world.system.agent("sam", self.world.settings) as agent:
            await agent.run()
            assert agent.waiting == 0

    def begun(self) -> set[str]:
        """Return the ids of at_most_once calls with a durable intent and no result: their outcome cannot be known."""
        events = [event_of(record) for record in self.world.log()]
        ended = {event.call_id for event in events if isinstance(event, FunctionResult)}
        started = [event for event in events if isinstance(event, FunctionStarted)]
        return {e.call_id for e in started if e.effect == "at_most_once" and e.call_id not in ended}

    def judge(self) -> None:
        """Check that every call has one result that matches the outside effects, and that an unknowable outcome is
        marked unknown.
        """
        assert_whole(self.world)
        events = [event_of(record) for record in self.world.log() if record.turn == 1]
        found = {e.call_id: e for e in events if isinstance(e, FunctionResult) and e.name != "send_message"}
        assert len(found) == len(CALLS)
        assert {call_id for call_id, result in found.items() if result.unknown} == self.unknown
        for (name, asked), result in zip(CALLS, found.values(), strict=True):
            done = [key for did, number, key in self.reaper.done if (did, number) == (name, asked["number"])]
            assert result.ok != result.unknown
            assert len(done) >= (not result.unknown)
            assert len(done) <= 1 or name != "pay"
            assert len(set(done)) == 1 or result.unknown
        assert sum(record.type == "memory_edited" for record in self.world.log() if record.turn == 1) == 1
        assert self.asked.count(INTERRUPTED) == len(self.unknown)


def killed_at(*points: int) -> bool:
    """Run processes that are killed at these points, one after the other, then one that is not killed, and check the
    outcome.

    Return False if a process ended before its point.
    """
    turn = Turn()
    killed = [turn.live(point) for point in points]
    turn.live(None)
    turn.judge()
    return all(killed)


def points_after(*points: int) -> int:
    """Return the number of crash points of the process that follows kills at `points`; each of them is tried."""
    return next(point for point in count() if not killed_at(*points, point))


def test_effects_are_reported_correctly_after_a_crash_at_some_points() -> None:
    """Calls happen at most once, under one key, or at least once, as their class says; a call is unknown only if it
    started and has no result.
    """
    assert all(killed_at(point) for point in pick(range(POINTS), FEW, label="points"))
    assert not killed_at(POINTS), "a life has more points than are tried"


@pytest.mark.long
@pytest.mark.effects
def test_effects_are_reported_correctly_after_a_crash_at_any_point() -> None:
    """The reports are correct after a kill at every point."""
    assert points_after() == POINTS


def test_effects_are_reported_correctly_after_a_crash_in_recovery() -> None:
    """The reports are correct after a second kill during recovery, for some pairs of points."""
    assert killed_at(POINTS // 2, 3)
    some = chance("pairs of points")
    for _ in range(FEW):
        killed_at(some.randrange(POINTS), some.randrange(POINTS))


@pytest.mark.long
@pytest.mark.effects
def test_effects_are_reported_correctly_after_any_two_crashes() -> None:
    """The reports are correct for every pair of points."""
    assert sum(points_after(first) for first in range(POINTS)) > POINTS**2 / 3


def changed(effect: Any) -> Tool:
    """Return `book` as the next process has it: with other parameters, or of another effect class."""

    @tool(effect=effect)
    def book(row: int = 0, seat: str = "") -> str:
        """Book a seat.

        Args:
            row: Its row.
            seat: Its number.
        """
        raise AssertionError("run again")

    if effect != "idempotent":
        return book
    return msgspec.structs.replace(book, arguments=msgspec.defstruct("book_arguments", [("row", int)]))


@pytest.mark.parametrize("effect", ["idempotent", "at_most_once"])
def test_a_call_that_its_function_no_longer_takes_may_have_happened(effect: str) -> None:
    """A call whose function has other parameters or another class in the next process is not run again, and its result
    says that the effect may have happened.
    """
    world, _ = killed_in("idempotent")
    other = World(store=world.store, tools=[changed(effect)])
    other.clock, other.ids, other.settings = world.clock, world.ids, world.settings
    _, left = recovered(other)
    assert next((r.ok, r.unknown, r.text) for r in results(left)) == (False, True, INTERRUPTED)
