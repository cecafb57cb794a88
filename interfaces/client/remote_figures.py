"""List the agents of a server with the figures that it has of them. No log is downloaded."""

from collections.abc import Iterator

import msgspec

from everlog.actors.reports.fleet_listing import FleetListing
from everlog.events.times import iso, since_epoch
from everlog.interfaces.client.server_address import WireRequest
from everlog.interfaces.client.server_channel import BlockingChannel
from everlog.interfaces.wire.agents import AgentPage

PAGE = 1000
"""Agents of one request of a listing."""


def agent_pages(
    channel: BlockingChannel, *, until: int | None = None, deleted: bool = False, check: bool = False
) -> Iterator[AgentPage]:
    """Yield the agents of a server, by name. `until`, `deleted`: see `list_agents`. `check`: the first page has the
    errors of the register, too.
    """
    cursor: str | None = ""
    while cursor is not None:
        query = [("limit", str(PAGE)), ("cursor", cursor), ("deleted", "true" if deleted else "false")]
        query += [("check", "true")] if check and not cursor else []
        query += [] if until is None else [("as_of", iso(until))]
        page = channel.call(WireRequest("GET", "/agents", query=query), AgentPage)
        yield page
        cursor = page.next


def listing_of(
    channel: BlockingChannel, *, until: int | None = None, deleted: bool = False, check: bool = False
) -> FleetListing:
    """Return the listing of `list_agents`, whose rows have a `name` too: the newest one of the agent. `check`: its
    damage has the errors of the register.
    """
    found = FleetListing([], [])
    for page in agent_pages(channel, until=until, deleted=deleted, check=check):
        for row in page.agents:
            active = None if row.last_active is None else since_epoch(row.last_active)
            found.rows.append({**msgspec.structs.asdict(row), "agent_id": row.agent, "last_active": active})
        found.damaged.extend(one for one in page.damaged if one not in found.damaged)
    return found
