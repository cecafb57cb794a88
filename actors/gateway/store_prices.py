"""Find the prices of tokens in a store: its `models.toml`, the gateway's variables, and the list that everlog ships.

Used by `Gateway` for budgets, and by `everlog cost` and `everlog sql`: both must find the same prices.
"""

from pathlib import Path

from everlog.actors.gateway.gateway_limits import GatewayLimits, all_prices
from everlog.actors.models.model_catalogue import catalogue_of
from everlog.actors.models.prices import PriceList, own_prices
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
