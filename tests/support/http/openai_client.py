"""The published client of OpenAI, against a served store."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
import openai

from tests.support.http.served_store import Served


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
