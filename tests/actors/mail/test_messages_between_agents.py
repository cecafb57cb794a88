"""Messages between agents in virtual time: each arrives once, answers come back, and no wait is left."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

import pytest

from everlog.actors.agent.commands import DeleteAgent, ResumeTurns
from everlog.actors.agent.local_journal import LocalJournal
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.mail import names
from everlog.actors.mail.mail_functions import HOPS_MAX
from everlog.actors.postbox import postbox
from everlog.events import Draft, StoreError
from everlog.store import Commit
from tests.support import virtual_time
from tests.support.agents.writing_agents import Town


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    """Run `main` in virtual time."""
    return virtual_time.run(main)


def test_a_message_is_delivered_and_waits_for_nothing() -> None:
    """The receiver gets it as an input from that agent; nothing is sent back."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await sam.send("tell bob (dinner is at 8)")
        await asyncio.sleep(10)
        assert town.heard("bob") == [("sam", "dinner is at 8")]
        assert town.heard("sam") == []
        assert (town.states("sam"), town.states("bob")) == (["delivered"], ["received"])
        await town.leave()

    run(main)


def test_an_answer_comes_back_as_an_input() -> None:
    """The agent that was asked answers with what it says in that turn; the one that asked gets it in a new turn."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await sam.send("ask bob (say (at 8))")
        await asyncio.sleep(10)
        assert town.heard("bob") == [("sam", "say (at 8)")]
        assert town.heard("sam") == [("bob", "at 8")]
        assert town.said("sam") == ["bob: at 8"]
        assert (town.states("sam"), town.states("bob")) == (["answered"], ["answered"])
        await town.leave()

    run(main)


def test_agents_that_ask_each_other_at_once_both_get_answers() -> None:
    """A wait holds nothing: an agent that waits answers others, so two questions that cross are both answered."""

    async def main() -> None:
        town = Town()
        sam, bob = await town.person("sam"), await town.person("bob")
        await asyncio.gather(sam.send("ask bob (say (yes))"), bob.send("ask sam (say (no))"))
        await asyncio.sleep(10)
        assert (town.said("sam"), town.said("bob")) == (["no", "bob: yes"], ["yes", "sam: no"]) or (
            sorted(town.said("sam")), sorted(town.said("bob"))
        ) == (["bob: yes", "no"], ["sam: no", "yes"])  # fmt: skip
        await town.leave()

    run(main)


def test_an_answer_waits_for_the_questions_that_it_rests_on() -> None:
    """An agent that asks a third one first answers when that answer is there, with what it says then."""

    async def main() -> None:
        town = Town()
        sam, _, _ = [await town.person(name) for name in ("sam", "bob", "eve")]
        await sam.send("ask bob (ask eve (say (blue)))")
        await asyncio.sleep(10)
        assert town.heard("eve") == [("bob", "say (blue)")]
        assert town.heard("bob") == [("sam", "ask eve (say (blue))"), ("eve", "blue")]
        assert town.heard("sam") == [("bob", "eve: blue")]
        await town.leave()

    run(main)


def test_a_circle_of_questions_is_refused_by_name() -> None:
    """A question to an agent that waits for this one is refused at once, and the others still get their answers."""

    async def main() -> None:
        town = Town()
        sam, _, _ = [await town.person(name) for name in ("sam", "bob", "eve")]
        await sam.send("ask bob (ask eve (ask sam (hello) say (alone)))")
        await asyncio.sleep(10)
        assert "That would be a circle: sam asks bob asks eve asks sam." in town.results("eve")[0]
        assert town.heard("sam") == [("bob", "eve: alone")]
        assert town.states("sam") == ["answered"]
        await town.leave()

    run(main)


def test_a_message_passed_on_for_ever_stops() -> None:
    """Two agents that write to each other without end are stopped by the number of messages that led to the next."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await sam.send("tell bob (pass it on)")
        await asyncio.sleep(100)
        assert len(town.heard("bob")) + len(town.heard("sam")) == HOPS_MAX
        assert "came about through 9 messages" in town.results("sam")[-1]
        await town.leave()

    run(main)


def test_a_question_that_ends_in_silence_says_so() -> None:
    """An agent that says nothing has answered too: the wait ends, and the words say that there was no answer."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await sam.send("ask bob (be quiet)")
        await asyncio.sleep(10)
        assert town.heard("sam") == [("bob", "bob ended without an answer.")]
        assert town.states("sam") == ["silent"]
        await town.leave()

    run(main)


def test_a_wait_ends_when_its_time_is_over() -> None:
    """Without an answer in its minutes a question ends, once; the answer that comes later changes nothing."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        town.pauses["bob"] = 4000
        await sam.send("ask bob (say (too late))")
        await asyncio.sleep(3700)
        assert town.heard("sam") == [("bob", "bob has not answered in time.")]
        await asyncio.sleep(1000)
        assert town.said("bob") == ["too late"]
        assert (town.states("sam"), town.states("bob")) == (["expired"], ["answered"])
        assert len(town.heard("sam")) == 1
        await town.leave()

    run(main)


def test_messages_go_on_in_the_next_process() -> None:
    """A process that leaves before the answer changes nothing: the next one delivers it, once."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        town.pauses["bob"] = 60
        await sam.send("ask bob (say (yes))")
        await asyncio.sleep(5)
        await town.leave()
        town = Town(town.store)
        bob = await town.person("bob")
        await bob._sender.perform(ResumeTurns)
        await asyncio.sleep(5)
        assert town.states("bob") == ["answered"]
        assert town.heard("sam") == [("bob", "yes")]
        await town.leave()

    run(main)


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("tell bobb (hi)", "There is no agent 'bobb'. Did you mean 'bob'? Nothing was sent."),
        ("tell sam (hi)", "That is you."),
        ("tell other~eve (hi)", "no name of an agent that you can write to"),
        ("tell block:notes (hi)", "reserved for shared memory blocks"),
        ("tell bob (LONG)", "1 to 20000 characters, not 20001"),
    ],
)
def test_a_message_that_cannot_be_sent_is_refused_in_words(order: str, words: str) -> None:
    """The model is told why, nothing is delivered, and the turn goes to its end."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await town.person("other~eve")
        await sam.send(order)
        await asyncio.sleep(10)
        assert words in town.results("sam")[0]
        assert town.states("sam") == []
        assert town.heard("bob") == town.heard("other~eve") == []
        await town.leave()

    run(main)


def test_an_unknown_name_is_compared_with_so_many_names_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a store with more agents than that the refusal has no hint, and takes no time from other agents."""
    monkeypatch.setattr(names, "COMPARED_MAX", 1)

    async def main() -> None:
        town = Town()
        sam, *_ = [await town.person(name) for name in ("sam", "bob", "eve")]
        await sam.send("tell bobb (hi)")
        assert town.results("sam")[0].endswith("There is no agent 'bobb'. Nothing was sent.")
        await town.leave()

    run(main)


def test_agents_of_a_tenant_write_to_each_other_by_their_own_names() -> None:
    """Within a tenant the prefix of the store is not said, and is not seen."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("acme~sam"), await town.person("acme~bob")
        await sam.send("ask bob (say (yes)) ask eve (hi)")
        await asyncio.sleep(10)
        assert town.heard("acme~sam") == [("acme~bob", "yes")]
        assert town.said("acme~sam") == ["bob: yes"]
        assert "There is no agent 'eve'." in town.results("acme~sam")[1]
        await town.leave()

    run(main)


def test_the_name_of_a_tenant_ends_at_its_first_tilde() -> None:
    """An agent whose own name has a `~` writes to the others of its tenant all the same."""

    async def main() -> None:
        town = Town()
        odd, _ = await town.person("acme~a~b"), await town.person("acme~bob")
        await odd.send("ask bob (say (yes))")
        await asyncio.sleep(10)
        assert (town.heard("acme~bob"), town.said("acme~a~b")) == ([("acme~a~b", "say (yes)")], ["bob: yes"])
        await town.leave()

    run(main)


def test_a_turn_and_a_minute_have_room_for_so_many_messages() -> None:
    """More than ten messages to one agent in a minute, and more than twenty in one turn, are refused."""

    async def main() -> None:
        town = Town()
        others = [f"a{number}" for number in range(21)]
        sam, *_ = [await town.person(name) for name in ("sam", "bob", *others)]
        await sam.send(" ".join(["tell bob (hi)"] * 11))
        assert "You have sent 10 messages to bob in a minute" in town.results("sam")[10]
        await sam.send(" ".join(f"tell {name} (hi)" for name in others))
        assert "You have sent 20 messages in this turn" in town.results("sam")[-1]
        await asyncio.sleep(10)
        assert len(town.heard("bob")) == 10
        assert sum(len(town.heard(name)) for name in others) == 20
        await town.leave()

    run(main)


def test_a_message_to_a_deleted_agent_comes_back() -> None:
    """The sender gets an input that says so, and no wait is left."""

    async def main() -> None:
        town = Town()
        sam, bob = await town.person("sam"), await town.person("bob")
        await bob._sender.perform(DeleteAgent)
        await sam.send("ask bob (say (yes))")
        await asyncio.sleep(10)
        [(who, text)] = town.heard("sam")
        assert (who, text) == ("bob", "Your message was not delivered: there is no agent 'bob' any more.")
        assert town.states("sam") == ["undeliverable"]
        await town.leave()

    run(main)


def test_an_agent_reads_no_name_of_the_store_and_no_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent of a tenant is told of the other by the tenant's name, also when its time is over; the operator gets the
    cause as a note.
    """
    monkeypatch.setattr(postbox, "TRIED_US", 200_000_000)  # 24 hours of attempts take minutes

    async def main() -> None:
        town = Town()
        sam, bob = [await town.person(f"acme~{name}") for name in ("sam", "bob")]
        await bob._sender.perform(DeleteAgent)
        async with LocalSystem(town.store).agent("acme~eve"):
            await sam.send("ask bob (say (yes)) tell eve (hi)")
            await asyncio.sleep(300)
        assert town.heard("acme~sam") == [
            ("acme~bob", "Your message was not delivered: there is no agent 'bob' any more."),
            ("acme~eve", "Your message was not delivered: eve could not be reached for 24 hours."),
        ]
        assert any("'acme~sam': 'acme~bob' cannot be written to: 'acme~bob' was deleted" in one for one in town.notes)
        assert any("'acme~sam': 'acme~eve' cannot be written to: " in one for one in town.notes)
        await town.leave()

    run(main)


def test_a_message_that_cannot_be_delivered_now_is_tried_again() -> None:
    """While another process holds the receiver, the message waits with a note; the next try delivers it once."""

    async def main() -> None:
        town = Town()
        sam = await town.person("sam")
        async with LocalSystem(town.store).agent("bob"):
            await sam.send("tell bob (hi)")
            await asyncio.sleep(10)
            assert town.states("sam") == ["pending"]
            assert "a message to 'bob' is tried again in a minute" in town.notes[-1]
        await asyncio.sleep(70)
        assert (town.heard("bob"), town.states("sam")) == ([("sam", "hi")], ["delivered"])
        await town.leave()

    run(main)


def test_a_delivery_that_cannot_be_recorded_is_not_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk of the sender fails right after the receiver took the message: the next try is known there."""
    commit, left = LocalJournal.commit, [StoreError("No space left on device")]

    async def failing(self: LocalJournal, agent_id: str, head: int, drafts: Sequence[Draft]) -> Commit:
        if left and any(draft.type == "agent_message_settled" for draft in drafts):
            raise left.pop()
        return await commit(self, agent_id, head, drafts)

    monkeypatch.setattr(LocalJournal, "commit", failing)

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        await sam.send("ask bob (say (yes))")
        await asyncio.sleep(200)
        assert not left
        assert town.heard("bob") == [("sam", "say (yes)")]
        assert (town.heard("sam"), town.states("sam")) == ([("bob", "yes")], ["answered"])
        await town.leave()

    run(main)


def test_a_fork_sends_nothing_again() -> None:
    """Messages that a fork took over from its parent stay the parent's: the fork sends nothing."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        town.pauses["bob"] = 60
        await sam.send("ask bob (say (yes))")
        await asyncio.sleep(5)
        LocalSystem(town.store).fork("sam", "tim")
        LocalSystem(town.store).fork("bob", "ben")
        await town.person("tim")
        await asyncio.sleep(100)
        assert town.states("tim") == town.states("ben") == ["copied"]
        assert len(town.heard("bob")) == 1
        assert town.heard("sam") == [("bob", "yes")]
        await town.leave()

    run(main)


def test_a_subscriber_sees_the_turns_that_other_agents_open() -> None:
    """The chat of the agent that asked shows the answer: no caller in this process asked for its turn."""

    async def main() -> None:
        town = Town()
        sam, _ = await town.person("sam"), await town.person("bob")
        seen: list[str] = []

        async def watch() -> None:
            async for record in sam.subscribe():
                seen.append(f"{record.type} {record.text}")

        watching = asyncio.create_task(watch())
        await sam.send("ask bob (say (yes))")
        await asyncio.sleep(10)
        watching.cancel()
        assert [words for words in seen if words.startswith(("user", "message"))] == [
            "user_message yes", "message_sent bob: yes",
        ]  # fmt: skip
        await town.leave()

    run(main)
