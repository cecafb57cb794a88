"""Granted memory blocks: derived lines beside what a person wrote, within the limit, and never over a newer edit."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from everlog.actors.agent.agent import Agent
from everlog.actors.agent.commands import AddBlock, ChangeBlock
from everlog.actors.derivation.block_model import reader
from everlog.actors.derivation.block_rules import MARK, with_lines
from everlog.actors.deriving.block_edits import BlockDerivation
from everlog.actors.deriving.memory_commands import DeriveMemories, EndFact, NoteFact
from everlog.actors.hosting.edit_commands import edit
from everlog.events import BadInput, BadReply, DerivationReplied, event_of
from tests.support.agent_world import World, written


def with_agent(main: Callable[[World, Agent], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        world = World()
        await world.tell("I moved to Rome, and I love sailing.")
        async with world.system.agent("sam", world.settings) as agent:
            await edit(agent, command(world, AddBlock, label="known", value="Their cat is Tom.", limit=100))
            await note(world, agent, "lives_in", "Rome", "The user lives in Rome.")
            await main(world, agent)

    asyncio.run(run())


def command(world: World, kind: Any, **fields: Any) -> Any:
    return kind(id=world.ids.new(world.clock.now()), **fields)


async def note(world: World, agent: Agent, predicate: str, found: str, sentence: str) -> int:
    said = next(record.seq for record in world.log() if record.type == "user_message")
    made = command(
        world, NoteFact, subject="user", predicate=predicate, object=found, sources=[said], sentence=sentence
    )
    return int(await edit(agent, made))


async def value(agent: Agent, label: str = "known") -> str:
    return str(next(row["value"] for row in await agent.rows("core_memory") if row["label"] == label))


def test_derived_lines_stand_below_what_a_person_wrote() -> None:
    """A believed fact becomes a line; the edit has the cursor as its cause, in one commit, and is made once."""

    async def main(world: World, agent: Agent) -> None:
        head = agent.head
        report = await BlockDerivation(agent, ["known"]).run()
        assert (report.noted, report.refused) == (1, [])
        assert await value(agent) == f"Their cat is Tom.\n{MARK}The user lives in Rome."
        cursor, edited = list(agent.records(head + 1))
        assert (cursor.type, edited.type) == ("memories_derived", "memory_edited")
        assert (edited.cause, edited.commit) == (cursor.event_id, cursor.commit)
        head = agent.head
        assert (await BlockDerivation(agent, ["known"]).run()).noted == 0
        assert agent.head == head

    with_agent(main)


def test_a_line_goes_when_its_fact_ends() -> None:
    """A fact that ended is no line any more; the person's line stays."""

    async def main(world: World, agent: Agent) -> None:
        await BlockDerivation(agent, ["known"]).run()
        (fact,) = await agent.rows("facts")
        await edit(agent, command(world, EndFact, fact=fact["seq"], reason="They left."))
        await BlockDerivation(agent, ["known"]).run()
        assert await value(agent) == "Their cat is Tom."

    with_agent(main)


def test_an_edit_of_a_person_is_the_beginning_of_the_next_derivation() -> None:
    """Text that a person wrote since stays, and a derived line that says the same is left out."""

    async def main(world: World, agent: Agent) -> None:
        await BlockDerivation(agent, ["known"]).run()
        mine = "Their cat is Tom, a tabby. The user lives in Rome. Ask about Lea."
        await edit(agent, command(world, ChangeBlock, label="known", value=mine))
        await note(world, agent, "likes", "sailing", "The user likes sailing.")
        await BlockDerivation(agent, ["known"]).run()
        assert await value(agent) == f"{mine}\n{MARK}The user likes sailing."

    with_agent(main)


def test_an_edit_while_the_model_is_asked_is_not_overwritten() -> None:
    """A block that a person edits between request and commit is left alone, with a reason, until the next time."""

    async def main(world: World, agent: Agent) -> None:
        answer = json.dumps({"lines": [{"text": "Lives in Rome.", "because_of": [1]}]})
        real = agent.ask

        async def ask(*arguments: Any) -> Any:
            answered = await real(*arguments)
            await edit(agent, command(world, ChangeBlock, label="known", value="Their cat is Max."))
            return answered

        agent_ask = type("Asking", (), {"__getattr__": lambda _, name: ask if name == "ask" else getattr(agent, name)})
        world.model.summaries = [lambda raw: written(raw, answer)] * 2
        report = await BlockDerivation(agent_ask(), ["known"], "thinker").run()
        assert report.noted == 0
        assert "edited meanwhile" in report.refused[0]
        assert await value(agent) == "Their cat is Max."
        assert (await BlockDerivation(agent, ["known"], "thinker").run()).noted == 1
        assert await value(agent) == f"Their cat is Max.\n{MARK}Lives in Rome."

    with_agent(main)


@pytest.mark.parametrize("label", ["unknown", "rules"])
def test_a_block_that_cannot_be_edited_is_refused(label: str) -> None:
    """An unknown and a read-only block are refused with the reason; other granted blocks are edited all the same."""

    async def main(world: World, agent: Agent) -> None:
        await edit(agent, command(world, AddBlock, label="rules", value="Be kind.", limit=100, read_only=True))
        report = await BlockDerivation(agent, [label, "known"]).run()
        assert report.noted == 1
        assert label in report.refused[0]

    with_agent(main)


def test_nothing_is_edited_without_a_grant() -> None:
    """The command is refused for an agent whose settings grant no block."""

    async def main(world: World, agent: Agent) -> None:
        with pytest.raises(BadInput, match="derive_blocks"):
            await edit(agent, command(world, DeriveMemories, derivation="blocks"))

    with_agent(main)


def test_lines_stay_within_the_limit() -> None:
    """Lines that would make the block longer than its limit are left out, and shorter ones still come in."""
    lines = [("x" * 50, 7), ("y" * 10, 8), ("z" * 10, 9)]
    found, seqs = with_lines("a person's line", 44, lines)
    assert found == f"a person's line\n{MARK}{'y' * 10}\n{MARK}{'z' * 10}"
    assert seqs == [8, 9]


def test_a_value_without_lines_stays_as_it_is() -> None:
    """A block of a person's lines alone does not change if nothing is believed."""
    assert with_lines("one\n\ntwo", 100, [])[0] == "one\n\ntwo"


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [{"text": "Lives in Rome.", "because_of": []}],
        [{"text": "Lives in Rome.", "because_of": [2]}],
        [{"text": "Lives in Rome.", "because_of": [0]}],
        [{"text": " ", "because_of": [1]}],
        [{"text": "x" * 201, "because_of": [1]}],
        [{"text": "Invent nothing", "because_of": [1]}],
    ],
)
def test_a_line_that_rests_on_nothing_is_no_line(lines: list[dict[str, Any]]) -> None:
    """An answer without a line that names what was shown is a fault."""
    with pytest.raises(BadReply, match="No line"):
        reader([("The user lives in Rome.", 9)])(json.dumps({"lines": lines}))


def test_a_bad_answer_changes_no_block() -> None:
    """An unusable answer is recorded twice, and the block stays as it was."""

    async def main(world: World, agent: Agent) -> None:
        world.model.summaries = [lambda raw: written(raw, "I would rather not.")] * 4
        report = await BlockDerivation(agent, ["known"], "thinker").run()
        assert (report.noted, len(report.refused)) == (0, 1)
        assert await value(agent) == "Their cat is Tom."
        faults = [event.fault for event in map(event_of, world.log()) if isinstance(event, DerivationReplied)]
        assert len(faults) == 2
        assert all(faults)

    with_agent(main)
