"""The models that a gateway asks: from a name and a place to one that can be asked, its connections kept and shared."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from actors.effects import Model
from actors.setup import OFFLINE
from actors.system import model_for

from .limits import Limits

if TYPE_CHECKING:
    from actors.endpoint import Connections

Models = Callable[[str, str], Model]
"""From a name and the place where it is served (or empty) to a model, which tries each request once."""


def real_models(limits: Limits) -> Models:
    """Models as they are; those at one place share its connections, of which there are as many as there is use for."""
    places: dict[str, Connections] = {}

    def make(name: str, base_url: str) -> Model:
        if name == OFFLINE:
            return model_for(name)
        from actors.endpoint import Connections, Endpoint

        if base_url not in places:
            places[base_url] = Connections(name, base_url or None, connections_max=limits.asks_max)
        return Endpoint(name, connections=places[base_url])

    return make
