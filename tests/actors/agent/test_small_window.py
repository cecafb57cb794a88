"""Agents with a window of 4,096 tokens: a short prompt, short descriptions of functions, and room to talk."""

import asyncio
import json

import msgspec

import everlog
from everlog.actors.agent.agent_setup import Settings
from everlog.actors.models.offline import OfflineModel
from everlog.actors.ports.agent_constants import TOKENS_PER_BYTE
from everlog.events import AgentConfigured, event_of
from tests.support.agent_world import World, kinds, say

SMALL = Settings(model="scripted", window=4096, verify_first=False)

MESSAGES = (
    "Hi, my name is Chad and I sail",
    "I have a dog named Rex",
    "I live in Oslo, near the harbour",
    "My favourite food is fish soup",
    "My sister is called Ingrid and she lives in Bergen",
    "What is my name?",
    "Where do I live?",
)


def world_of(settings: Settings) -> World:
    """Return a world whose agent has these settings."""
    world = World(after=say("Hello."))
    world.settings = settings
    return world


def configured(world: World) -> list[AgentConfigured]:
    """Return the configurations in the log."""
    return [event for record in world.log() if isinstance(event := event_of(record), AgentConfigured)]


def test_a_small_window_is_mostly_free_before_the_first_word() -> None:
    """Prompt, functions, memory, boot messages and the first word take less than 38 % of 4,096 tokens, by the cautious
    estimate; with the preset `chat` they take more than 70 %.
    """
    shares = []
    for preset in (None, "chat"):
        world = world_of(msgspec.structs.replace(SMALL, preset=preset))
        asyncio.run(world.tell("Hi"))
        assert configured(world)[0].preset == (preset or "small")
        shares.append(len(world.model.requests[0]) * TOKENS_PER_BYTE / 4096)
    assert shares[0] < 0.38 and shares[1] > 0.7


def test_seven_turns_in_a_small_window_need_no_summary() -> None:
    """The offline model remembers for seven turns, and is neither warned nor summarized."""
    world = world_of(msgspec.structs.replace(SMALL, model="offline"))
    offline = OfflineModel()
    world.system._models = lambda _: offline
    asyncio.run(world.tell(*MESSAGES))
    seen = kinds(world.log())
    assert seen.count("message_sent") >= len(MESSAGES) and "summary" not in seen
    assert not [record for record in world.log() if record.type == "system_alert"]
    said = [record.text or "" for record in world.log() if record.type == "message_sent"]
    assert "Chad" in "".join(said[-3:]) and "Oslo" in said[-1]


def test_a_window_of_the_usual_size_keeps_the_usual_prompt() -> None:
    """A new agent with 8,192 tokens has the preset `chat` with the long descriptions; a named preset always counts."""
    world = world_of(msgspec.structs.replace(SMALL, window=8192))
    asyncio.run(world.tell("Hi"))
    named = world_of(msgspec.structs.replace(SMALL, preset="chat"))
    asyncio.run(named.tell("Hi"))
    assert [configured(one)[0].preset for one in (world, named)] == ["chat", "chat"]
    assert configured(world)[0].functions == configured(named)[0].functions


def test_an_agent_keeps_the_descriptions_that_it_has() -> None:
    """Opening an agent again, a larger window and edited sections change no descriptions; another preset does."""
    world = world_of(SMALL)
    asyncio.run(world.tell("Hi"))
    first = configured(world)[0].functions
    for settings in (Settings(), Settings(window=8192), Settings(sections=[everlog.Section("own", "Be brief.")])):
        world.settings = settings
        asyncio.run(world.tell("Again"))
        assert configured(world)[-1].functions == first
    assert len(configured(world)) == 3  # the second opening changed nothing
    world.settings = Settings(preset="chat")
    asyncio.run(world.tell("Again"))
    assert len(configured(world)[-1].functions) > len(first)


def test_a_short_description_takes_all_arguments() -> None:
    """A model that gives an argument of the long description is understood."""
    search = ("conversation_search", {"query": "sail", "roles": ["user"], "request_heartbeat": False})
    world = world_of(SMALL)
    asyncio.run(world.tell("I sail"))
    world.model.lines = [json.dumps(json.loads(say("x")) | _calls(search))]
    left = asyncio.run(world.tell("Do you remember?"))
    result = next(record for record in left if record.type == "function_result")
    assert "Showing 1 of 1" in (result.text or "")


def _calls(call: tuple[str, dict[str, object]]) -> dict[str, object]:
    """Return the choices of a completion with one call."""
    function = {"name": call[0], "arguments": json.dumps(call[1])}
    message = {"role": "assistant", "content": "Let me see.", "tool_calls": [
        {"id": "c1", "type": "function", "function": function}]}  # fmt: skip
    return {"choices": [{"index": 0, "finish_reason": "tool_calls", "message": message}]}
