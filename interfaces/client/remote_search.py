"""Search agents of a server: by words and by meaning, where the index is."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from everlog.actors.ports.effects import Filters, Hit, Page
from everlog.events.times import since_epoch
from everlog.interfaces.client.server_address import WireRequest, path_of
from everlog.interfaces.client.server_channel import BlockingChannel, ServerChannel
from everlog.interfaces.wire.archive import HitPage, HitShape

ARCHIVAL = ("archive", "documents")
"""Places whose search together has a ranking of its own."""
Params = list[tuple[str, str]]


async def search_agent(
    channel: ServerChannel, agent_id: str, query: str, page: int, count: int, filters: Filters, *, archival: bool
) -> Page:
    """Search one agent. `page`: from 0. `archival`: only its archival memory. Raises BadInput for unusable filters."""
    return _page(await channel.call(_request(agent_id, query, page, count, filters, archival=archival), HitPage))


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


class RemoteSearcher:
    """Searches of an agent of a server at a moment, with the methods of `AgentSearcher` that commands call."""

    def __init__(self, channel: BlockingChannel, agent_id: str, as_of: str | None, zone: str) -> None:
        """`as_of`: seq or time; None: now. `zone`: IANA zone in which the server counts days."""
        self._ask = channel
        self._agent_id, self._as_of = agent_id, as_of
        self.zone = zone

    async def everything(self, query: str, page: int, count: int, filters: Filters) -> Page:
        """Search all places, or those of the filters; see `AgentSearcher.everything`."""
        return self._found(_request(self._agent_id, query, page, count, filters, archival=False))

    async def archival(self, query: str, page: int, count: int, filters: Filters) -> Page:
        """Search archival memory and documents; see `AgentSearcher.archival`."""
        return self._found(_request(self._agent_id, query, page, count, filters, archival=True))

    def _found(self, request: WireRequest) -> Page:
        as_of = [] if self._as_of is None else [("as_of", self._as_of)]
        return _page(self._ask.call(request._replace(query=[*request.query, *as_of]), HitPage))


def _request(agent_id: str, query: str, page: int, count: int, filters: Filters, *, archival: bool) -> WireRequest:
    params = _params(query, page, count, filters, ARCHIVAL if archival else filters.places)
    return WireRequest("GET", f"/agents{path_of(agent_id)}/search", query=params)


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
        found.archive_down, found.reranked, found.reranker_down, found.unread,
    )  # fmt: skip


def _hit(shape: HitShape) -> Hit:
    given: dict[str, Any] = {
        name: value for name, value in msgspec.structs.asdict(shape).items() if name not in {"place", "time", "until"}
    }
    until = None if shape.until is None else since_epoch(shape.until)
    return Hit(**given, at=since_epoch(shape.time), until=until)
