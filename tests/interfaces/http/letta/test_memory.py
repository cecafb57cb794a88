"""Memory of an agent for programs that use Letta's published client: blocks, texts, folders and conversations."""

import asyncio
from pathlib import Path

import letta_client
import pytest
from letta_client import Letta

from everlog import tool
from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import created, kinds, letta, texts


def test_blocks_of_an_agent_are_read_and_changed(tmp_path: Path) -> None:
    """The blocks of an agent are listed, read by label, and changed; the id of a block finds it too."""

    def work(client: Letta) -> None:
        agent = created(client)
        assert [block.label for block in client.agents.blocks.list(agent)] == ["human"]
        changed = client.agents.blocks.update("human", agent_id=agent, value="Chad sails.", description="The user")
        assert (changed.value, changed.description) == ("Chad sails.", "The user")
        block = client.agents.blocks.retrieve("human", agent_id=agent)
        assert (block.value, block.id) == ("Chad sails.", changed.id)
        assert client.blocks.retrieve(block.id).value == "Chad sails."
        assert client.blocks.update(block.id, value="Chad rows.").value == "Chad rows."
        with pytest.raises(letta_client.NotFoundError):
            client.agents.blocks.retrieve("none", agent_id=agent)
        with pytest.raises(letta_client.BadRequestError):
            client.agents.blocks.update("human", agent_id=agent, value="x" * 100_000, limit=10)

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_block_that_was_created_alone_is_shared_by_agents(tmp_path: Path) -> None:
    """A block that was created alone can be attached to several agents: each has its newest text. Detached, it stays
    for the others.
    """

    def work(client: Letta) -> None:
        block = client.blocks.create(label="crew", value="Chad and Sam")
        twin = client.blocks.create(label="crew", value="Others")
        assert (block.label, twin.label) == ("crew", "crew")
        assert block.id != twin.id
        first = created(client, "first", block_ids=[block.id])
        second = created(client, "second")
        attached = client.agents.blocks.attach(block.id, agent_id=second)
        assert {one.id for one in attached.blocks} >= {block.id}
        client.blocks.update(block.id, value="Chad, Sam and Tim")
        client.agents.messages.create(first, input="Hello")
        assert client.agents.blocks.retrieve("crew", agent_id=first).value == "Chad, Sam and Tim"
        assert {one.name for one in client.blocks.agents.list(block.id)} == {"first", "second"}
        client.agents.blocks.detach(block.id, agent_id=second)
        assert [one.label for one in client.agents.blocks.list(second)] == ["human"]
        assert [one.value for one in client.blocks.list(label="crew", order="asc")].count("Others") == 1
        client.blocks.delete(twin.id)
        assert [one.id for one in client.blocks.list()] == [block.id]

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_texts_are_stored_found_and_deleted(tmp_path: Path) -> None:
    """A text of archival memory is stored with tags, listed, found by its words, and deleted."""

    def work(client: Letta) -> None:
        agent = created(client)
        stored = client.agents.passages.create(agent, text="The anchor is under the sail.", tags=["ship"])
        client.agents.passages.create(agent, text="Bread is in the galley.", tags=["food"])
        assert [one.text for one in stored] == ["The anchor is under the sail."]
        assert [one.tags for one in client.agents.passages.list(agent)] == [["ship"], ["food"]]
        assert [one.text for one in client.agents.passages.list(agent, search="BREAD")] == ["Bread is in the galley."]
        after = client.agents.passages.list(agent, after=stored[0].id)
        assert [one.tags for one in after] == [["food"]]
        found = client.agents.passages.search(agent, query="anchor", top_k=1)
        assert (found.count, found.results[0].id) == (1, stored[0].id)
        assert client.agents.passages.search(agent, query="anchor", tags=["food"]).results[0].tags == ["food"]
        assert client.passages.search(query="anchor", agent_id=agent)[0].passage.id == stored[0].id
        assert client.passages.search(query="anchor")[0].passage.text == stored[0].text
        client.agents.passages.delete(stored[0].id or "", agent_id=agent)
        assert [one.tags for one in client.agents.passages.list(agent)] == [["food"]]
        with pytest.raises(letta_client.NotFoundError):
            client.agents.passages.delete(stored[0].id or "", agent_id=agent)

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_what_was_said_is_found(tmp_path: Path) -> None:
    """A search in what was said finds the message, whose id is that of the list."""

    def work(client: Letta) -> None:
        agent = created(client)
        client.agents.messages.create(agent, input="Where is the anchor?")
        found = client.messages.search(query="anchor", agent_id=agent)
        listed = {one.id for one in client.agents.messages.list(agent)}
        assert {one.message_id for one in found} <= listed
        assert {one.content for one in found} == {"Where is the anchor?", "The anchor is gone."}
        said = next(one for one in found if one.message_type == "assistant_message")
        assert texts(client.messages.retrieve(said.message_id)) == ["The anchor is gone."]

    async def main() -> None:
        async with letta(tmp_path, Script([says("The anchor is gone.")])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_folder_takes_files_that_agents_can_search(tmp_path: Path) -> None:
    """A file that is uploaded into a folder is there at once; a second one of its name gets a number. Agents that the
    folder is attached to can search it.
    """

    def work(client: Letta) -> None:
        folder = client.folders.create(name="ship")
        assert client.folders.retrieve(folder.id).name == "ship"
        file = client.folders.files.upload(folder.id, file=("deck.txt", b"The deck is wet.", "text/plain"))
        assert (file.file_name, file.processing_status) == ("deck.txt", "completed")
        again = client.folders.files.upload(folder.id, file=("deck.txt", b"The deck is dry.", "text/plain"))
        assert again.file_name == "deck_(1).txt"
        assert {one.file_name for one in client.folders.files.list(folder.id)} == {"deck.txt", "deck_(1).txt"}
        agent = created(client)
        assert [one.name for one in client.agents.folders.attach(folder.id, agent_id=agent).sources] == ["ship"]
        assert client.folders.agents.list(folder.id) == [agent]
        assert [one.id for one in client.agents.folders.list(agent)] == [folder.id]
        assert client.agents.folders.detach(folder.id, agent_id=agent).sources == []
        with pytest.raises(letta_client.ConflictError):
            client.folders.create(name="ship")
        with pytest.raises(letta_client.APIStatusError, match="A file ends with"):
            client.folders.files.upload(folder.id, file=("deck.exe", b"MZ", "application/octet-stream"))

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())


def test_conversations_are_parts_of_what_one_agent_was_told(tmp_path: Path) -> None:
    """A conversation has its own messages, and the agent is one: the list of the agent has those of all. A fork is
    another agent, and its answer says so.
    """

    def work(client: Letta) -> None:
        agent = created(client)
        first = client.conversations.create(agent_id=agent)
        assert client.conversations.retrieve(first.id).agent_id == agent
        assert client.conversations.list(agent_id=agent) == []
        events = list(client.conversations.messages.create(first.id, input="Hello"))
        assert "One" in texts(events)
        client.agents.messages.create(agent, input="Beside it")
        assert [one.id for one in client.conversations.list(agent_id=agent)] == [first.id]
        said = list(client.conversations.messages.list(first.id, order="asc"))
        assert kinds(said) == ["user_message", "reasoning_message", "assistant_message"]
        assert texts(said) == ["One"]
        own = list(client.conversations.messages.list("default", agent_id=agent, order="asc"))
        assert "Two" in texts(own)
        assert "One" not in texts(own)
        both = client.agents.messages.list(agent)
        assert {"One", "Two"} <= set(texts(both))
        assert texts(client.agents.messages.list(agent, conversation_id=first.id)) == ["One"]
        fork = client.conversations.fork(first.id)
        assert fork.agent_id != agent
        assert "another agent" in (fork.summary or "").lower()
        assert {"One", "Two"} <= set(texts(client.agents.messages.list(fork.agent_id)))

    async def main() -> None:
        async with letta(tmp_path, Script([says("One"), says("Two")])) as server:
            await server.run(work)

    asyncio.run(main())


def test_a_function_of_the_operator_is_listed_and_called(tmp_path: Path) -> None:
    """A function that the operator gives to the agents is among their functions, with its schema, and a call of it
    comes with its result.
    """

    @tool(effect="read_only")
    def weather(city: str) -> str:
        """Tell the weather.

        Args:
            city: Name of the city.
        """
        return f"Rain in {city}."

    def work(client: Letta) -> None:
        agent = created(client, tools=["weather"])
        found = next(one for one in client.agents.tools.list(agent) if one.name == "weather")
        assert (found.tool_type, found.description) == ("custom", "Tell the weather.")
        assert "city" in (found.json_schema or {})["parameters"]["properties"]
        assert client.tools.retrieve(found.id).name == "weather"
        answer = client.agents.messages.create(agent, input="How is it in Bergen?")
        returned = next(one for one in answer.messages if one.message_type == "tool_return_message")
        assert returned.tool_return == "Rain in Bergen."
        assert [one.name for one in client.agents.list()] == ["sam"]

    async def main() -> None:
        asked = completion(("weather", {"city": "Bergen", "request_heartbeat": True}))
        async with letta(tmp_path, Script([asked, says("It rains.")]), tools=[weather]) as server:
            await server.run(work)

    asyncio.run(main())


def test_functions_are_listed_and_those_of_derived_memory_attached(tmp_path: Path) -> None:
    """The functions of an agent, and those that agents can have, are listed; functions of derived memory can be
    attached and detached. Code is refused, and so is a function that does not exist.
    """

    def work(client: Letta) -> None:
        agent = created(client)
        had = {tool.name for tool in client.agents.tools.list(agent)}
        assert {"send_message", "archival_memory_search"} <= had
        known = {tool.name: tool for tool in client.tools.list()}
        assert client.tools.retrieve(known["send_message"].id).json_schema["name"] == "send_message"
        note, ask = known["insight_note"], known["ask_agent"]
        client.agents.tools.attach(ask.id, agent_id=agent)
        assert "insight_note" in {tool.name for tool in client.agents.tools.attach(note.id, agent_id=agent).tools}
        left = {tool.name for tool in client.agents.tools.detach(note.id, agent_id=agent).tools}
        assert "insight_note" not in left
        assert "ask_agent" in left, "a function that writes to agents is kept when one of memory is taken away"
        other = created(client, "other", tools=["insight_note"])
        assert "insight_note" in {tool.name for tool in client.agents.tools.list(other)}
        with pytest.raises(letta_client.PermissionDeniedError, match="Code is not taken over HTTP"):
            client.tools.create(source_code="def f(): pass")
        with pytest.raises(letta_client.UnprocessableEntityError, match="There is no function 'web_search'"):
            created(client, "third", tools=["web_search"])
        with pytest.raises(letta_client.UnprocessableEntityError, match="cannot be taken away"):
            client.agents.tools.detach(known["send_message"].id, agent_id=agent)
        models = {model.handle for model in client.models.list()}
        assert "offline" in models
        assert client.models.embeddings.list()[0].embedding_dim == 256

    async def main() -> None:
        async with letta(tmp_path, Script([])) as server:
            await server.run(work)

    asyncio.run(main())
