"""The published client of OpenAI, against a served store."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import openai

from tests.support.http.served_store import Served, served


@asynccontextmanager
async def openai_client(
    server: Served, *, key: str = "no key", headers: Mapping[str, str] | None = None, address: str = "", tries: int = 0
) -> AsyncIterator[openai.AsyncOpenAI]:
    """Yield a client. `tries`: number of times that it repeats a request by itself."""
    async with openai.AsyncOpenAI(
        base_url=f"{address or server.address}/openai/v1", api_key=key, default_headers=dict(headers or {}),
        max_retries=tries, http_client=httpx2.AsyncClient(trust_env=False, timeout=30),
    ) as client:  # fmt: skip
        yield client


def user(text: str) -> dict[str, str]:
    """Return a message of the user."""
    return {"role": "user", "content": text}


def assistant(text: str) -> dict[str, str]:
    """Return an answer, as a client resends it."""
    return {"role": "assistant", "content": text}


def run(tmp_path: Path, model: Any, work: Callable[[Served, openai.AsyncOpenAI], Awaitable[None]]) -> None:
    """Run a test against a served store with the agent sam."""

    async def main() -> None:
        async with served(tmp_path, model) as server, openai_client(server) as client:
            await server.call("POST", "/agents", {"name": "sam"}, status=201)
            await work(server, client)

    asyncio.run(main())


async def said(server: Served, agent: str = "sam") -> Sequence[str]:
    """Return what users said to an agent, by its log."""
    page = await server.call("GET", f"/agents/{agent}/records?limit=1000", status=200)
    return [one["text"] for one in page["records"] if one["type"] == "user_message"]
