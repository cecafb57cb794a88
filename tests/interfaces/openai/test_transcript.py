"""The main job of OpenAI's client, byte by byte: what it sends and what it is answered are as in the transcript."""

import asyncio
from pathlib import Path

import httpx2
import openai

from tests.support.cli.command_line import Script, says
from tests.support.http.openai_client import assistant, user
from tests.support.http.served_store import served
from tests.support.http.transcripts import RecordingTransport, check_transcript


def test_the_transcript_is_as_it_was(tmp_path: Path) -> None:
    """A newer client that sends something else, or an answer that has changed, differs from the transcript."""

    async def main() -> list[object]:
        recorded = RecordingTransport()
        async with served(tmp_path, Script([says("Ahoy"), says("Well."), says("Yes."), says("No.")])) as server:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            http_client = httpx2.AsyncClient(transport=recorded)
            async with openai.AsyncOpenAI(
                base_url=f"{server.address}/openai/v1", api_key="none", max_retries=0, http_client=http_client
            ) as client:
                async for _ in client.models.list():
                    pass
                await client.chat.completions.create(model="sam", messages=[user("Hello")])
                stream = await client.chat.completions.create(
                    model="sam", messages=[user("Hello"), assistant("Ahoy"), user("Well?")], stream=True,
                    stream_options={"include_usage": True},
                )  # fmt: skip
                async for _ in stream:
                    pass
                made = await client.conversations.create()
                events = await client.responses.create(model="sam", input="Yes?", conversation=made.id, stream=True)
                async for event in events:
                    last = event
                assert last.type == "response.completed"
                await client.responses.create(model="sam", input="No?", previous_response_id=last.response.id)
        return list(recorded.exchanges)

    check_transcript(Path(__file__).with_name("transcript.json"), asyncio.run(main()))
