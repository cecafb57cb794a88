"""Memory pressure with undone turns and manual warnings: when the agent is warned, and how the request is estimated."""

import json

from everlog.actors.agent.agent import Agent
from everlog.actors.ports.effects import ModelResponse
from everlog.actors.prompt.message_format import PRESSURE_WARNING
from everlog.events import SystemAlert, UserMessage
from tests.actors.agent.test_undo import assert_replays, during, told
from tests.support.agent_world import World, counted, say


def test_a_manual_pressure_warning_counts() -> None:
    """The agent answers a manual warning, and is not warned again until that warning is undone."""
    world = World(say("Hello."), say("I save things."), say("Full.", total=7900))
    told(world, "Hi")

    async def warn(agent: Agent) -> None:
        await agent.receive(SystemAlert(text=PRESSURE_WARNING, source="memory_pressure"))
        await agent.run()

    during(world, warn)
    assert "oldest part of it will soon be replaced" in json.dumps(world.model.messages()[-1])
    told(world, "go on")
    warnings = [r for r in world.log() if r.type == "system_alert"]
    assert [(r.turn, r.step) for r in warnings] == [(2, 0)]
    during(world, lambda agent: agent.hide(2))
    assert not world.system.view("sam").rows("memory_pressure")[0]["warned"]
    world.model.lines = [say("Full.", total=7900)]
    told(world, "go on")
    assert len([r for r in world.log() if r.type == "system_alert"]) == 2
    assert_replays(world)


def test_a_warning_for_a_later_turn_does_not_count_in_the_running_turn() -> None:
    """A warning that waits for a later turn does not count in the running turn: that turn gives its own warning, and
    verify agrees.
    """
    world = World(say("Hello."))
    asked = world.model.ask

    async def work(agent: Agent) -> None:
        async def ask(request: bytes, **_: object) -> ModelResponse:
            if not world.model.requests:
                await agent.receive(SystemAlert(text="full", source="memory_pressure"))
            return await asked(request)

        world.model.ask = ask
        world.model.lines = [say("Full.", total=7900)]
        await agent.receive(UserMessage(text="Hi"))
        await agent.run()

    during(world, work)
    assert [(r.turn, r.step) for r in world.log() if r.type == "system_alert"] == [(2, 0), (1, 1)]
    assert_replays(world)


def test_an_input_that_came_during_a_turn_stands_after_that_turn() -> None:
    """An input that arrived before the reply of the running turn is the last message of its own turn's request."""
    world = World(say("Hello."))
    asked = world.model.ask

    async def work(agent: Agent) -> None:
        async def ask(request: bytes, **_: object) -> ModelResponse:
            if not world.model.requests:
                await agent.receive(UserMessage(text="And you?"))
            return await asked(request)

        world.model.ask = ask
        await agent.receive(UserMessage(text="Hi"))
        await agent.run()

    during(world, work)
    assert "And you?" not in world.model.requests[0].decode()
    assert "And you?" in str(world.model.messages()[-1]["content"])
    assert_replays(world)


def test_the_estimate_after_an_undo_is_that_of_the_shorter_request() -> None:
    """A window that was nearly full is not summarized after the turns that filled it were undone."""
    world = World()
    world.model.after = lambda request: counted(request, say("Go on."))
    told(world, "short", *("wave " * 1500 for _ in range(2)))
    during(world, lambda agent: agent.hide(2))
    told(world, "wave " * 1500)
    assert "summary" not in world.kinds()
    told(world, "wave " * 1500, "wave " * 1500, "wave " * 1500)
    assert "summary" in world.kinds()
    assert all(len(request) // 4 <= world.settings.window for request in world.model.requests)
    assert_replays(world)
