"""Find the prices of tokens in a store: its `models.toml`, the gateway's variables, and the list that everlog ships.

Used by `Gateway` for budgets, by `AgentSystem` for the costs of replies, and by `everlog cost` and `everlog sql`: all
must find the same prices.
"""

import os
from pathlib import Path

from everlog.actors.gateway.gateway_limits import GatewayLimits, all_prices, limits_from
from everlog.actors.models.model_catalogue import catalogue_of
from everlog.actors.models.prices import PriceList, own_prices
from everlog.actors.ports.effects import ThreadRunner
from everlog.events import BadInput, ModelError


def prices_of(root: Path, limits: GatewayLimits) -> PriceList:
    """Return all prices that are known in a store. Raises BadInput for an unusable models.toml."""
    return all_prices(limits, own_prices(catalogue_of(root).models))


def prices_at(root: Path | None, limits: GatewayLimits) -> PriceList:
    """Return all prices for a paid request; `root` None: without a store. Raises ModelError instead of BadInput, so
    that the turn fails with this message.
    """
    if root is None:
        return all_prices(limits)
    try:
        return prices_of(root, limits)
    except BadInput as error:
        raise ModelError(str(error), kind="rejected", attempts=0) from error


class KnownPrices:
    """Prices that a store had when they were first needed, or the error for which there are none."""

    def __init__(self, root: Path, limits: GatewayLimits | None, aside: ThreadRunner) -> None:
        """Store the arguments. `limits`: None for those of the environment. `aside` runs what blocks in a thread."""
        self._root = root
        self._limits = limits
        self._aside = aside
        self._found: PriceList | BadInput | None = None

    async def __call__(self) -> PriceList | BadInput:
        """Return the prices, or the error."""
        if self._found is None:
            try:
                self._found = await self._aside(prices_of, self._root, self._limits or limits_from(os.environ))
            except BadInput as error:
                self._found = error
        return self._found
