"""Reruns in this process: a fork has a log of its own, so that it needs no host, wherever its parent is."""

import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from everlog.actors.agent.commands import SessionCapabilities
from everlog.actors.archive.archive_index import local_archive
from everlog.actors.gateway.gateway import Gateway
from everlog.actors.gateway.gateway_limits import GatewayLimits, limits_from
from everlog.actors.gateway.model_factory import served_at
from everlog.actors.ports.effects import Clock, Ids, Model, ModelResponse
from everlog.actors.rerun.rerun import RerunEnvironment
from everlog.actors.rerun.rerun_comparison import TokenPrices
from everlog.store import FileStore


class _RerunGatewayModel:
    """A model behind a gateway."""

    def __init__(self, name: str, base_url: str, gateway: Gateway) -> None:
        self.name = name
        self._base_url = base_url
        self._gateway = gateway

    async def ask(self, request: bytes) -> ModelResponse:
        """Send exactly these bytes. Raises ModelError."""
        return await self._gateway.ask(self.name, self._base_url, request)

    async def close(self) -> None:
        """Connections are the gateway's."""


def prices_of(limits: GatewayLimits) -> TokenPrices:
    """What tokens cost, as far as the gateway was told."""
    return TokenPrices(limits.price_in, limits.price_out)


@asynccontextmanager
async def stage(
    store: FileStore,
    lent: SessionCapabilities | None,
    *,
    models: Callable[[str, str], Model] | None,
    clock: Clock,
    ids: Ids,
    note: Callable[[str], None],
) -> AsyncIterator[RerunEnvironment]:
    """What a rerun works with here: a gateway with the limits of the variables, and the index of the store."""
    lent, limits = lent or SessionCapabilities(), limits_from(os.environ)
    gateway = Gateway(models, limits, clock=clock, root=store.root)
    archive = local_archive(store, "spare", note=note)
    try:
        yield RerunEnvironment(
            store=store,
            clock=clock,
            ids=ids,
            models=lambda name: _RerunGatewayModel(name, served_at(store.root, name, lent.base_url), gateway),
            tools=lent.tools,
            grants=lent.grants,
            archive=archive,
            prices=prices_of(limits),
        )
    finally:
        await gateway.close()
        await archive.close()
