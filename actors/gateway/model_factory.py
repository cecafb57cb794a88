"""The models that a gateway asks: from a name and a place to one that can be asked, its connections kept and shared."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.models.make_model import model_for
from everlog.actors.models.model_catalogue import catalogue_of, place_at, request_url
from everlog.actors.models.model_types import Catalogue, file_of
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import Model
from everlog.events import BadInput, ModelError

if TYPE_CHECKING:
    from everlog.actors.models.gguf_model import LlamaServer
    from everlog.actors.models.openai_client import ConnectionPool

ModelFactory = Callable[[str, str], Model]
"""From a name and the place where it is served (or empty) to a model, which tries each request once."""


def served_at(root: Path, name: str, base_url: str) -> str:
    """The address at which agents of the store in `root` ask for a model. Raises ModelError for a bad models.toml."""
    try:
        return place_at(root, name, base_url).url
    except BadInput as error:
        raise ModelError(str(error), kind="rejected", attempts=0) from error


def _catalogue_of(root: Path) -> Catalogue:
    try:
        return catalogue_of(root)
    except BadInput as error:
        raise ModelError(str(error), kind="rejected", attempts=0) from error


def real_models(limits: GatewayLimits, root: Path | None = None) -> ModelFactory:
    """Models as they are; those at one place share its connections, of which there are as many as there is use for, and
    those that are one file share its server. `root`: the store whose descriptions say which key is for which place.
    """
    places: dict[tuple[str, str], ConnectionPool] = {}
    files: dict[str, LlamaServer] = {}

    def make(name: str, base_url: str) -> Model:
        if name == OFFLINE:
            return model_for(name)
        known = Catalogue() if root is None else _catalogue_of(root)
        path, _ = file_of(name)
        if path:
            from everlog.actors.models.gguf_model import GgufModel, server_of

            if path not in files:
                files[path] = server_of(name, known)
            return GgufModel(name, files[path], known)
        from everlog.actors.models.openai_client import ChatEndpoint, ConnectionPool

        place = base_url, known.key_of(request_url(base_url))
        if place not in places:
            places[place] = ConnectionPool(name, base_url or None, connections_max=limits.asks_max, key_name=place[1])
        return ChatEndpoint(name, connections=places[place])

    return make
