"""Models, the embedder and the state of the server, for clients of Letta."""

from collections.abc import Sequence

import msgspec

from everlog.actors.ports.agent_constants import WINDOW_TOKENS
from everlog.interfaces.common.installed import installed_version
from everlog.interfaces.http.core.routes import HttpCall
from everlog.interfaces.http.letta.agent_states import LettaEmbedding
from everlog.interfaces.manage.models_command import rows_of


class LettaModel(msgspec.Struct, frozen=True, kw_only=True):
    """A model that the store knows."""

    handle: str
    name: str
    model: str
    display_name: str
    context_window: int
    max_context_window: int
    model_endpoint_type: str = "openai"
    provider_type: str = "openai"
    provider_name: str = "everlog"
    provider_category: str = "base"
    model_type: str = "llm"


class LettaEmbedder(msgspec.Struct, frozen=True, kw_only=True):
    """The embedder of the store."""

    handle: str = "everlog"
    name: str = "everlog"
    display_name: str = "everlog"
    embedding_model: str
    embedding_dim: int
    embedding_endpoint_type: str
    provider_name: str = "everlog"
    provider_type: str = "hugging-face"
    model_type: str = "embedding"


class LettaHealth(msgspec.Struct, frozen=True, kw_only=True):
    """State of the server."""

    version: str
    status: str = "ok"


async def list_models(call: HttpCall) -> Sequence[LettaModel]:
    """List the known models."""
    rows = await call.service.ports.aside(lambda: list(rows_of(call.service.system.store.root)))
    return [
        LettaModel(
            handle=row["model"], name=row["model"], model=row["model"], display_name=row["model"],
            context_window=row["window"] or WINDOW_TOKENS, max_context_window=row["window"] or WINDOW_TOKENS,
        )
        for row in rows
    ]  # fmt: skip


async def model_names(call: HttpCall) -> frozenset[str]:
    """Return the names of the known models."""
    rows = await call.service.ports.aside(lambda: list(rows_of(call.service.system.store.root)))
    return frozenset(row["model"] for row in rows)


async def list_embedders(_: HttpCall) -> Sequence[LettaEmbedder]:
    """List the embedder of the store, the only one that it has."""
    shown = LettaEmbedding()
    return [
        LettaEmbedder(
            embedding_model=shown.embedding_model, embedding_dim=shown.embedding_dim,
            embedding_endpoint_type=shown.embedding_endpoint_type,
        )
    ]  # fmt: skip


async def show_health(_: HttpCall) -> LettaHealth:
    """Return the version of everlog."""
    return LettaHealth(version=installed_version("everlog"))
