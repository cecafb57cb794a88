"""Undone, retried and reworded turns: the model's view changes, the recorded events stay."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec
import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.undo import INTERRUPTED
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import BadInput, FunctionResult, Heartbeat, MessageSent, Record, UserMessage, event_of
from everlog.events.times import moment
from tests.actors.agent.test_turn_recovery import cut, finish
from tests.support.agent_world import World, completion, kinds, say

HEARTBEAT = {"request_heartbeat": True}
T = TypeVar("T")


def during(world: World, work: Callable[[Agent], Awaitable[T]]) -> T:
    """Open the agent, run `work` with it, and close it."""

    async def run() -> T:
        async with world.system.agent("sam", world.settings) as agent:
            return await work(agent)

    return asyncio.run(run())


def told(world: World, *texts: str) -> list[Record]:
    return asyncio.run(world.tell(*texts))


def shown(world: World) -> str:
    """Return the messages that the model would see after the system message, as JSON."""
    view = world.system.view("sam")
    messages = json.loads(view.request())["messages"][1:]
    view.close()
    return json.dumps(messages)


def assert_replays(world: World) -> None:
    """Check that the tables equal the log, that every request renders as it was sent, and that every turn follows the
    transition table.
    """
    view = world.system.view("sam")
    assert rebuild(view).faults == []
    assert verify(view, world.system.tools).faults == []
    view.close()


def turns_hidden(world: World) -> list[list[int]]:
    return [event_of(record).turns for record in world.log() if record.type == "turns_hidden"]


def test_undone_turns_are_hidden_and_nothing_else_changes() -> None:
    """The next request holds only the turns before the undone ones; the request as of an earlier seq is unchanged;
    search and memory keep everything.
    """
    note = completion("A secret!", [("core_memory_append", {"name": "human", "content": "Has a secret.", **HEARTBEAT})])
    world = World(say("Hello."), note, say("Yours is safe."), say("Good day."))
    told(world, "Hi", "My secret is a whale")
    before, request = len(world.log()), shown(world)
    assert during(world, lambda agent: agent.hide()) == [2]
    told(world, "Good day")
    seen = json.dumps(world.model.messages()[1:])
    assert "Hi" in seen
    assert "Good day" in seen
    assert "whale" not in seen
    assert "safe" not in seen
    assert "Has a secret." in world.model.messages()[0]["content"]
    view = world.system.view("sam")
    assert json.dumps(json.loads(view.request(before))["messages"][1:]) == request
    assert [hit.text for hit in asyncio.run(view.searcher().recall("whale", 0)).results][:1] == ["My secret is a whale"]
    assert_replays(world)


def test_undo_hides_the_newest_turns() -> None:
    """Undo hides two of three turns, then the one that is left although nine were requested, then fails; boot messages
    stay.
    """
    world = World()
    told(world, "one", "two", "three")
    boot = len(during(world, lambda agent: agent.rows("context_window")))
    assert during(world, lambda agent: agent.hide(2)) == [2, 3]
    assert during(world, lambda agent: agent.hide(9)) == [1]
    assert boot
    for turns in (1, 0, -1):
        with pytest.raises(BadInput, match="nothing to undo" if turns == 1 else "1 or more"):
            during(world, lambda agent, turns=turns: agent.hide(turns))
    with pytest.raises(BadInput, match="nothing to retry"):
        during(world, lambda agent: agent.retry())
    with pytest.raises(BadInput, match="no thought"):
        during(world, lambda agent: agent.rethink("x"))
    assert turns_hidden(world) == [[2, 3], [1]]
    assert "Start-up complete" in shown(world)
    told(world, "four")
    assert during(world, lambda agent: agent.hide(2)) == [4]
    assert_replays(world)


def test_after_undoing_everything_the_next_reply_is_verified_as_first() -> None:
    """The model sees an empty conversation again, so its next reply is verified like a first reply."""
    world = World(say("Hello."))
    world.settings = msgspec.structs.replace(world.settings, verify_first=True)
    told(world, "Hi")
    world.model.lines = [completion("I think (not).", [("send_message", {"message": "x"})]), say("Fine.")]
    assert "reply_rejected" not in kinds(told(world, "Go on"))[7:]
    during(world, lambda agent: agent.hide(2))
    world.model.lines = [completion("I think (not).", [("send_message", {"message": "x"})]), say("Fine.")]
    assert "reply_rejected" in kinds(told(world, "Hi again"))
    assert_replays(world)


def test_imported_messages_are_not_undone() -> None:
    """An imported conversation that was appended after a turn, under the number of that turn, is not undone with the
    turn.
    """
    from everlog.actors.agent.conversation_import import ImportedMessage

    world = World()
    told(world, "turn one")
    past = [
        ImportedMessage(UserMessage(text="long ago", imported=True), moment(1000)),
        ImportedMessage(MessageSent(text="indeed", imported=True), moment(2000)),
    ]
    during(world, lambda agent: agent.import_messages(past))
    assert during(world, lambda agent: agent.hide()) == [1]
    assert "long ago" in shown(world)
    assert "turn one" not in shown(world)
    with pytest.raises(BadInput):
        during(world, lambda agent: agent.hide())
    assert_replays(world)


def summarized(world: World, *texts: str) -> None:
    told(world, *texts)
    assert during(world, lambda agent: agent.summarize())


def test_a_summary_excludes_undone_turns() -> None:
    """A summary does not contain or count undone turns; expanding it shows only the messages that the summary
    replaced.
    """
    world = World()
    told(world, "one " * 50, "two " * 50, "three " * 50)
    during(world, lambda agent: agent.hide())
    summarized(world, "four " * 50, "five " * 50)
    transcript = world.model.requests[-1].decode()
    assert "one one" in transcript
    assert "three three" not in transcript
    summary = next(event_of(record) for record in world.log() if record.type == "summary")
    in_view = len([m for m in during(world, lambda agent: agent.rows("context_window")) if m["message"]])
    assert summary.hidden < summary.total
    assert in_view
    assert "one one" not in shown(world)
    assert during(world, lambda agent: agent.expand())
    assert "one one" in shown(world)
    assert "three three" not in shown(world)
    world = world.restarted()
    assert "three three" not in shown(world)
    assert_replays(world)


def test_summarized_turns_can_be_undone_only_after_expanding() -> None:
    """Only turns in view can be undone; after `expand` the summarized turns are in view and can be undone."""
    world = World()
    summarized(world, *(f"{number} " * 100 for number in ("one", "two", "three", "four")))
    hidden = during(world, lambda agent: agent.hide(9))
    assert 1 not in hidden
    with pytest.raises(BadInput, match="summary"):
        during(world, lambda agent: agent.hide())
    with pytest.raises(BadInput, match="summary"):
        during(world, lambda agent: agent.retry())
    assert during(world, lambda agent: agent.expand())
    assert during(world, lambda agent: agent.hide(9))[0] == 1
    assert_replays(world)


class Killed(BaseException):
    """The process ends here: no handler catches this."""


def posting(sent: list[str]) -> Tool:
    """Return a function that is killed in the middle of its effect."""

    @tool
    def post_card(words: str) -> str:
        """Post a card.

        Args:
            words: What to write on it.
        """
        sent.append(words)
        raise Killed

    return post_card


def interrupted(sent: list[str]) -> World:
    """Return a world with a turn that was interrupted while a card was being posted, before a second call."""
    calls = [
        ("core_memory_append", {"name": "human", "content": "Likes cards."}),
        ("post_card", {"words": "ahoy"}),
        ("core_memory_append", {"name": "human", "content": "Never written."}),
        ("post_card", {"words": "never"}),
    ]
    world = World(say("Hello."), completion(calls=calls), tools=[posting(sent)])

    async def both(agent: Agent) -> None:
        await agent.receive(UserMessage(text="Hi"))
        await agent.run()
        await agent.receive(UserMessage(text="Post a card", name="Chad"))
        with pytest.raises(Killed):
            await agent.run()

    during(world, both)
    assert world.kinds()[-1] == "function_started"
    return world


def test_an_undone_open_turn_is_ended_and_never_resumed() -> None:
    """One commit holds the result of the call that had started and the end of the turn; no restart resumes the turn."""
    sent: list[str] = []
    world = interrupted(sent)
    before = len(world.log())
    assert during(world, lambda agent: agent.hide()) == [2]
    left = world.log()[before:]
    assert kinds(left) == ["turns_hidden", "function_result", "turn_cancelled"]
    assert len({record.commit for record in left}) == 1
    result = event_of(left[1])
    assert isinstance(result, FunctionResult)
    assert (result.call_id, result.ok, result.unknown, result.text) == ("call_1", False, True, INTERRUPTED)
    assert [(record.turn, record.step) for record in left] == [(2, 0), (2, 1), (2, 1)]
    world = world.restarted()
    assert finish(world) == []
    assert sent == ["ahoy"]
    assert world.model.requests == []
    view = world.system.view("sam")
    assert {row["turn"]: row["status"] for row in view.rows("turns")} == {1: "done", 2: "cancelled"}
    assert_replays(world)
    told(world, "And now?")
    assert_replays(world)


def test_a_cancelled_reply_is_still_verified_as_far_as_it_went() -> None:
    """Verify accepts calls that never ran, and reports a call before them whose effects would differ now."""
    world = interrupted([])
    during(world, lambda agent: agent.hide())
    assert_replays(world)
    tools = world.system.tools
    other = {**tools, "core_memory_append": msgspec.structs.replace(tools["core_memory_append"], effect="read_only")}
    view = world.system.view("sam")
    assert any("event 1 of the step" in fault for fault in verify(view, other).faults)
    view.close()


def test_waiting_inputs_can_be_undone() -> None:
    """The newest two of three waiting messages are undone in the same process; the first is answered."""
    world = World()

    async def three(agent: Agent) -> None:
        for text in ("one", "two", "three"):
            await agent.receive(UserMessage(text=text))
        assert await agent.hide(2) == [2, 3]
        assert agent.waiting == 1
        await agent.run()

    during(world, three)
    assert len(world.model.requests) == 1
    assert finish(world.restarted()) == []
    view = world.system.view("sam")
    assert [row["status"] for row in view.rows("turns")] == ["done", "cancelled", "cancelled"]
    assert_replays(world)


def again(world: World, event_id: str | None = None) -> Record:
    async def work(agent: Agent) -> Record:
        record = await agent.retry(event_id)
        await agent.run()
        return record

    return during(world, work)


def test_a_retry_repeats_the_input_and_hides_later_turns() -> None:
    """The repeated input has the same name and text, and the heartbeat turn after the first input is hidden too, all in
    one commit.
    """
    world = World(say("Hello."), say("No."), say("Beat."), say("Yes!"))
    told(world, "Hi")

    async def work(agent: Agent) -> Record:
        await agent.receive(UserMessage(text="May I?", name="Chad"))
        await agent.run()
        await agent.receive(Heartbeat(reason="manual"))
        await agent.run()
        return await agent.retry()

    record = during(world, work)
    assert event_of(record) == UserMessage(text="May I?", name="Chad")
    assert (record.turn, record.step) == (4, 0)
    assert kinds(r for r in world.log() if r.commit == record.commit) == ["user_message", "turns_hidden"]
    assert turns_hidden(world) == [[2, 3]]
    finish(world)
    seen = json.dumps(world.model.messages()[1:])
    assert seen.count("May I?") == 1
    assert "No." not in seen
    assert "Beat." not in seen
    assert_replays(world)


def test_a_retry_of_an_interrupted_turn_ends_it_and_begins_again() -> None:
    """The repeated input, the hiding, the call's result and the end of the turn are one commit; after a cut at any
    later commit recovery completes the turn.
    """
    sent: list[str] = []
    world = interrupted(sent)
    record = again(world)
    left = [r for r in world.log() if r.commit == record.commit]
    assert kinds(left) == ["user_message", "turns_hidden", "function_result", "turn_cancelled"]
    assert sent == ["ahoy"]
    assert_replays(world)
    for number in range(record.commit, world.log()[-1].commit + 1):
        other = cut(world, number)
        finish(other)
        view = other.system.view("sam")
        assert [row["status"] for row in view.rows("turns")] == ["done", "cancelled", "done"]
        assert_replays(other)
    assert sent == ["ahoy"]


def test_the_model_sees_the_newest_wording_of_its_reply() -> None:
    """The model sees the newest wording of its newest reply; the log, the recorded reply and earlier requests do not
    change.
    """
    world = World(say("One.", total=50), completion("I am annoyed.", [("send_message", {"message": "Two."})]))
    told(world, "one", "two")
    for text in ("I am calm.", "I am glad."):
        during(world, lambda agent, text=text: agent.rethink(text))
    told(world, "three")
    seen = [m["content"] for m in world.model.messages() if m["role"] == "assistant"]
    assert seen[1:] == ["I think.", "I am glad."]
    assert [r.text for r in world.log() if r.type == "model_reply"][2] == "I am annoyed."
    assert_replays(world)
    with pytest.raises(BadInput, match="is empty"):
        during(world, lambda agent: agent.rethink("  \n"))


def test_a_reworded_reply_is_summarized_with_its_new_words() -> None:
    """The transcript for a summary has the reworded thought that the model sees; the rewording itself is no message."""
    world = World()
    told(world, "one " * 50)
    during(world, lambda agent: agent.rethink("I am glad."))
    told(world, "two " * 50)
    assert "reply_rethought" not in {message.event.kind for message in world.system.view("sam").context().messages}
    summarized(world, "three " * 50)
    assert "I am glad." in world.model.requests[-1].decode()
    assert_replays(world)
