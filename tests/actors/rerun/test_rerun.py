"""Reruns: repeated inputs, changed settings, and the report."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.functions.tools import Effect, tool
from everlog.actors.rerun.rerun import compare
from everlog.actors.rerun.rerun_comparison import TokenPrices, TurnPair
from everlog.events import (
    ApprovalDecided,
    ApprovalRule,
    BadInput,
    Heartbeat,
    ModelError,
    Section,
    SourceAttached,
    UserMessage,
    event_of,
)
from tests.support.agent_world import World, completion, say
from tests.support.agents.rerun_world import BIRTH, Outside, again, lived, pays, stage_of


def test_inputs_are_repeated_at_their_recorded_times():
    """Messages with their speakers and timed heartbeats are sent at their recorded times; requested heartbeats follow
    from the replies.
    """
    world = World(pays("ann"), say("Good day."))

    async def life() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            for event in (UserMessage(text="Hi", name="Ann"), Heartbeat(reason="timer", timer="tea", text="Tea?")):
                world.clock.skip(3600)
                await agent.receive(event)
                await agent.run()

    asyncio.run(life())
    world.clock.skip(10**6)
    again(world, pays("ann"), say("Good day."))
    opened = [
        [(r.type, r.text, r.payload, r.turn) for r in world.log(name) if not r.step and r.turn and r.seq > BIRTH]
        for name in ("sam", "tom")
    ]
    assert opened[0] == [one for one in opened[1] if one[0] != "agent_forked"]
    then = world.log()[BIRTH].recorded_at
    assert 0 <= world.log("tom")[BIRTH + 1].recorded_at - then < 1_000_000
    assert "2026-01-01 02:00:00 AM" in str(world.model.messages(-1)[-1])


def test_another_model_prompt_and_memory_are_in_the_log_of_the_fork_before_the_first_turn():
    """The fork records the changed blocks and configuration before its first turn. A block keeps its limit, and the
    functions are the recorded ones.
    """
    outside = Outside()
    world = lived(say("Hello."), tools=(outside.tool,))
    blocks = (InitialBlock("human", "Bob."), InitialBlock("notes", "None yet.", 50))
    again(world, settings=Settings(model="other", window=9000, system="Be another.", blocks=blocks))
    log = [record for record in world.log("tom") if record.agent_id == "tom"]
    assert [record.type for record in log[:5]] == [
        "agent_forked", "memory_edited", "memory_edited", "agent_configured", "user_message"
    ]  # fmt: skip
    view = world.system.view("tom")
    before, after = world.system.view("sam").context().config, view.context().config
    assert (after.model, after.window, after.text) == ("other", 9000, "Be another.")
    assert after.functions == before.functions
    assert {b.label: (b.value, b.limit) for b in view.context().blocks if b.label != "persona"} == {
        "human": ("Bob.", 2000), "notes": ("None yet.", 50)
    }  # fmt: skip
    view.close()


def test_an_unchanged_rerun_adds_no_configuration():
    """Without changed settings the fork adds no configuration."""
    world = lived(say("Hello."))
    again(world, say("Hello."))
    assert [record.type for record in world.log("tom")[BIRTH : BIRTH + 2]] == ["agent_forked", "user_message"]


def test_a_seq_inside_a_turn_means_its_beginning():
    """A seq inside a turn is moved to the beginning of the turn, and a seq inside the agent's creation to its end."""
    world = lived(pays("ann"), say("A."), say("B."), said=("one", "two"))
    begins = [record.seq for record in world.log() if record.type == "user_message"]
    for from_seq, cut in ((3, BIRTH), (begins[0] + 2, BIRTH), (begins[1] - 1, BIRTH), (begins[1], begins[1] - 1)):
        done = again(world, from_seq=from_seq, fork=f"from-{from_seq}")
        assert done.comparison.cut == cut, from_seq


def test_a_time_means_the_first_record_at_or_after_it():
    """A time selects the first record at or after it; a time after the newest record, and a time without a zone, are
    refused.
    """
    world = lived(say("A."), say("B."), said=("one", "two"))
    second = [record for record in world.log() if record.type == "user_message"][1]
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=second.recorded_at)
    early = at - timedelta(microseconds=1)
    for number, moment in enumerate((at, early)):
        assert again(world, from_seq=moment, fork=f"from-{number}").comparison.cut == second.seq - 1
    assert again(world, from_seq=at - timedelta(days=9), fork="whole").comparison.cut == BIRTH
    with pytest.raises(BadInput, match=f"its newest record, seq {len(world.log())}, is older"):
        again(world, from_seq=at + timedelta(days=9), fork="none")
    with pytest.raises(BadInput, match="`from_seq` has no time zone"):
        again(world, from_seq=at.replace(tzinfo=None), fork="none")
    assert "none" not in world.system.agents()


def test_turns_are_run_up_to_the_number_asked_for():
    """Only the requested number of turns is run and compared."""
    world = lived(said=("one", "two", "three"))
    told: list[TurnPair] = []
    done = again(world, turns=2, told=told)
    assert [pair.said for pair in done.comparison.turns] == ["one", "two"]
    assert told == list(done.comparison.turns)
    recorded = again(world, turns=2, recorded=True, fork="ann")
    assert [pair.differs for pair in recorded.comparison.turns] == [[], []]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ({"from_seq": 99}, "records 1 to"),
        ({"from_seq": 0}, "records 1 to"),
        ({"fork": "sam"}, "already"),
        ({"settings": Settings(window=10)}, "window"),
        ({"settings": Settings(blocks=(InitialBlock("human", "x" * 9000),))}, "limit is 2000"),
        ({"settings": Settings(blocks=(InitialBlock("a b", "x"),))}, "label"),
        ({"settings": Settings(sections=[Section("base", "{{ agent }}")])}, "as a text, not as sections"),
    ],
)
def test_invalid_arguments_are_refused_before_a_fork_is_made(what: dict[str, Any], said: str):
    """Invalid arguments are refused before a fork is made."""
    world = lived(say("Hello."))
    with pytest.raises(BadInput, match=said):
        again(world, **({"from_seq": 8} | what))
    assert world.system.agents() == ["sam"]


def test_a_rerun_without_inputs_names_the_last_input():
    """The error names the last input; a manual change after it is no input."""
    world = lived(say("Hello."))

    async def attach() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.commit([SourceAttached(source="handbook")], turn=agent.turn, step=0)

    asyncio.run(attach())
    with pytest.raises(BadInput, match="the last input is at seq 8"):
        again(world, from_seq=len(world.log()))
    assert world.system.agents() == ["sam"]


def test_a_failing_model_ends_the_rerun_with_a_report():
    """The failed turn is in the report, and later turns are not run."""
    world = lived(said=("one", "two", "three"))
    done = again(world, say("First."), ModelError("nobody is there", kind="unreachable"))
    assert str(done.error) == "nobody is there"
    assert [pair.variant.ended for pair in done.comparison.turns if pair.variant] == ["", "nobody is there"]


def test_costs_are_reported_where_prices_are_known():
    """Both sides have costs at the same prices; without prices there are none."""
    world = lived(say("Hello.", total=100), said=("one",))
    done = again(world, say("Hello.", total=200), prices=TokenPrices(sent=1.0, replied=10.0))
    then, now = done.comparison.baseline, done.comparison.variant
    assert (then.tokens, now.tokens) == (100, 200)
    assert (then.cost, now.cost) == pytest.approx(((90 + 100) / 1e6, (190 + 100) / 1e6))
    assert again(world, fork="ann").comparison.variant.cost is None


def test_a_recorded_rerun_stops_at_the_first_different_request():
    """The report names the call and the difference, no model is called, and the turn is ended."""
    world = lived(say("A."), say("B."), said=("one", "two"))
    asked = len(world.model.requests)
    done = again(world, recorded=True, settings=Settings(blocks=(InitialBlock("human", "Bob."),)))
    assert done.diverged is not None
    assert (done.diverged.seq, "+system: Bob." in done.diverged.difference) == (9, True)
    assert len(world.model.requests) == asked
    assert world.kinds("tom")[-1] == "model_failed"
    assert done.comparison.diverged is not None


@pytest.mark.parametrize("effect", ["at_most_once", "read_only"])
def test_an_input_during_a_function_is_repeated_at_the_same_place(effect: Effect):
    """An input that arrived while a function ran is repeated at the same place."""
    agents: list[Agent] = []

    async def wait() -> str:
        """Wait."""
        await agents[0].receive(UserMessage(text="Are you there?"))
        return "waited"

    world = World(completion(calls=[("wait", {"request_heartbeat": True})]), tools=(tool(wait, effect=effect),))

    async def life() -> None:
        async with world.system.agent("sam", world.settings) as agent:
            agents.append(agent)
            await agent.receive(UserMessage(text="Wait"))
            await agent.run()

    asyncio.run(life())
    done = again(world, recorded=True)
    assert (done.diverged, done.comparison.diverged) == (None, None)
    assert world.kinds("tom")[BIRTH + 1 :] == world.kinds()[BIRTH:]
    assert [pair.said for pair in done.comparison.turns] == ["Wait", "Are you there?"]


def test_erased_inputs_are_left_out_and_named():
    """An erased input is listed as left out, and the turns after it are still compared with their originals."""
    world = lived(say("A."), say("B."), say("C."), said=("one", "two", "three"))
    second = [record.seq for record in world.log() if record.type == "user_message"][1]
    world.system.erase("sam", second, second)
    done = again(world, say("A."), say("C."))
    assert [(record.seq, record.type) for record in done.left_out] == [(second, "user_message")]
    assert [(pair.said, list(pair.differs)) for pair in done.comparison.turns] == [("one", []), ("three", [])]


def test_a_recorded_rerun_refuses_a_result_that_is_not_there():
    """In a recorded rerun no function runs, even with `live_tools`."""
    outside = Outside()
    world = lived(pays("ann"), say("Done."), tools=(outside.tool,))
    done = again(world, recorded=True, live_tools=True, tools=(outside.tool,))
    assert done.diverged is None
    assert outside.paid == ["ann"]


def test_the_report_can_be_made_again_from_the_logs():
    """`compare` computes the rerun's own comparison from the logs; an agent that is no fork is refused."""
    outside = Outside()
    world = lived(pays("ann"), say("Done."), say("Bye."), said=("one", "two"), tools=(outside.tool,))
    blocks = (InitialBlock("human", "Bob."),)
    done = again(world, pays("ann"), pays("bob"), say("Well."), say("Bye."), settings=Settings(blocks=blocks))
    assert compare("sam", "tom", stage_of(world)) == done.comparison
    with pytest.raises(BadInput, match="no fork"):
        compare("tom", "sam", stage_of(world))


def test_a_rerun_of_a_rerun_is_a_rerun():
    """A rerun's fork can be rerun itself."""
    world = lived(say("A."), said=("one",))
    again(world, say("B."))
    done = again(world, agent_id="tom", fork="ann", recorded=True, from_seq=9)
    assert [side.answers for pair in done.comparison.turns for side in (pair.baseline, pair.variant) if side] == [
        ["B."],
        ["B."],
    ]


def test_a_decision_is_repeated_for_the_call_of_the_fork_that_waits():
    """A rerun asks for the approval again, gets the recorded decision, and the recorded result: nothing runs twice.
    A model that makes no call leaves the decision without one.
    """
    outside = Outside()

    async def life(world: World) -> None:
        async with world.system.agent("sam", world.settings) as agent:
            await agent.receive(UserMessage(text="Pay Ann"))
            await agent.run()
            row = (await agent.rows("approvals"))[0]
            decided = ApprovalDecided(
                request=row["seq"], call_id=row["call_id"], name="pay", decision="approved",
                arguments='{"to":"bob"}', edited=True,
            )  # fmt: skip
            await agent.receive(decided)
            await agent.run()

    world = World(pays("ann"), say("Paid."), tools=(outside.tool,))
    world.settings = msgspec.structs.replace(world.settings, approvals=[ApprovalRule("pay")])
    asyncio.run(life(world))
    assert outside.paid == ["bob"]
    done = again(world, pays("ann"), say("Paid."), tools=(outside.tool,))
    assert not done.left_out
    ran = [event_of(record) for record in world.log("tom") if record.type == "function_result"][-2]
    assert ran.text == "paid bob 1, receipt 1"
    assert ran.approval == [record.seq for record in world.log("tom") if record.type == "approval_requested"][-1]
    assert outside.paid == ["bob"]
    assert again(world, say("No."), tools=(outside.tool,), fork="ann").left_out
    assert not again(world, recorded=True, tools=(outside.tool,), fork="eva").left_out
