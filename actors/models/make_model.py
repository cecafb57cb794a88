"""Make a model by its name: the embedded stand-in, a file, or a model behind an endpoint. Each is imported when needed.

Used by `local_system.py`, and by the gateway and its client.
"""

from everlog.actors.models.model_types import file_of
from everlog.actors.ports.agent_constants import OFFLINE
from everlog.actors.ports.effects import Model


def model_for(name: str, base_url: str | None = None) -> Model:
    """Return the model of that name: the embedded stand-in, a file, or one behind an OpenAI-compatible endpoint."""
    if name == OFFLINE:
        from everlog.actors.models.offline import OfflineModel

        return OfflineModel()
    if file_of(name)[0]:
        from everlog.actors.models.gguf_model import GgufModel

        return GgufModel(name)
    from everlog.actors.models.openai_client import ChatEndpoint

    return ChatEndpoint(name, base_url)
