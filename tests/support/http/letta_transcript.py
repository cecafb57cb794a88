"""Record a conversation of Letta's published client with a server, byte by byte but for times and random ids.

`python -m tests.support.http.letta_transcript` writes the golden transcript again, after a change that is meant.
"""

import asyncio
import json
import re
import tempfile
from importlib import metadata
from pathlib import Path

import httpx
from letta_client import Letta

from tests.support.cli.command_line import Script, completion, says
from tests.support.http.letta_server import letta

GOLDEN = Path(__file__).resolve().parents[2] / "interfaces" / "http" / "letta" / "golden_transcript.txt"
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
_RANDOM = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_DURATION = re.compile(r'("total_duration_ns":)\d+')
_PIN = completion(
    ("core_memory_append", {"name": "human", "content": "Chad has a pin.", "request_heartbeat": True}),
    thought="Note it.",
)  # fmt: skip


def transcript(root: Path) -> str:
    """Return what a client and a server say to each other in the main job."""
    parts = [f"letta-client {metadata.version('letta-client')}\n"]

    def noted(response: httpx.Response) -> None:
        response.read()
        request = response.request
        path = request.url.raw_path.decode()
        parts.append(f"\n> {request.method} {path}\n")
        if request.content:
            parts.append(f"> {request.content.decode()}\n")
        parts.append(f"< {response.status_code} {response.headers['content-type']}\n")
        parts.append(_shown(response))

    def work(client: Letta) -> None:
        client._client.event_hooks["response"].append(noted)
        blocks = [{"label": "human", "value": "Chad sails."}, {"label": "plan", "value": ""}]
        agent = client.agents.create(
            name="sam", memory_blocks=blocks, model="openai/script", system="You sail.", tags=["crew"]
        ).id
        client.agents.messages.create(agent, input="I have a pin")
        list(client.agents.messages.create(agent, input="And now?", streaming=True))
        page = client.agents.messages.list(agent, limit=3)
        page.get_next_page()
        client.agents.blocks.update("plan", agent_id=agent, value="Sail.")
        run = client.runs.list(agent_id=agent).items[0].id
        list(client.runs.steps.list(run, limit=10).items)
        client.agents.messages.cancel(agent, run_ids=[run])
        for path in ("/v1/identities/", "/v1/agents/agent-x"):
            client._client.get(f"{client.base_url}{path.lstrip('/')}")

    async def main() -> None:
        async with letta(root, Script([_PIN, says("A fine pin"), says("Now we sail")])) as server:
            await server.run(work)

    asyncio.run(main())
    return "".join(parts)


def _shown(response: httpx.Response) -> str:
    text = _DURATION.sub(r"\g<1>0", _RANDOM.sub("RANDOM", _TIME.sub("TIME", response.text)))
    if response.headers["content-type"].startswith("text/event-stream"):
        return text
    answer = json.loads(text)
    for tool in answer.get("tools", ()) if isinstance(answer, dict) else ():
        tool["json_schema"], tool["description"] = "...", "..."  # they are everlog's own, and have their own tests
    return json.dumps(answer, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        GOLDEN.write_text(transcript(Path(folder)), encoding="utf-8")
