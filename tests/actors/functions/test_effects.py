"""Users' functions and their outside effects: the intent is durable before the effect, and no effect is repeated unless
its class allows it.
"""

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.decide import ReplyExecution
from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.replay.rebuild_check import verify
from everlog.events import FunctionResult, FunctionStarted, Heartbeat, Record, event_of
from tests.support.agent_world import World, completion, kinds, say

BORN = 7
"""Number of records of a new agent."""


class Killed(BaseException):
    """An exception that no handler catches: the process dies here."""


def told(world: World, text: str = "go") -> list[Record]:
    return asyncio.run(world.tell(text))


def recovered(world: World, *lines: str) -> tuple[World, list[Record]]:
    """Return the next process, and the records with which it finishes the unfinished turn."""
    world = world.restarted(*lines)
    heard: list[Record] = []

    async def run() -> None:
        async with world.system.agent("sam", world.settings, on_commit=heard.extend) as agent:
            await agent.run()

    asyncio.run(run())
    return world, heard


def assert_verified(world: World) -> None:
    view = world.system.view("sam")
    assert verify(view, world.system.tools).faults == []
    assert {turn["status"] for turn in view.rows("turns")} == {"done"}
    view.close()


def results(records: Sequence[Record]) -> list[FunctionResult]:
    return [event for event in map(event_of, records) if isinstance(event, FunctionResult)]


class Bank:
    """A service outside the log: it records its calls, can be killed during a call, and can read the log."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.seen: list[list[str]] = []
        self.kill = False
        self.look: Callable[[], list[str]] = list

    def ask(self, **arguments: Any) -> str:
        self.asked.append(arguments)
        self.seen.append(self.look())
        if self.kill:
            raise Killed
        return f"done {len(self.asked)}"

    def tools(self) -> list[Tool]:
        @tool
        def pay(euros: int) -> str:
            """Pay.

            Args:
                euros: How much.
            """
            return self.ask(euros=euros)

        @tool(effect="idempotent")
        def book(seat: str, idempotency_key: str) -> str:
            """Book a seat.

            Args:
                seat: Its number.
            """
            return self.ask(seat=seat, key=idempotency_key)

        @tool(effect="read_only")
        def balance(account: str) -> str:
            """Tell the balance.

            Args:
                account: Its name.
            """
            return self.ask(account=account)

        return [pay, book, balance]


def banking(*lines: str) -> tuple[World, Bank]:
    bank = Bank()
    world = World(*lines, tools=bank.tools())
    bank.look = world.kinds
    return world, bank


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "at_most_once": ("pay", {"euros": 5, "request_heartbeat": False}),
    "idempotent": ("book", {"seat": "7A", "request_heartbeat": False}),
    "read_only": ("balance", {"account": "mine", "request_heartbeat": False}),
}


@pytest.mark.parametrize("effect", ["at_most_once", "idempotent"])
def test_the_intent_is_durable_before_the_effect_leaves(effect: str) -> None:
    """While the function runs, its own `function_started` is in the log, in one commit with the reply."""
    world, bank = banking(completion(calls=[CALLS[effect]]))
    left = told(world)[BORN:]
    assert bank.seen[0][BORN:] == ["user_message", "model_reply", "function_started"]
    assert kinds(left) == ["user_message", "model_reply", "function_started", "function_result"]
    assert [record.commit - left[0].commit for record in left] == [0, 1, 1, 2]
    started = event_of(left[2])
    assert isinstance(started, FunctionStarted)
    assert (started.effect, json.loads(started.arguments)) == (effect, CALLS[effect][1])
    assert_verified(world)


def test_a_read_only_function_needs_no_commit_of_its_own() -> None:
    """A read-only function may be run again, so no intent is written: the turn has two commits."""
    world, bank = banking(completion(calls=[CALLS["read_only"]]))
    left = told(world)[BORN:]
    assert kinds(left) == ["user_message", "model_reply", "function_result"]
    assert left[-1].commit - left[0].commit == 1
    assert bank.seen[0][BORN:] == ["user_message"]


def killed_in(effect: str, *after: tuple[str, dict[str, Any]]) -> tuple[World, Bank]:
    """Return a world whose process was killed while a function of that effect class ran."""
    world, bank = banking(completion(calls=[("send_message", {"message": "I begin."}), CALLS[effect], *after]))
    bank.kill = True
    with pytest.raises(Killed):
        told(world)
    bank.kill = False
    return world, bank


def test_an_interrupted_effect_that_may_happen_once_is_never_run_again() -> None:
    """Its result is failed and unknown, the model is informed that the effect may have happened, and the turn
    continues.
    """
    world, bank = killed_in("at_most_once")
    world, left = recovered(world, say("I shall find out."))
    assert len(bank.asked) == 1
    assert kinds(left) == ["function_result", "heartbeat", "model_reply", "message_sent", "function_result"]
    result = event_of(left[0])
    assert isinstance(result, FunctionResult)
    assert (result.ok, result.unknown, result.text) == (False, True, INTERRUPTED)
    assert "may or may not have happened" in world.model.requests[-1].decode()
    assert event_of(left[1]) == Heartbeat(reason="function_failed")
    assert_verified(world)


def test_an_interrupted_idempotent_effect_is_run_again_with_the_same_key() -> None:
    """The receiver recognises the repeated booking by its idempotency key."""
    world, bank = killed_in("idempotent")
    world, left = recovered(world)
    first, again = [asked["key"] for asked in bank.asked]
    assert first == again
    assert re.fullmatch(r"sam/1/1/call_1/[0-9a-f]{16}", first)
    assert kinds(left) == ["function_result"]
    assert results(left)[0].ok
    assert_verified(world)


def test_an_interrupted_read_only_effect_is_simply_run() -> None:
    """No record of the step was written, so the model is called again."""
    world, bank = killed_in("read_only")
    assert world.kinds()[BORN:] == ["user_message"]
    world, left = recovered(world, completion(calls=[CALLS["read_only"]]))
    assert len(bank.asked) == 2
    assert kinds(left) == ["model_reply", "function_result"]
    assert_verified(world)


def test_calls_after_the_interrupted_one_are_run_in_order_by_the_next_owner() -> None:
    """Calls before the interrupted call keep their results, and calls after it run in order."""
    world, bank = killed_in(
        "at_most_once", CALLS["idempotent"], ("core_memory_append", {"name": "human", "content": "x"})
    )
    world, left = recovered(world)
    assert [result.name for result in results(left)][:3] == ["pay", "book", "core_memory_append"]
    assert [result.ok for result in results(left)][:3] == [False, True, True]
    assert sum("euros" in asked for asked in bank.asked) == 1
    assert world.kinds().count("message_sent") == 2
    assert_verified(world)


def test_each_call_has_a_key_of_its_own() -> None:
    """Two bookings of one reply and one of the next turn have three different keys."""
    world, bank = banking(completion(calls=[CALLS["idempotent"], CALLS["idempotent"]]))
    told(world)
    world.model.lines = [completion(calls=[CALLS["idempotent"]])]
    told(world)
    assert len({asked["key"] for asked in bank.asked}) == 3


def test_a_recreated_agent_does_not_reuse_idempotency_keys() -> None:
    """An agent that was deleted and created again does not reuse keys, even for the same call in the same second."""
    world, bank = banking()
    for _ in range(2):
        world.model.lines = [completion(calls=[CALLS["idempotent"]])]
        told(world)
        assert_verified(world)
        asyncio.run(world.system.delete("sam"))
    first, second = [asked["key"] for asked in bank.asked]
    assert first.startswith("sam/1/1/call_0/")
    assert second.startswith("sam/1/1/call_0/")
    assert first != second


def test_an_idempotency_key_of_another_form_is_a_fault(monkeypatch: pytest.MonkeyPatch, every_system: list) -> None:
    """Verify reports an idempotency key of any other form as a fault."""
    world, _ = banking(completion(calls=[CALLS["idempotent"]]))
    every_system.remove(world.system)  # its key is wrong on purpose, so it must not be verified when the suite ends
    with monkeypatch.context() as other:
        other.setattr(
            ReplyExecution, "_key", lambda step, call: f"{step._context.agent_id}/{step._place}/{call.id}/another"
        )
        told(world)
    view = world.system.view("sam")
    assert "event 1 of the step was function_started" in str(verify(view, world.system.tools).faults)
    view.close()


def test_an_effect_whose_function_is_gone_after_a_crash_may_have_happened() -> None:
    """If the next process lacks the function, the result says that the effect may have happened."""
    for effect in ("at_most_once", "idempotent"):
        world, _ = killed_in(effect)
        bare = World(store=world.store)
        bare.clock, bare.ids, bare.settings = world.clock, world.ids, world.settings
        _, left = recovered(bare)
        assert next((r.ok, r.unknown, r.text) for r in results(left)) == (False, True, INTERRUPTED)


def test_an_effect_that_was_recorded_as_once_stays_so() -> None:
    """The effect class in the recorded intent counts, not the class that the function declares now."""
    world, _ = killed_in("at_most_once")
    bank = Bank()
    lenient = [msgspec.structs.replace(made, effect="idempotent") for made in bank.tools()]
    other = World(store=world.store, tools=lenient)
    other.clock, other.ids, other.settings = world.clock, world.ids, world.settings
    _, left = recovered(other)
    assert bank.asked == []
    assert results(left)[0].unknown
