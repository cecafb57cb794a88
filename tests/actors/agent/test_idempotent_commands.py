"""Commands to an agent carry an id and are idempotent, also after the configuration has changed."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.agent_setup import Settings
from everlog.events import AgentConfigured, BadInput, DuplicateId, UserMessage
from tests.actors.agent.test_undo import assert_replays, during, told, turns_hidden
from tests.support.agent_world import World


def repeated(world: World, work: Callable[[Agent, str], Awaitable[Any]]) -> None:
    """Send a command, and send it again after other events and after a restart. Check that both give the same result
    and leave one record.
    """
    event_id = world.ids.new(world.clock.now())
    first = during(world, lambda agent: work(agent, event_id))
    told(world, "in between")
    log = world.log()
    assert sum(record.event_id == event_id for record in log) == 1
    for other in (world, world.restarted()):
        assert during(other, lambda agent: work(agent, event_id)) == first
    assert world.log() == log


def test_a_repeated_command_is_idempotent() -> None:
    """A hide, retry or rethink that is sent again with its id returns its first result and writes nothing."""
    world = World()
    told(world, "one", "two", "three")
    repeated(world, lambda agent, event_id: agent.hide(1, event_id))
    repeated(world, lambda agent, event_id: agent.retry(event_id))
    repeated(world, lambda agent, event_id: agent.rethink("Hm.", event_id))
    repeated(world, lambda agent, event_id: agent.hide(99, event_id))
    assert_replays(world)


def test_a_repeated_hide_is_idempotent_when_no_turn_is_left() -> None:
    """A repeated hide returns its first result, although no turn is left to hide."""
    world = World()
    told(world, "one")
    event_id = world.ids.new(world.clock.now())
    for _ in range(2):
        assert during(world, lambda agent: agent.hide(1, event_id)) == [1]
    assert turns_hidden(world) == [[1]]


def test_the_id_of_something_else_is_an_error_and_writes_nothing() -> None:
    """The id of a user's message, or of another command, is refused for a command, and nothing is written."""
    world = World()
    told(world, "one", "two", "three")
    said = next(record.event_id for record in world.log() if record.type == "user_message")
    hidden = world.ids.new(world.clock.now())
    during(world, lambda agent: agent.hide(1, hidden))
    log = world.log()
    for work in (
        lambda agent: agent.hide(1, said),
        lambda agent: agent.retry(said),
        lambda agent: agent.retry(hidden),
        lambda agent: agent.rethink("x", hidden),
        lambda agent: agent.configure(Settings(model="other"), said),
    ):
        with pytest.raises(DuplicateId):
            during(world, work)
    assert world.log() == log


def test_another_model_is_asked_from_the_next_turn_on() -> None:
    """A new configuration makes a new model object; the same configuration again, or a repeated command, changes
    nothing.
    """
    world = World()
    made: list[str] = []
    model = world.model
    world.system._models = lambda name: made.append(name) or model
    event_id = world.ids.new(world.clock.now())

    async def work(agent: Agent) -> AgentConfigured:
        await agent.receive(UserMessage(text="one"))
        await agent.run()
        configured = await agent.configure(Settings(model="gpt-4o"), event_id)
        assert agent.model_name == "gpt-4o"
        assert await agent.configure(Settings(model="gpt-4o")) == configured
        await agent.receive(UserMessage(text="two"))
        await agent.run()
        assert (await agent.configure(Settings(model="scripted"))).model == "scripted"
        assert (await agent.configure(Settings(model="gpt-4o"), event_id)).model == "scripted"
        assert agent.model_name == "scripted"
        with pytest.raises(BadInput, match="name is empty"):
            await agent.configure(Settings(model=" "))
        return configured

    configured = during(world, work)
    assert (configured.model, configured.window) == ("gpt-4o", 128_000)
    assert made == ["scripted", "gpt-4o"]
    assert [json.loads(request)["model"] for request in world.model.requests] == ["scripted", "gpt-4o"]
    assert world.kinds().count("agent_configured") == 3
    assert_replays(world)
