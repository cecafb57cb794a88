"""Forks of agents: at every record of an agent the fork is whole, repeats no effect, and continues independently."""

import asyncio
from collections.abc import Sequence

import pytest

from everlog.actors.agent.erase_agent import forks_reached
from everlog.actors.agent.fork_agent import CALL_OF_PARENT, tail
from everlog.actors.replay.rebuild_check import rebuild, verify
from everlog.events import (
    BadInput,
    FunctionResult,
    Record,
    RecordsErased,
    TurnAbandoned,
    UnknownAgent,
    UserMessage,
    event_of,
)
from everlog.projections import Projections, activate
from tests.actors.agent.test_turn_recovery import Post, assert_well_formed, conversation
from tests.support.agent_world import World, say
from tests.support.seeds import few_and_all, pick

WORDS = "Do you remember?"


@pytest.fixture(scope="module")
def post() -> Post:
    return Post()


@pytest.fixture(scope="module")
def whole(post: Post) -> World:
    """Return a conversation with every kind of event, and with three waiting messages at its end."""
    world = conversation(post)

    async def queue() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for text in ("One", "Two", "Three"):
                await agent.receive(UserMessage(text=text))
            world.model.lines = [say("Yes, one.")]
            await agent.run_next()

    asyncio.run(queue())
    return world


def seen(post: Post) -> tuple[Sequence[str], int, int]:
    return (tuple(post.sent), len(post.alarms), post.looked)


@pytest.mark.parametrize("count", few_and_all(3, part="agents"))
def test_a_fork_at_any_record_is_whole_runs_nothing_again_and_continues(
    whole: World, post: Post, count: int | None
) -> None:
    """A fork at any record, also inside a commit, repeats no effect and sends no request with an orphaned call; verify
    and rebuild find no fault, and the parent does not change.
    """
    before, outside = whole.log(), seen(post)
    started = [record.seq for record in before if record.type == "function_started"]
    for at in sorted(
        {*pick(range(2, len(before) + 1), count, label="forks"), *pick(started, count and 2, label="calls")}
    ):
        name = f"fork {at} of {count}"
        forked = whole.system.fork("sam", name, at=at)
        assert (forked.parent, forked.parent_seq) == ("sam", at)
        whole.model.lines = [say("I do.")]
        asked = len(whole.model.requests)
        heard = asyncio.run(whole.tell(WORDS, agent=name))
        assert [record.text for record in heard if record.type == "user_message"] == [WORDS]
        for request in whole.model.requests[asked:]:
            assert_well_formed(request)
        assert seen(post) == outside
        view = whole.system.view(name)
        assert not [turn for turn in view.rows("turns") if turn["status"] == "open"]
        assert rebuild(view).faults == []
        assert verify(view, whole.system.tools).faults == [], f"forked at {at}"
        view.close()
    assert whole.log() == before


def test_the_turns_that_were_open_at_the_cut_are_closed_in_the_fork(whole: World) -> None:
    """The fork closes exactly the turns that the projection lists as open at the fork point, each once; a call that had
    started gets a result that says where to check.
    """
    records = whole.log()
    with Projections() as engine:
        activate(engine, whole.store.reader("sam"), "sam")
        started = [record.seq for record in records if record.type == "function_started"]
        for at in sorted({*range(2, len(records) + 1, 6), *started}):
            open_turns = [row["turn"] for row in engine.rows("open_turns", "sam", at)]
            forked = whole.system.fork("sam", f"closed {at}", at=at)
            own = [event_of(r) for r in whole.store.reader(forked.agent_id).read(forked.agent_id, at + 1)]
            ends = [event for event in own if isinstance(event, TurnAbandoned)]
            assert list(forked.closed) == sorted(open_turns), at
            assert [end.reason for end in ends] == ["forked"] * len(open_turns)
            texts = [event.text for event in own if isinstance(event, FunctionResult)]
            assert texts == [CALL_OF_PARENT] * (records[at - 1].type == "function_started")


def test_a_fork_reads_few_records_of_a_long_log(whole: World) -> None:
    """The number of records that are read to make a fork does not grow with the log: only a few before the fork point
    are read.
    """
    found: Sequence[Record] = tail(whole.store.reader("sam"), "sam", len(whole.log()))
    assert found[-1] == whole.log()[-1]
    assert len(found) <= 64


def test_an_impossible_fork_is_refused() -> None:
    """An unknown agent, a seq beyond the head, a moment at which the agent was deleted, an erased record and a name in
    use are refused with an error, and no fork is made.
    """
    world = World()
    asyncio.run(world.tell("Hello", "How are you?"))
    asyncio.run(world.tell("Hi", agent="ann"))
    head = len(world.log())
    for at in (0, -1, head + 1):
        with pytest.raises(BadInput, match=f"has records 1 to {head}"):
            world.system.fork("sam", "tom", at=at)
    with pytest.raises(UnknownAgent):
        world.system.fork("nobody", "tom")
    with pytest.raises(BadInput, match="There is an agent 'ann' already"):
        world.system.fork("sam", "ann")
    world.system.erase("sam", 6, 7)
    with pytest.raises(BadInput, match="was erased"):
        world.system.fork("sam", "tom", at=7)
    asyncio.run(world.system.delete("sam"))
    with pytest.raises(BadInput, match="had been deleted"):
        world.system.fork("sam", "tom")
    assert world.system.agents() == ["ann", "sam"]
    assert world.system.fork("sam", "tom", at=head).head == head + 1


def test_a_recreated_agent_is_forked_without_earlier_turns() -> None:
    """Turns that an earlier agent of the same name left open are not closed in the fork."""
    world = World()

    async def half() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.receive(UserMessage(text="Never answered"))

    asyncio.run(half())
    asyncio.run(world.system.delete("sam"))
    with pytest.raises(BadInput, match="had been deleted"):
        world.system.fork("sam", "tom")
    asyncio.run(world.tell("Hello again"))
    forked = world.system.fork("sam", "tom")
    assert forked.closed == []
    asyncio.run(world.tell("And you?", agent="tom"))
    view = world.system.view("tom")
    assert [row["text"] for row in view.rows("recall_memory")][-2:] == ["And you?", "Yes."]
    assert rebuild(view).faults == [] and verify(view, world.system.tools).faults == []
    view.close()


def test_an_agent_is_not_deleted_under_its_forks() -> None:
    """An agent cannot be deleted while it has forks; when all forks are deleted, it can."""
    world = World()
    asyncio.run(world.tell("Hello"))
    world.system.fork("sam", "tom")
    world.system.fork("tom", "ann")
    with pytest.raises(BadInput, match="forks that are not deleted: ann, tom"):
        asyncio.run(world.system.delete("sam"))
    asyncio.run(world.system.delete("ann"))
    asyncio.run(world.system.delete("tom"))
    asyncio.run(world.system.delete("sam"))


def test_an_erasure_reaches_forks_that_share_the_records() -> None:
    """Each fork gets a record of the erasure for the records that it shares; records of a parent are erased by naming
    the parent.
    """
    world = World()
    asyncio.run(world.tell("Hello", "My secret is blue", "How are you?"))
    at = next(record.seq for record in world.log() if record.text == "My secret is blue")
    world.system.fork("sam", "early", at=at - 1)
    world.system.fork("sam", "tom", at=at + 1)
    world.system.fork("tom", "ann")
    with pytest.raises(BadInput, match="are those of 'sam'"):
        world.system.erase("tom", at, at)
    world.system.erase("sam", at, at + 4)
    for name, last in (("tom", at + 1), ("ann", at + 1), ("sam", at + 4)):
        assert not [record for record in world.log(name) if record.text == "My secret is blue"]
        spans = [event for event in map(event_of, world.log(name)) if isinstance(event, RecordsErased)]
        assert [(span.from_seq, span.to_seq) for span in spans] == [(at, last)]
        view = world.system.view(name)
        assert verify(view, world.system.tools).faults == []
        view.close()
    assert "records_erased" not in world.kinds("early")


def test_a_fork_made_during_an_erasure_of_its_parent_is_erased_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fork that is made after the erasure has looked for forks, and before the erasure ends, is erased too."""
    world = World()
    asyncio.run(world.tell("Hello", "My secret is blue"))
    head = len(world.log())
    looked: list[int] = []

    def late(*asked: object) -> dict[str, int]:
        looked.append(1)
        if len(looked) == 1:
            found = forks_reached(*asked)  # type: ignore[arg-type]
            world.system.fork("sam", "tom", at=head)
            return found
        return forks_reached(*asked)  # type: ignore[arg-type]

    monkeypatch.setattr("everlog.actors.agent.erase_agent.forks_reached", late)
    world.system.erase("sam", 5, head)
    assert world.kinds("tom")[-1] == "records_erased"
    assert not [record for record in world.log("tom") if record.text == "My secret is blue"]
