"""The published A2A client, against a server of a test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, ClientFactory
from a2a.types.a2a_pb2 import Message, Part, Role, SendMessageRequest, StreamResponse

CARD = "/.well-known/agent-card.json"


@asynccontextmanager
async def sdk_client(
    address: str, agent: str, headers: dict[str, str] | None = None, *, streaming: bool = False
) -> AsyncIterator[Client]:
    """Read the card of an agent, and yield a client of it."""
    async with httpx.AsyncClient(headers=headers or {}, timeout=30, trust_env=False) as http:
        card = await A2ACardResolver(http, f"{address}/a2a/{agent}").get_agent_card()
        yield ClientFactory(ClientConfig(streaming=streaming, httpx_client=http)).create(card)


def said(
    text: str, message_id: str, *, task: str = "", context: str = "", data: Any = None, tenant: str = ""
) -> SendMessageRequest:
    """Return a message of a user. `data`: a value in place of the text."""
    part = Part(text=text)
    if data is not None:
        part = Part()
        part.data.struct_value.update(data)
    message = Message(message_id=message_id, role=Role.ROLE_USER, parts=[part], task_id=task, context_id=context)
    return SendMessageRequest(message=message, tenant=tenant)


async def answered(client: Client, request: SendMessageRequest) -> list[StreamResponse]:
    """Send a message, and return all that the client yields."""
    return [one async for one in client.send_message(request)]


async def task_of(client: Client, request: SendMessageRequest) -> Any:
    """Send a message without a stream, and return the task."""
    (one,) = await answered(client, request)
    return one.task


def words(task: Any) -> list[str]:
    """Return the parts of the answer of a task."""
    return [part.text for artifact in task.artifacts for part in artifact.parts]
