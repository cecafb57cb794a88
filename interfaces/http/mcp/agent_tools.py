"""Define what an MCP client can do with agents: each tool is a native route or two, with the checks of these.

So a key sees the same agents, and may do the same, as over HTTP. Nothing here imports the SDK.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, NamedTuple

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from everlog.events import EditConflict, EverlogError
from everlog.interfaces.http.core import guards
from everlog.interfaces.http.core.keys import ROLES, Role
from everlog.interfaces.http.core.refusals import Refusal
from everlog.interfaces.http.core.routes import HttpCall, HttpCaller, not_found
from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.core.tenant_problems import problem_for
from everlog.interfaces.http.native.resource_table import AGENT, AGENTS
from everlog.interfaces.http.native.table import BLOCK, NATIVE
from everlog.interfaces.wire.agents import AgentQuery
from everlog.interfaces.wire.archive import SearchQuery
from everlog.interfaces.wire.memory import EditBlockBody
from everlog.interfaces.wire.runs import SendMessageBody

APPEND_TRIES = 5
"""Tries to append to a block that others change at the same time."""

_ROUTES = {(route.method, route.path): route for route in NATIVE}


class ToolFault(Exception):
    """A call that was not carried out, in words for the client's model."""


class ServedCaller(msgspec.Struct, frozen=True, kw_only=True):
    """Sender of a call, and the agents that it may name."""

    caller: HttpCaller
    only: str = ""
    """Name of the one agent that the calls of a client may concern; empty: all that the key sees."""


AgentName = Annotated[str, Meta(description="Name of the agent.", min_length=1)]
BlockLabel = Annotated[str, Meta(description="Label of the memory block, such as human.", min_length=1)]
IdempotencyKey = Annotated[
    str, Meta(description="Text of your choice: a repeat with the same key changes nothing twice.", max_length=255)
]
Results = Annotated[int, Meta(description="Page of the results, from 1.", ge=1, le=10_000)]


class ListAgentsArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `list_agents`."""

    after: Annotated[str, Meta(description="Name after which the list begins; empty: the first.")] = ""


class SearchArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of the searches."""

    agent: AgentName
    query: Annotated[str, Meta(description="What to look for.", min_length=1)]
    page: Results = 1


class ReadBlockArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `read_block`."""

    agent: AgentName
    label: Annotated[str, Meta(description="Label of the memory block; empty: all blocks.")] = ""


class AppendBlockArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `append_block`."""

    agent: AgentName
    label: BlockLabel
    text: Annotated[str, Meta(description="Line to add.", min_length=1)]
    idempotency_key: IdempotencyKey = ""


class ReplaceBlockArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `replace_block`."""

    agent: AgentName
    label: BlockLabel
    old: Annotated[str, Meta(description="Exact text in the block that is replaced.", min_length=1)]
    new: Annotated[str, Meta(description="Text in its place; empty: it is removed.")]
    idempotency_key: IdempotencyKey = ""


class SendMessageArguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Arguments of `send_message`."""

    agent: AgentName
    text: Annotated[str, Meta(description="Message to the agent.", min_length=1)]
    speaker: Annotated[str, Meta(description="Name of the one who says it, if the agent talks with several.")] = ""
    idempotency_key: IdempotencyKey = ""


class AgentTools:
    """The tools of one server, for any number of clients."""

    def __init__(self, service: HttpService) -> None:
        self._service = service

    async def call(self, name: str, arguments: Mapping[str, Any], served: ServedCaller) -> Any:
        """Carry out a call, and return its result as JSON values. Raises ToolFault."""
        tool = TOOLS.get(name)
        if tool is None:
            raise ToolFault(f"There is no tool {name[:80]!r}; there are {', '.join(TOOLS)}.")
        try:
            asked = msgspec.convert(dict(arguments), tool.arguments)
            agent = getattr(asked, "agent", "")
            if served.only and agent and agent != served.only:
                raise not_found(f"agent {agent!r}")
            return await tool.run(self, asked, served)
        except msgspec.ValidationError as error:
            raise ToolFault(f"Wrong arguments for {name}: {error}. Nothing was done.") from error
        except Refusal as refusal:
            raise ToolFault(refusal.problem.message) from refusal
        except EverlogError as error:
            raise ToolFault(problem_for(error, served.caller.names).message) from error

    async def block_text(self, agent: str, label: str, served: ServedCaller) -> str:
        """Return the value of a memory block. Raises ToolFault."""
        asked = {"agent": agent, "label": label}
        return str((await self.call("read_block", asked, served))["value"])

    async def list_agents(self, asked: ListAgentsArguments, served: ServedCaller) -> Any:
        """List the agents that the key sees."""
        page = await self._native("GET", AGENTS, served, query=AgentQuery(limit=1000, cursor=asked.after))
        keys = ("agent", "name", "messages", "last_active")
        rows = [{key: row[key] for key in keys} for row in page["agents"]]
        return {"agents": [row for row in rows if served.only in ("", row["agent"])], "next": page["next"]}

    async def search_recall(self, asked: SearchArguments, served: ServedCaller) -> Any:
        """Search what was said."""
        query = SearchQuery(query=asked.query, page=asked.page, place=["messages"])
        return await self._native("GET", f"{AGENT}/search", served, {"agent": asked.agent}, query=query)

    async def search_archive(self, asked: SearchArguments, served: ServedCaller) -> Any:
        """Search what was stored."""
        query = SearchQuery(query=asked.query, page=asked.page, place=["archive", "documents"])
        return await self._native("GET", f"{AGENT}/search", served, {"agent": asked.agent}, query=query)

    async def read_block(self, asked: ReadBlockArguments, served: ServedCaller) -> Any:
        """Return a memory block, or all."""
        if not asked.label:
            return await self._native("GET", f"{AGENT}/blocks", served, {"agent": asked.agent})
        return await self._native("GET", BLOCK, served, {"agent": asked.agent, "label": asked.label})

    async def append_block(self, asked: AppendBlockArguments, served: ServedCaller) -> Any:
        """Add a line to a memory block."""
        return await self._edited(asked, served, lambda value: f"{value}\n{asked.text}" if value else asked.text)

    async def replace_block(self, asked: ReplaceBlockArguments, served: ServedCaller) -> Any:
        """Replace a text in a memory block."""

        def replaced(value: str) -> str:
            if asked.old not in value:
                words = f"The block {asked.label!r} does not hold the text {asked.old[:80]!r}"
                raise ToolFault(f"{words}. Nothing was done.")
            return value.replace(asked.old, asked.new, 1)

        return await self._edited(asked, served, replaced)

    async def send_message(self, asked: SendMessageArguments, served: ServedCaller) -> Any:
        """Send a message, and return the answer when the agent has finished."""
        body = SendMessageBody(text=asked.text, speaker=asked.speaker)
        return await self._native(
            "POST", f"{AGENT}/messages", served, {"agent": asked.agent}, body=body, key=asked.idempotency_key
        )

    async def _edited(
        self, asked: AppendBlockArguments | ReplaceBlockArguments, served: ServedCaller, edit: Callable[[str], str]
    ) -> Any:
        """Edit a block from its value now; again from the start if another edit came between."""
        params = {"agent": asked.agent, "label": asked.label}
        self._check("PATCH", BLOCK, served)
        if await self._is_repeat(asked.idempotency_key, params, served):
            return {"changed": False, "repeated": True}
        for tries_left in reversed(range(APPEND_TRIES)):
            block = await self._native("GET", BLOCK, served, params)
            body = EditBlockBody(value=edit(block["value"]), base=block["seq"])
            try:
                return await self._native("PATCH", BLOCK, served, params, body=body, key=asked.idempotency_key)
            except EditConflict:
                if not tries_left:
                    raise
        raise AssertionError("the last try returns or raises")

    async def _is_repeat(self, key: str, params: Mapping[str, str], served: ServedCaller) -> bool:
        """Return True if an edit with this key is in the agent's log."""
        if not key:
            return False
        call = self._call_of("PATCH", BLOCK, served, params, key=key)
        known = [one for one in call.new_ids(call.stream) if one]
        return any([await self._service.is_known(call.stream, one) for one in known])

    def _check(self, method: str, path: str, served: ServedCaller) -> None:
        guards.check_allowed(_ROUTES[method, path], served.caller)  # type: ignore[index]

    def _call_of(
        self,
        method: str,
        path: str,
        served: ServedCaller,
        params: Mapping[str, str],
        *,
        query: Any = None,
        body: Any = None,
        key: str = "",
    ) -> HttpCall:
        headers = [(b"idempotency-key", key.encode())] if key else []
        scope = {"type": "http", "method": method, "path": path, "headers": headers, "query_string": b""}
        query = query or _ROUTES[method, path].query()  # type: ignore[index]
        return HttpCall(self._service, served.caller, Request(scope), params=params, query=query, body=body)

    async def _native(
        self, method: str, path: str, served: ServedCaller, params: Mapping[str, str] | None = None, **more: Any
    ) -> Any:
        """Answer a request of the native API, if the caller's key allows it, as JSON values."""
        self._check(method, path, served)
        answer = await _ROUTES[method, path].handler(self._call_of(method, path, served, params or {}, **more))  # type: ignore[index]
        return msgspec.json.decode(answer.body) if isinstance(answer, Response) else msgspec.to_builtins(answer)


class ServedTool(NamedTuple):
    """One tool, as clients see it."""

    description: str
    arguments: type[msgspec.Struct]
    run: Callable[[AgentTools, Any, ServedCaller], Awaitable[Any]]
    role: Role = "read"
    repeatable: bool = True
    """True if a repeat with the same arguments changes nothing more."""

    def is_for(self, role: Role) -> bool:
        """Return True if a key with this role may call the tool."""
        return ROLES.index(role) >= ROLES.index(self.role)

    def schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        (_, shapes) = msgspec.json.schema_components([self.arguments])
        shape = shapes[self.arguments.__name__]
        return {key: value for key, value in shape.items() if key not in {"title", "description"}}


TOOLS: Mapping[str, ServedTool] = {
    "list_agents": ServedTool("List the agents.", ListAgentsArguments, AgentTools.list_agents),
    "search_recall": ServedTool(
        "Search the messages between an agent and its users, best match first.", SearchArguments,
        AgentTools.search_recall,
    ),
    "search_archive": ServedTool(
        "Search the texts and documents that an agent keeps, best match first.", SearchArguments,
        AgentTools.search_archive,
    ),
    "read_block": ServedTool("Read an agent's core memory.", ReadBlockArguments, AgentTools.read_block),
    "append_block": ServedTool(
        "Add a line to a block of an agent's core memory.", AppendBlockArguments, AgentTools.append_block, "talk",
        repeatable=False,
    ),
    "replace_block": ServedTool(
        "Replace a text in a block of an agent's core memory.", ReplaceBlockArguments, AgentTools.replace_block, "talk",
        repeatable=False,
    ),
    "send_message": ServedTool(
        "Send a message to an agent, and get its answer. The agent may call functions, and take minutes.",
        SendMessageArguments, AgentTools.send_message, "talk", repeatable=False,
    ),
}  # fmt: skip
"""Tools by name, in the order in which clients see them: it stays, so that prompts of clients stay the same."""
