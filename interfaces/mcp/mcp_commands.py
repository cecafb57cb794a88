"""`everlog mcp`: add, list, test, refresh and remove the servers that lend functions to agents.

Called by `cli.command_run`. Only commands that ask a server start it, or connect to it.
"""

import asyncio
import shlex
from argparse import Namespace
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from everlog.actors.mcp import accepted_tools, servers_toml
from everlog.actors.mcp.offered_tool import Offer, OfferedTool
from everlog.actors.mcp.server_connections import NEEDED, ServerConnections, process_connections
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.events import BadInput, UsageError
from everlog.interfaces.common import time_text
from everlog.interfaces.common.error_output import sanitize
from everlog.interfaces.common.front_end import CommandEnvironment
from everlog.interfaces.common.open_store import root_of
from everlog.interfaces.mcp.mcp_pages import accepted_row, change_row, difference_lines, print_rows
from everlog.interfaces.output import json_shapes


def add(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `mcp add`: ask the server what it offers, and write it into the file if it answers."""
    root = root_of(args)
    entry = _entry_of(args)
    text = servers_toml.entry_text(args.server_name, entry)
    servers_toml.parse_servers(text, "the new server")
    if args.server_name in servers_toml.servers_of(root):
        raise BadInput(f"There is an MCP server {args.server_name!r} already. Remove it first, or take another name.")
    offer = _asked(args.server_name, entry)
    accepted = accepted_tools.accept(args.server_name, entry, offer, world.clock.now())
    servers_toml.add_server(root, args.server_name, entry)
    accepted_tools.keep_accepted(root, args.server_name, accepted)
    rows = [accepted_row(args.server_name, entry, tool) for tool in accepted.tools]
    if args.json:
        print(json_shapes.line({"server": args.server_name, "tools": rows, "left_out": _left_out(entry, offer)}))
        return 0
    print_rows(rows)
    _print_left_out(entry, offer)
    print(f"Added {args.server_name}. Give its functions to an agent: everlog chat NAME --mcp {args.server_name}")
    return 0


def list_all(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `mcp list`. No server is started."""
    root = root_of(args)
    accepted = accepted_tools.accepted_of(root)
    rows = [_server_row(name, entry, accepted.get(name)) for name, entry in servers_toml.servers_of(root).items()]
    if args.json:
        print(json_shapes.line(rows))
        return 0
    if not rows:
        print("There are no MCP servers. `everlog mcp add NAME --command COMMAND` adds one.")
    for row in rows:
        when = f"accepted {time_text.clock(row['accepted_at'])}" if row["accepted_at"] else "nothing accepted"
        print(sanitize(f"{row['server']}  {row['functions']} functions, {when}  {row['place']}"))
    return 0


def test(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `mcp test`: ask a server, and show each function as an agent would get it. Exit code 1 if the
    server offers something else than what was accepted.
    """
    root = root_of(args)
    entry = servers_toml.server_of(root, args.server_name)
    offer = _asked(args.server_name, entry)
    changes = list(accepted_tools.compared(entry, accepted_tools.accepted_of(root).get(args.server_name), offer))
    rows = [change_row(args.server_name, entry, change) for change in changes]
    differs = any(row["change"] != "same" for row in rows if not row["fault"])
    if args.json:
        shape = {"server": args.server_name, "program": offer.server, "protocol": offer.protocol, "tools": rows}
        print(json_shapes.line(shape))
        return int(differs)
    program = offer.server or "A server without a name"
    print(sanitize(f"{program} answers, by revision {offer.protocol} of the protocol."))
    print_rows(rows)
    _print_left_out(entry, offer)
    if differs:
        print(f"The server offers something else than what was accepted: everlog mcp refresh {args.server_name}")
    return int(differs)


def refresh(args: Namespace, world: CommandEnvironment) -> int:
    """Run the command `mcp refresh`: show what changed at a server, and with --accept let agents get it."""
    root = root_of(args)
    entry = servers_toml.server_of(root, args.server_name)
    offer = _asked(args.server_name, entry)
    changes = [
        change
        for change in accepted_tools.compared(entry, accepted_tools.accepted_of(root).get(args.server_name), offer)
        if change.change != "same"
    ]
    accepted = accepted_tools.accept(args.server_name, entry, offer, world.clock.now())
    if args.accept:
        accepted_tools.keep_accepted(root, args.server_name, accepted)
    if args.json:
        rows = [{**change_row(args.server_name, entry, one), "lines": difference_lines(one)} for one in changes]
        print(json_shapes.line({"server": args.server_name, "accepted": args.accept, "tools": rows}))
        return 0
    for change in changes:
        print(sanitize(f"{change.change:<8} {change.newest.public_name(args.server_name)}"))
        print("".join(f"    {sanitize(line)}\n" for line in difference_lines(change)), end="")
    _print_left_out(entry, offer)
    if not changes:
        print(f"{args.server_name} offers what was accepted.")
    elif args.accept:
        print("Accepted. An agent gets the new descriptions when it is opened next.")
    else:
        command = f"everlog mcp refresh {args.server_name} --accept"
        print(f"Nothing was accepted. If agents may read and call this: {command}")
    return 0


def remove(args: Namespace, _: CommandEnvironment) -> int:
    """Run the command `mcp remove`."""
    root = root_of(args)
    servers_toml.remove_server(root, args.server_name)
    accepted_tools.keep_accepted(root, args.server_name, None)
    print(json_shapes.line({"server": args.server_name}) if args.json else f"Removed {args.server_name}.")
    return 0


def _entry_of(args: Namespace) -> ServerEntry:
    """Return the entry that the arguments describe. Raises BadInput for a header without a variable."""
    headers = dict(header.partition("=")[::2] for header in args.header)
    if not all(headers.values()):
        raise BadInput("--header is NAME=VARIABLE: the variable holds the value, so that no file does.")
    try:
        command, *rest = shlex.split(args.mcp_command or "") or [""]
    except ValueError as error:
        raise BadInput(f"--command {args.mcp_command}: this is no command line ({error}).") from error
    return ServerEntry(
        command=command, args=tuple(rest), env=tuple(args.env), folder=args.folder or "", url=args.url or "",
        token=args.token or "", headers=headers, only=tuple(args.only),
    )  # fmt: skip


def _asked(name: str, entry: ServerEntry, connections: ServerConnections | None = None) -> Offer:
    """Return what a server offers, and end the connection. Raises McpError, UsageError without the package."""
    if find_spec("mcp") is None:
        raise UsageError(NEEDED)
    asked = connections or process_connections()
    try:
        return asyncio.run(asked.offer(name, entry))
    finally:
        asked.close()


def _server_row(name: str, entry: ServerEntry, accepted: accepted_tools.AcceptedServer | None) -> Mapping[str, Any]:
    tools = [tool for tool in (accepted.tools if accepted else ()) if entry.offers(tool.name)]
    return {
        "server": name, "place": entry.place(), "functions": len(tools), "program": accepted.server if accepted else "",
        "protocol": accepted.protocol if accepted else "", "accepted_at": accepted.accepted_at if accepted else None,
    }  # fmt: skip


def _left_out(entry: ServerEntry, offer: Offer) -> Sequence[Mapping[str, str]]:
    """Return the functions that agents cannot get, with the reasons."""
    faults = [(tool.name, tool.fault()) for tool in _wanted(entry, offer)]
    doubled = [(name, "the server has several functions of that name: the first counts") for name in offer.doubled]
    return [{"function": name, "reason": reason} for name, reason in (*faults, *doubled) if reason]


def _wanted(entry: ServerEntry, offer: Offer) -> Iterable[OfferedTool]:
    return (tool for tool in offer.tools if entry.offers(tool.name))


def _print_left_out(entry: ServerEntry, offer: Offer) -> None:
    for left in _left_out(entry, offer):
        print(sanitize(f"Left out: {left['function'][:80]!r}, because {left['reason']}."))
