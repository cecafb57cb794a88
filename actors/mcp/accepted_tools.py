"""Keep what the operator accepted of each server's functions: agents get these, and a changed one is refused.

A file in the store, beside the file of servers. A description is text of strangers that every model reads, so a change
needs the operator's consent: `everlog mcp refresh --accept`. The digest of what the model sees of a function is also in
the log of each agent that has it, by its `FunctionRef`.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import google_crc32c
import msgspec

from everlog.actors.mcp.offered_tool import TOOLS_MAX, Offer, OfferedTool
from everlog.actors.mcp.server_entry import ServerEntry
from everlog.events import BadInput
from everlog.store import change_whole, read_whole

FILE = "mcp-accepted.json"
"""Name of the file, in the store."""

ToolChange = Literal["same", "new", "changed", "gone"]


class AcceptedServer(msgspec.Struct, frozen=True, kw_only=True):
    """Functions of one server that the operator accepted."""

    tools: Sequence[OfferedTool]
    server: str = ""
    protocol: str = ""
    accepted_at: int
    """Microseconds UTC."""


class _AcceptedFile(msgspec.Struct):
    version: int = 1
    servers: dict[str, AcceptedServer] = {}
    crc32c: str = ""
    """Checksum of `servers` as they are encoded."""


class ComparedTool(msgspec.Struct, frozen=True):
    """One function of a server, as it was accepted and as it is offered now; None: there it does not exist."""

    change: ToolChange
    accepted: OfferedTool | None
    offered: OfferedTool | None

    @property
    def newest(self) -> OfferedTool:
        """The function as it is offered, or as it was."""
        found = self.offered or self.accepted
        assert found is not None, "a function exists before or after"
        return found


def _checksum(servers: Mapping[str, AcceptedServer]) -> str:
    return f"{google_crc32c.value(msgspec.json.encode(servers)):08x}"


def accepted_of(root: Path) -> dict[str, AcceptedServer]:
    """Return what was accepted, by server. Raise BadInput for a damaged file, StoreError."""
    path = root / FILE
    return _parsed(read_whole(path), path)


def _parsed(content: bytes | None, path: Path) -> dict[str, AcceptedServer]:
    if content is None:
        return {}
    try:
        found = msgspec.json.decode(content, type=_AcceptedFile)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _damaged(path) from error
    if found.version != 1 or found.crc32c != _checksum(found.servers):
        raise _damaged(path)
    return found.servers


def _damaged(path: Path) -> BadInput:
    return BadInput(
        f"{path} is damaged, or of another version. Remove it, and accept the functions again: `everlog mcp refresh "
        "NAME --accept`. No function of a server was given to an agent."
    )


def keep_accepted(root: Path, name: str, accepted: AcceptedServer | None) -> None:
    """Write what was accepted of a server; None: nothing is accepted any more. Raise BadInput, StoreError."""
    path = root / FILE

    def kept(content: bytes | None) -> bytes:
        servers = {**_parsed(content, path)}
        servers.pop(name, None)
        if accepted is not None:
            servers[name] = accepted
        file = _AcceptedFile(servers=servers, crc32c=_checksum(servers))
        return msgspec.json.format(msgspec.json.encode(file), indent=1) + b"\n"

    change_whole(path, kept)


def accept(name: str, entry: ServerEntry, offer: Offer, now: int) -> AcceptedServer:
    """Return what an operator accepts who accepts an offer: the functions that agents can get. Raise BadInput if there
    are more than agents can have.
    """
    tools = [tool for tool in offer.tools if entry.offers(tool.name) and not tool.fault()]
    if len(tools) > TOOLS_MAX:
        raise BadInput(
            f"The server {name!r} offers {len(tools):,} functions, and an agent gets at most {TOOLS_MAX} of one: "
            "each is part of every request. Name those that agents need with --only PATTERN, or as `only` in the file "
            "of servers. Nothing was accepted."
        )
    return AcceptedServer(tools=tools, server=offer.server, protocol=offer.protocol, accepted_at=now)


def compared(entry: ServerEntry, accepted: AcceptedServer | None, offer: Offer) -> Iterator[ComparedTool]:
    """Yield each function that agents get or could get, first as it was accepted, then what is new."""
    offered = {tool.name: tool for tool in offer.tools if entry.offers(tool.name)}
    for before in accepted.tools if accepted else ():
        after = offered.pop(before.name, None)
        change: ToolChange = "gone" if after is None else "same" if after.sha256 == before.sha256 else "changed"
        yield ComparedTool(change, before, after)
    for tool in offered.values():
        yield ComparedTool("new", None, tool)
