"""Make functions of agents from what the operator accepted of a server. Nothing is imported or started for that.

The first call starts the server, where the agent runs. A function takes the description of its server along, so that it
works in any process; secrets stay in the environment of the process.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from everlog.actors.functions.function_text import failure
from everlog.actors.functions.schema_tool import SchemaTool
from everlog.actors.functions.tools import Tool
from everlog.actors.mcp.accepted_tools import AcceptedServer, accepted_of
from everlog.actors.mcp.call_outcome import LostReply, RefusedRequest, UnreadableReply
from everlog.actors.mcp.offered_tool import OfferedTool
from everlog.actors.mcp.server_connections import NEEDED, ServerConnections, process_connections
from everlog.actors.mcp.server_entry import CALL_CAP_S, LIST_S, ServerEntry
from everlog.actors.mcp.servers_toml import server_of
from everlog.events import BadInput, FunctionError, FunctionResult, McpError, Question, UsageError

MAYBE_DONE = "It may have been carried out. Find out before you call it again."


class McpFunction(SchemaTool, frozen=True, kw_only=True):
    """A function of an MCP server."""

    server: str = ""
    """Name of the server in the operator's file."""


def mcp_tools(store: str | Path, *servers: str) -> list[Tool]:
    """Return the functions of MCP servers that the operator of a store added and accepted, by the names of the servers.

    No names: no functions. Raises BadInput for a server that there is not, or of which nothing was accepted; UsageError
    without the package.
    """
    root = Path(store).expanduser()
    accepted = accepted_of(root) if servers else {}
    return [tool for name in dict.fromkeys(servers) for tool in _tools_of(root, name, accepted.get(name))]


def _tools_of(root: Path, name: str, accepted: AcceptedServer | None) -> Iterator[Tool]:
    entry = server_of(root, name)
    if accepted is None:
        raise BadInput(f"Nothing of the MCP server {name!r} was accepted: `everlog mcp refresh {name} --accept`.")
    if find_spec("mcp") is None:
        raise UsageError(NEEDED)
    return functions_of(name, entry, accepted.tools)


def functions_of(
    name: str,
    entry: ServerEntry,
    tools: Sequence[OfferedTool],
    connections: Callable[[], ServerConnections] = process_connections,
) -> Iterator[Tool]:
    """Yield the functions of a server as agents get them. `connections`: those of the process that makes a call."""
    for tool in tools:
        if entry.offers(tool.name):
            yield _function(name, entry, tool, connections)


def _function(
    name: str, entry: ServerEntry, tool: OfferedTool, connections: Callable[[], ServerConnections]
) -> McpFunction:
    schema, effect = tool.shown_schema(name), tool.effect(entry)
    public = tool.public_name(name)
    tries = 1 if effect == "at_most_once" else 2
    return McpFunction(
        name=public,
        function=partial(_called, connections, name, entry, tool),
        effect=effect,
        schema=schema,
        timeout_s=tries * (entry.connect_s + LIST_S + max(CALL_CAP_S, entry.call_s)),
        approval=tool.approval(entry),
        server=name,
    )


async def _called(
    connections: Callable[[], ServerConnections], name: str, entry: ServerEntry, tool: OfferedTool, /, **arguments: Any
) -> Any:
    """Call the function, and return its text, or its question to a person; for a call that failed, a FunctionResult
    without the call's id.
    """
    effect, public = tool.effect(entry), tool.public_name(name)
    failed = partial(_failed, public)
    try:
        answer = await connections().call(name, entry, tool, arguments, repeats=effect != "at_most_once")
    except RefusedRequest as error:
        return failed(f"{error}.")
    except McpError as error:
        return failed(f"{error} Nothing was called.")
    except LostReply as error:
        if effect == "read_only":
            return failed(f"the answer was lost: {error}. It can be called again.")
        return failed(f"the answer was lost: {error}. {MAYBE_DONE}", unknown=True)
    except UnreadableReply as error:
        if effect == "read_only":
            return failed(f"the answer cannot be read: {error}.")
        return failed(f"the answer cannot be read: {error}. {MAYBE_DONE}", unknown=True)
    if isinstance(answer, Question):
        return answer
    return answer.text if answer.ok else failed(answer.text or "the server says that it failed, and not why.")


def _failed(public: str, words: str, *, unknown: bool = False) -> FunctionResult:
    text = failure(public, FunctionError(words))
    return FunctionResult(text=text, call_id="", name=public, ok=False, unknown=unknown)
