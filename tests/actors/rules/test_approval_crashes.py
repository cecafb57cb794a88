"""A process that dies at any step of an approval: the wait is kept, the call runs at most once, and the turn ends."""

import asyncio
from collections.abc import Sequence

import msgspec
import pytest

from everlog.actors.functions.tools import Effect, Tool, tool
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import ApprovalDecided, ApprovalRule, FunctionResult, FunctionStarted, UserMessage, event_of
from tests.support.agent_world import World, completion, say
from tests.support.agents.cut_logs import commits_of, cut, finish


class Post:
    """A post office outside the log."""

    def __init__(self) -> None:
        self.sent: list[str] = []

    def card(self, effect: Effect) -> Tool:
        def post_card(words: str) -> str:
            """Post a card.

            Args:
                words: What to write on it.
            """
            self.sent.append(words)
            return f"posted {words}"

        return tool(post_card, effect=effect)


def waiting(world: World) -> Sequence[int]:
    """Return the seqs of the calls that wait."""
    with world.system.view("sam") as view:
        return [row["seq"] for row in view.rows("approvals") if row["decision"] == "waiting"]


def decide(world: World, seq: int, decision: str = "approved") -> None:
    """Decide the call with the arguments of the model, and run the agent."""

    async def run() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            (row,) = [row for row in await agent.rows("approvals") if row["seq"] == seq]
            arguments = row["arguments"] if decision == "approved" else ""
            event = ApprovalDecided(
                request=seq, call_id=row["call_id"], name=row["name"], decision=decision, arguments=arguments
            )
            await agent.receive(event)
            await agent.run()

    asyncio.run(run())


def lived(post: Post, effect: Effect) -> World:
    """Return a world in which a call waited while another message was answered, was approved, and ran."""
    world = World(
        completion(calls=[("post_card", {"words": "Hi", "request_heartbeat": True})]), say("It waits."), say("Posted."),
        tools=[post.card(effect)],
    )  # fmt: skip
    world.settings = msgspec.structs.replace(world.settings, approvals=[ApprovalRule("post_card")])
    asyncio.run(world.tell("Post a card", "Well?"))
    decide(world, *waiting(world))
    return world


@pytest.mark.parametrize("effect", ["at_most_once", "idempotent", "read_only"])
def test_an_approval_survives_a_crash_after_any_commit(effect: Effect) -> None:
    """Cut the log after each commit: before the decision the call waits, and can be approved; after it the call has one
    result. A call that may have happened is not run again, unless that is safe.
    """
    post = Post()
    whole = lived(post, effect)
    assert post.sent == ["Hi"]
    cuts = [number for number, commit in commits_of(whole.log()) if commit[0].turn]
    for number in cuts:
        del post.sent[:]
        world = cut(whole, number)
        before = [event_of(record) for record in world.log()]
        finish(world)
        for seq in waiting(world):
            decide(world, seq)
        if not any(record.type == "approval_requested" for record in world.log()):
            continue  # the message came, and the model of the next process says something else
        begun = any(isinstance(event, FunctionStarted) for event in before)
        ended = any(isinstance(event, FunctionResult) and event.approval for event in before)
        (result,) = [e for e in map(event_of, world.log()) if isinstance(e, FunctionResult) and e.approval]
        again = not ended and not (begun and effect == "at_most_once")
        assert (len(post.sent), result.unknown) == (int(again), begun and not ended and effect == "at_most_once"), (
            number
        )
        with world.system.view("sam") as view:
            assert {turn["status"] for turn in view.rows("turns")} == {"done"}, number
            assert rebuild(view).faults == []
            assert verify(view, world.system.tools).faults == []


def test_a_cancelled_turn_of_a_decision_leaves_its_call_with_a_result() -> None:
    """A turn that is taken back after its call began ends with the call's result: interrupted, and not run again."""
    post = Post()
    whole = lived(post, "at_most_once")
    started = next(record for record in whole.log() if record.type == "function_started")
    world = cut(whole, started.commit)

    async def cancel() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            assert await agent.cancel() == [started.turn]

    asyncio.run(cancel())
    result = next(e for e in map(event_of, world.log()) if isinstance(e, FunctionResult) and e.approval)
    assert (result.unknown, post.sent) == (True, ["Hi"])
    with world.system.view("sam") as view:
        assert verify(view, world.system.tools).faults == []


@pytest.mark.parametrize("decision", ["refused", "expired"])
def test_a_call_that_is_not_approved_leaves_no_effect(decision: str) -> None:
    """The model answers the decision; the call has no other result than that it waited."""
    post = Post()
    world = World(completion(calls=[("post_card", {"words": "Hi"})]), say("Then not."), tools=[post.card("read_only")])
    world.settings = msgspec.structs.replace(world.settings, approvals=[ApprovalRule("post_card")])
    asyncio.run(world.tell("Post a card"))
    decide(world, *waiting(world), decision)
    assert post.sent == []
    assert not [e for e in map(event_of, world.log()) if isinstance(e, FunctionResult) and e.approval]
    assert [record.text for record in world.log() if record.type == "message_sent"][-1] == "Then not."
    assert [record.text for record in world.log() if isinstance(event_of(record), UserMessage)] == ["Post a card"]
