"""What tokens cost in a store: by its `models.toml`, the variables of the gateway, and the list that is shipped."""

from pathlib import Path

from everlog.actors.gateway.gateway_limits import GatewayLimits, all_prices
from everlog.actors.models.model_catalogue import catalogue_of
from everlog.actors.models.prices import PriceList, own_prices
from everlog.events import BadInput, ModelError


def prices_of(root: Path, limits: GatewayLimits) -> PriceList:
    """All prices that are known there. Raises BadInput for a description that cannot be used."""
    return all_prices(limits, own_prices(catalogue_of(root).models))


def prices_at(root: Path | None, limits: GatewayLimits) -> PriceList:
    """The same for a request that costs something; None: in no store. Raises ModelError instead: the turn says why."""
    if root is None:
        return all_prices(limits)
    try:
        return prices_of(root, limits)
    except BadInput as error:
        raise ModelError(str(error), kind="rejected", attempts=0) from error
