"""Shared memory blocks with crashes, busy owners, stale ids and disk failures."""

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from everlog.actors.memory.shared_block_rules import BlockEdit, BlockEditOutcome, SharedBlock, event_after, id_of
from everlog.actors.memory.shared_block_service import SharedBlockService
from everlog.actors.memory.shared_block_writer import BUSY_TRIES, SharedBlockWriter
from everlog.actors.ports.ports import Ports
from everlog.actors.rerun.rerun import RerunEnvironment, RerunOptions, rerun
from everlog.events import FunctionError, FunctionResult, MemoryEdited, StoreError, event_of
from everlog.store import FileStore, MemoryLog, MemoryReader, MemoryStore, stream_of_block
from tests.contract.contract_agents import alive
from tests.support.agent_world import ScriptedModel
from tests.support.agents.shared_block_agents import CLOCK, IDS, PORTS, Team, append, replace
from tests.support.seeds import seeds

AGENTS = ("sam", "kim", "max")


class Dead(BaseException):
    """The process of the agents dies here."""


class Dying:
    """Shared blocks in a process that may die before an edit, or after the edit is durable and before it is
    acknowledged.
    """

    def __init__(self, sharing: SharedBlockWriter, chance: random.Random) -> None:
        self._sharing = sharing
        self._chance = chance

    async def newest(self, known: Mapping[str, int]) -> Mapping[str, SharedBlock | None]:
        return await self._sharing.newest(known)

    async def edit(self, edit: BlockEdit) -> BlockEditOutcome:
        fate = self._chance.random()
        if fate < 0.25:
            raise Dead
        edited = await self._sharing.edit(edit)
        if fate < 0.5:
            raise Dead
        return edited


class Lives:
    """Agents of one store that crash and restart until all of them have played their lines."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.store = MemoryStore()
        self.team = Team(self.store)

    def again(self) -> None:
        """Start a new process; the models' remaining lines stay."""
        voices = self.team.voices
        self.team = Team(self.store)
        self.team.voices = voices
        self.team.system.blocks = Dying(self.team.sharing, self.chance)

    async def run(self, agent_id: str, lines: Sequence[str]) -> int:
        """Have an agent play its lines. Return the number of its crashes."""
        died = 0
        try:
            async with self.team.opened(agent_id) as agent:
                await self.team.tell(agent, *lines)
        except Dead:
            died += 1
        while died:
            self.again()
            try:
                async with self.team.opened(agent_id) as agent:
                    if not agent.waiting:
                        break
                    await agent.run()
            except Dead:
                died += 1
        return died


async def lived(worlds: Sequence[int]) -> None:
    """Run worlds from seeds. Check that each edit is in the block once, and that the logs of all agents verify."""
    died = 0
    for seed in worlds:
        lives = Lives(seed)
        await lives.team.people.create("team", "begin", limit=5000)
        for name in AGENTS:
            async with lives.team.opened(name) as agent:
                await lives.team.follow(agent)
        lives.again()
        for name in AGENTS:
            died += await lives.run(
                name, [append(f"{name} {n}") for n in range(2)] + [replace(f"{name} 0", f"{name}!")]
            )
        wanted = ["begin", *(line for name in AGENTS for line in (f"{name}!", f"{name} 1"))]
        assert lives.team.block().value.split("\n") == wanted, seed
        made = [event for event in map(event_of, lives.team.edits()) if isinstance(event, MemoryEdited)]
        assert len(made) == 1 + 3 * len(AGENTS), seed
        assert [lives.team.faults(name) for name in AGENTS] == [[]] * len(AGENTS), seed
    assert died >= len(worlds)


@alive
async def test_an_edit_is_made_once_whenever_the_agents_process_dies() -> None:
    """A crash before or after an edit: the block has each line once, and the agent's log verifies."""
    await lived(seeds(2, label="edits", below=40))


@pytest.mark.long
@pytest.mark.agents
@pytest.mark.parametrize("first", range(0, 40, 5))
@alive
async def test_an_edit_is_made_once_in_many_worlds(first: int) -> None:
    """The same holds for forty seeds, with one crash or more in the average world."""
    await lived(range(first, first + 5))


@alive
@pytest.mark.parametrize("written", [False, True])
async def test_an_edit_with_unknown_outcome_is_reported_as_unknown(
    written: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the disk fails before or after the edit is written, the result says that the outcome is unknown; the next
    request shows the outcome.
    """
    team = Team()
    await team.people.create("team", "one")
    append_group = MemoryLog.append_group

    def failing(self: MemoryLog, appends: Any) -> Any:
        of_block = appends[0].agent_id == stream_of_block("team")
        found = append_group(self, appends) if written or not of_block else []
        if not of_block:
            return found
        raise StoreError("the disk is gone")

    async with team.opened("sam") as sam:
        await team.follow(sam)
        with monkeypatch.context() as patch:
            patch.setattr(MemoryLog, "append_group", failing)
            records = await team.tell(sam, append("two"))
        told = next(event for event in map(event_of, records) if isinstance(event, FunctionResult))
        assert (told.ok, told.unknown) == (False, True)
        assert "cannot be said" in told.text
        CLOCK.skip(2)
        await team.tell(sam)
        assert ("one\ntwo" in team.voice("sam").seen) is written
    assert team.faults("sam") == []


def edit(number: int, **more: Any) -> BlockEdit:
    return BlockEdit(name="team", operation="appended", id=id_of("a key", number, CLOCK.now()), author="sam", **more)


@alive
async def test_the_same_edit_counts_once_after_days_too() -> None:
    """An id that is older than the log's memory is found in the block's own records; a new edit has its id as cause."""
    team = Team()
    await team.people.create("team", "one")
    old, other = edit(1, content="two"), edit(2, content="three")
    await team.sharing.edit(old)
    CLOCK.skip(3 * 24 * 3600)
    for again in (Team(team.store), Team(team.store)):
        for one in (old, other, other):
            assert (await again.sharing.edit(one)).error == ""
    assert team.block().value == "one\ntwo\nthree"
    assert team.edits()[-1].cause == other.id


@alive
async def test_a_block_that_another_process_owns_is_waited_for_and_then_refused(tmp_path: Path) -> None:
    """An edit waits for a busy owner for a limited time, then fails, and succeeds when the owner has closed the
    block.
    """
    store = FileStore.create(tmp_path, CLOCK.now, "s")
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    sharing = SharedBlockWriter(store, Ports(clock=CLOCK, ids=IDS, sleep=sleep))
    people = SharedBlockService(store, sharing, clock=CLOCK, ids=IDS)
    await people.create("team", "one")
    other = FileStore(tmp_path, CLOCK.now).open(stream_of_block("team"), "everlog shared")
    with pytest.raises(StoreError, match="cannot be edited now"):
        await people.append("team", "two")
    assert len(waits) == BUSY_TRIES - 1
    other.close()
    assert (await people.append("team", "two")).value == "one\ntwo"
    FileStore(tmp_path, CLOCK.now).open(stream_of_block("team"), "everlog shared").close()


@alive
async def test_two_processes_see_each_others_edits(tmp_path: Path) -> None:
    """Each process owns the block only while it edits; edits of the other process are seen within seconds and never
    undone.
    """
    one, two = (Team(FileStore.create(tmp_path, CLOCK.now, "s")) for _ in range(2))
    await one.people.create("team", "one")
    async with two.opened("sam") as sam:
        await two.follow(sam)
        await one.people.append("team", "two")
        CLOCK.skip(2)
        await two.tell(sam, append("three"))
        assert "one\ntwo" in two.voice("sam").seen
    await one.people.append("team", "four")
    assert two.block().value == "one\ntwo\nthree\nfour"


@alive
async def test_a_step_reads_nothing_where_nothing_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent without shared blocks never reads the log of a block, and an agent with one reads it once a moment at
    most.
    """
    team = Team()
    await team.people.create("team", "one")
    reads: list[str] = []
    head = MemoryReader.head

    def counted(self: MemoryReader, agent_id: str) -> Any:
        reads.append(agent_id)
        return head(self, agent_id)

    monkeypatch.setattr(MemoryReader, "head", counted)
    async with team.opened("sam") as sam, team.opened("kim") as kim:
        await team.follow(sam)
        reads.clear()
        for _ in range(3):
            await team.tell(sam)
            await team.tell(kim)
    assert reads.count("block:team") <= 1


@alive
async def test_an_owner_that_keeps_its_blocks_open_answers_from_memory(tmp_path: Path) -> None:
    """A process that keeps its blocks open answers from memory; other processes can edit a block after it was
    unloaded.
    """
    store = FileStore.create(tmp_path, CLOCK.now, "s")
    team = Team(store, keeps=True)
    await team.people.create("team", "one")
    other = Team(FileStore(tmp_path, CLOCK.now))
    other.sharing._sleep = _at_once
    with pytest.raises(StoreError, match="cannot be edited now"):
        await other.people.set("team", "two")
    assert await team.sharing.unload("team")
    assert (await other.people.set("team", "two")).value == "two"
    found = await team.sharing.newest({"team": 0, "none": 0})
    assert found["team"] is not None
    assert (found["team"].value, found["none"]) == ("two", None)
    await team.sharing.close()


async def _at_once(_: float) -> None:
    """Return without waiting."""


@alive
async def test_a_rerun_edits_no_block_of_others() -> None:
    """The fork edits its own copies; the shared block, and the agents that are attached to it, do not change."""
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)
        await team.tell(sam, append("two"))
    edits = team.edits()
    model = ScriptedModel([append("three")])
    first = next(record.seq for record in team.store.reader("sam").read("sam") if record.text == "go on")
    stage = RerunEnvironment(store=team.store, ports=PORTS, models=lambda _: model)
    await rerun(RerunOptions(agent_id="sam", fork="again", from_seq=first), stage)
    assert team.edits() == edits
    async with team.opened("again") as fork:
        blocks = {row["label"]: row["value"] for row in await fork.rows("core_memory")}
        assert blocks["team"].endswith("three")


def test_an_impossible_edit_is_reported() -> None:
    """An invalid edit raises FunctionError with a plain text."""
    now = SharedBlock("team", 3, "one", 10)
    for refused in (
        BlockEdit(name="team", operation="created", id="x", limit=10),
        BlockEdit(name="team", operation="changed", id="x", limit=0),
        BlockEdit(name="team", operation="changed", id="x", limit=2),
        BlockEdit(name="team", operation="replaced", id="x", old="two", content="three", base=1),
        BlockEdit(name="team", operation="set", id="x", content="a longer text than it holds"),
    ):
        with pytest.raises(FunctionError):
            event_after(refused, now)
