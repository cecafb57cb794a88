"""Blocks of core memory whose value is a list: items are lines, with functions for them."""

import asyncio
import json

import msgspec
import pytest

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.memory.core_memory import Memory
from everlog.actors.prompt.context import MemoryBlock
from everlog.events import BadInput, FunctionError
from tests.support.agent_world import World, completion, say

TASKS = InitialBlock("tasks", ["buy tea", "buy tea pot"], description="What is to be done.")


def world_of(*blocks: InitialBlock) -> World:
    """Return a world with an agent that has these blocks."""
    world = World(say("Hello."))
    world.settings = Settings(model="scripted", window=8192, blocks=blocks)
    asyncio.run(world.tell("Hi"))
    return world


def called(world: World, function: str, /, **arguments: object) -> tuple[str, bool]:
    """Return the text of the result of one call, and True if it succeeded."""
    world.model.lines = [completion(calls=[(function, {**arguments, "request_heartbeat": False})]), say("Done.")]
    left = asyncio.run(world.tell("go"))
    result = next(record for record in left if record.type == "function_result")
    return result.text or "", bool(json.loads(result.payload).get("ok", True))


def tasks(world: World) -> str:
    """Return the text of the block."""
    with world.system.view("sam") as view:
        return next(str(row["value"]) for row in view.rows("core_memory") if row["label"] == "tasks")


def test_items_are_edited_one_by_one() -> None:
    """An item is a whole line: removing "buy tea" leaves "buy tea pot", and a replacement keeps its place."""
    world = world_of(TASKS)
    assert tasks(world) == "buy tea\nbuy tea pot"
    assert called(world, "core_memory_item_add", name="tasks", item="call Ingrid")[1]
    assert called(world, "core_memory_item_remove", name="tasks", item="buy tea")[1]
    assert called(world, "core_memory_item_replace", name="tasks", item="buy tea pot", new_item="make tea")[1]
    assert tasks(world) == "make tea\ncall Ingrid"


def test_an_item_that_is_none_is_refused() -> None:
    """An unknown item, and one of two lines, change nothing and say why."""
    world = world_of(TASKS)
    text, ok = called(world, "core_memory_item_remove", name="tasks", item="buy")
    assert not ok and "Item not found in 'tasks'" in text
    text, ok = called(world, "core_memory_item_add", name="tasks", item="one\ntwo")
    assert not ok and "one line" in text
    assert tasks(world) == "buy tea\nbuy tea pot"


def test_only_agents_with_items_have_the_functions() -> None:
    """Without a list the functions are not shown, so that the requests of other agents stay as they were."""
    shown = [
        [tool["function"]["name"] for tool in json.loads(world.model.requests[0])["tools"]]
        for world in (world_of(), world_of(TASKS))
    ]
    assert shown[1][: len(shown[0])] == shown[0]
    assert [name.removeprefix("core_memory_item_") for name in shown[1][len(shown[0]) :]] == [
        "add",
        "replace",
        "remove",
    ]
    text, ok = called(world_of(), "core_memory_item_add", name="human", item="x")
    assert not ok and "No function named" in text


def test_the_functions_stay_after_the_agent_was_opened_again() -> None:
    """The functions are recorded with the agent, and need not be asked for again."""
    world = world_of(TASKS)
    world.settings = Settings()
    assert called(world, "core_memory_item_add", name="tasks", item="sleep")[1]


@pytest.mark.parametrize("items", [["one\ntwo"], [""], ["  "]])
def test_a_new_agent_gets_items_of_one_line(items: list[str]) -> None:
    """An item with a line break, or without text, is refused before the agent exists."""
    with pytest.raises(BadInput, match="one line"):
        world_of(msgspec.structs.replace(TASKS, value=items))


def test_functions_of_users_edit_items() -> None:
    """A `Memory` has the items of a block, and the edits of them; a shared block is refused."""
    memory = Memory([MemoryBlock(label="tasks", value="a\n\nb", limit=20, seq=1)])
    memory.replace_item("tasks", "b", "c")
    memory.add_item("tasks", "d")
    assert memory.items("tasks") == ["a", "c", "d"]
    shared = Memory([MemoryBlock(label="tasks", value="a", limit=20, seq=1, origin="team")])
    with pytest.raises(FunctionError, match="is shared"):
        shared.remove_item("tasks", "a")
