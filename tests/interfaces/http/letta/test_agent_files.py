"""Agent files through Letta's published client: an agent leaves as one, and comes back from one."""

import asyncio
import json
from pathlib import Path
from typing import Any

import letta_client
import pytest
from letta_client import Letta

from tests.support.cli.command_line import Script, says
from tests.support.http.letta_server import created, letta, texts


def run(tmp_path: Path, work: Any) -> None:
    """Run work with a client, in a store whose agents say Ahoy."""

    async def main() -> None:
        async with letta(tmp_path, Script([says("Ahoy")])) as server:
            await server.run(work)

    asyncio.run(main())


def test_an_agent_goes_and_comes_as_a_file(tmp_path: Path) -> None:
    """An exported agent that is imported has the same blocks and words, under a name with a number; importing the same
    file again under the name of what it made finds the agent that is there.
    """

    def work(client: Letta) -> None:
        agent = created(client, tags=["a", "b"])
        client.agents.messages.create(agent, input="Hello")
        file = client.agents.export_file(agent)
        content = json.loads(file) if isinstance(file, str) else file
        assert (content["agents"][0]["name"], content["agents"][0]["tags"]) == ("sam", ["a", "b"])
        data = json.dumps(content).encode()
        (made,) = client.agents.import_file(file=("sam.af", data)).agent_ids
        assert made != agent
        assert client.agents.retrieve(made).name == "sam-2"
        blocks = [(block.label, block.value) for block in client.agents.blocks.list(made)]
        assert blocks == [("human", "Chad")]
        assert texts(client.agents.messages.list(made, order="asc"))[-1] == "Ahoy"
        assert client.agents.import_file(file=("sam.af", data), name="sam-2").agent_ids == [made]
        (bare,) = client.agents.import_file(file=("sam.af", data), name="tim", strip_messages=True).agent_ids
        assert "Ahoy" not in texts(client.agents.messages.list(bare))

    run(tmp_path, work)


@pytest.mark.parametrize("data", [b"", b"{}", b"no json", b'{"agents": []}', b'{"agents": [{"name": 7}]}'])
def test_a_file_that_is_none_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    """A file that has no agent is an error of the client's own class that says so, and makes nothing."""

    def work(client: Letta) -> None:
        with pytest.raises(letta_client.APIStatusError) as caught:
            client.agents.import_file(file=("sam.af", data))
        assert caught.value.status_code == 400
        assert list(client.agents.list()) == []

    run(tmp_path, work)
