"""Functions of agents for clients of Letta: list them, and attach or detach those of derived memory.

An agent has its own functions and those that the operator gives to all agents (`everlog serve --tools`). Code is never
taken over HTTP.
"""

from collections.abc import Sequence

import msgspec

from everlog.actors.agent.agent_setup import Settings
from everlog.actors.functions.memgpt_functions import BUILTIN
from everlog.actors.mail.mail_functions import OPTIONAL, OPTIONAL_FUNCTIONS
from everlog.actors.rules.approval_rules import with_rule
from everlog.events import ApprovalRule
from everlog.interfaces.http.core.routes import HttpCall, not_found
from everlog.interfaces.http.letta.agent_states import LettaAgent, LettaTool, agent_state, tool_of, tools_of
from everlog.interfaces.http.letta.letta_calls import (
    LettaPageQuery,
    agent_ref,
    agent_stream,
    page_of,
    refused,
    viewed,
)


class LettaApprovalFlag(msgspec.Struct, frozen=True, kw_only=True):
    """Choice for the calls of a function; the client sends it twice."""

    requires_approval: bool | None = None


class LettaToolQuery(LettaPageQuery, frozen=True, kw_only=True):
    """Selection of functions."""

    name: str | None = None
    names: tuple[str, ...] = ()
    tool_ids: tuple[str, ...] = ()
    search: str | None = None


async def list_agent_tools(call: HttpCall) -> Sequence[LettaTool]:
    """List the functions of an agent."""
    tools = await viewed(call, await agent_stream(call), tools_of)
    return page_of(tools, call.query, lambda tool: tool.id)


async def attach_tool(call: HttpCall) -> LettaAgent:
    """Give a function to an agent."""
    stream, tool = await agent_stream(call), _known(call, call.params["tool_id"])
    had = await _names(call, stream)
    if tool.name not in had:
        if tool.name not in OPTIONAL:
            raise refused(
                f"{tool.name!r} is a function that all agents of this server have: the agent gets it when it is opened "
                "next."
            )
        await _configure(call, stream, [name for name in OPTIONAL if name in had or name == tool.name])
    return await agent_state(call, stream)


async def detach_tool(call: HttpCall) -> LettaAgent:
    """Take a function from an agent."""
    stream, tool = await agent_stream(call), _known(call, call.params["tool_id"])
    had = await _names(call, stream)
    if tool.name in had:
        if tool.name not in OPTIONAL:
            raise refused(f"{tool.name!r} is a function that all agents of this server have: it cannot be taken away.")
        await _configure(call, stream, [name for name in OPTIONAL if name in had and name != tool.name])
    return await agent_state(call, stream)


async def require_approval(call: HttpCall) -> LettaAgent:
    """Let the calls of a function wait for a person's approval, or let them run."""
    stream, name = await agent_stream(call), call.params["tool_name"]
    wanted = call.query.requires_approval if call.body.requires_approval is None else call.body.requires_approval
    if wanted is None:
        raise refused("`requires_approval` is missing: true or false.")
    config = await viewed(call, stream, lambda view: view.context().config)
    if name not in {function.name for function in config.functions}:
        raise not_found(f"function {name[:80]!r} of this agent")
    rules = with_rule(config.approvals, ApprovalRule(name, "ask" if wanted else "allow"))
    await (await agent_ref(call, stream)).configure(Settings(approvals=rules))
    return await agent_state(call, stream)


async def _configure(call: HttpCall, stream: str, names: Sequence[str]) -> None:
    await (await agent_ref(call, stream)).configure(Settings(optional_functions=names))


async def list_tools(call: HttpCall) -> Sequence[LettaTool]:
    """List the functions that agents of this server can have."""
    query: LettaToolQuery = call.query
    found = [
        tool
        for tool in _all(call)
        if query.name in {None, tool.name}
        and (not query.names or tool.name in query.names)
        and (not query.tool_ids or tool.id in query.tool_ids)
        and (query.search or "").casefold() in f"{tool.name} {tool.description}".casefold()
    ]
    return page_of(found, query, lambda tool: tool.id)


async def show_tool(call: HttpCall) -> LettaTool:
    """Return a function."""
    return _known(call, call.params["tool_id"])


def _all(call: HttpCall) -> Sequence[LettaTool]:
    return [tool_of(tool.name, tool.schema) for tool in (*BUILTIN, *call.service.system.tools, *OPTIONAL_FUNCTIONS)]


def _known(call: HttpCall, tool_id: str) -> LettaTool:
    for tool in _all(call):
        if tool.id == tool_id:
            return tool
    raise not_found(f"function {tool_id[:80]!r}")


async def _names(call: HttpCall, stream: str) -> set[str]:
    functions = await viewed(call, stream, lambda view: view.context().config.functions)
    return {function.name for function in functions}
