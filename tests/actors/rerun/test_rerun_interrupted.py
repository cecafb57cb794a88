"""An interrupted rerun leaves no turn that would later run with real functions."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from itertools import groupby
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.agent.local_system import LocalSystem
from everlog.actors.functions.tools import Tool, tool
from everlog.actors.replay.rebuild_check import verify
from everlog.actors.rerun.rerun import RerunOptions, rerun
from everlog.events import Draft, FunctionResult, ModelError, Record, TurnAbandoned, UserMessage, event_of
from everlog.projections import DERIVER
from everlog.store import MemoryStore
from tests.support.agent_world import Line, World, completion, say
from tests.support.agents.rerun_world import BIRTH, again, stage_of
from tests.support.seeds import few_and_all, pick

FIELDS = Draft.__struct_fields__
HEARTBEAT = {"request_heartbeat": True}


class Abroad:
    """A bank and a post office outside the log, which record their calls."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def tools(self) -> tuple[Tool, ...]:
        """Return one function of each effect class that has an outside effect."""

        @tool
        def pay(to: str) -> str:
            """Pay a person.

            Args:
                to: Whom.
            """
            self.done.append(f"pay {to}")
            return f"paid {to}"

        @tool(effect="idempotent")
        def order(what: str, idempotency_key: str) -> str:
            """Order something.

            Args:
                what: What.
            """
            self.done.append(f"order {what}")
            return f"ordered {what}"

        return pay, order


def acts(to: str) -> str:
    """Return a reply with calls of every kind, which continues the turn."""
    return completion(
        calls=[
            ("pay", {"to": to}),
            ("core_memory_append", {"name": "human", "content": f"Owes {to}."}),
            ("order", {"what": "tea"}),
            ("pay", {"to": f"{to} again", **HEARTBEAT}),
        ]
    )


SAID = ("one", "two", "three")
LINES: list[Line] = [acts("ann"), say("A."), acts("bob"), say("B."), say("C.")]


def lived() -> tuple[World, Abroad]:
    """Return a world in which sam's functions had effects in two of three turns."""
    abroad = Abroad()
    world = World(*LINES, tools=abroad.tools())
    asyncio.run(world.tell(*SAID))
    return world, abroad


def own(world: World) -> list[list[Record]]:
    """Return the fork's own commits, `agent_forked` first."""
    mine = [record for record in world.log("tom") if record.agent_id == "tom"]
    return [list(commit) for _, commit in groupby(mine, key=lambda record: record.commit)]


def killed(world: World, commits: int, abroad: Abroad, *lines: Line) -> World:
    """Return a new process over a store with sam and the first `commits` commits of the fork; its functions are
    real.
    """
    store = MemoryStore()
    store.register("sam")
    write(store, "sam", [list(one) for _, one in groupby(world.log(), key=lambda record: record.commit)])
    first, *others = own(world)[:commits]
    store.fork("sam", first[0].seq - 1, "tom", event_id=first[0].event_id)
    write(store, "tom", others)
    other = World(*lines, store=store, tools=abroad.tools())
    other.clock.at, other.ids.count = world.clock.at + 10**9, world.ids.count
    return other


def write(store: MemoryStore, name: str, commits: list[list[Record]]) -> None:
    """Append these commits to the log of another store."""
    log = store.open(name, "copy")
    for commit in commits:
        drafts = [Draft(**{field: getattr(record, field) for field in FIELDS}) for record in commit]
        log.append(name, log.head(name).seq, drafts)
    log.close()


def sealed(world: World) -> None:
    """Seal the fork's log, so that the next owner activates it from a state."""
    log = world.store.open("tom", "seal")
    log.seal(DERIVER)
    log.close()


def assert_at_rest(world: World) -> None:
    """Check that no turn is open and that verify finds no fault."""
    with closing(world.system.view("tom")) as view:
        assert not view.rows("open_turns")
        assert verify(view, world.system.tools).faults == []


RERUNS: list[tuple[dict[str, Any], Callable[[World], None]]] = [
    ({"settings": Settings(window=9000)}, lambda _: None),
    ({"recorded": True}, lambda _: None),
    ({"live_tools": True}, sealed),
]


@pytest.mark.parametrize(("what", "then"), RERUNS, ids=["live", "recorded", "live-tools-sealed"])
@pytest.mark.parametrize("count", few_and_all(2, part="agents"))
def test_opening_the_fork_after_a_kill_runs_nothing_of_the_rerun(
    what: dict[str, Any], then: Callable[[World], None], count: int | None
) -> None:
    """After a crash at any commit of the rerun, opening the fork ends the open turn, has no outside effect and calls no
    model; later messages work.
    """
    world, abroad = lived()
    again(
        world, *([] if what.get("recorded") else [acts("ann"), acts("carl"), say("B.")]), tools=abroad.tools(), **what
    )
    left_open = 0
    for number in pick(range(1, len(own(world)) + 1), count, label="commits of a rerun"):
        abroad.done.clear()
        other = killed(world, number, abroad, acts("dora"), say("Well."))
        then(other)
        before = other.log("tom")

        async def open_it(system: LocalSystem) -> int:
            async with system.agent("tom", create=False) as agent:
                assert agent.waiting == 0
                await agent.run()
                return agent.head

        head = asyncio.run(open_it(other.system))
        after = other.log("tom")
        assert after[: len(before)] == before
        assert (abroad.done, other.model.requests) == ([], []), number
        left_open += head > len(before)
        assert asyncio.run(open_it(other.system)) == head
        assert asyncio.run(other.tell("And now?", agent="tom"))[-1].type == "function_result"
        assert abroad.done == ["pay dora", "order tea", "pay dora again"]
        assert_at_rest(other)
    assert left_open > (8 if count is None else 0)


def test_an_interrupted_call_gets_an_unknown_result() -> None:
    """A call that was interrupted between `function_started` and its result gets the outcome unknown, and its turn is
    abandoned as forked.
    """
    world, abroad = lived()
    again(world, *LINES, tools=abroad.tools())
    begun = next(n for n, commit in enumerate(own(world), 1) if commit[-1].type == "function_started")
    other = killed(world, begun, abroad)
    asyncio.run(opened(other))
    result, end = [event_of(record) for record in other.log("tom")[-2:]]
    assert isinstance(result, FunctionResult)
    assert isinstance(end, TurnAbandoned)
    assert (result.name, result.unknown, "rerun" in result.text) == ("pay", True, True)
    assert (end.reason, "rerun" in end.text) == ("forked", True)


async def opened(world: World) -> None:
    """Open the fork and close it."""
    async with world.system.agent("tom", create=False):
        pass


def test_later_turns_of_a_reruns_fork_are_finished_after_a_crash() -> None:
    """Only the rerun's own turns are abandoned: a message that was sent to the fork later is processed after a
    crash.
    """
    world, abroad = lived()
    again(world, *LINES, tools=abroad.tools())
    abroad.done.clear()
    later = world.restarted(RuntimeError("our bug"))
    with pytest.raises(RuntimeError, match="our bug"):
        asyncio.run(later.tell("And now?", agent="tom"))
    later = later.restarted(acts("dora"), say("Well."))

    async def run() -> None:
        async with later.system.agent("tom", create=False) as agent:
            assert agent.waiting == 1
            await agent.run()

    asyncio.run(run())
    assert abroad.done == ["pay dora", "order tea", "pay dora again"]
    assert_at_rest(later)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), RuntimeError("our bug")], ids=["ctrl-c", "crash"])
def test_a_rerun_that_is_stopped_ends_its_own_turn(error: BaseException) -> None:
    """After Ctrl-C, or an exception of a function or model, no turn is left open."""
    world, abroad = lived()
    with pytest.raises(type(error)):
        again(world, acts("ann"), error, tools=abroad.tools())
    assert world.kinds("tom")[-1] == "turn_abandoned"
    assert_at_rest(world)


def test_turns_that_wait_when_a_rerun_ends_are_ended() -> None:
    """Two inputs are open when the recorded rerun diverges in the first: both turns are ended."""
    world = World(*LINES, tools=Abroad().tools())

    async def life() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for text in SAID:
                await agent.receive(UserMessage(text=text))
            await agent.configure(Settings(window=9000))
            await agent.run()

    asyncio.run(life())
    assert again(world, recorded=True, fork="ann").diverged is None
    done = again(world, recorded=True, settings=Settings(system="Be another."))
    assert done.diverged is not None
    ends = [event_of(record) for record in world.log("tom")[-2:]]
    assert [isinstance(end, TurnAbandoned) and end.reason for end in ends] == ["forked", "forked"]
    assert_at_rest(world)


def test_a_model_that_fails_leaves_no_open_turn() -> None:
    """After a model failure the turn is ended, so opening the fork runs nothing."""
    world, abroad = lived()
    assert again(world, acts("ann"), ModelError("nobody is there", kind="unreachable")).error is not None
    abroad.done.clear()
    asyncio.run(opened(world.restarted()))
    assert abroad.done == []
    assert world.kinds("tom")[-1] == "model_failed"


def test_a_fork_of_an_interrupted_rerun_runs_nothing_of_it_either() -> None:
    """A turn that is open at the fork point is closed in the new fork; a rerun of the fork begins with its own
    inputs.
    """
    world, abroad = lived()
    again(world, *LINES, tools=abroad.tools())
    begun = next(n for n, commit in enumerate(own(world), 1) if commit[-1].type == "function_started")
    other = killed(world, begun, abroad, *LINES)
    abroad.done.clear()
    other.system.fork("tom", "una")
    asyncio.run(other.tell(agent="una"))
    what = RerunOptions(agent_id="tom", from_seq=BIRTH + 2, fork="vic")
    asyncio.run(rerun(what, stage_of(other, abroad.tools())))
    assert abroad.done == []
