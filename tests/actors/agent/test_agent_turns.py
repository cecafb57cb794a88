"""The records that an agent leaves in its log, step by step: MemGPT's behaviour, without the cases in which MemGPT lost
data.
"""

import asyncio
import json
from typing import Any

from everlog.actors.prompt.message_format import PRESSURE_WARNING
from everlog.events import Heartbeat, Record, SystemAlert, UserLogin, UserMessage, event_of
from tests.support.agent_world import World, completion, kinds, say


def told(world: World, *texts: str) -> list[Record]:
    return asyncio.run(world.tell(*texts))


def born() -> World:
    """Return a world whose agent exists and has answered one message."""
    world = World(say("Yes."))
    told(world, "Hello")
    return world


def after(world: World, *lines: Any, text: str = "go") -> list[Record]:
    """Return the records that a message leaves when the model answers with `lines`."""
    world.model.lines = list(lines)
    return told(world, text)


def test_a_new_agent_begins_with_memory_boot_messages_and_a_login() -> None:
    """MemGPT's start: system message, assistant call, function return, login event, and no model call."""
    world = World()
    left = told(world)
    assert kinds(left) == [
        "agent_created", "agent_configured", "memory_edited", "memory_edited", "model_reply", "function_result",
        "user_login",
    ]  # fmt: skip
    assert world.model.requests == []
    assert len({record.commit for record in left}) == 1
    told(world, "Hi")
    messages = world.model.messages()
    assert [m["role"] for m in messages] == ["system", "assistant", "tool", "user", "user"]
    login = json.loads(messages[3]["content"])
    assert (login["type"], login["last_login"]) == ("login", "Never (first login)")
    assert list(login) == ["type", "last_login", "time"]


def test_the_system_message_has_the_memory_header_and_counted_blocks() -> None:
    """Header lines in MemGPT's order, then each block with characters="used/limit", the persona first."""
    world = born()
    system = world.model.messages()[0]["content"]
    lines = system.split("### Memory ")[1].splitlines()
    assert lines[0].startswith("[last modified: 2026-01-01 12:00:00 AM UTC+0000]")
    assert lines[1].startswith("0 previous messages between you and the user are stored in recall memory")
    assert lines[2].startswith("0 total memories you created are stored in archival memory")
    assert lines[4].startswith("Core memory shown below")
    human = next(block for block in world.system.view("sam").rows("core_memory") if block["label"] == "human")
    assert f'<human characters="{len(human["value"])}/2000">\n{human["value"]}\n</human>' in system
    assert system.index("<persona ") < system.index("<human ")


def test_a_one_step_turn_is_two_commits() -> None:
    """The input is durable first; the reply and all of its effects are one commit."""
    left = after(born(), say("Hello."))
    assert kinds(left) == ["user_message", "model_reply", "message_sent", "function_result"]
    assert [record.commit - left[0].commit for record in left] == [0, 1, 1, 1]
    assert [(record.turn, record.step) for record in left] == [(2, 0), (2, 1), (2, 1), (2, 1)]
    assert left[1].cause == left[0].event_id
    assert {record.cause for record in left[2:]} == {left[1].event_id}


def test_a_user_message_reads_as_an_envelope_with_its_time() -> None:
    """A user message is sent to the model as JSON with type, message and time, as in MemGPT."""
    world = born()
    envelope = json.loads(world.model.messages()[-1]["content"])
    assert list(envelope) == ["type", "message", "time"]
    assert (envelope["type"], envelope["message"]) == ("user_message", "Hello")


def test_a_reply_without_a_call_is_a_thought_and_ends_the_turn() -> None:
    """With inner monologue alone the user sees nothing and the turn ends."""
    left = after(born(), completion("Just thinking."))
    assert kinds(left) == ["user_message", "model_reply"]


def test_a_requested_heartbeat_starts_the_next_step() -> None:
    """request_heartbeat=true runs the agent again, after the function's result."""
    world = born()
    call = ("core_memory_append", {"name": "human", "content": "Sails.", "request_heartbeat": True})
    left = after(world, completion(calls=[call]), say("Noted."))
    assert kinds(left) == [
        "user_message", "model_reply", "memory_edited", "function_result", "heartbeat",
        "model_reply", "message_sent", "function_result",
    ]  # fmt: skip
    assert event_of(left[4]) == Heartbeat(reason="requested")
    assert world.model.messages()[-1]["content"].startswith('{"type":"heartbeat"')
    assert [record.step for record in left] == [0, 1, 1, 1, 1, 2, 2, 2]


def test_a_heartbeat_that_is_not_a_boolean_is_ignored() -> None:
    """The text "true" does not run the agent again."""
    call = ("core_memory_append", {"name": "human", "content": "Sails.", "request_heartbeat": "true"})
    assert "heartbeat" not in kinds(after(born(), completion(calls=[call])))


def test_every_kind_of_failed_call_tells_the_model_and_forces_a_heartbeat() -> None:
    """An unknown function, unreadable arguments, wrong arguments and a function that refuses: each gives the result
    Failed, then a heartbeat.
    """
    cases = {
        "No function named fly": ("fly", {}),
        "Error parsing JSON for function 'send_message' arguments": ("send_message", '{"message": ]'),
        "Error calling function send_message": ("send_message", {"text": "hi"}),
        "Content not found in 'human'": (
            "core_memory_replace",
            {"name": "human", "old_content": "X", "new_content": ""},
        ),
        "There is no memory block 'moon'": ("core_memory_append", {"name": "moon", "content": "x"}),
    }
    for expected, call in cases.items():
        world = born()
        left = after(world, completion(calls=[call]), completion("Oh."))
        assert kinds(left) == ["user_message", "model_reply", "function_result", "heartbeat", "model_reply"], expected
        result, beat = event_of(left[2]), event_of(left[3])
        assert not result.ok
        assert expected in result.text
        assert beat == Heartbeat(reason="function_failed")
        assert json.loads(world.model.messages()[-2]["content"])["status"] == "Failed"


def test_warning_failure_and_heartbeat_come_in_order_and_none_swallows_another() -> None:
    """One step that causes a warning, a failure and a heartbeat leaves all three records, and the next request shows
    all three (MemGPT lost two).
    """
    world = born()
    calls = [("fly", {}), ("core_memory_append", {"name": "human", "content": "x", "request_heartbeat": True})]
    left = after(world, completion(calls=calls, total=7000), completion("Oh."))
    follow = [event_of(record) for record in left if record.type in ("system_alert", "heartbeat")]
    assert follow == [
        SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"),
        Heartbeat(reason="function_failed"),
        Heartbeat(reason="requested"),
    ]
    assert [json.loads(m["content"])["type"] for m in world.model.messages()[-3:]] == [
        "system_alert", "heartbeat", "heartbeat",
    ]  # fmt: skip


def test_the_pressure_warning_comes_once_a_period_and_again_after_a_summary() -> None:
    """Above 0.75 of the window the agent is warned once; a summary allows the next warning, a restart does not."""
    world = born()
    full = say("Hm.", total=6500)
    assert kinds(after(world, full, completion("Ok.", total=6500))).count("system_alert") == 1
    assert kinds(after(world, full)).count("system_alert") == 0
    world = world.restarted()
    assert kinds(after(world, full)).count("system_alert") == 0

    async def summarize() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            assert await agent.summarize()

    asyncio.run(summarize())
    assert kinds(after(world, full, completion("Ok.", total=6500))).count("system_alert") == 1


def test_several_calls_in_one_reply_all_run_in_order() -> None:
    """Each call gets its result; a memory edit sees the edits of the calls before it."""
    calls = [
        ("core_memory_append", {"name": "human", "content": "one"}),
        ("core_memory_replace", {"name": "human", "old_content": "one", "new_content": "two"}),
        ("send_message", {"message": "Done."}),
    ]
    left = after(born(), completion(calls=calls))
    assert kinds(left)[2:] == [
        "memory_edited", "function_result", "memory_edited", "function_result", "message_sent", "function_result",
    ]  # fmt: skip
    assert left[4].text is not None
    assert left[4].text.endswith("two")


def test_a_turn_ends_after_the_maximum_of_steps() -> None:
    """A model that asks for heartbeats without end is stopped, and the log records the reason."""
    world = born()
    again = completion(calls=[("conversation_search", {"query": "x", "request_heartbeat": True})])
    world.model.after = again
    left = told(world, "go")
    assert kinds(left).count("model_reply") == 20
    assert kinds(left)[-1] == "turn_abandoned"
    assert world.system.view("sam").rows("turns")[-1]["status"] in {"abandoned", "done"}
    world.model.after = say("Back.")
    assert "message_sent" in kinds(told(world, "still there?"))


def test_the_first_message_is_verified_where_the_policy_says_so() -> None:
    """A first reply without send_message is refused, recorded and asked for again; later replies are not verified."""
    import msgspec

    world = World(completion("no call"), completion("has {braces}", [("send_message", {"message": "x"})]), say("Good."))
    world.settings = msgspec.structs.replace(world.settings, verify_first=True)
    left = told(world, "Hi")
    assert kinds(left).count("reply_rejected") == 2
    assert kinds(left)[-3:] == ["model_reply", "message_sent", "function_result"]
    assert "reply_rejected" not in kinds(after(world, completion("no call")))


def test_other_inputs_open_turns_too() -> None:
    """A login, a system alert and a user's reaction are answered like a message."""
    world = born()

    async def all_of_them() -> list[Record]:
        heard: list[Record] = []
        async with world.system.agent("sam", world.settings, on_commit=heard.extend) as agent:
            for event in (UserLogin(last_login=1), SystemAlert(text="Be brief."),
                          SystemAlert(text="The user liked your message", source="user_event"),
                          Heartbeat(reason="manual")):  # fmt: skip
                await agent.receive(event)
                await agent.run()
        return heard

    heard = asyncio.run(all_of_them())
    assert kinds(heard).count("model_reply") == 4
    assert [turn["status"] for turn in world.system.view("sam").rows("turns")] == ["done"] * 5


def test_the_same_input_id_counts_once() -> None:
    """A message that is sent again with its id is acknowledged again and answered once."""
    world = born()

    async def twice() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            event_id = world.ids.new(world.clock.now())
            first = await agent.receive(UserMessage(text="once"), event_id=event_id)
            await agent.run()
            again = await agent.receive(UserMessage(text="once"), event_id=event_id)
            await agent.run()
            assert first == again

    asyncio.run(twice())
    assert [r.text for r in world.log() if r.type == "user_message"] == ["Hello", "once"]


def test_an_input_that_arrives_during_a_turn_is_durable_at_once_and_answered_after_it() -> None:
    """Two messages, the second sent while the first is being answered: both are acknowledged at once and get a turn
    each, in order.
    """
    world = born()

    async def both() -> None:
        async with world.system.agent("sam", world.settings) as agent:

            def while_asked(_: bytes) -> str:
                arrived.append(asyncio.get_running_loop().create_task(agent.receive(UserMessage(text="second"))))
                return completion(
                    calls=[("core_memory_append", {"name": "human", "content": "x", "request_heartbeat": True})]
                )

            arrived: list[asyncio.Task[Record]] = []
            world.model.lines = [while_asked, say("to the first"), say("to the second")]
            await agent.receive(UserMessage(text="first"))
            await agent.run()
            await arrived[0]
            await agent.run()

    asyncio.run(both())
    assert [json.loads(m["content"])["message"] for m in world.model.messages() if m["role"] == "user"
            and '"user_message"' in m["content"]] == ["Hello", "first", "second"]  # fmt: skip
    last = world.system.view("sam").rows("turns")
    assert sorted((t["turn"], t["status"]) for t in last) == [(1, "done"), (2, "done"), (3, "done")]
    assert '"second"' not in world.model.requests[-2].decode()
    assert '"second"' in str(world.model.messages()[-1]["content"])
