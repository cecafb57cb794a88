"""Shared memory blocks: each agent sees the others' edits, and no edit is lost."""

import asyncio
from itertools import groupby
from operator import attrgetter

import msgspec
import pytest

from everlog.actors.functions.tools import tool
from everlog.actors.memory.core_memory import Memory
from everlog.actors.memory.shared_block_rules import GONE, BlockEdit
from everlog.events import BadInput, Draft, EditConflict, MemoryEdited, Record, event_of
from everlog.store import stream_of_block
from tests.contract.contract_agents import alive
from tests.support.agent_world import completion
from tests.support.agents.shared_block_agents import CLOCK, IDS, Crew, Team, append, replace

MANY = 50


def results(records: list[Record]) -> list[tuple[bool, str]]:
    """Return success and the text for the model, of each call."""
    found = [event_of(record) for record in records if record.type == "function_result"]
    return [(event.ok, event.text) for event in found if event.name != "send_message"]  # type: ignore[union-attr]


def copies(records: list[Record]) -> list[MemoryEdited]:
    return [event for event in map(event_of, records) if isinstance(event, MemoryEdited)]


@alive
async def test_fifty_agents_edit_one_block_at_once() -> None:
    """Every accepted edit is in the block's log, late edits fail with an error, and at the end all agents agree."""
    crew = Crew()
    await crew.people.create("team", "Captain: nobody", limit=5000)
    names = [f"agent-{number:02}" for number in range(MANY)]
    wants = names[::10]
    agents = await crew.following(names)
    barrier = asyncio.Barrier(MANY)
    for name in names:
        crew.voice(name).together = barrier
        crew.voice(name).lines = [replace("nobody", name) if name in wants else append(f"{name} is here")]
    left = dict(zip(names, await asyncio.gather(*(agent.send("go on") for agent in agents)), strict=True))
    won = [name for name in names if results(left[name])[0][0]]
    (captain,) = set(won) & set(wants)
    assert sorted(won) == sorted([captain, *(name for name in names if name not in wants)])
    lines = crew.block().value.split("\n")
    assert lines[0] == f"Captain: {captain}"
    assert sorted(lines[1:]) == [f"{name} is here" for name in names if name not in wants]
    edits = [event for event in map(event_of, crew.edits()) if isinstance(event, MemoryEdited)]
    assert edits[0].author == ""
    assert sorted(edit.author for edit in edits[1:]) == sorted(won)
    assert all(f"Captain: {captain}" in results(left[name])[0][1] for name in wants if name != captain)
    await asyncio.gather(*(agent.send("and now?") for agent in agents))
    assert all(crew.block().value in crew.voice(name).seen for name in names)
    await crew.leave()


@alive
async def test_of_two_edits_of_a_sentence_one_wins_and_the_other_is_refused() -> None:
    """The second edit fails with the name of the author and the newest value, and its agent's copy gets that value."""
    team = Team()
    await team.people.create("team", "The gate is open.")
    async with team.opened("sam") as sam, team.opened("kim") as kim:
        await team.follow(sam)
        await team.follow(kim)
        barrier = asyncio.Barrier(2)
        for name in ("sam", "kim"):
            team.voice(name).together = barrier
        first, second = await asyncio.gather(
            team.tell(sam, replace("open", "shut")), team.tell(kim, replace("open", "broken"))
        )
        (won, lost), winner = ((first, second), "sam") if results(first)[0][0] else ((second, first), "kim")
        assert results(won) == [(True, "None")]
        ok, told = results(lost)[0]
        assert not ok
        assert repr(winner) in told
        assert team.block().value in told
        assert copies(lost)[-1].text == team.block().value
    assert [team.faults(name) for name in ("sam", "kim")] == [[], []]


@alive
async def test_a_persons_edit_is_in_the_next_request() -> None:
    """A person's edit is copied to the agent's log before the next model call, under the agent's label for the block; a
    further step makes no copy.
    """
    team = Team()
    await team.people.create("team", "one", description="What we know", limit=100)
    async with team.opened("sam") as sam:
        assert await team.follow(sam, label="crew")
        assert not await team.follow(sam, label="crew")
        await team.people.set("team", "two")
        records = await team.tell(sam)
        (copy,) = copies(records)
        assert (copy.label, copy.operation, copy.origin, copy.origin_version) == ("crew", "copied", "team", 2)
        assert (copy.text, copy.limit, copy.description) == ("two", 100, "What we know")
        assert "two" in team.voice("sam").seen
        assert copies(await team.tell(sam)) == []
    assert team.faults("sam") == []


@alive
async def test_an_addition_to_a_newer_version_is_merged() -> None:
    """Two appended lines are both kept, and the second agent is informed that the block had changed."""
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)

        async def changes(_: bytes) -> str:
            await team.people.append("team", "two")
            return append("three")

        records = await team.tell(sam, changes)
        ok, told = results(records)[0]
        assert ok
        assert "changed" in told
    assert team.block().value == "one\ntwo\nthree"


@alive
async def test_limits_and_protection_are_those_of_the_shared_block() -> None:
    """An edit beyond the limit or of a read-only block fails, and the block's log has no record of it."""
    team = Team()
    await team.people.create("team", "0123456789", limit=12)
    async with team.opened("sam") as sam:
        await team.follow(sam)
        ok, told = results(await team.tell(sam, append("too long")))[0]
        assert not ok
        assert "12 character limit" in told
        await team.people.change("team", limit=100, read_only=True)
        ok, told = results(await team.tell(sam, append("more")))[0]
        assert not ok
        assert "read and not edited" in told
        await team.people.change("team", read_only=False)
        assert results(await team.tell(sam, append("more"))) == [(True, "None")]
    assert team.block().value == "0123456789\nmore"
    with pytest.raises(BadInput, match="limit"):
        await team.people.change("team", limit=3)
    assert team.faults("sam") == []


@tool
def note(memory: Memory, text: str) -> str:
    """Write down a text everywhere.

    Args:
        text: What to write.
    """
    memory.append("human", text)
    memory.append("team", text)
    memory.replace("team", "one", "1")
    return "noted"


@alive
async def test_a_users_function_edits_its_own_and_shared_blocks_in_one_call() -> None:
    """All edits of the function are recorded, shared ones in the block's stream, and verify finds no fault."""
    team = Team(tools=[note])
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)
        assert results(await team.tell(sam, completion(calls=[("note", {"text": "two"})]))) == [(True, "noted")]
        human = next(row for row in await sam.rows("core_memory") if row["label"] == "human")
        assert human["value"].endswith("two")
    assert team.block().value == "1\ntwo"
    assert len(team.edits()) == 3
    assert team.faults("sam") == []


@alive
async def test_two_calls_of_one_reply_build_on_each_other() -> None:
    """The second call sees the edit of the first."""
    team = Team()
    await team.people.create("team", "one")
    calls = [("core_memory_append", {"name": "team", "content": "two"}),
             ("core_memory_replace", {"name": "team", "old_content": "two", "new_content": "three"})]  # fmt: skip
    async with team.opened("sam") as sam:
        await team.follow(sam)
        assert results(await team.tell(sam, completion(calls=calls))) == [(True, "None"), (True, "None")]
    assert team.block().value == "one\nthree"
    assert team.faults("sam") == []


@alive
async def test_a_deleted_block_keeps_its_text_and_cannot_be_edited() -> None:
    """After the block is deleted, the agent keeps its copy and is informed once; its edits fail. When the block is
    created again, the copy is updated.
    """
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)
        await team.people.delete("team")
        (copy,) = copies(await team.tell(sam))
        assert (copy.text, copy.read_only, copy.description) == ("one", True, GONE)
        records = await team.tell(sam, append("two"))
        ok, told = results(records)[0]
        assert not ok
        assert "deleted" in told
        assert copies(records) == []
        with pytest.raises(BadInput, match="no shared block"):
            await team.follow(sam, label="again")
        await team.people.create("team", "anew")
        (copy,) = copies(await team.tell(sam))
        assert (copy.text, copy.read_only) == ("anew", False)
    assert team.faults("sam") == []


@alive
async def test_an_agent_in_a_store_without_the_block_keeps_its_copy() -> None:
    """In a store without the block, the agent is informed and its edits fail; no block is created."""
    here, there = Team(), Team()
    await here.people.create("team", "one")
    async with here.opened("sam") as sam:
        await here.follow(sam)
        await here.tell(sam)
    _move(here, there)
    async with there.opened("sam") as sam:
        (copy,) = copies(await there.tell(sam))
        assert (copy.text, copy.description, copy.origin_version) == ("one", GONE, 0)
        ok, told = results(await there.tell(sam, append("two")))[0]
        assert not ok
        assert "not in this store" in told
    assert there.people.names() == []
    assert there.faults("sam") == []


@alive
async def test_an_agent_in_another_store_follows_the_block_of_that_name_there() -> None:
    """In another store, the agent's copy is replaced by the block of that name, although the versions are equal."""
    here, there = Team(), Team()
    await here.people.create("team", "A's secret")
    async with here.opened("sam") as sam:
        await here.follow(sam)
        await here.tell(sam)
    _move(here, there)
    await there.people.create("team", "something else")
    async with there.opened("sam") as sam:
        (copy,) = copies(await there.tell(sam))
        assert (copy.text, copy.origin_version) == ("something else", 1)
        assert "something else" in there.voice("sam").seen
        assert "secret" not in there.voice("sam").seen
        assert copies(await there.tell(sam)) == []
    assert there.faults("sam") == []


@alive
async def test_an_edit_based_on_another_block_of_the_name_is_refused() -> None:
    """An edit that is based on another value of the same version is refused, and the block stays."""
    team = Team()
    await team.people.create("team", "one")
    seen = msgspec.structs.replace(team.block(), value="another")
    edit = BlockEdit(
        name="team", operation="set", id=IDS.new(CLOCK.now()), content="mine", base=1, author="sam", seen=seen
    )
    assert "changed meanwhile" in (await team.sharing.edit(edit)).error
    assert team.block().value == "one"


@alive
@pytest.mark.parametrize("label", ['</t1><x y="1">', "new\nline", "weird label", "x" * 65])
async def test_a_followed_block_has_a_label_as_any_block_has(label: str) -> None:
    """A label that could be read as part of the prompt is refused, and so is a new block with a name of two lines."""
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        before = sam.head
        with pytest.raises(BadInput, match="label is up to 64 letters"):
            await team.follow(sam, label=label)
        assert sam.head == before
    with pytest.raises(BadInput, match="control characters"):
        await team.people.create("new\nline", "one")
    assert team.people.names() == ["team"]


@alive
async def test_an_agent_follows_no_more_blocks_than_it_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attached shared blocks and the agent's own blocks are counted together."""
    monkeypatch.setattr("everlog.actors.prompt.setting_limits.BLOCKS_MAX", 3)
    team = Team()
    for name in ("one", "two"):
        await team.people.create(name, name)
    async with team.opened("sam") as sam:
        await team.follow(sam, "one")
        with pytest.raises(BadInput, match="3 memory blocks at most"):
            await team.follow(sam, "two")


def _move(here: Team, there: Team) -> None:
    """Copy the agent sam to another store, as a restored export does."""
    there.store.register("sam")
    log = there.store.open("sam", "test")
    for _, commit in groupby(here.store.reader("sam").read("sam"), key=attrgetter("commit")):
        records = list(commit)
        log.append("sam", records[0].seq - 1, list(map(_draft, records)))
    log.close()


def _draft(record: Record) -> Draft:
    return Draft(**{name: getattr(record, name) for name in Draft.__struct_fields__})


@alive
async def test_a_fork_follows_from_its_cut_on() -> None:
    """A fork begins with the copy at its fork point, gets the newest value before its next call, and can edit it."""
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)
        await team.tell(sam)
        cut = sam.head
        await team.tell(sam, append("two"))
    team.system.fork("sam", "max", at=cut)
    async with team.opened("max") as fork:
        assert "two" not in next(r for r in await fork.rows("core_memory") if r["label"] == "team")["value"]
        await team.tell(fork, append("three"))
        assert "one\ntwo" in team.voice("max").seen
    assert team.block().value == "one\ntwo\nthree"
    assert team.block().author == "max"
    assert team.faults("max") == []


@alive
async def test_an_erased_edit_is_removed_from_the_block() -> None:
    """After an erasure the block has its earlier value; copies are erased with the agent's records."""
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)
        await team.people.set("team", "a secret")
        await team.tell(sam)
    team.system.erase(stream_of_block("team"), 2, 2)
    CLOCK.skip(2)
    assert team.block().value == "one"
    assert [version.operation for version in team.people.history("team")] == ["created", "erased"]
    async with team.opened("sam") as sam:
        (copy,) = copies(await team.tell(sam))
        assert (copy.text, copy.origin_version) == ("one", 1)
        seq = next(r.seq for r in sam.records(1) if r.text == "a secret")
    team.system.erase("sam", seq, seq)
    assert all("a secret" not in (record.text or "") for record in team.store.reader("sam").read("sam"))


@alive
async def test_a_detached_agent_gets_no_more_edits() -> None:
    """Detaching removes the block from the agent's core memory and leaves it for other agents."""
    team = Team()
    await team.people.create("team", "one")
    async with team.opened("sam") as sam:
        await team.follow(sam)
        assert dict(team.people.attached_agents())["team"][0].agent == "sam"
        assert await team.unfollow(sam)
        assert not await team.unfollow(sam)
        await team.people.set("team", "two")
        assert copies(await team.tell(sam)) == []
        assert "two" not in team.voice("sam").seen
        assert results(await team.tell(sam, append("x")))[0][0] is False
        with pytest.raises(BadInput, match="of its own"):
            await team.follow(sam, label="human")
    assert team.people.attached_agents() == {}
    assert team.faults("sam") == []


@alive
async def test_streams_of_blocks_are_no_agents() -> None:
    """Streams of blocks are not listed as agents, and no agent with such a name can be created."""
    team = Team()
    await team.people.create("team", "one")
    assert team.store.agents() == []
    assert team.store.blocks() == ["team"]
    with pytest.raises(BadInput, match="shared memory blocks"):
        async with team.opened("block:x"):
            pass
    with pytest.raises(BadInput, match="already"):
        await team.people.create("team", "two")
    with pytest.raises(BadInput, match="no shared block 'x'"):
        team.people.show("x")
    with pytest.raises(BadInput, match="not in this store"):
        await team.people.set("x", "y")


@alive
async def test_a_block_is_shown_as_it_was() -> None:
    """A block can be read as of a version; a rewrite that is based on an old version is refused."""
    team = Team()
    await team.people.create("team", "one")
    await team.people.set("team", "two", base=1)
    with pytest.raises(EditConflict, match="changed meanwhile by a person"):
        await team.people.set("team", "three", base=1)
    assert team.people.show("team", as_of=1).value == "one"
    assert team.block().value == "two"
    assert [version.value for version in team.people.history("team")] == ["one", "two"]
