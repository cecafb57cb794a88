"""Speak MCP to one server, through the official SDK: the only file of agents that imports it, while it is in use.

Errors of the SDK become three: the reply was lost, the request was refused, the reply cannot be read. Used by
`server_connections.py`.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any

import httpx2
import mcp_types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from everlog.actors.mcp.bounded_parts import bounded_parts
from everlog.actors.mcp.call_outcome import (
    Answer,
    LostReply,
    RefusedRequest,
    UnreadableReply,
    answer_text,
    blob_text,
)
from everlog.actors.mcp.offered_tool import Offer, OfferedTool, ServerHints, offer_of, offered_tool
from everlog.actors.mcp.program_streams import LINE_BYTES_MAX, ServerProgram, program_streams
from everlog.actors.mcp.server_entry import CALL_CAP_S, ServerEntry
from everlog.actors.ports.function_call import Continuation, ProgressListener
from everlog.events import McpError, Question

for _name in ("mcp", "client", "httpx2"):  # without a handler, what servers do would be printed to the user's terminal
    logging.getLogger(_name).addHandler(logging.NullHandler())

LISTED_MAX = 5000
"""Most functions of a server that are read."""
PAGES_MAX = 200
ROUNDS_MAX = 10
"""Most requests for one call in which the server asks for what no person has to decide."""
ROUND_S = 0.25
"""Seconds until a server is asked again that only wants to be asked again."""
QUESTION_CHARS_MAX = 2000
"""Characters of a server's question that people are shown."""
QUESTION_BYTES_MAX = 100_000
"""Most characters of the forms and the state of a question."""
_LOST = (mcp_types.CONNECTION_CLOSED, mcp_types.REQUEST_TIMEOUT)
_LOST_WORDS = ("Session terminated", "Server returned an error response")
"""Words of the SDK for answers without a message of the server: whether the request was carried out is unknown."""

SessionOpener = Callable[[str, ServerEntry, Mapping[str, str], Callable[[], None]], Any]


class SdkSession:
    """A session with one server. Its requests may be made from any task of its event loop."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def offer(self) -> Offer:
        """Return all that the server offers. Raises LostReply, RefusedRequest, UnreadableReply."""
        tools: list[OfferedTool] = []
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            page = await _translated(self._client.list_tools(cursor=cursor))
            tools += map(_offered, page.tools)
            if len(tools) > LISTED_MAX:
                raise UnreadableReply(f"the server offers more than {LISTED_MAX:,} functions")
            cursor = page.next_cursor
            if not cursor:
                info = self._client.server_info
                return offer_of(tools, f"{info.name} {info.version}" if info else "", self._client.protocol_version)
        raise UnreadableReply(f"the list of the server's functions has more than {PAGES_MAX} pages")

    async def call(
        self, tool: str, arguments: Mapping[str, Any], on_progress: ProgressListener, answers: Continuation | None
    ) -> Answer | Question:
        """Call a function, or continue a call with answers. Return its answer, or its question to a person.

        Servers of older revisions ask while a call runs, and are declined: a wait of days does not fit into a call.
        Raises LostReply, RefusedRequest, UnreadableReply.
        """

        async def progress(done: float, total: float | None, message: str | None) -> None:
            share = f"{done:g} of {total:g}" if total else f"{done:g}"
            on_progress(f"{share}: {message}" if message else share)

        responses: dict[str, Any] | None = None
        state: str | None = None
        if answers is not None:
            responses = {name: _accepted(fields) for name, fields in answers.answers.items()}
            state = answers.state or None
        for _ in range(ROUNDS_MAX):
            result = await _translated(
                self._client.session.call_tool(
                    tool, dict(arguments), progress_callback=progress, input_responses=responses, request_state=state,
                    allow_input_required=True,
                )
            )  # fmt: skip
            if not isinstance(result, mcp_types.InputRequiredResult):
                return Answer(answer_text([_part_text(part) for part in result.content], result.structured_content),
                              not result.is_error)  # fmt: skip
            requests, state = result.input_requests or {}, result.request_state
            if question := _question(requests, state):
                return question
            responses = {name: _refused(request) for name, request in requests.items()} or None
            if not requests:
                await asyncio.sleep(ROUND_S)
        raise UnreadableReply(f"the server asked {ROUNDS_MAX} times for what it is not given")


async def _translated(request: Any) -> Any:
    try:
        return await request
    except MCPError as error:
        words = error.message[:1000]
        if error.code in _LOST or words in _LOST_WORDS:
            raise LostReply(words) from error
        raise RefusedRequest(f"{words} (code {error.code})") from error
    except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
        raise LostReply(f"{type(error).__name__}: {error}"[:1000]) from error
    except (ValueError, RuntimeError) as error:  # pydantic's ValidationError is a ValueError
        raise UnreadableReply(" ".join(str(error).split())[:500]) from error


def _offered(tool: mcp_types.Tool) -> OfferedTool:
    hints = tool.annotations or mcp_types.ToolAnnotations()
    claims = ServerHints(hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
    try:
        return offered_tool(tool.name, tool.description, tool.input_schema, claims)
    except RecursionError as error:
        raise UnreadableReply(f"the schema of {tool.name[:80]!r} is nested too deeply") from error


def _part_text(part: Any) -> str:
    """Return one part of an answer, in words where it is no text."""
    match part:
        case mcp_types.TextContent():
            return str(part.text)
        case mcp_types.ImageContent():
            return blob_text("image", part.mime_type, part.data)
        case mcp_types.AudioContent():
            return blob_text("audio", part.mime_type, part.data)
        case mcp_types.ResourceLink():
            about = f"[link to {part.uri}: {part.name}, {part.mime_type or 'of unknown type'}]"
            return f"{about} {part.description}" if part.description else about
        case mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents() as resource):
            return f"[resource {resource.uri}]\n{resource.text}"
        case mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents() as resource):
            return blob_text("resource", resource.mime_type, resource.blob, str(resource.uri))
    return json.dumps(part.model_dump(mode="json", by_alias=True, exclude_none=True))


def _question(requests: Mapping[str, Any], state: str | None) -> Question | None:
    """Return what a server asks a person; None if it asks none, or by a page of the web, which is declined."""
    forms = {
        name: request.params
        for name, request in requests.items()
        if isinstance(getattr(request, "params", None), mcp_types.ElicitRequestFormParams)
    }
    if not forms:
        return None
    words = " ".join(params.message.strip() for params in forms.values())[:QUESTION_CHARS_MAX]
    schemas = {name: json.dumps(_plain(params.requested_schema)) for name, params in forms.items()}
    if sum(map(len, schemas.values())) + len(state or "") > QUESTION_BYTES_MAX:
        raise UnreadableReply(f"the server's question is longer than {QUESTION_BYTES_MAX:,} characters")
    return Question(text=words, forms=schemas, state=state or "")


def _plain(schema: Any) -> Any:
    return schema.model_dump(mode="json", by_alias=True, exclude_none=True) if hasattr(schema, "model_dump") else schema


def _accepted(fields: Mapping[str, Any]) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content=dict(fields))


def _refused(request: Any) -> mcp_types.ElicitResult:
    """Return the refusal of a request. Raises UnreadableReply for one that is not about a person."""
    if isinstance(request, mcp_types.ElicitRequest):
        return mcp_types.ElicitResult(action="decline")
    raise UnreadableReply(f"the server asks for {request.method!r}, which is not offered")


async def _decline(*_: object) -> mcp_types.ElicitResult:
    """Answer a server that asks a person while a call runs: no person is there."""
    return mcp_types.ElicitResult(action="decline")


@asynccontextmanager
async def session_over(server: Any, on_changed: Callable[[], None]) -> AsyncIterator[SdkSession]:
    """Open a session over a transport; in a test also with a server in this process. Both revisions of the protocol are
    spoken. `on_changed`: called when the server says that its functions have changed.
    """

    async def receive(message: Any) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification):
            on_changed()

    client = Client(
        server, mode="auto", cache=None, elicitation_callback=_decline, message_handler=receive,
        client_info=mcp_types.Implementation(name="everlog", version="1"), read_timeout_seconds=CALL_CAP_S,
    )  # fmt: skip
    async with client:
        yield SdkSession(client)


@asynccontextmanager
async def open_session(
    name: str, entry: ServerEntry, environment: Mapping[str, str], on_changed: Callable[[], None]
) -> AsyncIterator[SdkSession]:
    """Start a server, or connect to it. `environment`: variables of this process, with all that the entry names. Raises
    McpError.
    """
    if entry.url:
        headers = {header: environment[variable] for header, variable in entry.headers.items()}
        headers |= {"Authorization": f"Bearer {environment[entry.token]}"} if entry.token else {}
        timeout = httpx2.Timeout(entry.connect_s, read=CALL_CAP_S)
        transport = _Bounded(httpx2.AsyncHTTPTransport())
        async with (
            httpx2.AsyncClient(headers=headers, timeout=timeout, transport=transport) as http,
            session_over(
                streamable_http_client(entry.url, http_client=http, max_sse_event_size=LINE_BYTES_MAX), on_changed
            ) as session,
        ):
            yield session
        return
    program = _ProgramTransport(entry, environment)
    try:
        async with session_over(program, on_changed) as session:
            yield session
    except (MCPError, OSError, ExceptionGroup) as error:
        raise McpError(f"The program of the MCP server {name!r} did not start: {program.said(error)}") from error


class _ProgramTransport:
    """A program as a transport of the SDK."""

    def __init__(self, entry: ServerEntry, environment: Mapping[str, str]) -> None:
        self._streams = program_streams(entry, environment)
        self._program: ServerProgram | None = None

    async def __aenter__(self) -> tuple[Any, Any]:
        incoming, outgoing, self._program = await self._streams.__aenter__()
        return incoming, outgoing

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._streams.__aexit__(kind, error, trace)

    def said(self, error: BaseException) -> str:
        """Return why the program failed, in its own last words if there are any."""
        if self._program is None:
            return " ".join(map(str, _leaves(error)))
        words = self._program.fault or "\n".join(self._program.last_words)
        return words or "it ended, and said nothing"


def _leaves(error: BaseException) -> list[BaseException]:
    """Return the errors in a group of errors."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in _leaves(one)]
    return [error]


class _Bounded(httpx2.AsyncBaseTransport):
    """A transport that limits the size of an answer. A stream of events is limited event by event, by the SDK."""

    def __init__(self, inner: httpx2.AsyncBaseTransport) -> None:
        self._inner = inner

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._inner.handle_async_request(request)
        if not response.headers.get("content-type", "").startswith("text/event-stream"):
            response.stream = _BoundedBody(response.stream)
        return response

    async def aclose(self) -> None:
        await self._inner.aclose()


class _BoundedBody(httpx2.AsyncByteStream):
    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __aiter__(self) -> AsyncIterator[bytes]:
        return bounded_parts(self._inner, LINE_BYTES_MAX, httpx2.ReadError)

    async def aclose(self) -> None:
        await self._inner.aclose()
