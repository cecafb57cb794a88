"""`memories_search`: an agent that was given it finds insights, facts and plans, and sees what they rest on."""

import asyncio

from everlog.actors.functions.memories_search import MEMORIES_SEARCH
from everlog.actors.models.offline.hits import hits
from everlog.actors.models.offline.request import CallResult
from everlog.events import FunctionResult, event_of
from tests.actors.memory.test_derived_search import derived, first_seq, world_with
from tests.support.agent_world import World, completion, say


def results(**arguments: object) -> tuple[str, int]:
    """Return the result of a call by an agent with derived memories, and the seq of the first message."""
    first = first_seq()
    old, _ = world_with(*derived(first))
    call = completion(calls=[("memories_search", arguments)])
    world = World(call, say("Done."), store=old.store, tools=[MEMORIES_SEARCH])
    world.clock, world.ids = old.clock, old.ids
    world.settings = old.settings
    world.system = type(old.system)(old.store, models=lambda _: world.model, tools=[MEMORIES_SEARCH], ports=world.ports)
    asyncio.run(world.tell("What do you know of Lea?"))
    (result,) = [event_of(r) for r in world.log() if r.type == "function_result" and '"call_1"' not in r.payload][-1:]
    assert isinstance(result, FunctionResult)
    return result.text, first


def test_an_agent_sees_kind_sources_and_what_is_outdated() -> None:
    """Each result has its kind and the seqs of its sources; an insight that rests on an ended fact is outdated."""
    text, first = results(query="Italian towns of Lea")
    assert f"kind: insight, rests on: {first} {first + 2}, outdated, memory: Lea likes old Italian towns." in text
    assert "Lea lives in Rome." not in text
    ended, _ = results(query="Lea lives in Rome", kinds=["fact"], ended=True)
    assert "outdated, until: 2026" in ended and "Italian" not in ended


def test_the_offline_model_reads_the_results() -> None:
    """The result of the function is parsed like the results of the other searches."""
    text, _ = results(query="Lea lives in Bergen")
    found = hits(CallResult("memories_search", {}, ok=True, text=text))
    assert found[0].who == "memory" and found[0].text == "Lea lives in Bergen."


def test_an_agent_has_it_only_if_it_is_given() -> None:
    """Without it among the functions, no agent is shown it."""
    world = World(say("Hi."))
    asyncio.run(world.tell("Hello"))
    assert b"memories_search" not in world.model.seen[0].raw
