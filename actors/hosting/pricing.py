"""What tokens cost in a store: by its `models.toml`, the variables of the gateway, and the list that is shipped."""

from pathlib import Path

from actors.catalogue import catalogue_of
from actors.prices import Prices, own_prices

from .limits import Limits, known_prices


def prices_at(root: Path | None, limits: Limits) -> Prices:
    """All prices that are known there; None: in no store. Raises BadInput for a description that cannot be used."""
    return known_prices(limits, None if root is None else own_prices(catalogue_of(root).models))
