"""An interrupted turn is finished by the next owner, at whatever commit the log ends, and nothing is lost or done
twice.
"""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import pytest

from everlog.actors.functions.tools import Tool, tool
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import FunctionResult, ModelReply, Record, UserMessage, event_of
from tests.support.agent_world import Line, World, completion, kinds, say
from tests.support.agents.cut_logs import commits_of, cut, finish
from tests.support.seeds import few_and_all, pick


class Post:
    """A post office outside the log: it counts what was sent."""

    def __init__(self) -> None:
        self.sent: list[str] = []
        self.alarms: dict[str, int] = {}
        self.looked = 0

    def tools(self) -> Sequence[Tool]:
        @tool
        def post_card(words: str) -> str:
            """Post a card.

            Args:
                words: What to write on it.
            """
            self.sent.append(words)
            return f"posted {words}"

        @tool(effect="idempotent")
        def set_alarm(hour: int, idempotency_key: str) -> str:
            """Set an alarm.

            Args:
                hour: When it rings.
            """
            self.alarms[idempotency_key] = hour
            return f"rings at {hour}"

        @tool(effect="read_only")
        def look_outside(where: str) -> str:
            """Look at the weather.

            Args:
                where: Name of the place.
            """
            self.looked += 1
            return f"{where}: rain"

        return [post_card, set_alarm, look_outside]


HEARTBEAT = {"request_heartbeat": True}
TURNS: Sequence[tuple[str, Sequence[Line]]] = [
    ("Hello", [say("Hello.")]),
    (
        "I sail, and my boat is Vera",
        [
            completion(calls=[("core_memory_append", {"name": "human", "content": "Sails.", **HEARTBEAT})]),
            completion(calls=[("fly", {}), ("core_memory_append", {"name": "human", "content": "Vera.", **HEARTBEAT})]),
            completion(calls=[("conversation_search", {"query": "boat", **HEARTBEAT})]),
            say("Noted."),
        ],
    ),
    (
        "Post a card about the boat, then another",
        [
            completion(
                calls=[
                    ("send_message", {"message": "I post it: the boat.", **HEARTBEAT}),
                    ("core_memory_replace", {"name": "human", "old_content": "Vera", "new_content": "Vera II"}),
                    ("post_card", {"words": "ahoy", **HEARTBEAT}),
                    ("conversation_search", {"query": "boat"}),
                    ("pause_heartbeats", {"minutes": 5}),
                    ("set_alarm", {"hour": 7}),
                    ("archival_memory_insert", {"content": "The boat is Vera II."}),
                    ("look_outside", {"where": "Oslo"}),
                    ("post_card", {"words": "ahoy again"}),
                    ("core_memory_append", {"name": "human", "content": "Likes cards."}),
                ]
            ),
            say("Both are posted."),
        ],
    ),
    ("It is getting late", [say("Late, and full.", total=7900), completion("I was warned.", total=7950)]),
    ("And now?", [say("Short again.")]),
]


def conversation(post: Post) -> World:
    """Run a conversation with every kind of event to its end."""
    world = World(tools=post.tools())
    for text, lines in TURNS:
        world.model.lines = list(lines)
        asyncio.run(world.tell(text))
        assert not world.model.lines, text
    return world


def assert_well_formed(request: bytes) -> None:
    """Check that each tool call is followed by its result, and that each result has a call."""
    owed: list[str] = []
    for message in json.loads(request)["messages"]:
        if message["role"] == "tool":
            assert message["tool_call_id"] == owed.pop(0)
            continue
        assert not owed, "a call without a result"
        owed = [call["id"] for call in message.get("tool_calls", [])]
    assert not owed


def assert_whole(world: World) -> None:
    """Check that the log has no open turn, that each call has exactly one result, and that replay finds no fault."""
    view = world.system.view("sam")
    assert {turn["status"] for turn in view.rows("turns")} <= {"done"}
    events = [(record.turn, record.step, event_of(record)) for record in world.log()]
    calls = [(t, s, call.id) for t, s, e in events if isinstance(e, ModelReply) for call in e.calls]
    results = [(t, s, e.call_id) for t, s, e in events if isinstance(e, FunctionResult)]
    assert sorted(calls) == sorted(results)
    assert len({record.event_id for record in world.log()}) == len(events)
    for request in world.model.requests:
        assert_well_formed(request)
    assert rebuild(view).faults == []
    assert verify(view, world.system.tools).faults == []
    view.close()


def inputs(records: Iterable[Record]) -> list[tuple[str, str | None]]:
    return [(record.event_id, record.text) for record in records if record.type == "user_message"]


@pytest.fixture(scope="module")
def whole() -> World:
    """The conversation, uninterrupted."""
    return conversation(Post())


def test_the_conversation_holds_all_that_can_be_interrupted(whole: World) -> None:
    """The other tests cut a log with heartbeats, failures, edits, outside effects, a warning and a summary."""
    assert set(whole.kinds()) >= {
        "memory_edited", "function_started", "heartbeat", "system_alert", "summary", "archival_inserted",
        "heartbeats_paused", "message_sent",
    }  # fmt: skip
    assert len(commits_of(whole.log())) > 20
    assert_whole(whole)


def assert_finished(whole: World, number: int) -> None:
    """Cut the log after commit `number`, and check that the next owner finishes the turn."""
    world = cut(whole, number)
    before = world.log()
    finish(world)
    assert world.log()[: len(before)] == before, number
    assert inputs(world.log()) == inputs(before), number
    assert_whole(world)
    asyncio.run(world.tell("Are you there?"))
    assert_whole(world)


@pytest.mark.parametrize("count", few_and_all(4, part="agents"))
def test_a_log_cut_after_any_commit_is_finished_by_the_next_owner(whole: World, count: int | None) -> None:
    """With any prefix of whole commits the turn ends, every input is in the log once, and no call lacks its result."""
    for number, _ in pick(commits_of(whole.log()), count, label="cut"):
        assert_finished(whole, number)


def cut_twice(whole: World) -> list[tuple[int, int]]:
    """Return all pairs of a commit in which an outside call begins, and a commit of the recovery after it."""
    started = [r.commit for r in whole.log() if r.type == "function_started"]
    found = []
    for number in started:
        first = cut(whole, number)
        finish(first)
        found += [(number, again) for again in range(number, first.log()[-1].commit)]
    return found


def assert_finished_again(whole: World, number: int, again: int) -> None:
    """Cut the log after commit `number` and its recovery after `again`, and check that the second recovery completes
    it.
    """
    first = cut(whole, number)
    finish(first)
    second = cut(first, again)
    finish(second)
    assert inputs(second.log()) == inputs(first.log()), (number, again)
    assert_whole(second)


@pytest.mark.parametrize("count", few_and_all(2, part="agents"))
def test_an_interrupted_recovery_is_finished_by_the_next_one(whole: World, count: int | None) -> None:
    """After a crash during recovery, the next recovery finishes the turn."""
    for number, again in pick(cut_twice(whole), count, label="cut twice"):
        assert_finished_again(whole, number, again)


def test_a_finished_log_is_left_as_it_is(whole: World) -> None:
    """Activating an idle agent writes no record and sends no request."""
    world = cut(whole, whole.log()[-1].commit)
    assert finish(world) == []
    assert world.model.requests == []


def test_cards_are_posted_at_most_once_wherever_the_log_is_cut() -> None:
    """A card whose intent is durable is not posted again, the alarm has one key, and read-only calls may repeat."""
    post = Post()
    whole = conversation(post)
    for number, commit in commits_of(whole.log()):
        begun = [r for n, c in commits_of(whole.log()) if n <= number for r in c if r.type == "function_started"]
        cards = sum(json.loads(record.payload)["name"] == "post_card" for record in begun)
        if commit[0].turn != 3 or not begun:
            continue
        post.sent.clear()
        finish(cut(whole, number))
        assert len(post.sent) == 2 - cards
        assert len(post.alarms) == 1


def same_process(world: World, interruption: BaseException) -> None:
    """Run a turn of two steps whose second step is interrupted, then run it again with the same agent."""

    async def run() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.receive(UserMessage(text="go"))
            with pytest.raises(type(interruption)):
                await agent.run()
            assert agent.waiting == 1
            await agent.run()
            assert agent.waiting == 0

    asyncio.run(run())


NOTE: Callable[[], str] = lambda: completion(  # noqa: E731
    calls=[("core_memory_append", {"name": "human", "content": "x", **HEARTBEAT})]
)


def test_a_crash_of_the_model_in_mid_turn_loses_nothing() -> None:
    """An unexpected exception propagates; the next process resumes at the interrupted step."""
    world = World(NOTE(), RuntimeError("our bug"))
    with pytest.raises(RuntimeError, match="our bug"):
        asyncio.run(world.tell("go"))
    assert world.kinds()[-1] == "heartbeat"
    world = world.restarted(say("Done."))
    left = finish(world)
    assert kinds(left) == ["model_reply", "message_sent", "function_result"]
    assert {(record.turn, record.step) for record in left} == {(1, 2)}
    assert_whole(world)


@pytest.mark.parametrize("interruption", [RuntimeError("our bug"), asyncio.CancelledError()], ids=["crash", "cancel"])
def test_the_same_process_continues_at_the_interrupted_step(interruption: Any) -> None:
    """A turn that was interrupted (Ctrl-C) and is run again continues at the interrupted step, not at the first."""
    world = World(NOTE(), interruption, say("Done."))
    same_process(world, interruption)
    steps = [(record.turn, record.step) for record in world.log() if record.type == "model_reply" and record.turn]
    assert steps == [(1, 1), (1, 2)]
    assert_whole(world)


def test_a_turn_stopped_for_its_steps_takes_no_step_more_after_a_crash() -> None:
    """A crash between the last allowed step and the record that ends the turn does not allow another step."""
    world = World(after=NOTE())
    world.settings = msgspec.structs.replace(world.settings, steps_max=3)
    asyncio.run(world.tell("go"))
    assert world.kinds()[-1] == "turn_abandoned"
    other = cut(world, world.log()[-1].commit - 1)
    assert kinds(finish(other)) == ["turn_abandoned"]
    assert other.model.requests == []


def test_inputs_that_waited_are_answered_in_order_after_a_crash() -> None:
    """Three acknowledged messages without an answer get three turns; each turn sees only the messages up to its own."""
    world = World(RuntimeError("our bug"))

    async def three() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for text in ("one", "two", "three"):
                await agent.receive(UserMessage(text=text))
            with pytest.raises(RuntimeError):
                await agent.run()

    asyncio.run(three())
    world = world.restarted()
    finish(world)
    said = [[w for w in ("one", "two", "three") if f'"{w}\\"' in r.decode()] for r in world.model.requests]
    assert said == [["one"], ["one", "two"], ["one", "two", "three"]]
    assert_whole(world)


def test_an_input_that_arrived_during_a_search_is_not_in_its_results() -> None:
    """An input that waits for a later turn is found by no search of an earlier turn: live, recovered, or in verify."""
    world = World(say("Hello."))
    asyncio.run(world.tell("Hello"))

    async def both() -> None:
        asked = world.model.ask

        async with world.system.agent("sam", world.settings) as agent:

            async def ask(request: bytes, **_: object) -> ModelResponse:
                if len(world.model.requests) == 2:
                    await agent.receive(UserMessage(text="a zebra"))
                return await asked(request)

            world.model.ask = ask
            search = completion(calls=[("conversation_search", {"query": "zebra"})])
            world.model.lines = [NOTE(), search, say("Ok.")]
            await agent.receive(UserMessage(text="first"))
            await agent.run()
            assert agent.waiting == 0

    asyncio.run(both())
    found = [r.text for r in world.log() if r.type == "function_result" and "conversation_search" in r.payload]
    assert found == ["No results found."]
    assert_whole(world)


def test_half_a_character_in_the_arguments_of_a_call_fails_the_call() -> None:
    """A reply that was truncated inside an emoji leaves half a character; the call fails, the model is informed, and
    the turn continues.
    """
    broken = completion(calls=[("send_message", '{"message": "hi \\ud83d"}')])
    world = World(broken, say("Hi."))
    left = asyncio.run(world.tell("go"))[7:]
    assert kinds(left)[:4] == ["user_message", "model_reply", "function_result", "heartbeat"]
    result = event_of(left[2])
    assert not result.ok
    assert "Error parsing JSON" in result.text
    assert_whole(world)


def test_send_message_asks_for_no_heartbeat_after_a_crash_either() -> None:
    """A function without heartbeats gets none if its step was interrupted."""
    post = Post()
    calls = [
        ("send_message", {"message": "x", **HEARTBEAT}),
        ("look_outside", {"where": "x"}),
        ("post_card", {"words": "x"}),
    ]
    whole = World(completion(calls=calls), tools=post.tools())
    asyncio.run(whole.tell("go"))
    assert whole.kinds().count("heartbeat") == 0
    started = next(r.commit for r in whole.log() if r.type == "function_started")
    world = cut(whole, started)
    world.model.after = say("Done.")
    finish(world)
    beats = [json.loads(r.payload)["reason"] for r in world.log() if r.type == "heartbeat"]
    assert beats == ["function_failed"]
    assert_whole(world)
