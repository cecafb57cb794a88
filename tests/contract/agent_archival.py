"""Archival memory: edits by the agent's functions, and edits by a person without a turn."""

import re
from typing import Any

import pytest

from everlog.actors.agent.commands import Command, DeleteMemory, InsertMemories, InsertMemory, UpdateMemory
from everlog.actors.agent_ref import AgentRef
from everlog.actors.agent_system import AgentSystem
from everlog.actors.ports.effects import Hit, Page
from everlog.events import BadInput, UnknownAgent
from tests.contract.contract_agents import SCRIPTED, alive, assert_sound, log, says, scripted
from tests.support.agent_world import completion

OAK = "The gold is under the oak."
ELM = "The gold is under the elm."


def step(*calls: tuple[str, dict[str, Any]]) -> tuple[int, str]:
    """Return the endpoint's answer that makes these calls and continues after them."""
    return 200, completion(calls=[(name, {"request_heartbeat": True, **arguments}) for name, arguments in calls])


def told(system: AgentSystem) -> list[str]:
    """Return the functions' results, except those of send_message."""
    found = [record for record in log(system) if record.type == "function_result"]
    return [record.text or "" for record in found if "send_message" not in record.payload]


def without_nearness(text: str) -> str:
    """Return a page of results without the similarity of each, which depends on the embedder."""
    return re.sub(r"near: -?\d\.\d\d, ", "", text)


def kept(system: AgentSystem) -> list[Hit]:
    """Return the agent's present memories, in order."""
    view = system._reading.view("sam")
    try:
        page: Page = view.searcher().listed(0, 1000)
        return list(page.results)
    finally:
        view.close()


def changes(system: AgentSystem) -> list[str]:
    """Return the types of all records that changed archival memory."""
    return [record.type for record in log(system) if record.type.startswith("archival_")]


async def value(agent: AgentRef, command: Command) -> Any:
    """Return the result of a command, which is the same however often the command is sent."""
    run = agent._sender.run(command)
    await run
    return run.value


class ArchivalContract:
    """Contract of archival memory; a part of `AgentContract`."""

    kill: Any

    @alive
    async def test_a_memory_is_kept_once(self, opens: Any) -> None:
        """The same text is recognised as a duplicate in the same reply, in later turns, and after the host died."""
        again = ("archival_memory_insert", {"content": f" {OAK}\n", "tags": ["late"]})
        script = (step(("archival_memory_insert", {"content": OAK, "tags": ["gold", "gold "]}), again), says("Kept."))
        async with scripted(opens, *script, step(again), says("I had it.")) as (system, agent):
            await agent.send("go")
            await self.kill(system, "sam")
            await agent.send("again")
            (memory,) = kept(system)
            assert (memory.text, memory.tags) == (OAK, ["gold"])
            assert changes(system) == ["archival_inserted"]
            assert told(system)[0] == "None"
            assert "by a call just before" in told(system)[1]
            assert memory.ref in told(system)[2]
            assert_sound(system)

    @alive
    async def test_a_memory_is_changed_and_deleted_by_its_id(self, opens: Any) -> None:
        """The id is that of the search result; tags stay if none are given; a deleted memory is gone."""
        async with scripted(opens) as (system, agent):
            known = await agent.archive.insert(OAK, ["gold", "tree"])
            await agent.unload()
        search = ("archival_memory_search", {"query": "gold"})
        script = (
            step(search, ("archival_memory_update", {"memory_id": f"{known.upper()}/1", "content": ELM})),
            step(search, ("archival_memory_update", {"memory_id": known, "content": ELM})),
            step(("archival_memory_update", {"memory_id": known, "content": ELM, "tags": []})),
            step(search, ("archival_memory_delete", {"memory_id": known}), search),
            says("Done."),
        )
        async with scripted(opens, *script) as (system, agent):
            await agent.send("go")
            first, changed, second, same, untagged, third, gone, last = map(without_nearness, told(system))
            for shown, what in (
                (first, f"tags: gold, tree, memory: {OAK}"),
                (second, f"tags: gold, tree, memory: {ELM}"),
            ):
                assert f"id: {known}, {what}" in shown
            assert (changed, untagged, gone) == ("None", "None", "None")
            assert "reads so already" in same
            assert f"id: {known}, memory: {ELM}" in third
            assert last == third, "a search sees what was so when the model was asked"
            assert (kept(system), changes(system)) == (
                [],
                ["archival_inserted", "archival_updated", "archival_updated", "archival_deleted"],
            )
            assert_sound(system)

    @alive
    async def test_impossible_calls_are_reported_to_the_model(self, opens: Any) -> None:
        """An unknown id, a deleted memory, an empty text and a text that is too long each fail with a plain text, and
        nothing changes.
        """
        async with scripted(opens) as (system, agent):
            known = await agent.archive.insert(OAK)
            await agent.unload()
        calls = [
            ("archival_memory_update", {"memory_id": "4711", "content": "x"}),
            ("archival_memory_delete", {"memory_id": ""}),
            ("archival_memory_update", {"memory_id": known, "content": "  "}),
            ("archival_memory_insert", {"content": ""}),
            ("archival_memory_insert", {"content": "x" * 1_000_001}),
            ("archival_memory_insert", {"content": "x", "tags": [""]}),
            ("archival_memory_insert", {"content": "x", "tags": "one"}),
            ("archival_memory_search", {"query": "gold", "start_date": "soon"}),
            ("archival_memory_search", {"query": "gold", "start_date": "2024-02-01", "end_date": "2024-01-01"}),
            ("archival_memory_search", {"query": "gold", "source": "nowhere"}),
            ("conversation_search", {"query": "gold", "roles": ["nobody"]}),
        ]
        words = [
            "no memory with the id '4711'", "no memory with the id ''", "content is empty", "content is empty",
            "1,000,000 characters at most", "none empty", "Expected `array | null`", "YYYY-MM-DD",
            "is before the first", "no source 'nowhere'", "Invalid enum value 'nobody'",
        ]  # fmt: skip
        async with scripted(opens, step(*calls), says("Oh.")) as (system, agent):
            await agent.send("go")
            for result, what in zip(told(system), words, strict=True):
                assert what in result
            assert [memory.text for memory in kept(system)] == [OAK]
            assert_sound(system)

    @alive
    async def test_calls_of_one_reply_see_what_the_ones_before_did(self, opens: Any) -> None:
        """A memory that an earlier call deleted cannot be changed, and its text can be stored again."""
        async with scripted(opens) as (system, agent):
            known = await agent.archive.insert(OAK)
            await agent.unload()
        calls = [
            ("archival_memory_update", {"memory_id": known, "content": ELM}),
            ("archival_memory_insert", {"content": ELM}),
            ("archival_memory_delete", {"memory_id": known}),
            ("archival_memory_update", {"memory_id": known, "content": OAK}),
            ("archival_memory_insert", {"content": OAK}),
        ]
        async with scripted(opens, step(*calls), says("Done.")) as (system, agent):
            await agent.send("go")
            changed, twice, deleted, late, anew = told(system)
            assert (changed, deleted, anew) == ("None", "None", "None")
            assert known in twice
            assert "it was deleted" in late
            (memory,) = kept(system)
            assert (memory.text, memory.ref != known) == (OAK, True)
            assert_sound(system)

    @alive
    async def test_a_person_inserts_updates_and_deletes_memories(self, opens: Any) -> None:
        """A person's edits need no turn and no model; the log has them, and so has a new host."""
        async with opens() as system:
            agent = await system.agent("sam", SCRIPTED)
            turn = agent.opened.turn
            known = await agent.archive.insert(f"  {OAK} ", ["gold"])
            assert await agent.archive.insert(OAK) == known
            await self.kill(system, "sam")
            await agent.archive.update(known, ELM)
            await agent.archive.update(f"{known}/2", ELM)
            other = await agent.archive.insert(OAK)
            assert [(memory.ref, memory.text, memory.tags) for memory in kept(system)] == [
                (known, ELM, ["gold"]),
                (other, OAK, []),
            ]
            await agent.archive.delete(known)
            for work in (
                agent.archive.delete(known),
                agent.archive.update(known, OAK),
                agent.archive.delete("nothing"),
            ):
                with pytest.raises(BadInput, match="no memory with the id"):
                    await work
            for text, tags in (("", ()), ("x" * 1_000_001, ()), ("x", "tag"), ("x", [""]), ("\ud800", ())):
                with pytest.raises(BadInput):
                    await agent.archive.insert(text, tags)
            assert [memory.ref for memory in kept(system)] == [other]
            assert changes(system) == ["archival_inserted", "archival_updated", "archival_inserted", "archival_deleted"]
            assert {record.turn for record in log(system)} == {turn}
            assert_sound(system)

    @alive
    async def test_a_change_that_is_sent_twice_counts_once(self, opens: Any) -> None:
        """A command is recognised by its id, also after its host died and after other changes."""
        async with opens() as system:
            agent = await system.agent("sam", SCRIPTED)
            keep = InsertMemory(id=agent._sender.new_id(), text=OAK, tags=["gold"])
            amend = UpdateMemory(id=agent._sender.new_id(), memory_id=keep.id, text=ELM)
            forget = DeleteMemory(id=agent._sender.new_id(), memory_id=keep.id)
            assert await value(agent, keep) == keep.id
            assert await value(agent, keep) == keep.id
            await value(agent, amend)
            await agent.archive.update(keep.id, OAK, [])
            await self.kill(system, "sam")
            await value(agent, amend)
            await value(agent, forget)
            await value(agent, forget)
            await value(agent, amend)
            assert await value(agent, keep) == keep.id
            assert changes(system) == ["archival_inserted", "archival_updated", "archival_updated", "archival_deleted"]
            assert kept(system) == []

    @alive
    async def test_many_memories_are_kept_at_once(self, opens: Any) -> None:
        """Many memories are one commit, or none if one text is invalid; a text that exists already, or occurs twice, is
        stored once.
        """
        async with opens() as system:
            agent = await system.agent("sam", SCRIPTED)
            oak = await agent.archive.insert(OAK)
            command = InsertMemories(id=agent._sender.new_id(), texts=[ELM, f" {OAK}", "ash", ELM], tags=["tree"])
            ids = await value(agent, command)
            assert (ids[0], ids[1], ids[3]) == (command.id, oak, ids[0])
            assert [(memory.ref, memory.text) for memory in kept(system)] == [
                (oak, OAK),
                (ids[0], ELM),
                (ids[2], "ash"),
            ]
            assert len({record.commit for record in log(system)[-2:]}) == 1
            await self.kill(system, "sam")
            assert await value(agent, command) == ids
            await agent.archive.delete(ids[2])
            assert await value(agent, command) == ids
            assert len(kept(system)) == 2
            for texts in (["yew", ""], "yew", ["yew", "x" * 1_000_001]):
                with pytest.raises(BadInput):
                    await agent.archive.insert_many(texts)
            assert await agent.archive.insert_many([]) == []
            assert len(kept(system)) == 2
            assert_sound(system)

    @alive
    async def test_messages_and_memories_are_searched_together(self, opens: Any) -> None:
        """The agent's handle, its view and the search of all agents give the same results, wherever the agent runs."""
        async with scripted(opens, says("The oak is old.")) as (system, agent):
            await agent.send("Is there an oak?")
            await agent.archive.insert(OAK)
            found = await agent.search("gold under the oak")
            assert next((hit.place, hit.text) for hit in found.results) == ("archive", OAK)
            assert {hit.text for hit in found.results} == {OAK, "Is there an oak?", "The oak is old."}
            async with await system.view("sam") as state:
                assert await state.search("gold under the oak") == found
            everywhere = await system.search("gold under the oak")
            assert everywhere.results == found.results

    @alive
    async def test_no_memory_is_stored_for_an_unknown_agent(self, opens: Any) -> None:
        """A deleted agent is unknown, and an agent created again has none of the earlier agent's memories."""
        async with opens() as system:
            agent = await system.agent("sam", SCRIPTED)
            known = await agent.archive.insert(OAK)
            await agent.delete()
            with pytest.raises(UnknownAgent, match="was deleted"):
                await agent.archive.insert(ELM)
            anew = await system.agent("sam", SCRIPTED)
            assert kept(system) == []
            with pytest.raises(BadInput, match="no memory with the id"):
                await anew.archive.delete(known)
