"""Search agents of a server: by words and by meaning, where the index is."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.events.times import since_epoch
from everlog.interfaces.client.server_address import WireRequest, path_of
from everlog.interfaces.client.server_channel import ServerChannel
from everlog.interfaces.wire.archive import HitPage, HitShape

ARCHIVAL = ("archive", "documents")
"""Places whose search together has a ranking of its own."""
Params = list[tuple[str, str]]


async def search_agent(
    channel: ServerChannel, agent_id: str, query: str, page: int, count: int, filters: Filters, *, archival: bool
) -> Page:
    """Search one agent. `page`: from 0. `archival`: only its archival memory. Raises BadInput for unusable filters."""
    params = _params(query, page, count, filters, ARCHIVAL if archival else filters.places)
    request = WireRequest("GET", f"/agents{path_of(agent_id)}/search", query=params)
    return _page(await channel.call(request, HitPage))


async def search_agents(
    channel: ServerChannel,
    agents: Sequence[str] | None,
    query: str,
    page: int,
    count: int,
    filters: Filters,
    as_of: datetime | None,
) -> Page:
    """Search many agents; None: all. Raises BadInput for unusable filters."""
    params = _params(query, page, count, filters, filters.places)
    params += [("agent", name) for name in agents or ()]
    if as_of is not None:
        params.append(("as_of", as_of.isoformat()))
    return _page(await channel.call(WireRequest("GET", "/search", query=params), HitPage))


def _params(query: str, page: int, count: int, filters: Filters, places: Sequence[str]) -> Params:
    params: Params = [("query", query), ("page", str(page + 1)), ("count", str(count))]
    several: tuple[tuple[str, Sequence[str]], ...] = (
        ("place", places), ("role", filters.roles), ("tag", filters.tags), ("kind", filters.kinds),
    )  # fmt: skip
    params += [(name, value) for name, values in several for value in values]
    single = (("source", filters.source), ("since", filters.start), ("until", filters.end))
    params += [(name, value) for name, value in single if value]
    return [*params, ("ended", "true")] if filters.ended else params


def _page(found: HitPage) -> Page:
    return Page(
        found.total, found.page - 1, found.pages, [_hit(shape) for shape in found.results], found.by_meaning,
        found.archive_down, found.reranked, found.reranker_down,
    )  # fmt: skip


def _hit(shape: HitShape) -> Hit:
    given: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(shape).items() if name not in {"place", "time", "until"}
    }
    until = None if shape.until is None else since_epoch(shape.until)
    return Hit(**given, at=since_epoch(shape.time), until=until)
