"""Make the models that a gateway calls, from names and base URLs, with shared connections.

Used by `Gateway`, and by `hosting.agent_factory` for the address of a model.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from everlog.actors.gateway.gateway_limits import GatewayLimits
from everlog.actors.models.make_model import model_for
from everlog.actors.models.model_catalogue import catalogue_of, place_at, request_url
from everlog.actors.models.model_types import Catalogue, file_of
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import CheckedModel, Model, ModelResponse
from everlog.events import BadInput, ModelError

if TYPE_CHECKING:
    from everlog.actors.models.gguf_model import LlamaServer
    from everlog.actors.models.openai_client import ConnectionPool

ModelFactory = Callable[[str, str], Model]
"""Function from a model's name and base URL (or empty) to a model, which tries each request once."""


async def checked(model: Model) -> ModelResponse:
    """Return an empty answer if the model can be asked, as far as it can tell. Raises ModelError if it cannot."""
    if isinstance(model, CheckedModel):
        await model.check()
    return ModelResponse("", 0)


def served_at(root: Path, name: str, base_url: str) -> str:
    """Return the address of a model for agents of the store in `root`. Raises ModelError for a bad models.toml."""
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
    """Return a factory of real models. Models at one address share its connections, and models in one file share its
    server.

    `root`: store whose descriptions say which key belongs to which address.
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
        return ChatEndpoint(name, connections=places[place], limits=known.limits_of(request_url(base_url)))

    return make
