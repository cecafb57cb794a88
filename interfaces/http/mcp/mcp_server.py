"""Speak MCP as a server, through the official SDK: the tools and resources of agents, over any transport.

Used by `mcp_mount.py` and `stdio_command.py`, which import it when a client is there.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote, unquote

import mcp_types
import msgspec
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError

from everlog.interfaces.http.core.service import HttpService
from everlog.interfaces.http.mcp.agent_tools import TOOLS, AgentTools, ServedCaller, ServedTool, ToolFault

PREFIX = "everlog://agents/"
TEMPLATE = f"{PREFIX}{{name}}/blocks/{{label}}"
PROGRESS_S = 10.0
"""Seconds between two notices that a call still runs."""
INSTRUCTIONS = (
    "Agents with memory. Read and edit their memory blocks, search what was said to them and what they keep, and send "
    "them messages. Give writing calls an idempotency_key, and the same one when you repeat a call."
)

CallerLookup = Callable[[Any], ServedCaller]
"""Returns the sender of a request, from the SDK's context of it."""


def mcp_server(service: HttpService, version: str, caller_of: CallerLookup) -> Any:
    """Return the server of the SDK. `version`: of everlog."""
    tools = AgentTools(service)

    async def list_tools(context: Any, _: Any) -> Any:
        role = caller_of(context).caller.role
        return mcp_types.ListToolsResult(tools=[_shown(name, one) for name, one in TOOLS.items() if one.is_for(role)])

    async def call_tool(context: Any, params: Any) -> Any:
        work = tools.call(params.name, params.arguments or {}, caller_of(context))
        try:
            value = await _with_progress(work, context)
        except ToolFault as fault:
            return mcp_types.CallToolResult(content=[_text(str(fault))], is_error=True)
        return mcp_types.CallToolResult(content=[_text(msgspec.json.encode(value).decode())], structured_content=value)

    async def list_resources(_context: Any, _: Any) -> Any:
        return mcp_types.ListResourcesResult(resources=[])

    async def list_templates(_context: Any, _: Any) -> Any:
        template = mcp_types.ResourceTemplate(
            uri_template=TEMPLATE, name="memory block", mime_type="text/plain",
            description="A block of an agent's core memory; tools read_block and list_agents have the names.",
        )  # fmt: skip
        return mcp_types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(context: Any, params: Any) -> Any:
        uri = str(params.uri)
        try:
            text = await tools.block_text(*_parts(uri), caller_of(context))
        except ToolFault as fault:
            raise MCPError(mcp_types.INVALID_PARAMS, str(fault)) from fault
        return mcp_types.ReadResourceResult(contents=[mcp_types.TextResourceContents(uri=uri, text=text)])

    return Server(
        "everlog", version=version, instructions=INSTRUCTIONS, on_list_tools=list_tools, on_call_tool=call_tool,
        on_list_resources=list_resources, on_list_resource_templates=list_templates, on_read_resource=read_resource,
    )  # fmt: skip


def _shown(name: str, tool: ServedTool) -> Any:
    hints = mcp_types.ToolAnnotations(
        read_only_hint=tool.role == "read", destructive_hint=name == "replace_block", idempotent_hint=tool.repeatable,
        open_world_hint=name == "send_message",
    )  # fmt: skip
    return mcp_types.Tool(name=name, description=tool.description, input_schema=tool.schema(), annotations=hints)


def _text(text: str) -> Any:
    return mcp_types.TextContent(type="text", text=text)


async def _with_progress(work: Any, context: Any) -> Any:
    """Await a call, and tell the client from time to time that it still runs."""
    task = asyncio.get_running_loop().create_task(work)
    try:
        count = 0
        while not (await asyncio.wait((task,), timeout=PROGRESS_S))[0]:
            count += 1
            await context.session.report_progress(float(count), None, "The agent is at work.")
        return task.result()
    finally:
        task.cancel()


def _parts(uri: str) -> tuple[str, str]:
    """Return the agent and the label in the address of a block. Raises MCPError."""
    name, found, label = uri.removeprefix(PREFIX).partition("/blocks/")
    if not uri.startswith(PREFIX) or not found or not name or not label:
        raise MCPError(mcp_types.INVALID_PARAMS, f"There is no resource {uri[:200]!r}; there are {TEMPLATE}.")
    return unquote(name), unquote(label)


def block_address(agent: str, label: str) -> str:
    """Return the address of a block as a resource."""
    values: Mapping[str, str] = {"name": quote(agent, safe=""), "label": quote(label, safe="")}
    return TEMPLATE.format(**values)
