"""Memory blocks of any label: what the model sees of them, how a person edits them, and which edits an agent cannot
make.
"""

import asyncio
import json
from typing import Any

import pytest

from everlog.actors.agent.agent_setup import InitialBlock, Settings
from everlog.actors.agent.commands import AddBlock, ChangeBlock, Command, RemoveBlock
from everlog.actors.hosting import edit_blocks
from everlog.events import BadInput, event_of
from tests.actors.agent.test_idempotent_commands import repeated
from tests.actors.agent.test_undo import assert_replays, during
from tests.support.agent_world import World, completion

RULES = InitialBlock("rules", "Be <kind>.", 40, 'How to "behave"', True)


@pytest.fixture
def world() -> World:
    made = World()
    made.settings = Settings(model="scripted", window=8192, blocks=(RULES,))
    asyncio.run(made.tell("Hello"))
    return made


def new(world: World, kind: type[Command], label: str, **fields: Any) -> Any:
    """Return a person's command for a block."""
    return kind(id=world.ids.new(world.clock.now()), label=label, **fields)


def do(world: World, kind: type[Command], label: str, **fields: Any) -> bool:
    """Run a person's command. Return True if it changed anything."""
    command = new(world, kind, label, **fields)
    return bool(during(world, lambda agent: edit_blocks.change(agent, command)))


def block(world: World, label: str) -> dict[str, Any]:
    """Return the block's row of the projection, or an empty dict."""
    return next((row for row in world.system.view("sam").rows("core_memory") if row["label"] == label), {})


def system(world: World) -> str:
    """Return the system message of the last request."""
    return str(world.model.messages()[0]["content"])


def test_the_model_sees_a_blocks_purpose_and_that_it_is_read_only(world: World) -> None:
    """Description and `read_only` are escaped attributes; a block without them has none."""
    shown = '<rules characters="10/40" description="How to &quot;behave&quot;" read_only="true">\nBe <kind>.\n</rules>'
    assert shown in system(world)
    assert '<human characters="19/2000">\n' in system(world)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        ("core_memory_append", {"name": "rules", "content": "Or not."}),
        ("core_memory_replace", {"name": "rules", "old_content": "kind", "new_content": "rude"}),
        ("core_memory_replace", {"name": "rules", "old_content": "not there", "new_content": "rude"}),
        ("core_memory_remove", {"name": "rules", "content": "Be <kind>."}),
    ],
)
def test_the_agents_functions_refuse_a_read_only_block(world: World, function: str, arguments: dict[str, str]) -> None:
    """The error says that the block is read-only, and no edit is recorded."""
    world.model.lines = [completion(calls=[(function, arguments)]), completion("Oh.")]
    left = asyncio.run(world.tell("go"))
    (result,) = [event_of(record) for record in left if record.type == "function_result"]
    assert not result.ok and "'rules' is read-only" in result.text
    assert not [record for record in left if record.type == "memory_edited"]
    assert block(world, "rules")["value"] == RULES.value


def test_a_person_adds_changes_and_removes_blocks_each_by_one_event(world: World) -> None:
    """Each change is one event, also for a read-only block. Omitted fields stay, and a change to the present value
    leaves no event.
    """
    head = len(world.log())
    assert do(world, AddBlock, "plan", value="Sail.", limit=100, description="What next")
    assert do(world, ChangeBlock, "plan", limit=5)
    assert do(world, ChangeBlock, "plan", value="Row.", read_only=True)
    assert not do(world, ChangeBlock, "plan", value="Row.", limit=5)
    assert do(world, ChangeBlock, "rules", value="Be brief.")
    assert (block(world, "plan")["value"], block(world, "plan")["description"]) == ("Row.", "What next")
    assert (block(world, "rules")["value"], block(world, "rules")["read_only"]) == ("Be brief.", True)
    assert do(world, RemoveBlock, "human")
    assert block(world, "human") == {}
    left = [event_of(record) for record in world.log()[head:]]
    assert [getattr(event, "operation", event.kind) for event in left] == [
        "created", "changed", "set", "set", "block_removed"
    ]  # fmt: skip
    asyncio.run(world.tell("And now?"))
    assert "<human" not in system(world)
    assert '<plan characters="4/5" description="What next" read_only="true">' in system(world)
    assert_replays(world)


def test_a_block_that_was_removed_can_be_added_again(world: World) -> None:
    """The block has the fields that are given when it is added again."""
    assert do(world, RemoveBlock, "rules")
    assert do(world, AddBlock, "rules", value="New.", limit=9)
    assert (block(world, "rules")["value"], block(world, "rules")["read_only"]) == ("New.", False)


def test_a_change_of_a_block_that_is_sent_twice_counts_once(world: World) -> None:
    """A command is recognised by its id, although the block has been removed or added since."""
    made: dict[tuple[type, str], Any] = {}

    def again(kind: type[Command], label: str, **fields: Any) -> None:
        repeated(
            world,
            lambda agent, event_id: edit_blocks.change(
                agent, made.setdefault((kind, event_id), kind(id=event_id, label=label, **fields))
            ),
        )

    again(AddBlock, "plan", value="x", limit=9)
    again(ChangeBlock, "plan", value="y")
    again(RemoveBlock, "plan")


REFUSED: dict[str, tuple[type[Command], str, dict[str, Any]]] = {
    "a limit below the value": (ChangeBlock, "rules", {"limit": 9}),
    "a value above the limit": (ChangeBlock, "rules", {"value": "x" * 41}),
    "a block that is there": (AddBlock, "rules", {"value": "", "limit": 9}),
    "a block that is not there": (ChangeBlock, "plan", {"value": "x"}),
    "a removal of none": (RemoveBlock, "plan", {}),
    "a label with a space": (AddBlock, "a b", {"value": "", "limit": 9}),
    "no label": (AddBlock, "", {"value": "", "limit": 9}),
    "a limit of 0": (AddBlock, "plan", {"value": "", "limit": 0}),
    "a description of two lines": (ChangeBlock, "rules", {"description": "a\nb"}),
    "half of a character": (ChangeBlock, "rules", {"value": "\ud800"}),
    "a limit that is True": (ChangeBlock, "rules", {"limit": True}),
    "a value that is a number": (ChangeBlock, "rules", {"value": 5}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_block_is_refused_and_nothing_changes(world: World, name: str) -> None:
    """An invalid block raises BadInput, and the log is unchanged."""
    kind, label, fields = REFUSED[name]
    log = world.log()
    with pytest.raises(BadInput):
        do(world, kind, label, **fields)
    assert world.log() == log


SETTINGS: dict[str, tuple[dict[str, Any], str]] = {
    "too warm": ({"sampling": {"temperature": 2.5}}, "`temperature` is 0 to 2"),
    "a temperature that is none": ({"sampling": {"temperature": float("nan")}}, "temperature"),
    "no tokens": ({"sampling": {"max_tokens": 0}}, "max_tokens"),
    "no steps": ({"steps_max": 0}, "1 to 1,000 model calls"),
    "a fraction above one": ({"pressure_fraction": 1.5}, "0.05 to 1 of the window"),
    "less than nothing": ({"day_cost_max": -1.0}, "day_cost_max"),
    "an endless cost": ({"day_cost_max": float("inf")}, "day_cost_max"),
    "a blank fallback": ({"fallback": "  "}, "fallback is blank"),
    "an effort of two words": ({"sampling": {"reasoning_effort": "very high"}}, "reasoning_effort"),
    "a way that there is not": ({"calling": "shouting"}, "calling"),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_out_of_its_range_is_refused_and_nothing_changes(world: World, name: str) -> None:
    """The error has the valid range."""
    from everlog.events import Sampling

    given, why = SETTINGS[name]
    if "sampling" in given:
        given = {"sampling": Sampling(**given["sampling"])}
    log = world.log()
    with pytest.raises(BadInput, match=why):
        during(world, lambda agent: agent.configure(Settings(**given)))
    assert world.log() == log


def test_a_window_smaller_than_prompt_and_functions_loses_nothing(world: World) -> None:
    """The turn is abandoned with the sizes, the message is kept, and with a larger window the next message is
    answered.
    """
    during(world, lambda agent: agent.configure(Settings(window=4096, system="x" * 300_000)))
    world.settings = Settings()
    asyncio.run(world.tell("Are you there?"))
    assert world.kinds()[-1] == "turn_abandoned"
    assert "system prompt" in (world.log()[-1].text or "")
    during(world, lambda agent: agent.configure(Settings(window=100_000)))
    asyncio.run(world.tell("And now?"))
    asked = json.dumps(world.model.messages())
    assert "Are you there?" in asked and "And now?" in asked and world.kinds()[-1] == "function_result"
