"""Ask an agent of another program, through the official SDK: the only file of agents that imports it, while it is used.

Every answer is limited in size, no redirect is followed, and the agent is spoken to at the origin of its card alone: a
card cannot send a message, or the secret that goes with it, elsewhere. Errors are three: the reply was lost, the
request was refused, the reply cannot be read.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import httpx
from a2a.client import ClientConfig, ClientFactory
from a2a.client.card_resolver import parse_agent_card
from a2a.client.errors import A2AClientError, A2AClientTimeoutError
from a2a.types.a2a_pb2 import (
    AgentCard,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from a2a.utils.errors import A2AError
from google.protobuf.json_format import MessageToDict, ParseError

from everlog.actors.a2a.remote_agents import RemoteAgent, origin_of
from everlog.actors.a2a.remote_reply import ReadCard, RemoteReply
from everlog.actors.mcp.bounded_parts import bounded_parts
from everlog.actors.mcp.call_outcome import TEXT_CHARS_MAX, LostReply, RefusedRequest, UnreadableReply
from everlog.events import A2aError

for _name in ("a2a", "httpx"):  # without a handler, what agents answer would be printed to the user's terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())

ANSWER_BYTES_MAX = 4 * 1024 * 1024
CONNECT_S = 30.0
POLL_S, POLL_S_MAX = 0.2, 5.0
"""Seconds between two looks at a task: at first, and at most."""
BINDINGS = ("JSONRPC", "HTTP+JSON")
_AT_WORK = (TaskState.TASK_STATE_SUBMITTED, TaskState.TASK_STATE_WORKING, TaskState.TASK_STATE_UNSPECIFIED)


async def read_card(name: str, agent: RemoteAgent, environment: Mapping[str, str]) -> ReadCard:
    """Return what the card of an agent says. `name`: its name in the operator's file. Raises A2aError."""
    if variable := agent.missing_variable(environment):
        raise A2aError(f"The remote agent {name!r} needs the environment variable {variable}, which is not set here.")
    try:
        async with asyncio.timeout(CONNECT_S), _http(agent, environment) as http:
            card = await _card(agent, http)
    except TimeoutError:
        raise A2aError(
            f"The remote agent {name!r} cannot be asked: its card did not come in {CONNECT_S:g} s."
        ) from None
    except RefusedRequest as error:
        raise A2aError(f"The remote agent {name!r} cannot be asked: {error}. Nothing was sent.") from error
    skills = [f"{one.name}: {one.description}" for one in card.skills]
    (first, *_) = card.supported_interfaces
    return ReadCard(
        card.name, card.description, skills, first.url, f"{first.protocol_binding} {first.protocol_version}"
    )


async def ask(
    agent: RemoteAgent,
    environment: Mapping[str, str],
    message_id: str,
    text: str,
    context: str,
    task: str,
    begun: list[str],
) -> RemoteReply:
    """Send a message, or look at a task if there is no text, and return the answer when the task has ended or needs
    something. `begun` collects the id of a task that is at work. Raises LostReply, RefusedRequest, UnreadableReply.
    """
    async with _http(agent, environment) as http:
        card = await _card(agent, http)
        config = ClientConfig(streaming=False, httpx_client=http, supported_protocol_bindings=list(BINDINGS))
        client = ClientFactory(config).create(card)
        if text:
            message = Message(
                message_id=message_id, role=Role.ROLE_USER, parts=[Part(text=text)], context_id=context, task_id=task
            )
            answer = await _translated(_sent(client, SendMessageRequest(message=message)))
            if answer.HasField("message"):
                return RemoteReply(_words(answer.message.parts), context=answer.message.context_id)
            found = answer.task
        else:
            found = await _translated(client.get_task(GetTaskRequest(id=task)))
        pause = POLL_S
        while found.status.state in _AT_WORK:
            begun.append(found.id)
            await asyncio.sleep(pause)
            pause = min(POLL_S_MAX, pause * 1.5)
            found = await _translated(client.get_task(GetTaskRequest(id=found.id)))
        return _reply(found)


async def _sent(client: Any, request: SendMessageRequest) -> StreamResponse:
    found = [item async for item in client.send_message(request)]
    return found[-1]


def _reply(task: Task) -> RemoteReply:
    """Return what a task that does not work any more says."""
    parts = [part for artifact in task.artifacts for part in artifact.parts] + list(task.status.message.parts)
    state = TaskState.Name(task.status.state).removeprefix("TASK_STATE_").lower().replace("_", "-")
    return RemoteReply(_words(parts), state=state, task=task.id, context=task.context_id)


def _words(parts: Any) -> str:
    """Return the parts of an answer as text; files are said by their type alone."""
    shown = []
    for part in parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            shown.append(part.text)
        elif kind == "data":
            shown.append(json.dumps(MessageToDict(part.data)))
        else:
            shown.append(f"[{part.media_type or 'a file'}, which is not shown]")
    return "\n".join(shown)[:TEXT_CHARS_MAX]


async def _card(agent: RemoteAgent, http: httpx.AsyncClient) -> AgentCard:
    url = agent.card_url()
    try:
        answer = await http.get(url)
    except (httpx.HTTPError, OSError) as error:
        raise RefusedRequest(f"its card at {url} cannot be read ({type(error).__name__}: {error})"[:1000]) from error
    if answer.status_code != 200:
        where = answer.headers.get("location", "")
        leads = f", and leads to {where[:200]!r}, where nothing was sent" if answer.is_redirect else ""
        raise RefusedRequest(f"{url} answers with the status {answer.status_code}{leads}, and not with a card")
    try:
        card = parse_agent_card(json.loads(answer.content))
    except (ValueError, ParseError, RecursionError, AttributeError, TypeError) as error:
        raise RefusedRequest(f"what is at {url} is no card of an agent ({str(error)[:200]})") from error
    return _usable(agent, card, url)


def _usable(agent: RemoteAgent, card: AgentCard, url: str) -> AgentCard:
    """Return a card without the interfaces that are not used. Raises RefusedRequest if none is left."""
    given = list(card.supported_interfaces)
    if not card.name or not given:
        raise RefusedRequest(f"what is at {url} is no card of an agent: it has no name, or no interface")
    spoken = [one for one in given if one.protocol_binding in BINDINGS and one.protocol_version.split(".")[0] == "1"]
    if not spoken:
        offered = ", ".join(f"{one.protocol_binding} {one.protocol_version or 'of no version'}" for one in given[:5])
        raise RefusedRequest(
            f"its card offers {offered[:200]}; version 1 of A2A by {' or '.join(BINDINGS)} was expected"
        )
    near = [one for one in spoken if _origin(one.url) == agent.origin()]
    if not near:
        raise RefusedRequest(
            f"its card leads to {spoken[0].url[:200]!r}, which is another place than the card's own: name the card "
            "that is there"
        )
    del card.supported_interfaces[:]
    card.supported_interfaces.extend(near)
    return card


def _origin(url: str) -> tuple[str, str, int] | None:
    try:
        return origin_of(urlsplit(url))
    except ValueError:
        return None


async def _translated(request: Any) -> Any:
    try:
        return await request
    except A2AClientTimeoutError as error:
        raise LostReply("there was no answer in time") from error
    except A2AClientError as error:
        raise _client_fault(error) from error
    except A2AError as error:
        raise RefusedRequest(f"{error.message} ({type(error).__name__})"[:1000]) from error
    except (httpx.HTTPError, OSError) as error:
        raise LostReply(f"{type(error).__name__}: {error}"[:1000]) from error
    except (ParseError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UnreadableReply(" ".join(str(error).split())[:500]) from error


def _client_fault(error: A2AClientError) -> Exception:
    """Return an error of the SDK's client as one of the three, by what caused it."""
    cause, words = error.__cause__, error.message[:500]
    if isinstance(cause, httpx.HTTPStatusError):
        status = cause.response.status_code
        if status < 500:
            return RefusedRequest(f"it answers with the status {status}")
        return LostReply(f"it answers with the status {status}")
    if isinstance(cause, httpx.ConnectError | httpx.ConnectTimeout):
        return RefusedRequest(words)
    return LostReply(words) if isinstance(cause, httpx.HTTPError) else UnreadableReply(words)


@asynccontextmanager
async def _http(agent: RemoteAgent, environment: Mapping[str, str]) -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that follows no redirect, ignores proxies, and reads no more than ANSWER_BYTES_MAX."""
    headers = {header: environment[variable] for header, variable in agent.headers.items()}
    headers |= {"Authorization": f"Bearer {environment[agent.token]}"} if agent.token else {}
    transport = _Bounded(httpx.AsyncHTTPTransport(trust_env=False))
    timeout = httpx.Timeout(CONNECT_S, read=agent.call_s)
    async with httpx.AsyncClient(headers=headers, timeout=timeout, transport=transport, trust_env=False) as http:
        yield http


class _Bounded(httpx.AsyncBaseTransport):
    """A transport that limits the size of an answer."""

    def __init__(self, inner: httpx.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await self._inner.handle_async_request(request)
        response.stream = _BoundedBody(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedBody(httpx.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded_parts(self._inner, ANSWER_BYTES_MAX, httpx.ReadError)

    async def aclose(self) -> None:
        await self._inner.aclose()
